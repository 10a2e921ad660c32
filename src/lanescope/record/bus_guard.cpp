#include "lanescope/record/bus_guard.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

namespace lanescope::record {
namespace {

constexpr std::uintptr_t kPageBytes = 4096, kPageMask = kPageBytes - 1;

// A fault of this thread: its instruction runs again when the handler returns.
bool is_fault_of_this_thread(const siginfo_t& info) {
  return info.si_code > 0 && info.si_code != BUS_MCEERR_AO;
}

// Mappings lie next to each other, 128 KiB apart; few places keep the search short.
std::size_t first_place(std::uintptr_t address) { return (address >> 17) % 4096; }

}  // namespace

void BusGuard::install(void (*handler)(int, siginfo_t*, void*)) noexcept {
  if (installed_ || sigaction(SIGBUS, nullptr, &before_) != 0) return;
  struct sigaction ours {};
  // The handler before ours runs as it would without us: the same mask, the same stack.
  const bool had_handler = (before_.sa_flags & SA_SIGINFO) != 0 ||
                           (before_.sa_handler != SIG_DFL && before_.sa_handler != SIG_IGN);
  if (had_handler) {
    ours.sa_mask = before_.sa_mask;
    ours.sa_flags = before_.sa_flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART);
  } else {
    sigemptyset(&ours.sa_mask);
    ours.sa_flags = SA_ONSTACK | SA_RESTART;
  }
  ours.sa_flags |= SA_SIGINFO;
  ours.sa_sigaction = handler;
  installed_ = sigaction(SIGBUS, &ours, nullptr) == 0;
}

void BusGuard::handle(int signal, siginfo_t* info, void* context) noexcept {
  const int error = errno;
  const bool ours =
      is_fault_of_this_thread(*info) && replace(reinterpret_cast<std::uintptr_t>(info->si_addr));
  errno = error;
  if (!ours) pass_on(signal, info, context);
}

bool BusGuard::replace(std::uintptr_t address) noexcept {
  if (pid_.load(std::memory_order_relaxed) != getpid()) return false;
  const std::size_t end = end_.load(std::memory_order_acquire);  // pairs with add()
  for (std::size_t i = 0; i < end; ++i) {
    const std::uintptr_t range = ranges_[i].load(std::memory_order_relaxed);
    const std::uintptr_t begin = range & ~kPageMask;
    const std::size_t bytes = (range & kPageMask) * kPageBytes;
    if (address < begin || address - begin >= bytes) continue;
    report();
    return mmap(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void BusGuard::report() noexcept {
  recording_->store(0, std::memory_order_relaxed);
  faults_.fetch_add(1, std::memory_order_release);
}

void BusGuard::pass_on(int signal, siginfo_t* info, void* context) noexcept {
  const bool is_default = before_is_default_.load(std::memory_order_relaxed);
  if (!is_default && (before_.sa_flags & SA_RESETHAND))
    before_is_default_.store(true, std::memory_order_relaxed);
  if (!is_default && (before_.sa_flags & SA_SIGINFO))
    return before_.sa_sigaction(signal, info, context);
  const auto handler = is_default ? SIG_DFL : before_.sa_handler;
  if (handler != SIG_DFL && handler != SIG_IGN) return handler(signal);
  const bool fault = is_fault_of_this_thread(*info);
  if (handler == SIG_IGN && !fault) return;
  // The program ends as it would without us. A fault repeats by itself (SIG_IGN has no effect on
  // it); another signal is sent again.
  struct sigaction ending {};
  ending.sa_handler = SIG_DFL;
  sigaction(signal, &ending, nullptr);
  if (!fault) syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
}

bool BusGuard::add(const void* at, std::size_t bytes) noexcept {
  pid_.store(getpid(), std::memory_order_relaxed);
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t range = address | bytes / kPageBytes;
  for (std::size_t step = 0; step < kCapacity; ++step) {
    const std::size_t place = (first_place(address) + step) % kCapacity;
    std::uintptr_t empty = 0;
    if (!ranges_[place].compare_exchange_strong(empty, range, std::memory_order_relaxed)) continue;
    std::size_t end = end_.load(std::memory_order_relaxed);
    while (end <= place && !end_.compare_exchange_weak(end, place + 1, std::memory_order_release)) {
    }
    return true;
  }
  return false;
}

void BusGuard::remove(const void* at) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  for (std::size_t step = 0; step < kCapacity; ++step) {
    auto& range = ranges_[(first_place(address) + step) % kCapacity];
    if ((range.load(std::memory_order_relaxed) & ~kPageMask) != address) continue;
    range.store(0, std::memory_order_relaxed);
    return;
  }
}

void BusGuard::forget_all() noexcept {
  const std::size_t end = end_.exchange(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < end; ++i)
    if (ranges_[i].load(std::memory_order_relaxed) != 0)
      ranges_[i].store(0, std::memory_order_relaxed);
}

void unblock_bus_fault() noexcept {
  sigset_t bus;
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &bus, nullptr);
}

}  // namespace lanescope::record

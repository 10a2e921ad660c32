#include "lanescope/sample_native/running_samples.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#if defined(__x86_64__)
#include <asm/perf_regs.h>
#endif

namespace lanescope::sample_native {
namespace {

constexpr std::size_t kRingBytes = 64 << 10;  // data; three samples

#if defined(__x86_64__)
struct Register {
  unsigned perf, dwarf;
};
// In the order of perf's numbers, which is the order in a sample.
constexpr Register kRegisters[] = {
    {PERF_REG_X86_AX, 0},   {PERF_REG_X86_BX, 3},   {PERF_REG_X86_CX, 2},   {PERF_REG_X86_DX, 1},
    {PERF_REG_X86_SI, 4},   {PERF_REG_X86_DI, 5},   {PERF_REG_X86_BP, 6},   {PERF_REG_X86_SP, 7},
    {PERF_REG_X86_IP, 16},  {PERF_REG_X86_R8, 8},   {PERF_REG_X86_R9, 9},   {PERF_REG_X86_R10, 10},
    {PERF_REG_X86_R11, 11}, {PERF_REG_X86_R12, 12}, {PERF_REG_X86_R13, 13}, {PERF_REG_X86_R14, 14},
    {PERF_REG_X86_R15, 15}};

std::uint64_t register_mask() {
  std::uint64_t mask = 0;
  for (const Register& one : kRegisters) mask |= std::uint64_t{1} << one.perf;
  return mask;
}
#endif

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// Reads words from a record, and nothing beyond its end.
class Words {
 public:
  explicit Words(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool take(std::uint64_t* word) {
    if (bytes_.size() < sizeof *word) return false;
    std::memcpy(word, bytes_.data(), sizeof *word);
    bytes_ = bytes_.subspan(sizeof *word);
    return true;
  }
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

RunningSamples::~RunningSamples() {
  for (const auto& [thread, timer] : timers_) stop(timer);
}

void RunningSamples::stop(const Timer& timer) {
  if (timer.ring) munmap(timer.ring, page_bytes() + kRingBytes);
  if (timer.file >= 0) close(timer.file);
}

void RunningSamples::forget(pid_t thread) {
  const auto found = timers_.find(thread);
  if (found == timers_.end()) return;
  stop(found->second);
  timers_.erase(found);
}

#if defined(__x86_64__)

bool RunningSamples::start(pid_t thread, Timer* timer) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.sample_period = static_cast<std::uint64_t>(period_ns_);
  attributes.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attributes.sample_regs_user = register_mask();
  attributes.sample_stack_user = kStackBytes;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.exclude_hv = 1;
  attributes.wakeup_events = 1;  // wait() wakes up for each
  // Time in the kernel counts for the function that called it, where we may see that.
  for (const unsigned without_kernel : {0u, 1u}) {
    attributes.exclude_kernel = without_kernel & 1;
    timer->file = static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (timer->file >= 0) break;
  }
  if (timer->file < 0) {
    if (errno != ESRCH) refusal_ = errno;
    return false;
  }
  void* ring =
      mmap(nullptr, page_bytes() + kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, timer->file, 0);
  if (ring != MAP_FAILED) {
    timer->ring = ring;
    return true;
  }
  refusal_ = errno;
  close(timer->file);
  timer->file = -1;
  return false;
}

bool RunningSamples::parse(std::span<const std::byte> record, RunningSample* out) {
  Words words(record.subspan(sizeof(perf_event_header)));
  std::uint64_t time = 0, abi = 0, size = 0, used = 0;
  if (!words.take(&time) || !words.take(&abi) || abi != PERF_SAMPLE_REGS_ABI_64) return false;
  out->time_ns = static_cast<std::int64_t>(time);
  for (const Register& one : kRegisters) {
    std::uint64_t value = 0;
    if (!words.take(&value)) return false;
    out->registers.values[one.dwarf] = value;
  }
  if (!words.take(&size) || size > words.rest().size()) return false;
  const std::span<const std::byte> stack = words.rest().first(size);
  Words after(words.rest().subspan(size));
  if (size != 0 && !after.take(&used)) return false;
  out->stack.assign(stack.begin(),
                    stack.begin() + static_cast<std::ptrdiff_t>(std::min(used, size)));
  return true;
}

#else

bool RunningSamples::start(pid_t, Timer*) {
  refusal_ = ENOSYS;
  return false;
}
bool RunningSamples::parse(std::span<const std::byte>, RunningSample*) { return false; }

#endif

void RunningSamples::wait(std::int64_t most_ns) {
  files_.clear();
  for (const auto& [thread, timer] : timers_) {
    auto* page = static_cast<perf_event_mmap_page*>(timer.ring);
    const std::uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
    files_.push_back({timer.file, POLLIN, 0});
  }
  // Takes back what is known already: records that were dropped, threads that have ended.
  if (::poll(files_.data(), files_.size(), 0) > 0)
    for (pollfd& file : files_)
      if (file.revents & (POLLHUP | POLLERR)) file.fd = -1;
  const timespec most{most_ns / 1'000'000'000, most_ns % 1'000'000'000};
  static_cast<void>(::ppoll(files_.data(), files_.size(), &most, nullptr));
}

bool RunningSamples::take(pid_t thread, RunningSample* out) {
  auto found = timers_.find(thread);
  if (found == timers_.end()) {
    Timer timer;
    if (timers_.size() >= kMostThreads || !start(thread, &timer)) return false;
    found = timers_.emplace(thread, timer).first;
  }
  auto* page = static_cast<perf_event_mmap_page*>(found->second.ring);
  const std::byte* const data = static_cast<const std::byte*>(found->second.ring) + page_bytes();
  // acquire: pairs with the kernel's store after it has written the records
  const std::uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
  std::uint64_t tail = page->data_tail;
  bool has_one = false;
  while (head - tail >= sizeof(perf_event_header) && head - tail <= kRingBytes) {
    const auto copy = [&](void* to, std::uint64_t at, std::size_t size) {
      const std::size_t from = at % kRingBytes, first = std::min(size, kRingBytes - from);
      std::memcpy(to, data + from, first);
      std::memcpy(static_cast<std::byte*>(to) + first, data, size - first);
    };
    perf_event_header header;
    copy(&header, tail, sizeof header);
    if (header.size < sizeof header || header.size > head - tail) break;
    if (header.type == PERF_RECORD_SAMPLE) {
      record_.resize(header.size);
      copy(record_.data(), tail, header.size);
      has_one = parse(record_, out) || has_one;
    }
    tail += header.size;
  }
  // release: the kernel may write there now
  __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
  return has_one;
}

}  // namespace lanescope::sample_native

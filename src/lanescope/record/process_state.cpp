#include "lanescope/record/process_state.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <thread>

#include "lanescope/record/active_recorder.h"
#include "lanescope/record/shared_range.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

extern "C" {
constinit std::atomic<std::uint32_t> lanescope_recording{0};
constinit std::atomic<std::uint32_t> lanescope_record_options{0};
constinit std::atomic<std::uint64_t> lanescope_short_operator_ticks{0};
constinit LanescopeCostScale lanescope_cost_scale{{}, ~std::uint64_t{0}};
constinit std::atomic<std::uint32_t> lanescope_frames_counted{0};
__thread LanescopeWriter* lanescope_thread_writer = nullptr;
constinit std::atomic<const LanescopeRangeListeners*> lanescope_range_listeners{nullptr};
}

namespace lanescope::record {
namespace {

__thread bool thread_ended = false;  // its writer is gone; it gets no other one
constinit std::atomic<std::uint64_t> drops_without_writer{0};  // relaxed: a sum
constinit std::atomic<ActiveRecorder*> active{nullptr};  // release when made, acquire when used
// Dumps that a signal asked for. Relaxed: only a number, and the handler must be able to count
// at any moment.
constinit std::atomic<std::uint32_t> dump_signal_count{0};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
void count_dump_signal(int) { dump_signal_count.fetch_add(1, std::memory_order_relaxed); }
constinit BusGuard bus_guard{&lanescope_recording};
void on_bus_fault(int signal, siginfo_t* info, void* context) {
  bus_guard.handle(signal, info, context);
}
pthread_once_t process_once = PTHREAD_ONCE_INIT;
pthread_key_t writer_key;
bool has_writer_key = false, has_membarrier = false;

void end_thread(void* writer) {
  thread_ended = true;
  lanescope_thread_writer = nullptr;
  ActiveRecorder::instance().writers().remove(static_cast<LanescopeWriter*>(writer));
  munmap(writer, sizeof(LanescopeWriter));
}

// These three functions hold the locks across fork(), which clang's check cannot follow.
void before_fork() LANESCOPE_NO_THREAD_SAFETY {
  ActiveRecorder::instance().lock_for_fork();
  process_texts().lock_for_fork();
}

void after_fork_in_parent() LANESCOPE_NO_THREAD_SAFETY {
  process_texts().unlock_in_parent();
  ActiveRecorder::instance().unlock_in_parent();
}

// The child takes no part in its parent's recording: recording is off, and the child gets a
// new recorder that is not started. The old one stays untouched: its threads and mappings do
// not exist here.
void after_fork_in_child() LANESCOPE_NO_THREAD_SAFETY {
  lanescope_recording.store(0, std::memory_order_relaxed);  // relaxed: the child has one thread
  lanescope_record_options.store(0, std::memory_order_relaxed);
  lanescope_short_operator_ticks.store(0, std::memory_order_relaxed);
  lanescope_thread_writer = nullptr;
  bus_guard.forget_all();
  if (has_writer_key) pthread_setspecific(writer_key, nullptr);
  drops_without_writer.store(0, std::memory_order_relaxed);
  process_texts().unlock_in_child();
  ActiveRecorder* const parent = active.load(std::memory_order_relaxed);
  auto* own = new (std::nothrow) ActiveRecorder();
  if (own && parent) own->start_in_child(*parent);
  if (own) active.store(own, std::memory_order_release);
}

void at_exit() {
  const std::string path = finish_all_sessions();
  if (!path.empty())
    fprintf(stderr,
            "lanescope: the program ended while a profiler recorded; what it saw is in %s\n",
            path.c_str());
}

void set_up_process() {
  has_writer_key = pthread_key_create(&writer_key, end_thread) == 0;
  has_membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  process_texts();
  active.store(new ActiveRecorder(), std::memory_order_release);
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  atexit(at_exit);
}

}  // namespace

ActiveRecorder& ActiveRecorder::instance() {
  pthread_once(&process_once, set_up_process);
  return *active.load(std::memory_order_acquire);
}

InternTable& process_texts() {
  static InternTable* const table = new InternTable();  // threads may outlive static destructors
  return *table;
}

BusGuard& installed_bus_guard() {
  bus_guard.install(on_bus_fault);
  return bus_guard;
}

LanescopeWriter* attach_this_thread() noexcept {
  if (thread_ended) {
    count_drop_without_writer();
    return nullptr;
  }
  try {
    ActiveRecorder& recorder = ActiveRecorder::instance();
    void* at = mmap(nullptr, sizeof(LanescopeWriter), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      count_drop_without_writer();
      return nullptr;
    }
    madvise(at, sizeof(LanescopeWriter), MADV_WIPEONFORK);
    auto* writer = new (at) LanescopeWriter();
    unblock_bus_fault();
    recorder.writers().add(writer);
    if (has_writer_key) pthread_setspecific(writer_key, writer);
    lanescope_thread_writer = writer;
    return writer;
  } catch (...) {  // no memory
    count_drop_without_writer();
    return nullptr;
  }
}

void count_drop_without_writer() noexcept {
  drops_without_writer.fetch_add(1, std::memory_order_relaxed);
}
std::uint64_t take_drops_without_writer() noexcept {
  return drops_without_writer.exchange(0, std::memory_order_relaxed);
}

void fence_all_threads() {
  if (has_membarrier && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
    return;
  // Stores leave a core's buffer within microseconds; nothing better without the call.
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

std::string take_dump_signal(int signal) {
  struct sigaction known {};
  if (sigaction(signal, nullptr, &known) != 0)
    return fmt::format("signal {} cannot make dumps: {}", signal, strerror(errno));
  if (!(known.sa_flags & SA_SIGINFO) && known.sa_handler == count_dump_signal) return "";
  if ((known.sa_flags & SA_SIGINFO) || known.sa_handler != SIG_DFL)
    return fmt::format("{} makes no dumps: the program has its own handler for it",
                       signal_name(signal));
  struct sigaction ours {};
  ours.sa_handler = count_dump_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(signal, &ours, nullptr);
  return "";
}

const std::atomic<std::uint32_t>* dump_signals() { return &dump_signal_count; }

const char* signal_name(int signal) {
  if (signal == SIGUSR1) return "SIGUSR1";
  return signal == SIGUSR2 ? "SIGUSR2" : "a signal";
}

}  // namespace lanescope::record

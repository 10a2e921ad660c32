// Samples where a thread's processor time goes, at a fixed rate of real time: the instruction and
// the stack. No symbols, no unwinding: cupti_samples.py tells which library is at work.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {
constexpr int kWords = 64;
struct Sample {
  std::uint64_t instruction, stack[kWords];
};
Sample* samples = nullptr;
long most = 0, taken = 0;
timer_t timer;
const std::uint64_t* stack_end = nullptr;

void on_signal(int, siginfo_t*, void* context) {
  if (taken >= most) return;
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Sample& sample = samples[taken++];
  sample.instruction = static_cast<std::uint64_t>(registers[REG_RIP]);
  const auto* word = reinterpret_cast<const std::uint64_t*>(registers[REG_RSP]);
  for (int i = 0; i < kWords; ++i) sample.stack[i] = word + i < stack_end ? word[i] : 0;
}
}  // namespace

extern "C" {
// Of the calling thread, every `ns`, at most `count` of them.
int samples_start(long count, long ns) {
  most = count;
  taken = 0;
  std::free(samples);
  samples = static_cast<Sample*>(std::calloc(static_cast<std::size_t>(count), sizeof(Sample)));
  if (!samples) return 1;
  pthread_attr_t attributes;
  void* lowest = nullptr;
  std::size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 1;
  pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  stack_end = reinterpret_cast<const std::uint64_t*>(static_cast<char*>(lowest) + size);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  struct sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  const struct itimerspec period = {{0, ns}, {0, ns}};
  return timer_create(CLOCK_MONOTONIC, &event, &timer) + timer_settime(timer, 0, &period, nullptr);
}
// How many there are; `words`: kWords + 1 numbers each, valid until the next start.
long samples_stop(const std::uint64_t** words) {
  timer_delete(timer);
  *words = reinterpret_cast<const std::uint64_t*>(samples);
  return taken;
}
int samples_words() { return kWords + 1; }
}

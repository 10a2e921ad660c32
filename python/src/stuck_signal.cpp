#include "stuck_signal.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cmath>

namespace lanescope::python {
namespace {

// Written before the handler is installed, and read by it.
struct {
  pid_t pid = 0;  // timers are not there in a forked child
  timer_t timer{};
  itimerspec after{};
  struct sigaction pythons {};
} guard;
std::atomic<bool> has_timer{false};
const char kOurTimer = 0;  // its address marks the timer's signal

void end_by_default(int signal) {
  struct sigaction ending {};
  ending.sa_handler = SIG_DFL;
  sigaction(signal, &ending, nullptr);
  kill(getpid(), signal);  // delivered when this handler returns
}

void on_signal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_late = info->si_code == SI_TIMER && info->si_value.sival_ptr == &kOurTimer;
  if (is_late || getpid() != guard.pid) {
    end_by_default(signal);
    return;
  }
  itimerspec left{};
  if (timer_gettime(guard.timer, &left) == 0 && left.it_value.tv_sec == 0 &&
      left.it_value.tv_nsec == 0)
    timer_settime(guard.timer, 0, &guard.after, nullptr);  // the first signal counts
  errno = error;
  if (guard.pythons.sa_flags & SA_SIGINFO)
    guard.pythons.sa_sigaction(signal, info, context);
  else if (guard.pythons.sa_handler != SIG_DFL && guard.pythons.sa_handler != SIG_IGN)
    guard.pythons.sa_handler(signal);
}

}  // namespace

bool end_if_handler_is_stuck(int signal, double seconds) {
  struct sigaction now {};
  if (sigaction(signal, nullptr, &now) != 0) return false;
  const bool is_ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_signal;
  if (!is_ours) guard.pythons = now;
  if (has_timer.exchange(false) && guard.pid == getpid()) timer_delete(guard.timer);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  event.sigev_value.sival_ptr = const_cast<char*>(&kOurTimer);
  if (timer_create(CLOCK_MONOTONIC, &event, &guard.timer) != 0) return false;
  double whole = 0;
  const double part = std::modf(seconds, &whole);
  guard.after.it_value = {static_cast<time_t>(whole), static_cast<long>(part * 1e9)};
  guard.pid = getpid();
  has_timer.store(true);
  struct sigaction ours {};
  ours.sa_sigaction = on_signal;
  ours.sa_mask = guard.pythons.sa_mask;
  ours.sa_flags = (guard.pythons.sa_flags & (SA_ONSTACK | SA_RESTART)) | SA_SIGINFO;
  return sigaction(signal, &ours, nullptr) == 0;
}

void handler_has_begun() {
  if (!has_timer.load() || guard.pid != getpid()) return;
  const itimerspec never{};
  timer_settime(guard.timer, 0, &never, nullptr);
}

}  // namespace lanescope::python

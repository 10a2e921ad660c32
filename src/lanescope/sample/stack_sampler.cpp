#include "lanescope/sample/stack_sampler.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "lanescope/record/activity_source.h"
#include "lanescope/record/thread_writer.h"
#include "lanescope/sample/child_samples.h"
#include "lanescope/sample/gil_reader.h"
#include "lanescope/sample/sample_runs.h"
#include "lanescope/sample/stack_reader.h"
#include "lanescope/sample/waiter_count.h"

namespace lanescope::sample {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenWindows{5};
constexpr std::chrono::milliseconds kLongestFlush{200};

std::int64_t time_of(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return -1;
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

struct Totals {
  std::uint64_t ticks = 0, late = 0;
  std::atomic<std::uint64_t> stacks{0};
  // Moments in which the interpreter's lock could be read, and what it was then.
  std::uint64_t lock_times = 0, held = 0, waited = 0, waiting = 0, collecting = 0;
  bool knows_waiters = false;
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options)
      : options_(options),
        memory_(getpid()),
        reader_(memory_, options_.layout, options_.interpreter, options_.code_type),
        lock_(memory_, options_.layout, options_.runtime, options_.interpreter,
              find_waiter_count(getpid())),
        period_(std::chrono::nanoseconds(1'000'000'000 / options.per_second)),
        runs_(reader_, period_, options_.prefixes),
        children_({options.layout, options.interpreter, options.code_type, options.runtime},
                  period_, options_.prefixes) {}

  void start() {
    thread_ = std::thread([this] { run(); });
  }

  void flush() {
    std::unique_lock lock(mutex_);
    const std::uint64_t wanted = ++flush_wanted_;
    wake_.notify_all();
    flushed_.wait_for(lock, kLongestFlush, [&] { return flush_done_ >= wanted || ended_; });
  }
  std::uint64_t taken() const { return totals_.stacks.load(std::memory_order_relaxed); }
  std::uint64_t taken_of_children() const { return children_.taken(); }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "lanescope-pystk");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);  // the program's handlers run on its threads
    own_ = static_cast<std::uint64_t>(gettid());
    auto next = Clock::now();
    std::unique_lock lock(mutex_);
    while (true) {
      const bool is_flush = flush_wanted_ != flush_done_;
      const std::uint64_t flush_now = flush_wanted_;
      const bool is_end = ending_;
      lock.unlock();
      if (is_flush || is_end) {
        runs_.write_all();
        children_.write_all();
        write_totals();
      }
      const bool is_recording = record::is_recording();
      if (is_recording && !is_end && Clock::now() >= next) take();
      lock.lock();
      if (is_flush) {
        flush_done_ = flush_now;
        flushed_.notify_all();
      }
      if (is_end) break;
      if (flush_wanted_ != flush_done_ || ending_) continue;
      next = is_recording ? following(next) : Clock::now() + kBetweenWindows;
      wake_.wait_until(lock, next, [this] { return flush_wanted_ != flush_done_ || ending_; });
    }
    ended_ = true;
    flushed_.notify_all();
  }

  // Half a period to one and a half: a program that repeats itself at our rate would else be seen
  // at the same place each time.
  Clock::time_point following(Clock::time_point last) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const auto step = period_ / 2 + period_ * static_cast<std::int64_t>(random_ >> 44) / (1 << 20);
    const auto now = Clock::now();
    auto next = last + step;
    if (next < now) {
      const auto missed = (now - next) / period_;
      totals_.late += static_cast<std::uint64_t>(missed);
      next = missed > 0 ? now : next;
    }
    return next;
  }

  void take() {
    const std::uint32_t window = lanescope_recording.load(std::memory_order_acquire);
    if (window != window_) {  // of a window that closed without a flush
      runs_.forget();
      children_.forget();
    }
    window_ = window;
    const SampleTime time{record::ticks(), time_of(CLOCK_MONOTONIC)};
    const std::vector<SampledStack>& stacks = reader_.sample(own_, lock_.pieces());
    ++totals_.ticks;
    const std::optional<GilState> lock = lock_.state();
    if (lock) count(*lock);
    const std::uint64_t taken = runs_.add(stacks, lock, time);
    totals_.stacks.store(totals_.stacks.load(std::memory_order_relaxed) + taken,
                         std::memory_order_relaxed);  // one writer
    children_.take(time);
  }

  void count(const GilState& lock) {
    ++totals_.lock_times;
    if (lock.holder != 0) ++totals_.held;
    if (lock.is_collecting) ++totals_.collecting;
    if (!lock.waiting) return;
    totals_.knows_waiters = true;
    if (*lock.waiting > 0) ++totals_.waited;
    totals_.waiting += *lock.waiting;
  }

  void write_totals() {
    const StackReader::Counts& counts = reader_.counts();
    std::string json = fmt::format(
        "{{\"per_second\": {}, \"times\": {}, \"stacks\": {}, \"torn\": {}, \"late\": {}, "
        "\"unreadable\": {}, \"cpu_us\": {}, \"python\": \"{}.{}\"",
        options_.per_second, totals_.ticks, totals_.stacks.load(std::memory_order_relaxed),
        counts.torn, totals_.late, counts.lost_samples + counts.lost_threads,
        time_of(CLOCK_THREAD_CPUTIME_ID) / 1000, options_.layout.version >> 8,
        options_.layout.version & 0xff);
    if (const ChildSamples::Counts of = children_.counts(); of.processes + of.unreadable > 0)
      json += fmt::format(
          ", \"children\": {}, \"child_stacks\": {}, \"child_torn\": {}, \"children_unreadable\": "
          "{}",
          of.processes, of.stacks, of.torn, of.unreadable);
    json += "}";
    lanescope_source_metadata("lanescope_python_samples", json.c_str());
    std::string lock = fmt::format("{{\"times\": {}, \"held\": {}, \"collecting\": {}",
                                   totals_.lock_times, totals_.held, totals_.collecting);
    if (totals_.knows_waiters)
      lock += fmt::format(", \"waited\": {}, \"waiting\": {}", totals_.waited, totals_.waiting);
    lanescope_source_metadata("lanescope_python_lock", (lock + "}").c_str());
  }

  const SamplerOptions options_;
  RunningProcess memory_;
  StackReader reader_;
  GilReader lock_;
  const std::chrono::nanoseconds period_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_, flushed_;
  // Guarded by mutex_.
  std::uint64_t flush_wanted_ = 0, flush_done_ = 0;
  bool ending_ = false, ended_ = false;
  // Only the thread's own.
  std::uint64_t own_ = 0, random_ = 0x9e3779b97f4a7c15u;
  std::uint32_t window_ = 0;
  Totals totals_;
  SampleRuns runs_;
  ChildSamples children_;
};

// The one of this process, and who may change it. A forked child has no such thread: there the
// object is left alone, because its locks may be taken.
struct Only {
  std::mutex mutex;
  Sampler* running = nullptr;
};
Only* only() {
  static std::atomic<Only*> current{new Only};
  static const bool watches_fork =
      pthread_atfork(nullptr, nullptr, [] { current.store(new Only); }) == 0;
  static_cast<void>(watches_fork);
  return current.load();
}

}  // namespace

Result<void> start_sampler(const SamplerOptions& options) {
  if (options.per_second == 0 || options.per_second > kMostSamplesPerSecond)
    return Error{Errc::kInvalidArgument,
                 fmt::format("expected 1 to {} samples per second, found {}", kMostSamplesPerSecond,
                             options.per_second)};
  Only* const mine = only();
  const std::lock_guard lock(mine->mutex);
  if (mine->running != nullptr)
    return Error{Errc::kUnavailable, "Python stacks are sampled already in this process"};
  try {
    auto made = std::make_unique<Sampler>(options);
    made->start();
    mine->running = made.release();
  } catch (const std::exception& error) {
    return Error{Errc::kUnavailable,
                 fmt::format("expected to start a thread that samples, found: {}", error.what())};
  }
  return {};
}

void flush_samples() noexcept {
  Only* const mine = only();
  const std::lock_guard lock(mine->mutex);
  if (mine->running != nullptr) mine->running->flush();
}

std::uint64_t samples_taken() noexcept {
  Only* const mine = only();
  const std::lock_guard lock(mine->mutex);
  return mine->running != nullptr ? mine->running->taken() : 0;
}

std::uint64_t child_samples_taken() noexcept {
  Only* const mine = only();
  const std::lock_guard lock(mine->mutex);
  return mine->running != nullptr ? mine->running->taken_of_children() : 0;
}

void stop_sampler() noexcept {
  Only* const mine = only();
  const std::lock_guard lock(mine->mutex);
  if (mine->running == nullptr) return;
  mine->running->stop();
  delete std::exchange(mine->running, nullptr);
}

}  // namespace lanescope::sample

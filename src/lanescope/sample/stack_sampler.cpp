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
#include <string_view>
#include <thread>
#include <unordered_map>

#include "lanescope/codec/op_details.h"
#include "lanescope/record/activity_source.h"
#include "lanescope/record/thread_writer.h"
#include "lanescope/sample/stack_reader.h"

namespace lanescope::sample {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLongestRunNs = 100'000'000;  // what a killed process may lose
constexpr std::chrono::milliseconds kBetweenWindows{5};
constexpr std::chrono::milliseconds kLongestFlush{200};
constexpr std::size_t kMostKnownStacks = 1 << 16;

// The CPU time of a thread of this process, as the kernel names its clock.
clockid_t cpu_clock_of(std::uint64_t thread) {
  constexpr clockid_t kPerThread = 4, kScheduled = 2;
  return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | kPerThread | kScheduled);
}
std::int64_t time_of(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return -1;
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Equal samples of one thread, one after another.
struct Run {
  std::uint32_t node = 0, samples = 0;
  std::uint8_t flags = 0;
  std::uint64_t first = 0, last = 0;  // ticks
  std::int64_t first_ns = 0;          // CLOCK_MONOTONIC
  std::int64_t cpu_ns = -1, seen_ns = 0;
  std::uint64_t seen = 0;  // the number of the sample that had the thread
};

struct Totals {
  std::uint64_t ticks = 0, late = 0;
  std::atomic<std::uint64_t> stacks{0};
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options)
      : options_(options),
        memory_(getpid()),
        reader_(memory_, options_.layout, options_.interpreter, options_.code_type),
        period_(std::chrono::nanoseconds(1'000'000'000 / options.per_second)) {}

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
        write_all();
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
    if (window != window_) runs_.clear();  // of a window that closed without a flush
    window_ = window;
    const std::uint64_t now = record::ticks();
    const std::int64_t now_ns = time_of(CLOCK_MONOTONIC);
    const std::vector<SampledStack>& stacks = reader_.sample(own_);
    if (generation_ != reader_.generation()) {
      generation_ = reader_.generation();
      functions_.clear();
      nodes_.clear();
    }
    ++totals_.ticks;
    for (const SampledStack& stack : stacks)
      if (!stack.frames.empty() && stack.thread != 0) add(stack, now, now_ns);
    for (auto run = runs_.begin(); run != runs_.end();) {
      if (run->second.seen == totals_.ticks) {
        ++run;
        continue;
      }
      write(run->first, run->second);
      run = runs_.erase(run);
    }
  }

  void add(const SampledStack& stack, std::uint64_t now, std::int64_t now_ns) {
    totals_.stacks.store(totals_.stacks.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);  // one writer
    const std::uint32_t node = node_of(stack);
    Run& run = runs_[stack.thread];
    const std::int64_t cpu_ns = time_of(cpu_clock_of(stack.thread));
    std::uint8_t flags = 0;
    if (cpu_ns >= 0 && run.cpu_ns >= 0) {
      flags = spool::kCpuTimeKnown;
      if ((cpu_ns - run.cpu_ns) * 2 >= now_ns - run.seen_ns) flags |= spool::kOnCpu;
    }
    if (run.samples != 0 &&
        (run.node != node || run.flags != flags || now_ns - run.first_ns > kLongestRunNs)) {
      write(stack.thread, run);
      run.samples = 0;
    }
    if (run.samples++ == 0) {
      run.first = now;
      run.first_ns = now_ns;
    }
    run.last = now;
    run.node = node;
    run.flags = flags;
    run.cpu_ns = cpu_ns;
    run.seen_ns = now_ns;
    run.seen = totals_.ticks;
  }

  void write(std::uint64_t thread, const Run& run) {
    if (run.samples == 0) return;
    record::record_sample({.begin_tsc = run.first,
                           .end_tsc = run.last,
                           .node = run.node,
                           .flags = run.flags,
                           .thread = thread,
                           .samples = run.samples,
                           .period_ns = static_cast<std::uint32_t>(period_.count())});
  }
  void write_all() {
    for (auto& [thread, run] : runs_) {
      write(thread, run);
      run.samples = 0;
    }
  }

  std::uint32_t function_text(std::uint32_t number) {
    const auto [known, is_new] = functions_.try_emplace(number);
    if (!is_new) return known->second;
    const SampledFunction& function = reader_.function(number);
    std::string_view file = function.file;
    for (const std::string& prefix : options_.prefixes) {
      if (!file.starts_with(prefix)) continue;
      file.remove_prefix(prefix.size());
      break;
    }
    const std::string text = fmt::format("{}({}): {}", file, function.first_line, function.name);
    return known->second = record::intern_text(text.data(), text.size());
  }

  // The node of a stack, made from the outermost frame inwards; callers share theirs.
  std::uint32_t node_of(const SampledStack& stack) {
    std::uint64_t hash = stack.is_cut ? 1 : 0;
    for (const SampledFrame& frame : stack.frames)
      hash = record::detail::mix(hash ^ frame.function, static_cast<std::uint64_t>(frame.line));
    if (const auto known = nodes_.find(hash); known != nodes_.end()) return known->second;
    if (nodes_.size() >= kMostKnownStacks) nodes_.clear();
    std::uint32_t node = 0;
    if (stack.is_cut) {
      constexpr std::string_view kDeeper = "(deeper frames left out)";
      node = add_node(record::intern_text(kDeeper.data(), kDeeper.size()), 0, node);
    }
    for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame)
      node = add_node(function_text(frame->function), frame->line, node);
    return nodes_[hash] = node;
  }
  static std::uint32_t add_node(std::uint32_t function, int line, std::uint32_t caller) {
    char buffer[codec::kMaxSampleNodeBytes];
    codec::OpDetailsWriter out(buffer, sizeof buffer);
    out.sample_node(function, static_cast<std::uint32_t>(line), caller);
    const std::string_view bytes = out.bytes();
    return record::intern_text(bytes.data(), bytes.size());
  }

  void write_totals() {
    const StackReader::Counts& counts = reader_.counts();
    const std::string json = fmt::format(
        "{{\"per_second\": {}, \"times\": {}, \"stacks\": {}, \"torn\": {}, \"late\": {}, "
        "\"unreadable\": {}, \"cpu_us\": {}, \"python\": \"{}.{}\"}}",
        options_.per_second, totals_.ticks, totals_.stacks.load(std::memory_order_relaxed),
        counts.torn, totals_.late, counts.lost_samples + counts.lost_threads,
        time_of(CLOCK_THREAD_CPUTIME_ID) / 1000, options_.layout.version >> 8,
        options_.layout.version & 0xff);
    lanescope_source_metadata("lanescope_python_samples", json.c_str());
  }

  const SamplerOptions options_;
  RunningProcess memory_;
  StackReader reader_;
  const std::chrono::nanoseconds period_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_, flushed_;
  // Guarded by mutex_.
  std::uint64_t flush_wanted_ = 0, flush_done_ = 0;
  bool ending_ = false, ended_ = false;
  // Only the thread's own.
  std::uint64_t own_ = 0, random_ = 0x9e3779b97f4a7c15u;
  std::uint32_t generation_ = 0, window_ = 0;
  Totals totals_;
  std::unordered_map<std::uint64_t, Run> runs_;
  std::unordered_map<std::uint32_t, std::uint32_t> functions_;  // number -> text id
  std::unordered_map<std::uint64_t, std::uint32_t> nodes_;      // stack -> node
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
    return Error{Errc::kInvalidArgument, fmt::format("expected 1 to {} samples a second, found {}",
                                                     kMostSamplesPerSecond, options.per_second)};
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

void stop_sampler() noexcept {
  Only* const mine = only();
  const std::lock_guard lock(mine->mutex);
  if (mine->running == nullptr) return;
  mine->running->stop();
  delete std::exchange(mine->running, nullptr);
}

}  // namespace lanescope::sample

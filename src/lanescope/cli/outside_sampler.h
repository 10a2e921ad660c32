// Samples the stacks of a process that runs, for `lanescope sample`: Python frames, native ones, or
// both in one stack.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/cli/lock_shares.h"
#include "lanescope/sample/gil_reader.h"
#include "lanescope/sample/stack_reader.h"
#include "lanescope/sample_native/native_stacks.h"

namespace lanescope::cli {

// A run of equal samples of a thread.
struct SampledRun {
  std::int64_t first_ns = 0, last_ns = 0, samples = 0;
  std::size_t stack = 0;  // index in Sampled::stacks
};

struct SampledThread {
  std::string name;
  std::vector<SampledRun> runs;
};

// Outermost first: a function and the line that it is at; 0: none.
using SampledFrames = std::vector<std::pair<std::string, int>>;

struct Sampled {
  std::map<SampledFrames, std::size_t> number_of_stack;
  std::map<std::uint64_t, SampledThread> threads;
  std::size_t runs = 0;
  std::uint64_t times = 0, due = 0, torn = 0, lost = 0;
  std::uint64_t samples = 0, with_native = 0;
  LockShares lock;
  bool is_full = false;  // ended early: no memory for more runs
};

class OutsideSampler {
 public:
  static constexpr std::size_t kMostRuns = 4 << 20;  // 100 to 200 MB

  // `reader` and `lock`: null for a process without Python. `native`: null: no native frames.
  OutsideSampler(sample::StackReader* reader, sample::GilReader* lock,
                 sample_native::NativeStacks* native, std::int64_t per_second)
      : reader_(reader), lock_(lock), native_(native), period_(1'000'000'000 / per_second) {}

  // Until the time is over, the process ends, or `stop` is not 0.
  Sampled run(pid_t pid, std::int64_t seconds, const volatile std::sig_atomic_t& stop);
  std::int64_t period_ns() const { return period_.count(); }

 private:
  struct PythonBefore {
    std::vector<sample::SampledFrame> frames;
    std::int64_t time_ns = 0;
  };
  void take(std::int64_t now_ns);
  void add(std::uint64_t thread, const SampledFrames& frames, std::int64_t now_ns);
  SampledFrames python_frames(const sample::SampledStack& stack) const;
  bool fits(const sample_native::NativeStack& native, const sample::SampledStack& python,
            std::int64_t read_at_ns) const;
  void add_native(const sample_native::NativeStack& native, bool below_python,
                  SampledFrames* frames) const;

  sample::StackReader* const reader_;
  sample::GilReader* const lock_;
  sample_native::NativeStacks* const native_;
  const std::chrono::nanoseconds period_;
  std::uint64_t random_ = 0x9e3779b97f4a7c15u;
  std::unordered_map<std::uint64_t, PythonBefore> before_;  // by thread
  Sampled out_;
};

}  // namespace lanescope::cli

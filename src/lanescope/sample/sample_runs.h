// Puts the samples of a process's threads into the recording. A run of equal samples becomes one
// record.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lanescope/sample/gil_reader.h"
#include "lanescope/sample/stack_reader.h"

namespace lanescope::sample {

// The moment of a sample.
struct SampleTime {
  std::uint64_t ticks = 0;  // the recorder's clock
  std::int64_t ns = 0;      // CLOCK_MONOTONIC
};

// Only the sampling thread uses it. Memory: 65,536 stacks are remembered, then all are forgotten.
class SampleRuns {
 public:
  // `prefixes`: frames of files whose names begin so are left out. `process`: 0 is the recorded
  // process; for any other, the CPU time of threads is not known.
  SampleRuns(const StackReader& reader, std::chrono::nanoseconds period,
             std::vector<std::string> prefixes, std::uint32_t process = 0)
      : reader_(reader), period_(period), prefixes_(std::move(prefixes)), process_(process) {}

  // Adds the stacks of all threads at one moment, and the state of the interpreter's lock right
  // before. Leaves out threads without Python code. Returns how many stacks it took.
  std::uint64_t add(const std::vector<SampledStack>& stacks, const std::optional<GilState>& lock,
                    const SampleTime& time);
  void write_all();
  // The mean distance of samples from now on.
  void set_period(std::chrono::nanoseconds period);
  void forget() { runs_.clear(); }

 private:
  // A run of equal samples of one thread.
  struct Run {
    std::uint32_t node = 0, samples = 0;
    std::uint8_t flags = 0;
    SampleTime first, last;
    std::int64_t cpu_ns = -1;
    std::uint64_t seen = 0;  // number of the last moment at which the thread had a sample
  };
  void add(const SampledStack& stack, std::uint8_t flags, const SampleTime& time);
  void write(std::uint64_t thread, const Run& run) const;
  std::uint32_t function_text(std::uint32_t number);
  std::uint32_t node_of(const SampledStack& stack);

  const StackReader& reader_;
  std::chrono::nanoseconds period_;
  const std::vector<std::string> prefixes_;
  const std::uint32_t process_;
  std::uint32_t generation_ = 0;
  std::uint64_t moments_ = 0;
  std::unordered_map<std::uint64_t, Run> runs_;                 // by thread
  std::unordered_map<std::uint32_t, std::uint32_t> functions_;  // number -> text id
  std::unordered_map<std::uint64_t, std::uint32_t> nodes_;      // stack -> node
};

}  // namespace lanescope::sample

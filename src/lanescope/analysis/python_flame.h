// Where the time of Python code went: stacks of functions and how often each was seen, or how long
// it took.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

enum class FlameSource : std::uint8_t {
  kSamples,  // python_sample slices: weights count samples, so they are statistical
  kCalls,    // python_function slices: weights are nanoseconds of self time
};

// Disjoint intervals in order of time, [start, end).
using TimeSpans = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct FlameOptions {
  std::optional<FlameSource> source;   // none: samples if the trace has any, else calls
  std::optional<std::int64_t> thread;  // only this OS thread
  std::optional<std::int64_t> step;    // only inside the ProfilerStep ranges with this number
  bool gpu_idle = false;               // only while no GPU ran anything
  std::optional<TimeSpans> within;     // only inside these
};

struct FlameNode {
  std::uint32_t parent = 0;  // itself: a root
  StringId function{};
  std::int64_t self = 0, total = 0;  // samples, or nanoseconds; total includes the callees
};

struct PythonFlame {
  FlameSource source = FlameSource::kSamples;
  // Callers before callees. Equal stacks of all threads are one. The stacks of a child process are
  // below a node that has the process's name instead of a function's.
  std::vector<FlameNode> nodes;
  std::int64_t total = 0;             // of all roots
  std::int64_t available = 0;         // without thread, step and gpu_idle
  std::vector<std::int64_t> threads;  // OS threads that have stacks, whether chosen or not; sorted
};

// docs/definitions/python_samples.md. kUnavailable: the trace has no such stacks, no step with that
// number, no thread with that number, or with gpu_idle no GPU work. O(slices log slices). Any
// thread.
Result<PythonFlame> compute_python_flame(const Trace& trace, const FlameOptions& options = {});

// When no device of the trace ran anything, between the first and the last work of any. Empty: no
// work, or no pause.
TimeSpans find_idle_spans(const Trace& trace);

}  // namespace lanescope::analysis

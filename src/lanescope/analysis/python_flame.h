// Where the time of Python code, or of JavaScript, went: stacks of functions and how often each was seen, or how long
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
  kSamples,     // python_sample slices: weights count samples, so they are statistical
  kCalls,       // python_function slices: weights are nanoseconds of self time
  kCpuProfile,  // cpu_profile slices, JavaScript: nanoseconds between samples
};

// Disjoint intervals in order of time, [start, end).
using TimeSpans = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct FlameOptions {
  std::optional<FlameSource> source;   // none: the first that the trace has, in their order
  std::optional<std::int64_t> thread;  // only this OS thread
  std::optional<std::int64_t> step;    // only inside the ProfilerStep ranges with this number
  bool gpu_idle = false;               // only while no GPU ran anything
  std::optional<TimeSpans> within;     // only inside these
};

struct FlameNode {
  std::uint32_t parent = 0;  // its own index: a root
  StringId function{};
  std::int64_t self = 0, total = 0;  // samples, or nanoseconds; total includes the callees
};

struct PythonFlame {
  FlameSource source = FlameSource::kSamples;
  // Callers before callees. Equal stacks of several threads are merged. The stacks of a child process are
  // below a node that has the process's name instead of a function's.
  std::vector<FlameNode> nodes;
  std::int64_t total = 0;             // of all roots
  std::int64_t available = 0;         // the same without the options that limit it
  std::vector<std::int64_t> threads;  // all OS threads that have stacks, even if not chosen; sorted
};

// docs/definitions/python_samples.md. kUnavailable: the trace has no such stacks, no step with that
// number, no thread with that number, or no GPU work although gpu_idle is set. O(slices log slices).
// Any thread.
Result<PythonFlame> compute_python_flame(const Trace& trace, const FlameOptions& options = {});

// The times in which no device ran anything, between the first and the last work of all devices.
// Empty: the trace has no work, or no such pause.
TimeSpans find_idle_spans(const Trace& trace);

}  // namespace lanescope::analysis

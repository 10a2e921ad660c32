// Which Python function a thread was in during some stretches of time, from samples of its stack.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lanescope/analysis/steps.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain {

// Fewer samples are not enough: with 30, a share of one half has a standard error of 9 %.
inline constexpr std::int64_t kLeastSamples = 30;

struct SampledCode {
  std::string function;              // "file.py(first line): function", innermost in most samples
  std::optional<std::int64_t> line;  // that it was at most often
  std::int64_t samples = 0, of = 0;  // `samples` of `of` had it as their innermost function
};

// docs/definitions/python_samples.md#explain. For one thread. Nothing: the trace has no samples, or
// fewer than kLeastSamples in these stretches (disjoint, in order of time). O(slices log slices).
std::optional<SampledCode> find_sampled_code(const Trace& trace, TrackId thread,
                                             std::span<const analysis::Window> stretches);

// The thread whose samples show what the program did: the one that launches, else the one that runs
// the steps on the CPU. kNone: neither.
TrackId program_thread(const Facts& facts);

// "about 62 % (124 of 200 samples) in file.py(10): collate, mostly at line 14".
Sentence describe(const SampledCode& code);

}  // namespace lanescope::explain

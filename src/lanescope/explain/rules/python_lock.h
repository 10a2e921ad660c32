// What the rules about Python's lock and garbage collection have in common.
#pragma once
#include <vector>

#include "lanescope/explain/rule.h"
#include "lanescope/explain/sampled_lock.h"

namespace lanescope::explain::rules {

bool has_lock_samples(const Facts& facts);
inline constexpr Need kLockSamples = {
    has_lock_samples,
    "samples of Python stacks with the interpreter's lock (lanescope record --sample-python, or "
    "profile(sample_python=True))"};

// For the program's thread (program_thread()) in the steady steps. Quiet if less than `least_share` of its samples, or
// fewer than 30, are of that kind; not checked with fewer than 30 samples in all.
Measurement<SampledLock> measure_lock(const Facts& facts, LockHolder SampledLock::*kind,
                                      double least_share);
// Share, samples of that kind, all samples.
std::vector<Value> lock_share(const SampledLock& found, const LockHolder& kind);
// A finding with everything but its texts.
Finding lock_finding(const Facts& facts, const SampledLock& found, const LockHolder& kind);

}  // namespace lanescope::explain::rules

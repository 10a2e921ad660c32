// Stacks of Python functions for other tools and for people: folded lines, speedscope, a picture.
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/analysis/python_flame.h"
#include "lanescope/model/trace.h"

namespace lanescope::report {

// The standard error of a share of so many samples (1 or more), in percent, rounded up to 0.1. It
// is that of one half, which is the largest: 1 / (2 sqrt(n)). docs/definitions/python_samples.md,
// "Error".
double largest_share_error(std::uint64_t samples);

// What the flame is made of, in one line: "1,234 samples of Python stacks, 2 threads;
// shares are estimates, with a standard error of at most 1.5 %".
std::string flame_summary(const analysis::PythonFlame& flame);

// "outermost;...;innermost weight", a line a stack, sorted: what flamegraph.pl reads. Weights are
// samples, or microseconds for calls. ';' and line breaks in a name become '_'.
std::string flame_folded(const Trace& trace, const analysis::PythonFlame& flame);

// https://www.speedscope.app/file-format-schema.json, one sampled profile.
std::string flame_speedscope(const Trace& trace, const analysis::PythonFlame& flame);

// A flame graph as a file of its own, callers below. Boxes under a tenth of a unit of 1200 are left
// out, and the last line says how many. `what`: the title.
std::string flame_svg(const Trace& trace, const analysis::PythonFlame& flame,
                      const std::string& what);

}  // namespace lanescope::report

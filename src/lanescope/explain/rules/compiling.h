// For the rules about torch.compile: its own CPU time by layer, and when it compiled.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "lanescope/explain/rules/enclosing_events.h"

namespace lanescope::explain::rules {

// True: code of the compiler itself, not an operator or API call that it makes.
bool is_own_time(const Facts& facts, const CompiledFacts& compiled, SliceId slice);

// One entry per slice. True: it is inside a compiled call that contains another one, as after a graph
// break.
std::vector<bool> inside_broken_calls(const Facts& facts, const CompiledFacts& compiled);

// Own CPU time of each layer in steady steps; without marked steps in the whole trace.
using LayerTimes = std::array<std::int64_t, analysis::kCompileLayerCount>;
LayerTimes layer_times(const Facts& facts, const CompiledFacts& compiled,
                       const std::vector<analysis::Window>& windows);
std::uint64_t calls_within(const Facts& facts, const CompiledFacts& compiled,
                           const std::vector<analysis::Window>& windows);

// Compilations that began in some CPU ranges. Their union, because threads may overlap.
struct Compiling {
  std::vector<const analysis::CompileRun*> runs;  // longest first
  std::vector<analysis::Window> windows;          // disjoint, in order
  std::int64_t time_ns = 0;
};
Compiling compiling_within(const analysis::CompiledCode& code,
                           const std::vector<analysis::Window>& cpu);
// Adds the three longest as evidence.
void add_runs(const Facts& facts, const Compiling& found, Finding& finding);

}  // namespace lanescope::explain::rules

// The wall of a step on the first screen of `lanescope explain`: its largest parts, and its length
// without the profiler. docs/definitions/explain.md#first-screen
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::report {

// At most four parts, largest first; if there are more, the fourth is "everything else". They add up
// to the wall, except for rounding.
struct WallLine {
  std::string label;
  std::int64_t per_step_ns = 0;
  double ratio = 0;  // of the wall
  // What the page shows when a reader clicks this part: a constant of explain::shows. Empty: a click
  // shows nothing, as for "everything else" and for CPU time outside of kOperator.
  const char* shows = "";
  // For idle time: this part lies in gaps with these causes. Several parts may lie in the same gaps.
  std::vector<analysis::IdleCause> causes = {};
};
std::vector<WallLine> wall_lines(const explain::Facts& facts);

// The title of the wall: "step (mean of 17-21)", "step 3", "recording".
std::string wall_subject(const explain::Facts& facts);

// The length of a step without the profiler, to which gains refer; without the number where the headline has it. Empty: no gain is
// predicted.
std::string base_text(const explain::Facts& facts, const explain::Explanation& explanation);

// "Most of the GPU's time: GEMM bf16 45 %; mul, bf16 11 %.": if the GPU computes for half of a step
// or more; else empty. Where the kernels named are less than half of its work, kinds_of_work_text().
std::string largest_kernels_text(const explain::Facts& facts);

// "The GPU's time: matrix products 48 %, elementwise 25 %."; empty: fewer than two kinds.
inline constexpr std::string_view kKindsOfWork = "The GPU's time: ";
std::string kinds_of_work_text(const explain::Facts& facts);

}  // namespace lanescope::report

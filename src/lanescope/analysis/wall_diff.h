// Why a step of one trace takes longer than a step of another: effects that add up to the
// difference of the walls to the nanosecond.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/analysis/step_costs.h"

namespace lanescope::analysis {

// How kernels of A match kernels of B, in the order in which matches are tried.
enum class MatchKind : std::uint8_t {
  kSame,     // the same name (first the same operator and shapes, too)
  kChanged,  // another name under the same operator and shapes, else under the same operator
  kFused,    // operators without kernels of their own any more: a fused kernel's name lists them,
             // or another operator combines them (addmm: mm and add)
  kNew,      // only in B
  kGone,     // only in A
};
const char* match_kind_name(MatchKind kind);  // "same", "changed", ...

// Matching compute kernels of both traces. `_ns` of a_/b_ are per step.
struct KernelDiff {
  MatchKind kind = MatchKind::kSame;
  std::vector<std::size_t> a, b;  // indices into StepCosts::work, most time first
  bool same_shapes = true;        // kSame, kChanged: operator and shapes agree (or are unknown)
  bool a_is_fused = false;        // kFused: A is the compiled trace
  std::uint64_t a_count = 0, b_count = 0;       // over all steady steps
  std::int64_t a_total_ns = 0, b_total_ns = 0;  // over all steady steps
  std::int64_t a_ns = 0, b_ns = 0;
  std::int64_t count_ns = 0;     // kSame: more or fewer calls, at A's mean time of a call
  std::int64_t per_call_ns = 0;  // kSame: longer or shorter calls, at B's number of calls
  std::int64_t delta_ns() const { return b_ns - a_ns; }
};

struct WallEffects {
  std::int64_t calls_ns = 0, per_call_ns = 0;  // of kernels with the same name
  std::int64_t changed_ns = 0, fused_ns = 0, new_ns = 0, gone_ns = 0;
  std::int64_t overlap_ns = 0;  // kernels that run at the same time: sums are not unions
  std::int64_t exposed_communication_ns = 0, exposed_copy_ns = 0;
  std::array<std::int64_t, kIdleCauseCount> idle_ns{};
  std::int64_t sum_ns() const;
};

// One trace's wall of a step, in parts that add up to it.
struct WallLevels {
  std::int64_t wall_ns = 0;     // rounded down
  std::int64_t kernels_ns = 0;  // durations added up
  std::int64_t overlap_ns = 0;  // 0 or negative
  std::int64_t exposed_communication_ns = 0, exposed_copy_ns = 0;
  std::array<std::int64_t, kIdleCauseCount> idle_ns{};
};

struct WallDiff {
  WallLevels a, b;
  WallEffects effects;              // effects.sum_ns() == b.wall_ns - a.wall_ns, always
  std::vector<KernelDiff> kernels;  // largest effect first
};

// The sum also holds for hostile input, with any names, counts and times. A step_count of 0 counts
// as 1. O(n log n). Any thread.
WallDiff compute_wall_diff(const StepCosts& a, const StepCosts& b);

// A sum over n steps, per step, rounded towards zero.
std::int64_t per_step_ns(std::int64_t total_ns, std::int64_t steps);

}  // namespace lanescope::analysis

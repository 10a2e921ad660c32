// Compares two traces: what can be compared, the parts of a step's difference, and whether it is
// more than the variation of the steps.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/analysis/step_costs.h"
#include "lanescope/analysis/wall_diff.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain {

enum class CompareScope : std::uint8_t {
  kSteps,       // both mark steps and have GPU work: walls of a step
  kRecordings,  // neither marks steps: walls of the recordings
  kCalls,       // steps are not the same in both, or work is missing: no walls, only calls
  kCpu,         // one or both have no GPU work: CPU time
};
const char* compare_scope_name(CompareScope scope);  // "steps", "recordings", "calls", "cpu"

// Is a step of A as much of its program as a step of B? docs/definitions/comparing.md#same-steps.
enum class StepUnits : std::uint8_t {
  kSame,   // marked in both, or found in both in the same way
  kAlike,  // found in another way, but a step holds about as much
  kOther   // a step of one may be a part of a step of the other
};

enum class CompareVerdict : std::uint8_t {
  kEqual,      // no number differs
  kWithin,     // within the variation of the steps
  kSlowSteps,  // the medians agree, the means differ: a few slow steps
  kDiffers,
  kFewSteps,    // differs, but a side has fewer than 3 steps, so its variation is unknown
  kNotCompared  // no walls that could be compared
};
const char* compare_verdict_name(CompareVerdict verdict);  // "equal", "within", ...

// Lengths of the steady steps (CPU steps without GPU work).
struct StepSpread {
  std::size_t count = 0;
  std::int64_t shortest_ns = 0, median_ns = 0, longest_ns = 0;
  std::int64_t spread_ns = 0;      // 1.4826 x median absolute deviation
  std::vector<std::int64_t> slow;  // numbers of slow steps
};

// Idle time with one cause before one kind of work; per step.
struct GapDiff {
  analysis::IdleCause cause{};
  std::string before;
  std::int64_t a_ns = 0, b_ns = 0;
  SliceId a_next = kNone<SliceId>, b_next = kNone<SliceId>;  // after the longest of these gaps
};
// Self time of the CPU by name; per step.
struct CpuDiff {
  analysis::CpuClass cpu{};
  std::string name;
  std::uint64_t a_count = 0, b_count = 0;  // over all steady steps
  std::int64_t a_ns = 0, b_ns = 0;
};
// Communication and copies by name: whole time, hidden or not; per step.
struct MoveDiff {
  analysis::WorkClass work{};
  std::string name;
  std::uint64_t a_count = 0, b_count = 0;  // over all steady steps
  std::int64_t a_ns = 0, b_ns = 0;
};

// Borrows both facts.
struct Comparison {
  const Facts* a = nullptr;
  const Facts* b = nullptr;
  CompareScope scope = CompareScope::kSteps;
  StepUnits units = StepUnits::kSame;  // if both have steps
  // True: steps can be compared with steps, or recordings with recordings. False: only calls can.
  bool can_compare_steps = false;
  CompareVerdict verdict = CompareVerdict::kEqual;
  Sentence headline;
  std::vector<Sentence> remarks;  // differences of the recordings that are not the program's
  analysis::StepCosts a_costs, b_costs;
  analysis::WallDiff diff;  // kSteps, kRecordings; kCalls: only the matches
  StepSpread a_steps, b_steps;
  // Each by difference, largest first.
  std::vector<GapDiff> gaps;
  std::vector<CpuDiff> cpu;
  std::vector<MoveDiff> moves;
  std::array<std::int64_t, analysis::kCpuClassCount> a_cpu_ns{}, b_cpu_ns{};  // per step
};

// True: the end of the file, or GPU work of its steps, is missing, so times of a step are wrong.
bool has_missing_work(const Facts& facts);

// Facts of `lanescope diff` are gathered with count_long_step: a slow step is why means differ.
// O(n log n). Any thread.
Comparison compare(const Facts& a, const Facts& b);

// An idle cause as part of a sentence: "the CPU had not launched yet".
const char* idle_cause_phrase(analysis::IdleCause cause);

}  // namespace lanescope::explain

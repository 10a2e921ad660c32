// Two traces beside each other: what can be compared, what the difference of a step is made of, and
// whether it is more than the steps' own variation.
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
  kSteps,       // both mark steps and hold GPU work: walls of a step
  kRecordings,  // neither marks steps: walls of the recordings
  kCalls,       // one marks steps: no walls, only calls
  kCpu,         // one or both hold no GPU work: CPU time
};
const char* compare_scope_name(CompareScope scope);  // "steps", "recordings", "calls", "cpu"

enum class CompareVerdict : std::uint8_t {
  kEqual,      // no number differs
  kWithin,     // within the steps' own variation
  kSlowSteps,  // the medians agree, the means do not: a few steps
  kDiffers,
  kFewSteps,    // differs, and fewer than 3 steps on a side to know their variation by
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

// The same cause in front of the same thing; per step.
struct GapDiff {
  analysis::IdleCause cause{};
  std::string before;
  std::int64_t a_ns = 0, b_ns = 0;
  SliceId a_next = kNone<SliceId>, b_next = kNone<SliceId>;  // behind the longest
};
// Self time of the CPU by name; per step.
struct CpuDiff {
  analysis::CpuClass cpu{};
  std::string name;
  std::uint64_t a_count = 0, b_count = 0;  // over all steady steps
  std::int64_t a_ns = 0, b_ns = 0;
};
// Communication and copies by name: time in all, hidden or not; per step.
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
  CompareVerdict verdict = CompareVerdict::kEqual;
  Sentence headline;
  std::vector<Sentence> remarks;  // what makes the two unlike beside the program
  analysis::StepCosts a_costs, b_costs;
  analysis::WallDiff diff;  // kSteps, kRecordings; of kCalls the matches only
  StepSpread a_steps, b_steps;
  // All largest difference first; rows without one last.
  std::vector<GapDiff> gaps;
  std::vector<CpuDiff> cpu;
  std::vector<MoveDiff> moves;
  std::array<std::int64_t, analysis::kCpuClassCount> a_cpu_ns{}, b_cpu_ns{};  // per step
};

// The file ends early, or GPU work of its steps is missing: times of a step say nothing.
bool lacks_work(const Facts& facts);

// May a step of one be set beside a step of the other, or a recording beside a recording? Else only
// calls can.
bool steps_compare(const Facts& a, const Facts& b);

// O(n log n). Any thread.
Comparison compare(const Facts& a, const Facts& b);

// Cause of idleness as a sentence has it: "the CPU had not launched yet".
const char* idle_cause_phrase(analysis::IdleCause cause);

}  // namespace lanescope::explain

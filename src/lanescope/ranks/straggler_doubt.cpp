#include "lanescope/ranks/straggler_doubt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "lanescope/ranks/job_notes.h"
#include "lanescope/ranks/roster.h"

namespace lanescope::ranks {
namespace {

// Fewer: lateness that came from before them is a large part.
constexpr std::uint64_t kFewStepsToJudge = 3;

double ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

double share_of_step(std::int64_t ns, const JobVerdict& verdict) {
  return static_cast<double>(ns) / static_cast<double>(std::max<std::int64_t>(1, verdict.step_ns));
}

// A CPU that is slower in the same operators and calls as on the other ranks: a profiler slows each of them, and
// not equally on all CPUs.
bool is_within_profilers_reach(const JobVerdict& verdict) {
  return is_cpu_in_events(verdict) && verdict.same_kernels.value_or(false) &&
         share_of_step(verdict.late_ns, verdict) < kProfilerShare;
}

std::string profilers_reason(const JobVerdict& verdict) {
  return fmt::format(
      "{} {} {:.2f} ms later than the others in each step ({:.0f} % of {:.2f} ms), but only by the "
      "CPU, in operators and calls that the others make as well. A profiler can slow one CPU by as "
      "much; compare the step times of a run without it",
      named_ranks(verdict.ranks), verdict.ranks.size() == 1 ? "is" : "are", ms(verdict.late_ns),
      100 * share_of_step(verdict.late_ns, verdict), ms(verdict.step_ns));
}

// Where CPUs are the limit, a CPU that needs a little longer makes its device late by far more: the other CPUs run
// ahead, and their devices wait for nothing but the late one. So what counts is how much longer the CPU needs.
bool is_less_than_recording(const JobVerdict& verdict) {
  return verdict.profiler_ns > 0 && !verdict.causes.empty() &&
         verdict.causes.front().cause == LateCause::kHost && verdict.same_kernels.value_or(false) &&
         verdict.more_outside_ns < verdict.threshold_ns &&
         verdict.more_work_ns < verdict.profiler_ns + verdict.threshold_ns;
}

std::string recording_reason(const JobVerdict& verdict) {
  const bool one = verdict.ranks.size() == 1;
  return fmt::format(
      "{} {} {:.2f} ms later than the others in each step ({:.0f} % of {:.2f} ms), because of the "
      "CPU. But {} needs only {:.2f} ms more of a step, in the same operators, and the profiler "
      "may have cost it up to {:.2f} ms there; compare the step times of a run without it",
      named_ranks(verdict.ranks), one ? "is" : "are", ms(verdict.late_ns),
      100 * share_of_step(verdict.late_ns, verdict), ms(verdict.step_ns),
      one ? "that CPU" : "such a CPU",
      ms(std::max<std::int64_t>(0, verdict.more_work_ns) +
         std::max<std::int64_t>(0, verdict.more_outside_ns)),
      ms(verdict.profiler_ns));
}

std::int64_t explained_ns(const JobVerdict& verdict) {
  const std::int64_t longer = verdict.host_part_is_of_step ? verdict.host_part_ns : 0;
  std::int64_t sum = 0;
  for (const CausePart& part : verdict.causes) sum += std::max<std::int64_t>(0, part.longer_ns);
  return std::max(longer, sum);
}

// What the late ranks did longer explains less than half of their lateness, and there are too few steps to see
// it come again: they may have begun the first one late, as recordings often begin.
bool may_have_begun_late(const JobVerdict& verdict) {
  return verdict.steps < kFewStepsToJudge && explained_ns(verdict) * 2 < verdict.late_ns;
}

std::string late_start_reason(const JobVerdict& verdict) {
  const bool one = verdict.ranks.size() == 1;
  return fmt::format(
      "{} {} {:.2f} ms later than the others in {}, but did only {:.2f} ms more. {} may have begun "
      "late, as where a recording begins",
      named_ranks(verdict.ranks), one ? "was" : "were", ms(verdict.late_ns),
      verdict.steps == 1 ? "the only step" : "the two steps", ms(explained_ns(verdict)),
      one ? "It" : "They");
}

}  // namespace

std::string straggler_doubt(const JobVerdict& verdict) {
  if (verdict.kind != VerdictKind::kStraggler) return {};
  if (is_less_than_recording(verdict)) return recording_reason(verdict);
  if (is_within_profilers_reach(verdict)) return profilers_reason(verdict);
  if (may_have_begun_late(verdict)) return late_start_reason(verdict);
  return {};
}

}  // namespace lanescope::ranks

#include "lanescope/report/screen_wall.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/rules/copying.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/gloo_waits.h"
#include "lanescope/explain/rules/step_state.h"
#include "lanescope/explain/time_takers.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/rounded_numbers.h"

namespace lanescope::report {
namespace {

using analysis::HostPart;
using analysis::IdleCause;
using explain::Facts;
namespace shows = explain::shows;

constexpr std::size_t kMostWallLines = 4;

using Causes = std::vector<IdleCause>;

Causes every_cause() {
  Causes all;
  for (std::size_t i = 0; i < analysis::kIdleCauseCount; ++i)
    all.push_back(static_cast<IdleCause>(i));
  return all;
}

// The parts of a step's time that are not empty.
std::vector<WallLine> all_wall_parts(const Facts& facts) {
  std::vector<WallLine> parts;
  const auto add = [&](std::string label, std::int64_t total_ns, const char* shown,
                       Causes causes = {}) {
    if (total_ns > 0)
      parts.push_back({std::move(label), facts.per_step(total_ns),
                       static_cast<double>(total_ns) / static_cast<double>(facts.steady_wall_ns()),
                       shown, std::move(causes)});
  };
  if (facts.vendor) {
    const analysis::VendorWall& wall = facts.vendor_wall;
    const std::string device = facts.vendor->name;
    add(device + " computing", wall.compute_ns, shows::kCompute);
    add("collectives, no compute", wall.exposed_communication_ns, shows::kCommunication);
    add("copies, no compute", wall.exposed_copy_ns, shows::kCopies);
    add(device + " idle or waiting", wall.idle_ns(), shows::kIdle);
    return parts;
  }
  if (!facts.main_device) {
    for (std::size_t i = 0; i < analysis::kHostPartCount; ++i) {
      const auto part = static_cast<HostPart>(i);
      add(host_part_text(part), facts.cpu_wall.part_ns[i],
          part == HostPart::kOperator ? shows::kOperators : "");
    }
    return parts;
  }
  const auto& part = facts.wall.partition;
  add("GPU compute", part.compute_ns, shows::kCompute);
  add("communication, no compute", part.exposed_communication_ns, shows::kCommunication);
  add("copies, no compute", part.exposed_copy_ns, shows::kCopies);
  // Its time is in none of the lines below.
  const std::int64_t for_gloo_ns = explain::rules::waiting_for_gloo_ns(facts);
  const explain::IdleTimes idle = explain::rules::idle_without_gloo(facts);
  const auto idle_by = [&](IdleCause cause) { return idle[static_cast<std::size_t>(cause)]; };
  if (for_gloo_ns > 0)
    add("idle: " + explain::rules::gloo_waits(facts).library + "'s collectives", for_gloo_ns,
        shows::kIdle, every_cause());
  const std::int64_t for_cpu_ns =
      facts.device().timeline.has_launches() ? explain::rules::waiting_for_cpu_in(facts, idle) : 0;
  const std::int64_t for_batch_ns =
      for_cpu_ns == 0 ? 0
                      : std::min(for_cpu_ns, explain::rules::waiting_for_batches(facts).time_ns);
  const std::int64_t between_ns = idle_by(IdleCause::kBetweenQueued);
  const std::int64_t profiler_ns = idle_by(IdleCause::kProfiler);
  // Those that Facts::waiting_for_cpu_ns() sums, and the others.
  Causes for_cpu{IdleCause::kHostLate, IdleCause::kAfterSync, IdleCause::kLaunchLatency};
  Causes unknown{IdleCause::kWaiting, IdleCause::kUnknown};
  Causes& of_ends = facts.steps.marked ? for_cpu : unknown;
  of_ends.insert(of_ends.end(), {IdleCause::kBeforeFirstWork, IdleCause::kAfterLastWork});
  add("idle: waiting for a batch", for_batch_ns, shows::kIdle, for_cpu);
  const std::int64_t for_copies_ns =
      std::min(for_cpu_ns - for_batch_ns, explain::rules::waiting_in_copies_ns(facts));
  add("idle: CPU makes a copy", for_copies_ns, shows::kIdle, for_cpu);
  add("idle: waiting for the CPU", for_cpu_ns - for_batch_ns - for_copies_ns, shows::kIdle,
      for_cpu);
  add("idle: between queued kernels", between_ns, shows::kIdle, {IdleCause::kBetweenQueued});
  add("idle: the profiler's own work", profiler_ns, shows::kIdle, {IdleCause::kProfiler});
  const analysis::Gap* edge = explain::rules::find_edge_gap(facts);
  const std::int64_t unknown_ns =
      part.idle_ns - for_gloo_ns - for_cpu_ns - between_ns - profiler_ns;
  const std::int64_t edge_ns = edge ? std::min(unknown_ns, edge->end_ns - edge->start_ns) : 0;
  add("not recorded (edge of trace)", edge_ns, "");
  add("idle: cause unknown", unknown_ns - edge_ns, shows::kIdle, unknown);
  return parts;
}

// The GPU's work in a step without the profiler, if recording made most of the waiting: the GPU waits for the CPU in the
// recorded step, its work is nearly all of the step without the profiler, and most of the waiting is what recording cost. Else 0.
std::int64_t busy_without_profiler_ns(const Facts& facts, const explain::GainModel& gains) {
  if (!facts.main_device) return 0;
  const explain::StepBase& base = gains.base();
  const std::int64_t busy_ns = gains.busy_ns();  // as the headline has it
  const std::int64_t waiting_ns = facts.per_step(facts.waiting_for_cpu_ns());
  const bool waits = waiting_ns * 5 >= base.recorded_ns;  // a fifth of the step
  const bool is_nearly_all = explain::is_nearly_all_gpu_work(busy_ns, base);
  const bool is_the_profilers = (base.recorded_ns - base.step_ns) * 2 > waiting_ns;
  return waits && is_nearly_all && is_the_profilers ? busy_ns : 0;
}

// Where a few long steps decide the mean, it is no usual step: more than a tenth above the median.
std::string median_note(const Facts& facts) {
  std::vector<std::int64_t> lengths;
  for (const std::size_t step : facts.selection.steady)
    lengths.push_back(facts.step_window(step).length_ns());
  const std::int64_t median_ns = analysis::median_of_steps(std::move(lengths));
  if (facts.per_step(facts.steady_wall_ns()) * 10 <= median_ns * 11) return {};
  return fmt::format(", median {}", rounded_time(median_ns));
}

}  // namespace

std::vector<WallLine> wall_lines(const Facts& facts) {
  if (facts.steady_wall_ns() == 0) return {};
  std::vector<WallLine> parts = all_wall_parts(facts);
  sort_rows(parts.begin(), parts.end(),
            [](const WallLine& a, const WallLine& b) { return a.ratio > b.ratio; });
  if (parts.size() <= kMostWallLines) return parts;
  WallLine rest{"everything else", 0, 0, "", {}};
  for (std::size_t i = kMostWallLines - 1; i < parts.size(); ++i) {
    rest.per_step_ns += parts[i].per_step_ns;
    rest.ratio += parts[i].ratio;
  }
  parts.resize(kMostWallLines - 1);
  parts.push_back(std::move(rest));
  return parts;
}

std::string wall_subject(const Facts& facts) {
  if (!facts.steps.marked || facts.selection.steady.empty()) return "recording";
  const auto number = [&](std::size_t index) {
    return facts.steps.steps[index].number.value_or(0);
  };
  if (facts.selection.steady.size() == 1)
    return fmt::format("step {}", number(facts.selection.steady.front()));
  return fmt::format("step (mean of {}-{}{})", number(facts.selection.steady.front()),
                     number(facts.selection.steady.back()), median_note(facts));
}

std::string base_text(const Facts& facts, const explain::Explanation& explanation) {
  if (!explanation.gains) return {};
  const explain::StepBase& base = explanation.gains->base();
  const char* what = facts.steps.marked ? "a step" : "this";
  // Recording did not delay what limits the step.
  if (base.recorded_ns - base.step_ns < base.recorded_ns / 50)
    return fmt::format("Without the profiler {} takes about as long{}.", what,
                       base.error_ns * 10 < base.step_ns
                           ? ""
                           : fmt::format(" (+- {})", rounded_time(base.error_ns)));
  const std::int64_t busy_ns =
      std::min(busy_without_profiler_ns(facts, *explanation.gains), base.step_ns);
  // The headline has the number.
  if (explanation.headline_has_base)
    return fmt::format("{} {} without {}.",
                       busy_ns > 0 ? "Most of the waiting above is the profiler's. Gains refer to"
                                   : "Gains refer to",
                       facts.steps.marked ? "a step" : "the same work",
                       busy_ns > 0 ? "it" : "the profiler");
  // The two ends of a single step may meet: that is no measure of how exact it is.
  std::string text =
      fmt::format("Without the profiler {} takes about {}", what, rounded_time(base.step_ns));
  if (base.error_ns * 1000 >= base.step_ns)
    text += fmt::format(" +- {}", rounded_time(base.error_ns));
  // A limit that the recording made: a reader of the verdict alone would look at the CPU.
  if (busy_ns > 0)
    text += fmt::format(
        ", and the GPU works for {} of it ({}): most of the waiting above is the profiler's",
        rounded_time(busy_ns),
        rounded_percent(static_cast<double>(busy_ns) / static_cast<double>(base.step_ns)));
  return text + ". Gains refer to that time.";
}

std::string largest_kernels_text(const Facts& facts) {
  if (!facts.main_device || facts.wall.partition.compute_ns * 2 < facts.wall.partition.wall_ns)
    return {};
  std::string text;
  double named = 0;
  for (const explain::TimeTaker& taker : explain::largest_kernels(facts)) {
    named += taker.ratio_of_gpu_time;
    text += fmt::format("{}{} {}", text.empty() ? "Most of the GPU's time: " : "; ",
                        rounded_sentence(explain::say("{}", {taker.what.values.front()})),
                        rounded_percent(taker.ratio_of_gpu_time));
  }
  constexpr double kMostNamed = 0.5;  // where no few names say more, kinds do
  if (named < kMostNamed)
    if (std::string kinds = kinds_of_work_text(facts); !kinds.empty()) return kinds;
  return text.empty() ? text : text + ".";
}

std::string kinds_of_work_text(const Facts& facts) {
  const std::vector<explain::KindOfWork> kinds = explain::kinds_of_gpu_work(facts);
  if (kinds.size() < 2) return {};
  std::string text;
  for (const explain::KindOfWork& kind : kinds) {
    text += fmt::format("{}{} {}", text.empty() ? kKindsOfWork : ", ", kind.words,
                        rounded_percent(kind.ratio));
    if (!kind.sources.pattern.empty()) text += fmt::format(" ({})", rounded_sentence(kind.sources));
  }
  return text + ".";
}

}  // namespace lanescope::report

#include "lanescope/report/thinning_text.h"

#include <fmt/format.h>

#include "lanescope/report/text_format.h"

namespace lanescope::report {

std::string thinning_text(const analysis::Thinning& thinning) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (thinning.without_inputs_ns > 0)
    add(fmt::format("no input shapes for {}", format_time_ns(thinning.without_inputs_ns)));
  if (thinning.without_stacks_ns > 0)
    add(fmt::format("no stacks for {}", format_time_ns(thinning.without_stacks_ns)));
  if (thinning.memory_end_ns)
    add(thinning.with_memory_ns > 0 ? fmt::format("no allocations after the first {}",
                                                  format_time_ns(thinning.with_memory_ns))
                                    : "no allocations");
  const bool lacks_short = thinning.without_short_operators_ns > 0;
  const bool has_pauses = thinning.operators_in_parts_ns > 0;
  if (lacks_short)
    add(fmt::format("no operators under {} for {}", format_time_ns(thinning.short_ns),
                    format_time_ns(thinning.without_short_operators_ns)));
  if (has_pauses)
    add(fmt::format("no operators for {} of {}", format_time_ns(thinning.paused_ns),
                    format_time_ns(thinning.operators_in_parts_ns)));
  const bool lacks_ranges = thinning.ranges_paused_ns > 0;
  if (lacks_ranges)
    add(fmt::format("no ranges of the program except steps for {} of that",
                    format_time_ns(thinning.ranges_paused_ns)));
  if (lacks_short || has_pauses)
    text += lacks_ranges ? ": counts and sums of operators and ranges are lower bounds"
                         : ": counts and sums of operators are lower bounds";
  if (lacks_short) text += ", the time of what is missing counts as its caller's own";
  if (has_pauses) text += ", and time without operators may be such a pause";
  return text;
}

std::string recording_cost_text(const analysis::RecordingCost& cost) {
  std::string text = fmt::format("recording took {:.2g} % of the time; its budget was {:.4g} %",
                                 cost.share_ratio * 100, cost.budget_ratio * 100);
  if (cost.always_recorded_ratio > cost.budget_ratio)
    text += fmt::format("; calls of the GPU's API, which a budget never leaves out, took {:.2g} %",
                        cost.always_recorded_ratio * 100);
  return text;
}

}  // namespace lanescope::report

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
  if (thinning.operators_in_parts_ns == 0) return text;
  add(fmt::format("no operators for {} of {}", format_time_ns(thinning.paused_ns),
                  format_time_ns(thinning.operators_in_parts_ns)));
  return text +
         ": counts and sums of operators are lower bounds, and time without operators may be such "
         "a "
         "pause";
}

}  // namespace lanescope::report

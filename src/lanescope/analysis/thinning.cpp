#include "lanescope/analysis/thinning.h"

#include <algorithm>
#include <string_view>

#include "lanescope/base/json_value.h"
#include "lanescope/model/nearly_sorted.h"

namespace lanescope::analysis {
namespace {

std::optional<JsonValue> entry(const Trace& trace, std::string_view key) {
  const auto json = trace.metadata_json(key);
  return json ? parse_json(*json) : std::nullopt;
}

struct RecordedWindow {
  std::int64_t from_ns, to_ns;  // since 1970
  // For a time that may have no end yet; 0: outside of the window.
  std::int64_t overlap_ns(const JsonValue* from, const JsonValue* to) const {
    if (!from || !from->integer) return 0;
    const std::int64_t end = to && to->integer ? *to->integer : to_ns;
    return std::max<std::int64_t>(std::min(end, to_ns) - std::max(*from->integer, from_ns), 0);
  }
};

// A long list of pauses is cut; paused_ns has the rest.
std::int64_t paused_ns(const JsonValue& period, const RecordedWindow& window,
                       std::int64_t in_window_ns) {
  std::int64_t listed_ns = 0;
  const JsonValue* const pauses = period.find("pauses");
  if (pauses)
    for (const JsonValue& pause : pauses->items)
      if (pause.is_array() && pause.items.size() == 2)
        listed_ns += window.overlap_ns(&pause.items[0], &pause.items[1]);
  const JsonValue* const count = period.find("pause_count");
  const JsonValue* const sum = period.find("paused_ns");
  const bool is_whole = pauses && count && count->integer &&
                        static_cast<std::int64_t>(pauses->items.size()) == *count->integer;
  const JsonValue* const to = period.find("to_ns");
  const bool ends_inside = to && to->integer && *to->integer <= window.to_ns;
  const JsonValue* const from = period.find("from_ns");
  const bool begins_inside = from && from->integer && *from->integer >= window.from_ns;
  if (!is_whole && sum && sum->integer && begins_inside && ends_inside) return *sum->integer;
  return std::min(listed_ns, in_window_ns);
}

}  // namespace

std::optional<Thinning> find_thinning(const Trace& trace) {
  const auto list = entry(trace, "lanescope_thinned");
  if (!list || !list->is_array()) return std::nullopt;
  const RecordedWindow window{saturating_end(trace.base_time_ns(), trace.window_start_ns()),
                              saturating_end(trace.base_time_ns(), trace.window_end_ns())};
  const bool has_inputs = trace.metadata_json("record_shapes") || trace.metadata_json("with_flops");
  const bool has_stacks = trace.metadata_json("with_stack").has_value();
  Thinning found;
  for (const JsonValue& period : list->items) {
    const JsonValue* const level = period.find("level");
    const JsonValue* const from = period.find("from_ns");
    const JsonValue* const what = period.find("what");
    const std::int64_t ns = window.overlap_ns(from, period.find("to_ns"));
    if (!level && what && what->text == "allocations" && ns > 0) {
      found.memory_end_ns = saturating_length(trace.base_time_ns(), *from->integer);
      found.with_memory_ns =
          std::max<std::int64_t>(saturating_length(window.from_ns, *from->integer), 0);
    }
    if (!level || ns == 0) continue;
    // Each level also leaves out what the levels before it leave out.
    const std::int64_t left_out = level->integer.value_or(0);
    if (left_out >= 1 && has_inputs) found.without_inputs_ns += ns;
    if (left_out >= 2 && has_stacks) found.without_stacks_ns += ns;
    if (left_out < 3) continue;
    if (const JsonValue* short_ns = period.find("shorter_than_ns"); short_ns && left_out == 3) {
      found.without_short_operators_ns += ns;
      found.short_ns = std::max(found.short_ns, short_ns->integer.value_or(0));
      continue;
    }
    found.operators_in_parts_ns += ns;
    const std::int64_t paused = paused_ns(period, window, ns);
    found.paused_ns += paused;
    if (left_out >= 5) found.ranges_paused_ns += paused;
    if (const JsonValue* count = period.find("pause_count"); count && count->integer)
      found.pause_count += static_cast<std::uint64_t>(std::max<std::int64_t>(*count->integer, 0));
  }
  if (found.without_inputs_ns + found.without_stacks_ns + found.without_short_operators_ns +
              found.operators_in_parts_ns ==
          0 &&
      !found.memory_end_ns)
    return std::nullopt;
  return found;
}

std::optional<std::int64_t> find_memory_end(const Trace& trace) {
  const auto thinning = find_thinning(trace);
  return thinning ? thinning->memory_end_ns : std::nullopt;
}

std::optional<RecordingCost> find_recording_cost(const Trace& trace) {
  const auto cost = entry(trace, "lanescope_cost");
  if (!cost || !cost->is_object()) return std::nullopt;
  const JsonValue* const budget = cost->find("budget_ratio");
  const JsonValue* const share = cost->find("share_ratio");
  if (!budget || !share) return std::nullopt;
  const JsonValue* const left_out = cost->find("left_out_operators");
  const std::int64_t count = left_out ? left_out->integer.value_or(0) : 0;
  const auto ns = [&](std::string_view key) {
    const JsonValue* const value = cost->find(key);
    return value ? std::max<std::int64_t>(value->integer.value_or(0), 0) : 0;
  };
  const auto always_ns = static_cast<double>(ns("gpu_calls_ns"));
  const std::int64_t window_ns = ns("window_ns");
  return RecordingCost{budget->number, share->number,
                       window_ns > 0 ? always_ns / static_cast<double>(window_ns) : 0,
                       static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0))};
}

}  // namespace lanescope::analysis

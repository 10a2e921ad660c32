#include "lanescope/analysis/hardware_lanes.h"

#include <utility>

#include "lanescope/base/json_value.h"

namespace lanescope::analysis {
namespace {

double positive(const JsonValue& description, std::string_view key) {
  const JsonValue* value = description.find(key);
  return value && value->kind == JsonValue::Kind::kNumber && value->number > 0 ? value->number : 0;
}

std::int64_t length_of(const JsonValue& description, std::string_view key) {
  const JsonValue* value = description.find(key);
  return value && value->integer && *value->integer > 0 ? *value->integer : 0;
}

}  // namespace

std::optional<JsonValue> hardware_description(const Trace& trace, std::int64_t device) {
  for (const Metadata& entry : trace.metadata()) {
    if (trace.text(entry.key) != "lanescope_hardware") continue;
    const auto list = parse_json(trace.text(entry.json));
    if (!list || !list->is_array()) continue;
    for (const JsonValue& item : list->items)
      if (const JsonValue* number = item.find("device"); number && number->integer == device)
        return item;
  }
  return std::nullopt;
}

const HardwareSeries* HardwareLanes::find(std::string_view name) const {
  const auto found = series.find(name);
  return found == series.end() ? nullptr : &found->second;
}

std::optional<HardwareLanes> find_hardware_lanes(const Trace& trace, std::int64_t device) {
  const auto description = hardware_description(trace, device);
  if (!description) return std::nullopt;
  HardwareLanes lanes;
  lanes.interval_ns = length_of(*description, "interval_ns");
  lanes.slow_interval_ns = length_of(*description, "slow_interval_ns");
  lanes.pcie_peak_bytes_per_second = positive(*description, "pcie_peak_bytes_per_second");
  lanes.nvlink_peak_bytes_per_second = positive(*description, "nvlink_peak_bytes_per_second");
  lanes.power_limit_watts = positive(*description, "power_limit_watts");
  lanes.highest_sm_clock_mhz = positive(*description, "highest_sm_clock_mhz");
  const CounterColumns& counters = trace.counters();
  for (std::size_t i = 0; i < counters.size();) {  // by track
    const TrackId id = counters.track[i];
    const Track& track = trace.track(id);
    const Scalar& pid = trace.processes()[raw(track.process)].pid;
    const bool is_wanted = !pid.is_text && pid.number == device;
    HardwareSeries series;
    series.unit = trace.text(track.series);
    for (; i < counters.size() && counters.track[i] == id; ++i) {
      if (!is_wanted) continue;
      series.start_ns.push_back(counters.time_ns[i]);
      series.value.push_back(counters.value[i]);
    }
    if (is_wanted) lanes.series.emplace(std::string(trace.text(track.name)), std::move(series));
  }
  if (lanes.series.empty()) return std::nullopt;
  return lanes;
}

}  // namespace lanescope::analysis

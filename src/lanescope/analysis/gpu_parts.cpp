#include "lanescope/analysis/gpu_parts.h"

#include "lanescope/base/json_value.h"
#include "lanescope/model/nearly_sorted.h"

namespace lanescope::analysis {

std::optional<GpuParts> find_gpu_parts(const Trace& trace) {
  const auto text = trace.metadata_json("lanescope_gpu_parts");
  const auto entry = text ? parse_json(*text) : std::nullopt;
  if (!entry || !entry->is_object()) return std::nullopt;
  const JsonValue* const start = entry->find("recording_from_ns");
  const JsonValue* const parts = entry->find("parts");
  if (!start || !start->integer || !parts || !parts->is_array()) return std::nullopt;
  const auto since_start = [&](std::int64_t ns) {
    return saturating_length(*start->integer, saturating_end(trace.base_time_ns(), ns));
  };
  return GpuParts{parts->items.size(), since_start(trace.window_start_ns()),
                  since_start(trace.window_end_ns())};
}

}  // namespace lanescope::analysis

#include "lanescope/model/profiler_steps.h"

#include <charconv>
#include <vector>

#include "lanescope/model/trace_builder.h"

namespace lanescope {

std::optional<std::int64_t> profiler_step_number(std::string_view name) {
  constexpr std::string_view kPrefix = "ProfilerStep#";
  std::int64_t number = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto [end, error] =
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

void add_profiler_steps(TraceBuilder& builder) {
  const StringPool& strings = builder.strings();
  std::vector<bool> is_step;  // by name; empty while there is none
  for (std::uint32_t i = 0; i < strings.size(); ++i) {
    if (!profiler_step_number(strings.view(StringId{i}))) continue;
    is_step.resize(strings.size());
    is_step[i] = true;
  }
  if (is_step.empty()) return;
  const auto& slices = builder.slices();
  for (std::uint32_t row = 0; row < slices.size(); ++row) {
    const std::uint32_t name = raw(slices.name[row]);
    if (name >= is_step.size() || !is_step[name]) continue;
    if (builder.tracks()[raw(slices.track[row])].kind != TrackKind::kThread) continue;
    if (builder.kind(slices.category[row]) == CategoryKind::kGpuUserAnnotation) continue;
    builder.add_step(*profiler_step_number(builder.text(slices.name[row])), row);
  }
}

}  // namespace lanescope

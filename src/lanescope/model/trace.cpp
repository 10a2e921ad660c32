#include "lanescope/model/trace.h"

#include <utility>

#include "lanescope/model/each_column.h"

namespace lanescope {

Trace::Trace() = default;
Trace::Trace(Trace&&) noexcept = default;
Trace& Trace::operator=(Trace&&) noexcept = default;
Trace::~Trace() = default;

Trace Trace::from_columns(TraceColumns columns) {
  Trace trace;
  trace.columns_ = std::move(columns);
  return trace;
}

std::optional<std::string_view> Trace::metadata_json(std::string_view key) const {
  const StringId id = strings().find(key);
  for (std::size_t i = metadata().size(); i-- > 0;)
    if (metadata()[i].key == id) return text(metadata()[i].json);
  return std::nullopt;
}

std::size_t Trace::memory_bytes() const {
  std::size_t bytes = 0;
  each_column([&bytes](const char*, const auto& column) { bytes += column.memory_bytes(); },
              columns_);
  return bytes;
}

}  // namespace lanescope

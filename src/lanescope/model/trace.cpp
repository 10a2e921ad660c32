#include "lanescope/model/trace.h"

#include <algorithm>

namespace lanescope {
namespace {

template <typename T>
std::size_t held(const std::vector<T>& column) {
  return column.capacity() * sizeof(T);
}

}  // namespace

std::optional<std::string_view> Trace::metadata_json(std::string_view key) const {
  const StringId id = strings_.find(key);
  const auto last = std::find_if(metadata_.rbegin(), metadata_.rend(),
                                 [id](const Metadata& entry) { return entry.key == id; });
  if (last == metadata_.rend()) return std::nullopt;
  return text(last->json);
}

std::size_t Trace::memory_bytes() const {
  return held(slices_.start_ns) + held(slices_.dur_ns) + held(slices_.name) + held(slices_.track) +
         held(slices_.category) + held(slices_.args) + held(slices_.event_index) +
         held(instants_.time_ns) + held(instants_.name) + held(instants_.track) +
         held(instants_.category) + held(instants_.args) + held(instants_.event_index) +
         held(instants_.scope) + held(counters_.time_ns) + held(counters_.track) +
         held(counters_.value) + held(flows_) + held(tracks_) + held(processes_) +
         held(categories_) + held(steps_) + held(metadata_) + held(other_metadata_events_) +
         held(api_calls_) + strings_.memory_bytes() + args_.memory_bytes();
}

}  // namespace lanescope

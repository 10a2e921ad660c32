#include "lanescope/format/spool/gpu_annotations.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace lanescope::format {

void GpuAnnotations::add(const AnnotationRef& annotation, std::uint32_t stream, AnnotationWork work,
                         std::int64_t start_ns, std::int64_t end_ns) {
  const bool backward = work == AnnotationWork::kBackward;
  const auto [known, is_new] =
      rows_.try_emplace(RowKey{annotation.external_id, stream, backward},
                        GpuAnnotation{annotation, stream, start_ns, end_ns, work});
  if (is_new) {
    backward_rows_ += backward ? 1 : 0;
    return;
  }
  GpuAnnotation& row = known->second;
  row.start_ns = std::min(row.start_ns, start_ns);
  row.end_ns = std::max(row.end_ns, end_ns);
  if (work == AnnotationWork::kOwn) row.work = work;
}

void GpuAnnotations::add_work(std::span<const AnnotationRef> enclosing,
                              std::span<const AnnotationRef> forward, std::uint32_t stream,
                              std::int64_t start_ns, std::int64_t end_ns) {
  for (std::size_t i = 0; i < enclosing.size(); ++i)
    add(enclosing[i], stream, i == 0 ? AnnotationWork::kOwn : AnnotationWork::kNested, start_ns,
        end_ns);
  for (const AnnotationRef& annotation : forward)
    if (std::none_of(enclosing.begin(), enclosing.end(), [&](const AnnotationRef& around) {
          return around.external_id == annotation.external_id;
        }))
      add(annotation, stream, AnnotationWork::kBackward, start_ns, end_ns);
}

template <typename Wanted>
std::vector<GpuAnnotation> GpuAnnotations::take(const Wanted& wanted) {
  std::vector<GpuAnnotation> taken;
  std::erase_if(rows_, [&](const auto& entry) {
    if (!wanted(entry.second)) return false;
    backward_rows_ -= entry.first.backward ? 1 : 0;
    taken.push_back(entry.second);
    return true;
  });
  std::sort(taken.begin(), taken.end(), [](const GpuAnnotation& a, const GpuAnnotation& b) {
    return std::tuple(a.annotation.external_id, a.stream, a.work == AnnotationWork::kBackward) <
           std::tuple(b.annotation.external_id, b.stream, b.work == AnnotationWork::kBackward);
  });
  return taken;
}

std::vector<GpuAnnotation> GpuAnnotations::take_ended(std::int64_t time_ns) {
  // External ids count upwards with a thread's ranges, so the lower half is about the older one.
  std::int64_t newest_taken_early = -1;
  if (backward_rows_ > kMostBackwardRows) {
    std::vector<std::int64_t> ids;
    for (const auto& [key, row] : rows_)
      if (key.backward) ids.push_back(key.external_id);
    const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() / 2);
    std::nth_element(ids.begin(), middle, ids.end());
    newest_taken_early = *middle;
  }
  const auto has_ended = [&](const GpuAnnotation& row) {
    if (row.annotation.end_ns > time_ns) return false;
    return row.work != AnnotationWork::kBackward ||
           row.annotation.external_id <= newest_taken_early;
  };
  // A row with the same time as the row around it must come after it, or viewers draw it as
  // the outer one.
  std::map<std::tuple<std::uint32_t, std::int64_t, std::int64_t>, std::int64_t> waiting;
  for (const auto& [key, row] : rows_)
    if (!has_ended(row)) {
      const auto [known, is_new] =
          waiting.try_emplace(std::tuple(row.stream, row.start_ns, row.end_ns), key.external_id);
      if (!is_new) known->second = std::min(known->second, key.external_id);
    }
  return take([&](const GpuAnnotation& row) {
    if (!has_ended(row)) return false;
    const auto around = waiting.find(std::tuple(row.stream, row.start_ns, row.end_ns));
    return around == waiting.end() || around->second > row.annotation.external_id;
  });
}

std::vector<GpuAnnotation> GpuAnnotations::take_all() {
  return take([](const GpuAnnotation&) { return true; });
}

}  // namespace lanescope::format

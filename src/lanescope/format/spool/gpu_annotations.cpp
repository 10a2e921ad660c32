#include "lanescope/format/spool/gpu_annotations.h"

#include <algorithm>

namespace lanescope::format {

void GpuAnnotations::add(std::uint32_t annotation, std::uint32_t stream, AnnotationWork work,
                         std::int64_t start_ns, std::int64_t end_ns) {
  auto& rows = row_of_[work == AnnotationWork::kBackward ? 1 : 0];
  const std::uint64_t key = std::uint64_t{annotation} << 32 | stream;
  const auto [known, is_new] = rows.try_emplace(key, static_cast<std::uint32_t>(rows_.size()));
  if (is_new) {
    rows_.push_back({annotation, stream, start_ns, end_ns, work});
    return;
  }
  GpuAnnotation& row = rows_[known->second];
  row.start_ns = std::min(row.start_ns, start_ns);
  row.end_ns = std::max(row.end_ns, end_ns);
  if (work == AnnotationWork::kOwn) row.work = work;
}

void GpuAnnotations::add_work(std::span<const std::uint32_t> enclosing,
                              std::span<const std::uint32_t> forward, std::uint32_t stream,
                              std::int64_t start_ns, std::int64_t end_ns) {
  for (std::size_t i = 0; i < enclosing.size(); ++i)
    add(enclosing[i], stream, i == 0 ? AnnotationWork::kOwn : AnnotationWork::kNested, start_ns,
        end_ns);
  for (const std::uint32_t annotation : forward)
    if (std::find(enclosing.begin(), enclosing.end(), annotation) == enclosing.end())
      add(annotation, stream, AnnotationWork::kBackward, start_ns, end_ns);
}

}  // namespace lanescope::format

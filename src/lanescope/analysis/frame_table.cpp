#include "lanescope/analysis/frame_table.h"

#include <algorithm>

namespace lanescope::analysis {

FrameTable::FrameTable(const Trace& trace) {
  const bool has_frames =
      std::any_of(trace.categories().begin(), trace.categories().end(),
                  [](const Category& each) { return each.kind == CategoryKind::kPythonFunction; });
  if (!has_frames) return;
  row_of_.assign(trace.strings().size(), kNoRow);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    if (trace.kind(SliceId{i}) != CategoryKind::kPythonFunction) continue;
    const StringId name = trace.slices().name[i];
    if (raw(name) >= row_of_.size() || row_of_[raw(name)] != kNoRow) continue;
    row_of_[raw(name)] = static_cast<std::uint32_t>(rows_.size());
    rows_.push_back(names::read_python_frame(trace.text(name)));
  }
}

}  // namespace lanescope::analysis

#include "lanescope/explain/frames_around.h"

#include <algorithm>
#include <limits>

#include "lanescope/explain/facts_memo.h"

namespace lanescope::explain {

FramesAround::FramesAround(const Trace& trace) : trace_(trace) {
  if (std::none_of(trace.categories().begin(), trace.categories().end(), [](const Category& each) {
        return each.kind == CategoryKind::kPythonFunction ||
               each.kind == CategoryKind::kUserAnnotation;
      }))
    return;
  const auto slices = static_cast<std::uint32_t>(trace.slices().size());
  latest_end_ns_.assign(slices / kBlock + 1, std::numeric_limits<std::int64_t>::min());
  for (std::uint32_t i = 0; i < slices; ++i)
    if (const SliceId slice{i}; takes_part(slice)) {
      std::int64_t& latest = latest_end_ns_[i / kBlock];
      latest = std::max(latest, trace.end_ns(slice));
    }
}

namespace {

FramesAround find_frames(const Facts& facts) { return FramesAround(*facts.trace); }

}  // namespace

const FramesAround& frames_around(const Facts& facts) { return made_once<find_frames>(facts); }

}  // namespace lanescope::explain

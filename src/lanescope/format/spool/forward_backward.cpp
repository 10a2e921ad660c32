#include "lanescope/format/spool/forward_backward.h"

#include <algorithm>

namespace lanescope::format {

void ForwardBackward::add_flows(TraceBuilder& builder, std::vector<SequenceLink> links,
                                const std::function<TrackId(std::uint32_t)>& track_of) {
  std::stable_sort(links.begin(), links.end(), [](const SequenceLink& a, const SequenceLink& b) {
    return a.start_ns < b.start_ns;
  });
  const CategoryId category = builder.category("fwdbwd");
  const StringId name = builder.intern("fwdbwd");
  Scalar id;
  for (const SequenceLink& link : links) {
    if (!link.backward) {
      forward_.put(link.node, {link.start_ns, link.thread});
      continue;
    }
    const Forward* const start = forward_.find(link.node);
    if (!start) continue;
    id.number = ++arrows_;
    builder.add_flow('s', track_of(start->thread), category, name, id, start->start_ns, false);
    builder.add_flow('f', track_of(link.thread), category, name, id, link.start_ns, true);
    forward_.erase(link.node);
  }
}

}  // namespace lanescope::format

#include "lanescope/format/spool/forward_backward.h"

#include "lanescope/base/sort_rows.h"

namespace lanescope::format {

void ForwardBackward::add_flows(TraceBuilder& builder, std::vector<SequenceLink> links,
                                const std::function<TrackId(std::uint32_t)>& track_of) {
  sort_rows(links.begin(), links.end(),
            [](const SequenceLink& a, const SequenceLink& b) { return a.start_ns < b.start_ns; });
  Flow arrow;
  arrow.category = builder.category("fwdbwd");
  arrow.name = builder.intern("fwdbwd");
  arrow.binds_enclosing = true;
  for (const SequenceLink& link : links) {
    if (!link.backward) {
      forward_.put(link.node, {link.start_ns, link.thread});
      continue;
    }
    const Forward* const start = forward_.find(link.node);
    if (!start) continue;
    arrow.id_value = ++arrows_;
    arrow.from_track = track_of(start->thread);
    arrow.from_ns = start->start_ns;
    arrow.to_track = track_of(link.thread);
    arrow.to_ns = link.start_ns;
    builder.add_flow(arrow);
    builder.skip_event();  // torch's JSON has two events for it
    builder.skip_event();
    forward_.erase(link.node);
  }
}

}  // namespace lanescope::format

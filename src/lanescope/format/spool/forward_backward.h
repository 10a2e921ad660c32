// Arrows from forward ops to the backward ops of their nodes.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// A range with a sequence number.
struct SequenceLink {
  std::int64_t start_ns;
  std::int64_t sequence;
  std::uint64_t thread;  // torch's number: of the forward thread
  TrackId track;
  bool backward;
};

// As Kineto draws them: of all forward ops with one sequence number on one thread the last to start
// made the node; each arrow is drawn once.
void add_forward_backward_flows(TraceBuilder& builder, std::vector<SequenceLink> links);

}  // namespace lanescope::format

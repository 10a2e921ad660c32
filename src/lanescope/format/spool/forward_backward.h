// Arrows from forward ops to the backward ops of their nodes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lanescope/format/spool/recent_map.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// An autograd node: torch's number of the thread that ran the forward op, and the sequence number.
struct NodeKey {
  std::uint64_t thread;
  std::int64_t sequence;
  bool operator==(const NodeKey&) const = default;
};
struct NodeKeyHash {
  std::size_t operator()(const NodeKey& key) const {
    return (key.thread * 0x9e3779b97f4a7c15u ^ static_cast<std::uint64_t>(key.sequence)) *
           0xd6e8feb86659fd93u;
  }
};

// A range with a sequence number.
struct SequenceLink {
  std::int64_t start_ns;
  NodeKey node;
  std::uint32_t thread;  // number of the recorded thread
  bool backward;
};

// As in Kineto: among forward ops with one sequence number on one thread, the last to start made
// the node; each arrow is drawn once. The last 250,000 forward ops of earlier pieces count, so only
// a later backward op loses its arrow.
class ForwardBackward {
 public:
  // Links of one piece, in any order. `track_of`: of the number of a recorded thread.
  void add_flows(TraceBuilder& builder, std::vector<SequenceLink> links,
                 const std::function<TrackId(std::uint32_t)>& track_of);

 private:
  struct Forward {
    std::int64_t start_ns;
    std::uint32_t thread;
  };
  RecentMap<NodeKey, Forward, NodeKeyHash, 250'000> forward_;
  std::int64_t arrows_ = 0;
};

}  // namespace lanescope::format

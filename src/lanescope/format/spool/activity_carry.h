// What the rows of device activities in one piece of a recording need from the pieces before it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/format/spool/forward_backward.h"
#include "lanescope/format/spool/gpu_annotations.h"
#include "lanescope/format/spool/launch_joins.h"
#include "lanescope/format/spool/recent_map.h"

namespace lanescope::format {

// Memory: at most 50 MB for any recording, plus annotations that are still open.
struct ActivityCarry {
  static constexpr std::size_t kMostEvents = 250'000;

  // A forward op, and the annotations around it, innermost first.
  struct ForwardOp {
    std::int64_t start_ns = 0;
    std::shared_ptr<const std::vector<AnnotationRef>> annotations;
  };

  // (device, stream) pairs; `annotations` uses the index as the stream.
  std::vector<std::pair<std::int64_t, std::int64_t>> streams;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> stream_index;
  GpuAnnotations annotations;
  std::vector<EventRecord>
      events;  // for waits: at least the newest kMostEvents, less than twice that
  // From the whole recording: the work or the events of a context show its device.
  std::unordered_map<std::uint32_t, std::int64_t> device_of_context;
  RecentMap<NodeKey, ForwardOp, NodeKeyHash, 100'000> forward_ops;
};

}  // namespace lanescope::format

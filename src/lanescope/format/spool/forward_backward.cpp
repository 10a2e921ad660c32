#include "lanescope/format/spool/forward_backward.h"

#include <algorithm>
#include <unordered_map>

namespace lanescope::format {
namespace {

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

}  // namespace

void add_forward_backward_flows(TraceBuilder& builder, std::vector<SequenceLink> links) {
  std::stable_sort(links.begin(), links.end(), [](const SequenceLink& a, const SequenceLink& b) {
    return a.start_ns < b.start_ns;
  });
  std::unordered_map<NodeKey, const SequenceLink*, NodeKeyHash> forward;
  const CategoryId category = builder.category("fwdbwd");
  const StringId name = builder.intern("fwdbwd");
  Scalar id;
  for (const SequenceLink& link : links) {
    const NodeKey key{link.thread, link.sequence};
    if (!link.backward) {
      forward[key] = &link;
      continue;
    }
    const auto start = forward.find(key);
    if (start == forward.end()) continue;
    ++id.number;
    builder.add_flow('s', start->second->track, category, name, id, start->second->start_ns, false);
    builder.add_flow('f', link.track, category, name, id, link.start_ns, true);
    forward.erase(start);
  }
}

}  // namespace lanescope::format

#include "lanescope/analysis/track_flame.h"

#include <unordered_map>

#include "lanescope/model/nested_rows.h"

namespace lanescope::analysis {
namespace {

// No program nests so deep; of a damaged file, every line of a folded stack would be endless.
constexpr std::size_t kMostOpenFrames = 1024;

class TrackStacks {
 public:
  explicit TrackStacks(const Trace& trace) : trace_(trace) {}
  void begin(SliceId slice) {
    if (open_.size() == kMostOpenFrames) {
      ++deeper_;
      return;
    }
    const std::uint32_t node = node_of(trace_.slices().name[raw(slice)]);
    const std::int64_t dur = trace_.dur_ns(slice);
    nodes_[node].total += dur;
    nodes_[node].self += dur;
    if (!open_.empty()) nodes_[open_.back()].self -= dur;
    open_.push_back(node);
  }
  void end() {
    if (deeper_ > 0)
      --deeper_;
    else
      open_.pop_back();
  }
  std::vector<FlameNode> take() { return std::move(nodes_); }

 private:
  std::uint32_t node_of(StringId name) {
    const auto next = static_cast<std::uint32_t>(nodes_.size());
    const std::uint32_t parent = open_.empty() ? next : open_.back();
    // A root is the child of no node.
    const std::uint64_t above = open_.empty() ? ~std::uint32_t{0} : parent;
    const auto [at, is_new] = known_.try_emplace(above << 32U | raw(name), next);
    if (is_new) nodes_.push_back({.parent = parent, .function = name});
    return at->second;
  }

  const Trace& trace_;
  std::vector<FlameNode> nodes_;
  std::vector<std::uint32_t> open_;
  std::size_t deeper_ = 0;                                  // open slices that have no node
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // by caller and name
};

}  // namespace

std::vector<FlameNode> compute_track_flame(const Trace& trace, const Track& track) {
  TrackStacks stacks(trace);
  const NestedRows rows = find_nested_rows(trace, track);
  for (std::size_t i = 0; i < rows.row_count(); ++i)
    for_each_edge(
        trace, rows.row(i), [&](SliceId slice) { stacks.begin(slice); },
        [&](SliceId) { stacks.end(); });
  return stacks.take();
}

}  // namespace lanescope::analysis

#include "lanescope/explain/choose_owners.h"

#include <algorithm>
#include <utility>

#include "lanescope/base/sort_rows.h"

namespace lanescope::explain {
namespace {

using simulate::PathKind;

// A child with so much of its parent's time replaces it.
constexpr double kReplacesParent = 0.8;
// A range of the CPU whose largest child has less than this is named as a whole.
constexpr double kScattered = 0.4;
// A loop of which loops inside it have so much is not named as a whole.
constexpr double kOfInnerLoops = 0.33;
// What has so much of the step is the step itself: its parts are named.
constexpr double kAll = 0.95;
// A function or module is named as a whole if its own operators have so much of its time, and none of them has so much of its
// time or so much of the step: eight short passes over a tensor are one owner.
constexpr double kOwnOperators = 0.8, kMostOfFunction = 0.5, kMostOfStep = 0.2;
// One that has more of the step than this is no part of it.
constexpr double kMostOfPart = 0.8;

// Parts that are large enough to be named are so much of a loop whose parts are named.
constexpr double kMostlyLargeParts = 0.5;
// Rounds of calls that take so long each are more than small operators in Python's loop.
constexpr std::int64_t kLongCallNs = 100'000;

std::int64_t cpu_ns(const CallNode& node) {
  const auto of = [&](PathKind kind) { return node.time_ns[static_cast<std::size_t>(kind)]; };
  return of(PathKind::kHost) + of(PathKind::kCall) + of(PathKind::kDelay);
}

bool is_mostly_cpu(const CallNode& node) { return cpu_ns(node) * 2 > node.total_ns; }

double share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

class Chooser {
 public:
  Chooser(const std::vector<CallNode>& nodes, bool has_steps)
      : nodes_(nodes), has_steps_(has_steps), children_(nodes.size()) {
    for (std::uint32_t i = 1; i < nodes.size(); ++i) children_[nodes[i].parent].push_back(i);
    for (auto& each : children_)
      sort_rows(each.begin(), each.end(), [&](std::uint32_t a, std::uint32_t b) {
        return nodes_[a].total_ns > nodes_[b].total_ns;
      });
    least_ns_ = static_cast<std::int64_t>(kLeastOwner * static_cast<double>(nodes[0].total_ns));
    choose(0);
  }

  std::vector<OwnerChoice> choices;

 private:
  bool is_whole(std::uint32_t index) const {
    const CallNode& node = nodes_[index];
    if (children_[index].empty()) return true;
    const CallNode& largest = nodes_[children_[index].front()];
    switch (node.kind) {
      case OwnerKind::kOperator:
      case OwnerKind::kCall:
        return true;
      case OwnerKind::kLoop:
        return (is_mostly_cpu(node) || node.waits >= node.rounds) && !is_of_inner_loops(index) &&
               !is_all_work(node, largest);
      case OwnerKind::kStep:
        return false;
      case OwnerKind::kRange:
        if (is_loader(node.name)) return true;
        [[fallthrough]];
      default:
        return (is_mostly_cpu(node) && share(largest.total_ns, node.total_ns) < kScattered &&
                !(is_all(node) && largest.total_ns >= least_ns_)) ||
               is_spread(index);
    }
  }

  // A function, module or range of many operators of its own, none of which says what it is.
  bool is_spread(std::uint32_t index) const {
    const CallNode& node = nodes_[index];
    const std::int64_t largest_ns = nodes_[children_[index].front()].total_ns;
    const bool is_part_of_program = node.kind == OwnerKind::kLine ||
                                    node.kind == OwnerKind::kModule ||
                                    node.kind == OwnerKind::kRange;
    return is_part_of_program && children_[index].size() > 2 && node.total_ns >= least_ns_ &&
           share(node.total_ns, nodes_[0].total_ns) < kMostOfPart &&
           share(largest_ns, node.total_ns) < kMostOfFunction &&
           share(largest_ns, nodes_[0].total_ns) < kMostOfStep &&
           share(own_operators_ns(index), node.total_ns) >= kOwnOperators;
  }

  std::int64_t own_operators_ns(std::uint32_t index) const {
    std::int64_t own_ns = 0;
    for (const std::uint32_t child : children_[index]) {
      const OwnerKind kind = nodes_[child].kind;
      if (kind == OwnerKind::kOperator || kind == OwnerKind::kCall || kind == OwnerKind::kCode)
        own_ns += nodes_[child].total_ns;
    }
    return own_ns;
  }

  bool is_all(const CallNode& node) const {
    return share(node.total_ns, nodes_[0].total_ns) >= kAll;
  }

  // Rounds of very many calls, or of long ones, that are all of a recording without steps: they are its batches, and what is in
  // them says more. A few short calls stay a loop: their number is the cause. So do rounds of a model whose layers are a loop of
  // fewer rounds.
  bool is_all_work(const CallNode& node, const CallNode& largest) const {
    const bool uses_device = cpu_ns(node) != node.total_ns;
    if (has_steps_ || uses_device || !is_all(node) || largest.total_ns < least_ns_) return false;
    if (share(large_parts_ns(largest.parent), node.total_ns) < kMostlyLargeParts) return false;
    if (largest.kind == OwnerKind::kLoop &&
        largest.rounds * node.loops < node.rounds * largest.loops)
      return false;
    const std::uint64_t calls = std::max<std::uint64_t>(1, node.rounds * node.cell_size);
    return node.cell_size >= kManyCallsOfARound ||
           node.total_ns / static_cast<std::int64_t>(calls) >= kLongCallNs;
  }

  // Of the parts of a node that are large enough to be owners.
  std::int64_t large_parts_ns(std::uint32_t index) const {
    std::int64_t large_ns = 0;
    for (const std::uint32_t child : children_[index])
      if (nodes_[child].total_ns >= least_ns_) large_ns += nodes_[child].total_ns;
    return large_ns;
  }

  // Does much of a loop belong to loops inside it that are no layers? They say more exactly what it is.
  bool is_of_inner_loops(std::uint32_t index) const {
    std::int64_t inner_ns = 0;
    for (const std::uint32_t child : children_[index])
      if (nodes_[child].kind == OwnerKind::kLoop && !nodes_[child].has_layers &&
          nodes_[child].total_ns >= least_ns_)
        inner_ns += nodes_[child].total_ns;
    return share(inner_ns, nodes_[index].total_ns) >= kOfInnerLoops;
  }

  void choose(std::uint32_t index) {
    while (!is_whole(index) && share(nodes_[children_[index].front()].total_ns,
                                     nodes_[index].total_ns) >= kReplacesParent)
      index = children_[index].front();
    const std::int64_t total_ns = nodes_[index].total_ns;
    if (is_whole(index)) {
      choices.push_back({index, total_ns, false});
      return;
    }
    std::int64_t rest_ns = total_ns;
    for (const std::uint32_t child : children_[index]) {
      if (nodes_[child].total_ns < least_ns_) break;
      rest_ns -= nodes_[child].total_ns;
      choose(child);
    }
    if (rest_ns >= least_ns_) choices.push_back({index, rest_ns, rest_ns != total_ns});
  }

  const std::vector<CallNode>& nodes_;
  const bool has_steps_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::int64_t least_ns_ = 0;
};

}  // namespace

std::vector<OwnerChoice> choose_owners(const std::vector<CallNode>& nodes, bool has_steps) {
  std::vector<OwnerChoice> choices = std::move(Chooser(nodes, has_steps).choices);
  sort_rows(choices.begin(), choices.end(),
            [](const OwnerChoice& a, const OwnerChoice& b) { return a.total_ns > b.total_ns; });
  if (choices.size() > kMostOwners) choices.resize(kMostOwners);
  return choices;
}

}  // namespace lanescope::explain

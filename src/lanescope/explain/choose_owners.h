// Chooses which nodes of the call tree are owners; for owners.cpp.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/call_tree.h"

namespace lanescope::explain {

struct OwnerChoice {
  std::uint32_t node = 0;
  std::int64_t total_ns = 0;  // without what chosen nodes below it took
  bool is_rest = false;       // nodes below it were chosen too
};

// Goes down from the root as long as one child has most of the time, and chooses the node where
// that ends. Repeats this with the rest. At most kMostOwners, most time first, each with at least
// kLeastOwner of the total. `nodes`: parents before children, never empty. `has_steps`: false where the root is a recording
// without steps. O(n log n).
std::vector<OwnerChoice> choose_owners(const std::vector<CallNode>& nodes, bool has_steps);

}  // namespace lanescope::explain

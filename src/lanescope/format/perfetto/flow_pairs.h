// Arrows from events that share a number.
#pragma once
#include <cstdint>
#include <vector>

namespace lanescope::format {

// An event that takes part in the arrows with that number.
struct FlowMark {
  std::uint64_t id = 0;
  std::int64_t ns = 0;
  std::uint32_t slot = 0;             // the track
  std::uint32_t order = 0;            // in the file
  bool starts = false, ends = false;  // both: a step in the middle
  bool is_last = false;               // no arrow goes on from here
};
struct FlowPair {
  std::uint64_t id = 0;
  FlowMark from, to;
};
struct FlowPairs {
  std::vector<FlowPair> pairs;
  std::uint64_t unpaired = 0;  // marks that no arrow reached
};

// In order of time, each mark that ends an arrow is joined to the last mark that starts one. An end
// before every start (clocks differ) belongs to the first start. O(n log n).
FlowPairs pair_flows(std::vector<FlowMark> marks);

}  // namespace lanescope::format

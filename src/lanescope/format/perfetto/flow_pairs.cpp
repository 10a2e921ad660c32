#include "lanescope/format/perfetto/flow_pairs.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>

namespace lanescope::format {
namespace {

// All have one number.
void pair_chain(std::span<const FlowMark> marks, FlowPairs& found) {
  std::vector<bool> is_paired(marks.size());
  const std::size_t none = marks.size();
  const auto add = [&](std::size_t from, std::size_t to) {
    found.pairs.push_back({marks[from].id, marks[from], marks[to]});
    is_paired[from] = is_paired[to] = true;
  };
  std::size_t last = none;
  std::vector<std::size_t> early;  // ends before any start
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i].ends && last != none)
      add(last, i);
    else if (marks[i].ends && !marks[i].starts)
      early.push_back(i);
    if (marks[i].starts) {
      last = i;
      for (const std::size_t end : early) add(i, end);
      early.clear();
    }
    if (marks[i].is_last && !marks[i].starts) last = none;
  }
  found.unpaired +=
      static_cast<std::uint64_t>(std::count(is_paired.begin(), is_paired.end(), false));
}

}  // namespace

FlowPairs pair_flows(std::vector<FlowMark> marks) {
  std::sort(marks.begin(), marks.end(), [](const FlowMark& a, const FlowMark& b) {
    // A start comes first among events of one time.
    return std::tuple(a.id, a.ns, !a.starts, a.order) < std::tuple(b.id, b.ns, !b.starts, b.order);
  });
  FlowPairs found;
  for (std::size_t first = 0; first < marks.size();) {
    std::size_t last = first;
    while (last < marks.size() && marks[last].id == marks[first].id) ++last;
    pair_chain(std::span(marks).subspan(first, last - first), found);
    first = last;
  }
  return found;
}

}  // namespace lanescope::format

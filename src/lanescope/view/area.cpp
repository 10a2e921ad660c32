#include "lanescope/view/area.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "lanescope/analysis/slice_joins.h"
#include "lanescope/base/sort_rows.h"

namespace lanescope::view {
namespace {

constexpr std::size_t kNoParent = ~std::size_t{0};

struct Inside {
  SliceId slice{};
  std::int64_t start_ns = 0, end_ns = 0;  // the part inside the area
  std::int64_t dur_ns() const { return end_ns - start_ns; }
};

// The slices of a row inside the area.
std::vector<Inside> slices_inside(const LevelIndex& index, std::uint32_t row, std::int64_t start_ns,
                                  std::int64_t end_ns) {
  std::vector<Inside> found;
  const auto [first, last] = index.range(row, start_ns, end_ns);
  for (std::size_t i = first; i < last; ++i) {
    const LevelSlice each = index.slice(row, i);
    found.push_back({SliceId{each.id}, std::max(each.start_ns, start_ns),
                     std::min(each.start_ns + each.dur_ns, end_ns)});
  }
  return found;
}

bool is_nested(LaneKind kind) {
  return kind == LaneKind::kCpu || kind == LaneKind::kPython || kind == LaneKind::kAnnotation;
}

// Calls each(slice, index in its row, index of the slice above it or kNoParent) for a lane, row by
// row, and `next_row` after each row.
template <typename Each, typename NextRow>
void walk(const Lanes& lanes, const Lane& lane, std::int64_t start_ns, std::int64_t end_ns,
          Each each, NextRow next_row) {
  std::vector<Inside> above;
  for (std::uint32_t row = 0; row < lane.row_count; ++row) {
    std::vector<Inside> own = slices_inside(lanes.index(), lane.first_row + row, start_ns, end_ns);
    std::size_t parent = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      while (parent + 1 < above.size() && above[parent + 1].start_ns <= own[i].start_ns) ++parent;
      const bool is_inside =
          is_nested(lane.kind) && parent < above.size() &&
          above[parent].start_ns <= own[i].start_ns &&
          own[i].start_ns < std::max(above[parent].end_ns, above[parent].start_ns + 1);
      each(own[i], i, is_inside ? parent : kNoParent, above);
    }
    above = std::move(own);
    next_row();
  }
}

class AreaSum {
 public:
  AreaSum(const Lanes& lanes, const AreaRequest& request, const explain::Facts* known)
      : lanes_(lanes), known_(known), trace_(lanes.trace()), request_(request) {}

  Area run() {
    for (const std::uint32_t number : request_.lanes) {
      const Lane& lane = lanes_.lanes()[number];
      if (Lanes::has_slices(lane.kind)) add_lane(number, lane);
      if (lane.kind == LaneKind::kIdle) add_gaps(lane);
    }
    for (auto& [key, name] : names_) out_.names.push_back(name);
    sort_rows(out_.names.begin(), out_.names.end(), [&](const AreaName& a, const AreaName& b) {
      if (a.self_ns != b.self_ns) return a.self_ns > b.self_ns;
      if (a.count != b.count) return a.count > b.count;
      if (a.name != b.name) return trace_.text(a.name) < trace_.text(b.name);
      return a.kind < b.kind;
    });
    add_launch_delay();
    return std::move(out_);
  }

 private:
  AreaName& name_of(SliceId slice) {
    const StringId name = trace_.slices().name[raw(slice)];
    const TimeKind kind = lanes_.kind(slice);
    AreaName& entry = names_[std::uint64_t{raw(name)} << 8U | static_cast<std::uint64_t>(kind)];
    entry.name = name;
    entry.kind = kind;
    return entry;
  }

  void add_lane(std::uint32_t number, const Lane& lane) {
    AreaLane sum{number, 0, 0};
    std::vector<std::pair<std::int64_t, std::int64_t>> parts;  // for the union of several rows
    walk(
        lanes_, lane, request_.start_ns, request_.end_ns,
        [&](const Inside& each, std::size_t, std::size_t parent, const std::vector<Inside>& above) {
          ++sum.count;
          const bool is_covered = parent != kNoParent && each.end_ns <= above[parent].end_ns;
          if (!is_covered) parts.emplace_back(each.start_ns, each.end_ns);
          add_slice(each);
          if (parent != kNoParent)
            name_of(above[parent].slice).self_ns -=
                std::min(each.end_ns, above[parent].end_ns) - each.start_ns;
        },
        [] {});
    std::sort(parts.begin(), parts.end());
    std::int64_t until = INT64_MIN;
    for (const auto& [start, end] : parts) {
      sum.busy_ns += std::max<std::int64_t>(0, end - std::max(start, until));
      until = std::max(until, end);
    }
    out_.lanes.push_back(sum);
  }

  void add_slice(const Inside& each) {
    AreaName& name = name_of(each.slice);
    ++name.count;
    name.total_ns += each.dur_ns();
    name.self_ns += each.dur_ns();
    if (name.longest == kNone<SliceId> || trace_.dur_ns(each.slice) > trace_.dur_ns(name.longest))
      name.longest = each.slice;
    AreaKind& kind = out_.kinds[static_cast<std::size_t>(name.kind)];
    ++kind.count;
    kind.total_ns += each.dur_ns();
    const CategoryKind category = trace_.kind(each.slice);
    if ((is_device_work(category) || category == CategoryKind::kCudaSync) &&
        trace_.start_ns(each.slice) >= request_.start_ns)
      begun_.push_back(each.slice);
  }

  std::vector<SliceId> launches_of_begun() const {
    if (!known_)
      if (auto found = analysis::find_launches(trace_, begun_)) return *std::move(found);
    analysis::LaunchLinks own;
    if (!known_) own = analysis::compute_launch_links(trace_, 0);
    const analysis::LaunchLinks& links = known_ ? known_->links : own;
    std::vector<SliceId> launches;
    for (const SliceId work : begun_) launches.push_back(links.launch_of[raw(work)]);
    return launches;
  }

  void add_launch_delay() {
    if (begun_.empty()) return;
    const std::vector<SliceId> launches = launches_of_begun();
    std::vector<std::int64_t> delays;
    for (std::size_t i = 0; i < begun_.size(); ++i)
      if (launches[i] != kNone<SliceId>)
        delays.push_back(trace_.start_ns(begun_[i]) - trace_.end_ns(launches[i]));
    if (delays.empty()) return;
    const auto [least, most] = std::minmax_element(delays.begin(), delays.end());
    LaunchDelay delay{delays.size(), 0, *least, *most};
    delay.median_ns = analysis::lower_median(std::move(delays));
    out_.launch_delay = delay;
  }

  void add_gaps(const Lane& lane) {
    std::array<AreaGaps, analysis::kIdleCauseCount> sums{};
    const auto [first, last] =
        lanes_.index().range(lane.first_row, request_.start_ns, request_.end_ns);
    for (std::size_t i = first; i < last; ++i) {
      const LevelSlice part = lanes_.index().slice(lane.first_row, i);
      AreaGaps& sum = sums[static_cast<std::size_t>(lanes_.idle_cause(part.id))];
      ++sum.count;
      sum.ns += std::min(part.start_ns + part.dur_ns, request_.end_ns) -
                std::max(part.start_ns, request_.start_ns);
    }
    for (std::size_t cause = 0; cause < sums.size(); ++cause) {
      if (sums[cause].count == 0) continue;
      sums[cause].cause = static_cast<analysis::IdleCause>(cause);
      sums[cause].device = lane.device.value_or(0);
      out_.gaps.push_back(sums[cause]);
    }
  }

  const Lanes& lanes_;
  const explain::Facts* known_;  // nullptr: not there yet
  const Trace& trace_;
  const AreaRequest& request_;
  Area out_;
  std::unordered_map<std::uint64_t, AreaName> names_;  // by name and kind
  std::vector<SliceId> begun_;                         // what may have a launch
};

}  // namespace

Area sum_area(const Lanes& lanes, const AreaRequest& request, const explain::Facts* known) {
  return AreaSum(lanes, request, known).run();
}

std::vector<FlameNode> make_flame(const Lanes& lanes, std::uint32_t number, std::int64_t start_ns,
                                  std::int64_t end_ns) {
  const Trace& trace = lanes.trace();
  std::vector<FlameNode> nodes;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::int32_t> known;  // parent, name
  std::vector<std::int32_t> above_nodes, own_nodes;
  walk(
      lanes, lanes.lanes()[number], start_ns, end_ns,
      [&](const Inside& each, std::size_t, std::size_t parent, const std::vector<Inside>& above) {
        const std::int32_t up = parent == kNoParent ? -1 : above_nodes[parent];
        const StringId name = trace.slices().name[raw(each.slice)];
        if (parent != kNoParent && up == -1) {  // its parent was left out
          own_nodes.push_back(-1);
          return;
        }
        const auto entry = known.find({up, raw(name)});
        std::int32_t node = entry == known.end() ? -1 : entry->second;
        if (node < 0 && nodes.size() < kMostFlameNodes) {
          node = static_cast<std::int32_t>(nodes.size());
          known[{up, raw(name)}] = node;
          nodes.push_back({.name = name, .kind = lanes.kind(each.slice), .parent = up});
        }
        own_nodes.push_back(node);
        if (node < 0) return;
        FlameNode& own = nodes[static_cast<std::size_t>(node)];
        ++own.count;
        own.total_ns += each.dur_ns();
        own.self_ns += each.dur_ns();
        if (own.longest == kNone<SliceId> || trace.dur_ns(each.slice) > trace.dur_ns(own.longest))
          own.longest = each.slice;
        if (up >= 0)
          nodes[static_cast<std::size_t>(up)].self_ns -=
              std::min(each.end_ns, above[parent].end_ns) - each.start_ns;
      },
      [&] {
        above_nodes = std::move(own_nodes);
        own_nodes.clear();
      });
  return nodes;
}

}  // namespace lanescope::view

// Problem: kernels name their API call only by a number, and API calls name no operator. Idea: one
// sort and a binary search join kernel and call by the number. The ranges open on the call's thread
// at its begin are those that made it: one sweep per thread with a stack (model/joins.h). Ranges
// that overlap without nesting leave ended ones below the top, which are skipped.
#include "lanescope/format/spool/launch_joins.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/model/joins.h"

namespace lanescope::format {
namespace {

// Ended ranges below the top to skip for one moment. A thread has at most as many open ranges as
// the recorder keeps, so more is damage.
constexpr std::uint32_t kMaxSteps = 512;

template <typename T, typename Key>
std::vector<std::uint32_t> sorted_by(std::span<T> list, Key key) {
  std::vector<std::uint32_t> order(list.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto less = [&](std::uint32_t a, std::uint32_t b) { return key(list[a]) < key(list[b]); };
  if (!std::is_sorted(order.begin(), order.end(), less))
    std::stable_sort(order.begin(), order.end(), less);
  return order;
}

// Ranges that are open, of one kind.
class OpenStack {
 public:
  explicit OpenStack(std::span<const SpoolRange> ranges) : ranges_(ranges), open_(EndOf{ranges}) {}
  void clear() { open_.clear(); }
  void push(std::uint32_t range) { open_.push(range, ranges_[range].start_ns); }
  std::uint32_t top(std::int64_t time_ns) {
    const std::uint32_t* const range = open_.top(time_ns);
    return range ? *range : kNoIndex;
  }
  // All that are open, innermost first.
  std::uint32_t list(std::int64_t time_ns, std::vector<std::uint32_t>* out) {
    std::uint32_t count = 0, steps = 0;
    if (top(time_ns) == kNoIndex) return 0;
    const std::span<const std::uint32_t> open = open_.all();
    for (std::size_t i = open.size(); i-- > 0 && count < kMaxOpenAnnotations;) {
      if (ranges_[open[i]].end_ns <= time_ns) {
        if (++steps > kMaxSteps) break;
        continue;
      }
      out->push_back(open[i]);
      ++count;
    }
    return count;
  }

 private:
  struct EndOf {
    std::span<const SpoolRange> ranges;
    std::int64_t operator()(std::uint32_t range) const { return ranges[range].end_ns; }
  };
  std::span<const SpoolRange> ranges_;
  OpenRangeStack<std::uint32_t, EndOf> open_;
};

}  // namespace

void find_open_ranges(std::span<const SpoolRange> ranges, std::span<OpenRanges> moments,
                      std::vector<std::uint32_t>* annotations) {
  const auto by_start = sorted_by(ranges, [](const SpoolRange& range) {
    return std::tuple(raw(range.track), range.start_ns,
                      ~range.end_ns);  // longer first
  });
  const auto by_time = sorted_by(std::span<const OpenRanges>(moments), [](const OpenRanges& at) {
    return std::tuple(raw(at.track), at.time_ns);
  });
  OpenStack operators(ranges), notes(ranges), collectives(ranges), backward(ranges);
  TrackId track = kNone<TrackId>;
  std::size_t next = 0;
  for (const std::uint32_t i : by_time) {
    OpenRanges& moment = moments[i];
    if (moment.track != track) {
      track = moment.track;
      operators.clear(), notes.clear(), collectives.clear(), backward.clear();
      while (next < by_start.size() && raw(ranges[by_start[next]].track) < raw(track)) ++next;
    }
    for (; next < by_start.size(); ++next) {
      const std::uint32_t index = by_start[next];
      const SpoolRange& range = ranges[index];
      if (range.track != track || range.start_ns > moment.time_ns) break;
      (range.is_annotation ? notes : operators).push(index);
      if (range.is_collective) collectives.push(index);
      if (range.is_backward) backward.push(index);
    }
    moment.innermost = operators.top(moment.time_ns);
    if (moment.innermost == kNoIndex) moment.innermost = notes.top(moment.time_ns);
    moment.collective = collectives.top(moment.time_ns);
    moment.backward = backward.top(moment.time_ns);
    moment.annotations_first = static_cast<std::uint32_t>(annotations->size());
    moment.annotations_count = notes.list(moment.time_ns, annotations);
  }
}

ForwardOps::ForwardOps(std::span<const SpoolRange> ranges) : ranges_(ranges) {
  for (std::uint32_t i = 0; i < ranges.size(); ++i)
    if (ranges[i].sequence >= 0 && !ranges[i].is_backward && ranges[i].forward_thread != 0)
      forward_.push_back(i);
  std::sort(forward_.begin(), forward_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(ranges[a].sequence, ranges[a].forward_thread, ranges[a].start_ns, a) <
           std::tuple(ranges[b].sequence, ranges[b].forward_thread, ranges[b].start_ns, b);
  });
}

std::uint32_t ForwardOps::find(std::uint32_t backward) const {
  const SpoolRange& node = ranges_[backward];
  const auto after = std::upper_bound(
      forward_.begin(), forward_.end(), node, [&](const SpoolRange& value, std::uint32_t index) {
        const SpoolRange& other = ranges_[index];
        return std::tuple(value.sequence, value.forward_thread, value.start_ns) <
               std::tuple(other.sequence, other.forward_thread, other.start_ns);
      });
  if (after == forward_.begin()) return kNoIndex;
  const SpoolRange& found = ranges_[*std::prev(after)];
  return found.sequence == node.sequence && found.forward_thread == node.forward_thread
             ? *std::prev(after)
             : kNoIndex;
}

CallsById::CallsById(std::vector<Call> calls) : calls_(std::move(calls)) {
  const auto less = [](const Call& a, const Call& b) {
    return std::tuple(a.id, a.start_ns, a.tid, a.index) <
           std::tuple(b.id, b.start_ns, b.tid, b.index);
  };
  if (!std::is_sorted(calls_.begin(), calls_.end(), less))
    std::sort(calls_.begin(), calls_.end(), less);
}

std::uint32_t CallsById::find(std::uint32_t correlation, std::int64_t time_ns) const {
  if (correlation == 0) return kNoIndex;
  const Call* const call = find_by_id_and_time(std::span<const Call>(calls_), correlation, time_ns);
  if (!call || call->start_ns <= time_ns) return call ? call->index : kNoIndex;
  // All calls with that id start later than the time, by less than 2^64.
  const std::uint64_t late =
      static_cast<std::uint64_t>(call->start_ns) - static_cast<std::uint64_t>(time_ns);
  return late <= static_cast<std::uint64_t>(kSkewNs) ? call->index : kNoIndex;
}

namespace {

// The last of [first, last) whose correlation id is before `correlation`; ids count modulo 2^32, so
// half of them are before any id.
template <typename Iterator>
const EventRecord* last_before(Iterator first, Iterator last, std::uint32_t correlation) {
  if (first == last) return nullptr;
  const auto after = std::upper_bound(
      first, last, correlation,
      [](std::uint32_t id, const EventRecord& record) { return id < record.correlation; });
  if (after != first) return &*std::prev(after);
  const EventRecord& end = *std::prev(last);
  return static_cast<std::int32_t>(end.correlation - correlation) < 0 ? &end : nullptr;
}

}  // namespace

EventRecords::EventRecords(std::vector<EventRecord> records)
    : by_sync_(records), by_event_(std::move(records)) {
  std::erase_if(by_sync_, [](const EventRecord& record) { return record.sync_id == 0; });
  std::stable_sort(
      by_sync_.begin(), by_sync_.end(), [](const EventRecord& a, const EventRecord& b) {
        return std::tuple(a.sync_id, a.correlation) < std::tuple(b.sync_id, b.correlation);
      });
  std::stable_sort(by_event_.begin(), by_event_.end(),
                   [](const EventRecord& a, const EventRecord& b) {
                     return std::tuple(a.context, a.event_id, a.correlation) <
                            std::tuple(b.context, b.event_id, b.correlation);
                   });
}

const EventRecord* EventRecords::find(const EventRecord& wait) const {
  if (wait.sync_id != 0) {
    const auto [first, last] = std::equal_range(
        by_sync_.begin(), by_sync_.end(), wait,
        [](const EventRecord& a, const EventRecord& b) { return a.sync_id < b.sync_id; });
    if (const EventRecord* found = last_before(first, last, wait.correlation)) return found;
  }
  if (wait.event_id == spool::kNoEvent) return nullptr;
  const auto [first, last] = std::equal_range(
      by_event_.begin(), by_event_.end(), wait, [](const EventRecord& a, const EventRecord& b) {
        return std::pair(a.context, a.event_id) < std::pair(b.context, b.event_id);
      });
  return last_before(first, last, wait.correlation);
}

}  // namespace lanescope::format

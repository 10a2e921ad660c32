#include "lanescope/format/kineto_json/event_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

namespace lanescope::format {
namespace {

// The order of events in a file. At equal times and kinds, nothing may depend on the order in which
// tracks or strings first appeared: a written trace, read and written again, must stay the same.
class Before {
 public:
  explicit Before(const Trace& trace) : trace_(trace) {}
  bool operator()(const EventRef& a, const EventRef& b) const {
    if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
    if (a.kind != b.kind) return a.kind < b.kind;
    const SliceColumns& slices = trace_.slices();
    switch (a.kind) {
      case EventKind::kSlice:
      case EventKind::kAsyncBegin:  // like slices of a track: longer first, then place in the file
        if (slices.dur_ns[a.index] != slices.dur_ns[b.index])
          return slices.dur_ns[a.index] > slices.dur_ns[b.index];
        return slices.event_index[a.index] < slices.event_index[b.index];
      case EventKind::kAsyncEnd:  // in reverse: inner slices end first
        if (slices.start_ns[a.index] != slices.start_ns[b.index])
          return slices.start_ns[a.index] > slices.start_ns[b.index];
        return slices.event_index[a.index] > slices.event_index[b.index];
      case EventKind::kInstant:
      case EventKind::kCounter:
        return false;  // their runs are already in order
      case EventKind::kFlowStart:
      case EventKind::kFlowStep:
      case EventKind::kFlowEnd:
        return flow_key(a) < flow_key(b);
    }
    return false;
  }

 private:
  using ScalarKey = std::tuple<bool, std::int64_t, std::string_view>;
  ScalarKey key(const Scalar& scalar) const {
    return {scalar.is_text, scalar.number, trace_.text(scalar.text)};
  }
  std::tuple<std::string_view, std::string_view, ScalarKey, ScalarKey, ScalarKey, bool> flow_key(
      const EventRef& event) const {
    const Flow& flow = trace_.flows()[event.index];
    const Track& track =
        trace_.track(event.kind == EventKind::kFlowStart ? flow.from_track : flow.to_track);
    return {trace_.text(trace_.categories()[raw(flow.category)].text),
            trace_.text(flow.name),
            key(flow.id()),
            key(trace_.process(track.process).pid),
            key(track.tid),
            flow.binds_enclosing};
  }

  const Trace& trace_;
};

// Rows of flows, with arrows of one id together: by category, name, id, then `point`.
template <typename Point>
std::vector<std::uint32_t> by_id(std::span<const Flow> flows, Point point) {
  const auto key = [&](std::uint32_t i) {
    const Flow& flow = flows[i];
    return std::tuple(raw(flow.category), raw(flow.name), flow.id_is_text, flow.id_value,
                      point(flow));
  };
  std::vector<std::uint32_t> order(flows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return order;
}

bool same_id(const Flow& a, const Flow& b) {
  return a.category == b.category && a.name == b.name && a.id() == b.id();
}

// What to write for the two ends of arrow i. Among arrows with the same start, only the first
// writes it, and not if an arrow from another time ends there.
struct Ends {
  std::vector<bool> writes_start, end_is_step;
};

Ends find_ends(std::span<const Flow> flows) {
  const auto from = [](const Flow& flow) { return std::pair(flow.from_ns, raw(flow.from_track)); };
  const auto to = [](const Flow& flow) { return std::pair(flow.to_ns, raw(flow.to_track)); };
  Ends ends{std::vector<bool>(flows.size()), std::vector<bool>(flows.size())};
  const std::vector<std::uint32_t> starts = by_id(flows, from), arrivals = by_id(flows, to);
  for (std::size_t i = 0; i < starts.size(); ++i)
    ends.writes_start[starts[i]] = i == 0 || !same_id(flows[starts[i - 1]], flows[starts[i]]) ||
                                   from(flows[starts[i - 1]]) != from(flows[starts[i]]);
  // Both lists are in the same order of ids and points, so one walk meets every start that is
  // also an arrival.
  const auto less = [&](const Flow& a, std::pair<std::int64_t, std::uint32_t> at_a, const Flow& b,
                        std::pair<std::int64_t, std::uint32_t> at_b) {
    return std::tuple(raw(a.category), raw(a.name), a.id_is_text, a.id_value, at_a) <
           std::tuple(raw(b.category), raw(b.name), b.id_is_text, b.id_value, at_b);
  };
  std::size_t start = 0;
  for (std::size_t arrival = 0; arrival < arrivals.size(); ++arrival) {
    const Flow& in = flows[arrivals[arrival]];
    while (start < starts.size() &&
           less(flows[starts[start]], from(flows[starts[start]]), in, to(in)))
      ++start;
    if (start == starts.size()) break;
    const Flow& out = flows[starts[start]];
    if (!same_id(in, out) || from(out) != to(in)) continue;
    if (in.from_ns == in.to_ns) continue;  // a reader goes on from later points only
    ends.end_is_step[arrivals[arrival]] = true;
    ends.writes_start[starts[start]] = false;
  }
  return ends;
}

// Merges sorted runs that follow each other: neighbours, until one run is left.
void merge_runs(std::vector<EventRef>& events, std::vector<std::size_t> bounds,
                const Before& before) {
  std::vector<EventRef> merged(events.size());
  while (bounds.size() > 2) {
    std::vector<std::size_t> next{0};
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      const auto at = [&](std::size_t bound) {
        return events.begin() + static_cast<std::ptrdiff_t>(bounds[bound]);
      };
      const std::size_t last = std::min(i + 2, bounds.size() - 1);
      std::merge(at(i), at(i + 1), at(i + 1), at(last),
                 merged.begin() + static_cast<std::ptrdiff_t>(bounds[i]), before);
      next.push_back(bounds[last]);
    }
    events.swap(merged);
    bounds = std::move(next);
  }
}

}  // namespace

std::vector<EventRef> order_events(const Trace& trace) {
  const Before before(trace);
  const SliceColumns& slices = trace.slices();
  const InstantColumns& instants = trace.instants();
  const CounterColumns& counters = trace.counters();
  std::vector<EventRef> events;
  events.reserve(slices.size() + instants.size() + counters.size() + 2 * trace.flows().size());
  std::vector<std::size_t> bounds{0};
  const auto end_run = [&] {
    if (events.size() > bounds.back()) bounds.push_back(events.size());
  };
  for (const Track& track : trace.tracks()) {
    const bool async = track.kind == TrackKind::kAsync;
    const std::uint32_t last = track.first_slice + track.slice_count;
    for (std::uint32_t i = track.first_slice; i < last; ++i)
      events.push_back({slices.start_ns[i], i, async ? EventKind::kAsyncBegin : EventKind::kSlice});
    end_run();
    if (!async || track.slice_count == 0) continue;
    // Inner slices end first: at equal ends, the one that started last.
    for (std::uint32_t i = last; i-- > track.first_slice;)
      if (slices.dur_ns[i] > 0)
        events.push_back({slices.start_ns[i] + slices.dur_ns[i], i, EventKind::kAsyncEnd});
    std::stable_sort(events.begin() + static_cast<std::ptrdiff_t>(bounds.back()), events.end(),
                     before);
    end_run();
  }
  for (std::uint32_t i = 0; i < instants.size(); ++i)
    events.push_back({instants.time_ns[i], i, EventKind::kInstant});
  end_run();
  std::vector<std::uint32_t>
      first_samples;  // of each counter track; the earliest counter comes first
  for (std::uint32_t i = 0; i < counters.size(); ++i)
    if (i == 0 || counters.track[i] != counters.track[i - 1]) first_samples.push_back(i);
  std::stable_sort(
      first_samples.begin(), first_samples.end(),
      [&](std::uint32_t a, std::uint32_t b) { return counters.time_ns[a] < counters.time_ns[b]; });
  for (const std::uint32_t first : first_samples) {
    for (std::uint32_t i = first; i < counters.size() && counters.track[i] == counters.track[first];
         ++i)
      events.push_back({counters.time_ns[i], i, EventKind::kCounter});
    end_run();
  }
  const Ends ends = find_ends(trace.flows());
  for (std::uint32_t i = 0; i < trace.flows().size(); ++i)
    if (ends.writes_start[i])
      events.push_back({trace.flows()[i].from_ns, i, EventKind::kFlowStart});
  std::stable_sort(events.begin() + static_cast<std::ptrdiff_t>(bounds.back()), events.end(),
                   before);
  end_run();
  for (std::uint32_t i = 0; i < trace.flows().size(); ++i)
    events.push_back({trace.flows()[i].to_ns, i,
                      ends.end_is_step[i] ? EventKind::kFlowStep : EventKind::kFlowEnd});
  std::stable_sort(events.begin() + static_cast<std::ptrdiff_t>(bounds.back()), events.end(),
                   before);
  end_run();
  merge_runs(events, std::move(bounds), before);
  return events;
}

}  // namespace lanescope::format

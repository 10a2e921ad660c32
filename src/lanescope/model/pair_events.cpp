// Problem: begins and ends are separate events, and so are the two halves of an arrow. Idea: sort
// by what belongs together, then by time, and walk once. Cost: O(n log n) at worst, O(n) for the
// usual nearly sorted file. Counts what has no partner.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "lanescope/model/nearly_sorted.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope {
namespace {

// At equal times, starts come first and ends last.
int phase_rank(char phase) { return phase == 's' ? 0 : phase == 't' ? 1 : 2; }

}  // namespace

ArgsId TraceBuilder::merge_args(ArgsId first, ArgsId second) {
  if (first == kNone<ArgsId>) return second;
  if (second == kNone<ArgsId>) return first;
  struct Field {
    StringId key;
    ArgType type;
    std::uint64_t bits;
  };
  std::vector<Field> fields;
  for (const ArgsId id : {first, second}) {
    const ArgsView view = trace_.args_.view(id);
    for (std::size_t i = 0; i < view.size(); ++i)
      fields.push_back({view.field(i).key, view.field(i).type, view.bits(view.field(i))});
  }
  trace_.args_.begin();
  for (const Field& field : fields)
    trace_.args_.add(field.key, arg_key(text(field.key)), field.type, field.bits);
  return trace_.args_.end();
}

std::int64_t TraceBuilder::last_time_ns() const {
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = 0; i < trace_.slices_.size(); ++i)
    last = std::max(last, saturating_end(trace_.slices_.start_ns[i], trace_.slices_.dur_ns[i]));
  for (const std::int64_t time : trace_.instants_.time_ns) last = std::max(last, time);
  for (const OpenEvent& event : begin_end_) last = std::max(last, event.time_ns);
  for (const OpenEvent& event : async_) last = std::max(last, event.time_ns);
  return last;
}

std::vector<TrackId> TraceBuilder::pairing_tracks() const {
  std::vector<TrackId> pairing;
  pairing.reserve(trace_.tracks_.size());
  for (const Track& track : trace_.tracks_) {
    const auto own = TrackId{static_cast<std::uint32_t>(pairing.size())};
    const auto thread = track.kind == TrackKind::kStream
                            ? track_by_key_.find({TrackKind::kThread, track.process, track.tid,
                                                  kNone<StringId>, kNone<StringId>})
                            : track_by_key_.end();
    pairing.push_back(thread == track_by_key_.end() ? own : thread->second);
  }
  return pairing;
}

// Stacks per pid and tid, in time order; equal times keep the file's order. The slice is on the
// track, and of the category, of its begin: an end may leave out "cat", which tells a stream from a
// thread. An end that names an outer begin also closes the inner ones (their end was lost); an end
// that matches nothing is counted.
void TraceBuilder::pair_begin_end(std::vector<OpenEvent>& events) {
  if (events.empty()) return;
  const std::int64_t last = last_time_ns();
  const std::vector<TrackId> pairing = pairing_tracks();
  const auto track_of = [&](const OpenEvent& event) { return pairing[raw(event.track)]; };
  std::stable_sort(events.begin(), events.end(), [&](const OpenEvent& a, const OpenEvent& b) {
    return track_of(a) != track_of(b) ? track_of(a) < track_of(b) : a.time_ns < b.time_ns;
  });
  std::vector<const OpenEvent*> open;
  std::unordered_map<std::uint32_t, std::uint32_t>
      open_by_name;  // shows at once that an end has no begin
  // Closes the innermost begin.
  const auto close = [&](std::int64_t end_ns, ArgsId args) {
    const OpenEvent& begin = *open.back();
    open.pop_back();
    --open_by_name[raw(begin.name)];
    push_slice(begin.track, begin.category, begin.name, begin.time_ns,
               saturating_length(begin.time_ns, end_ns), args, begin.event_index);
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    const OpenEvent& event = events[i];
    if (event.phase == 'B') {
      open.push_back(&event);
      ++open_by_name[raw(event.name)];
    } else if (const bool any = event.name == kNone<StringId>;
               any ? open.empty() : open_by_name[raw(event.name)] == 0) {
      stats().count(ImportIssue::kEndWithoutBegin);
    } else {
      while (!any && open.back()->name != event.name) {
        stats().count(ImportIssue::kBeginWithoutEnd);
        close(event.time_ns, open.back()->args);
      }
      close(event.time_ns, merge_args(open.back()->args, event.args));
    }
    if (i + 1 == events.size() || track_of(events[i + 1]) != track_of(event)) {
      while (!open.empty()) {
        stats().count(ImportIssue::kBeginWithoutEnd);
        close(std::max(last, open.back()->time_ns), open.back()->args);
      }
    }
  }
  events.clear();
  events.shrink_to_fit();
}

// Points of one (category, name, id), in time order: each step or end is reached from the latest
// start or step before it. Ids are reused in old files; time decides. One start with many ends is a
// CUDA graph launch. An arrow's end names only a pid and a tid. When a thread and a stream both
// have them, it means the stream. The order in the file must not matter: the same events in another
// order give the same trace.
void TraceBuilder::move_arrows_to_streams() {
  std::vector<TrackId> target;
  target.reserve(trace_.tracks_.size());
  for (const Track& track : trace_.tracks_) {
    const auto own = TrackId{static_cast<std::uint32_t>(target.size())};
    const auto stream = track.kind == TrackKind::kThread
                            ? track_by_key_.find({TrackKind::kStream, track.process, track.tid,
                                                  kNone<StringId>, kNone<StringId>})
                            : track_by_key_.end();
    target.push_back(stream == track_by_key_.end() ? own : stream->second);
  }
  for (FlowPoint& point : flow_points_) point.track = target[raw(point.track)];
}

void TraceBuilder::pair_flows() {
  if (flow_points_.empty()) return;
  move_arrows_to_streams();
  const auto key_less = [](const FlowPoint& a, const FlowPoint& b) {
    if (a.category != b.category) return a.category < b.category;
    if (a.id.is_text != b.id.is_text) return b.id.is_text;
    if (a.id.number != b.id.number) return a.id.number < b.id.number;
    if (a.id.text != b.id.text) return a.id.text < b.id.text;
    return a.name < b.name;
  };
  sort_nearly_sorted(flow_points_.begin(), flow_points_.end(),
                     [&](const FlowPoint& a, const FlowPoint& b) {
                       if (key_less(a, b)) return true;
                       if (key_less(b, a)) return false;
                       if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
                       if (a.phase != b.phase) return phase_rank(a.phase) < phase_rank(b.phase);
                       return a.event_index < b.event_index;
                     });
  const auto add = [&](const FlowPoint& from, const FlowPoint& to) {
    Flow flow;
    flow.id = from.id;
    flow.name = from.name;
    flow.category = from.category;
    flow.from_track = from.track;
    flow.from_ns = from.time_ns;
    flow.to_track = to.track;
    flow.to_ns = to.time_ns;
    flow.binds_enclosing = to.binds_enclosing;
    trace_.flows_.push_back(flow);
  };
  for (std::size_t first = 0; first < flow_points_.size();) {
    std::size_t last = first + 1;
    while (last < flow_points_.size() && !key_less(flow_points_[first], flow_points_[last])) ++last;
    const FlowPoint* from = nullptr;
    bool used = true;
    std::uint64_t orphans = 0;
    // An end that precedes its only start (clock skew between CPU and GPU) still belongs to it.
    const FlowPoint* first_start = nullptr;
    for (std::size_t i = first; i < last && !first_start; ++i)
      if (flow_points_[i].phase == 's') first_start = &flow_points_[i];
    for (std::size_t i = first; i < last; ++i) {
      const FlowPoint& point = flow_points_[i];
      if (point.phase == 's') {
        if (!used && from) ++orphans;
        if (from != &point) used = false;
        from = &point;
        continue;
      }
      const bool early = from == nullptr;
      const FlowPoint* source = early ? first_start : from;
      if (!source) {
        ++orphans;
        continue;
      }
      add(*source, point);
      used = true;
      if (early) {
        from = first_start;  // counted as used when its turn comes
      }
      if (point.phase == 't') from = &point;
    }
    if (!used && from) ++orphans;
    if (orphans > 0) stats().count(ImportIssue::kOrphanFlow, std::nullopt, orphans);
    first = last;
  }
  flow_points_.clear();
  flow_points_.shrink_to_fit();
  sort_nearly_sorted(trace_.flows_.begin(), trace_.flows_.end(), [](const Flow& a, const Flow& b) {
    if (a.from_ns != b.from_ns) return a.from_ns < b.from_ns;
    if (a.to_ns != b.to_ns) return a.to_ns < b.to_ns;
    if (a.category != b.category) return a.category < b.category;
    if (a.id.number != b.id.number) return a.id.number < b.id.number;
    if (a.id.text != b.id.text) return a.id.text < b.id.text;
    if (a.from_track != b.from_track) return a.from_track < b.from_track;
    return a.to_track < b.to_track;
  });
  trace_.flows_.shrink_to_fit();
}

}  // namespace lanescope

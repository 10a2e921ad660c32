// Problem: begins and ends are separate events. Idea: sort by what belongs together, then by time, and walk once. Cost: O(n log n).
// Counts what has no partner. Halves of arrows: pair_arrows.h.
#include "lanescope/format/kineto_json/chrome_events.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lanescope/format/kineto_json/value_reader.h"
#include "lanescope/model/nearly_sorted.h"
#include "lanescope/model/profiler_steps.h"

namespace lanescope::format {
namespace {

// The number at the end of "stream 7", "stream 7 " or "7".
std::optional<std::int64_t> trailing_number(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::size_t at = text.size();
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') --at;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || at == text.size())
    return std::nullopt;
  return value;
}

}  // namespace

// Files give a device and a stream as numbers or as texts: "GPU 0", "stream 7".
void ChromeEvents::number_stream(TrackId stream) {
  const Track& track = builder_.tracks()[raw(stream)];
  const Scalar& pid = builder_.process_of(stream).pid;
  if (!pid.is_text && !track.tid.is_text) return;  // the builder's numbers are right
  const auto number = [&](const Scalar& scalar) {
    return scalar.is_text ? trailing_number(builder_.text(scalar.text))
                          : std::optional(scalar.number);
  };
  std::optional<std::int32_t> device;
  if (const auto ordinal = number(pid); ordinal && *ordinal >= 0 && *ordinal <= INT32_MAX)
    device = static_cast<std::int32_t>(*ordinal);
  builder_.set_stream_numbers(stream, device, number(track.tid));
}

TrackId ChromeEvents::track(const Scalar& pid, const Scalar& tid, bool on_stream) {
  if (!on_stream) {
    const TrackId thread = builder_.thread_track(pid, tid);
    if (!point_only_tracks_.empty()) point_only_tracks_.erase(raw(thread));
    return thread;
  }
  if (!point_only_tracks_.empty()) {
    const ProcessId process = builder_.process(pid);
    const auto thread = builder_.find_thread(process, tid);
    if (thread && !builder_.find_stream(process, tid) &&
        point_only_tracks_.erase(raw(*thread)) > 0) {
      builder_.make_stream(*thread);  // a point came first: it pointed to this stream
      number_stream(*thread);
      return *thread;
    }
  }
  const TrackId stream = builder_.stream_track(pid, tid);
  number_stream(stream);
  return stream;
}

TrackId ChromeEvents::point_track(const Scalar& pid, const Scalar& tid) {
  if (const auto stream = builder_.find_stream(builder_.process(pid), tid)) return *stream;
  const std::size_t before = builder_.tracks().size();
  const TrackId thread = builder_.thread_track(pid, tid);
  if (builder_.tracks().size() > before) point_only_tracks_.insert(raw(thread));
  return thread;
}

void ChromeEvents::add_begin(TrackId track, CategoryId category, StringId name,
                             std::int64_t time_ns, ArgsId args) {
  begin_end_.push_back({time_ns, track, category, 'B', name, args, builder_.skip_event()});
}

void ChromeEvents::add_end(TrackId track, StringId name, std::int64_t time_ns, ArgsId args) {
  begin_end_.push_back(
      {time_ns, track, builder_.no_category(), 'E', name, args, builder_.skip_event()});
}

void ChromeEvents::add_async(char phase, TrackId async_track, CategoryId category, StringId name,
                             std::int64_t time_ns, ArgsId args) {
  async_.push_back({time_ns, async_track, category, phase, name, args, builder_.skip_event()});
}

void ChromeEvents::add_flow(char phase, TrackId track, CategoryId category, StringId name,
                            const Scalar& id, std::int64_t time_ns, bool binds_enclosing) {
  const auto id_value = id.is_text ? static_cast<std::int64_t>(raw(id.text)) : id.number;
  flow_points_.push_back({time_ns, id_value, name, track, builder_.skip_event(), category, phase,
                          id.is_text, binds_enclosing});
}

void ChromeEvents::set_thread_name(const Scalar& pid, const Scalar& tid, StringId name) {
  labels_.push_back({pid, tid, name, std::nullopt});
}
void ChromeEvents::set_thread_sort_index(const Scalar& pid, const Scalar& tid, std::int64_t index) {
  labels_.push_back({pid, tid, kNone<StringId>, index});
}

ArgsId ChromeEvents::merge_args(ArgsId first, ArgsId second) {
  if (first == kNone<ArgsId>) return second;
  if (second == kNone<ArgsId>) return first;
  struct Field {
    StringId key;
    ArgType type;
    std::uint64_t bits;
  };
  std::vector<Field> fields;
  for (const ArgsId id : {first, second}) {
    const ArgsView view = builder_.args().view(id);
    for (std::size_t i = 0; i < view.size(); ++i)
      fields.push_back({view.field(i).key, view.field(i).type, view.bits(view.field(i))});
  }
  builder_.args().begin();
  for (const Field& field : fields)
    builder_.args().add(field.key, arg_key(builder_.text(field.key)), field.type, field.bits);
  return builder_.args().end();
}

std::int64_t ChromeEvents::last_time_ns() const {
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  const auto& slices = builder_.slices();
  for (std::size_t i = 0; i < slices.size(); ++i)
    last = std::max(last, slices.start_ns[i] + slices.dur_ns[i]);
  for (const std::int64_t time : builder_.instants().time_ns) last = std::max(last, time);
  for (const OpenEvent& event : begin_end_) last = std::max(last, event.time_ns);
  for (const OpenEvent& event : async_) last = std::max(last, event.time_ns);
  return std::min(last, kMaxTimeNs);  // a slice may end later; an end of its own cannot
}

std::vector<TrackId> ChromeEvents::pairing_tracks() const {
  std::vector<TrackId> pairing;
  pairing.reserve(builder_.tracks().size());
  for (const Track& track : builder_.tracks()) {
    const auto own = TrackId{static_cast<std::uint32_t>(pairing.size())};
    const auto thread = track.kind == TrackKind::kStream
                            ? builder_.find_thread(track.process, track.tid)
                            : std::nullopt;
    pairing.push_back(thread.value_or(own));
  }
  return pairing;
}

// Stacks per pid and tid, in time order; equal times keep the file's order. The slice is on the
// track, and of the category, of its begin: an end may leave out "cat", which tells a stream from a
// thread. An end that names an outer begin also closes the inner ones (their end was lost); an end
// that matches nothing is counted.
void ChromeEvents::pair_begin_end(std::vector<OpenEvent>& events) {
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
    builder_.add_slice_at(begin.event_index, begin.track, begin.category, begin.name, begin.time_ns,
                          saturating_length(begin.time_ns, end_ns), args);
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    const OpenEvent& event = events[i];
    if (event.phase == 'B') {
      open.push_back(&event);
      ++open_by_name[raw(event.name)];
    } else if (const bool any = event.name == kNone<StringId>;
               any ? open.empty() : open_by_name[raw(event.name)] == 0) {
      builder_.stats().count(ImportIssue::kEndWithoutBegin);
    } else {
      while (!any && open.back()->name != event.name) {
        builder_.stats().count(ImportIssue::kBeginWithoutEnd);
        close(event.time_ns, open.back()->args);
      }
      close(event.time_ns, merge_args(open.back()->args, event.args));
    }
    if (i + 1 == events.size() || track_of(events[i + 1]) != track_of(event)) {
      while (!open.empty()) {
        builder_.stats().count(ImportIssue::kBeginWithoutEnd);
        close(std::max(last, open.back()->time_ns), open.back()->args);
      }
    }
  }
  events.clear();
  events.shrink_to_fit();
}

// Marks between b and e are instants.
void ChromeEvents::pair_async() {
  for (OpenEvent& event : async_) {  // S/T/F/p are the older spelling of b/n/e
    if (event.phase == 'b' || event.phase == 'S')
      event.phase = 'B';
    else if (event.phase == 'e' || event.phase == 'F')
      event.phase = 'E';
  }
  for (const OpenEvent& event : async_)
    if (event.phase != 'B' && event.phase != 'E')
      builder_.add_instant_at(event.event_index, event.track, event.category, event.name,
                              event.time_ns, 't', event.args);
  std::erase_if(async_,
                [](const OpenEvent& event) { return event.phase != 'B' && event.phase != 'E'; });
  pair_begin_end(async_);
}

void ChromeEvents::apply_thread_labels() {
  const auto apply = [&](TrackId track, const ThreadLabel& label) {
    if (label.name != kNone<StringId>) builder_.set_track_name(track, label.name);
    if (label.sort_index) builder_.set_track_sort_index(track, *label.sort_index);
  };
  for (const ThreadLabel& label : labels_) {
    const ProcessId owner = builder_.process(label.pid);
    const auto thread = builder_.find_thread(owner, label.tid);
    const auto stream = builder_.find_stream(owner, label.tid);
    if (thread) apply(*thread, label);
    if (stream) apply(*stream, label);
    // A thread without slices keeps its name.
    if (!thread && !stream) apply(builder_.thread_track(label.pid, label.tid), label);
  }
  labels_.clear();
}

void ChromeEvents::finish(unsigned threads) {
  pair_begin_end(begin_end_);
  pair_async();
  pair_arrows(std::move(flow_points_), builder_, builder_.threads_of_use(threads));
  apply_thread_labels();
  add_profiler_steps(builder_);
}

}  // namespace lanescope::format

#include "lanescope/view/crop_trace.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/model/recording_losses.h"
#include "lanescope/model/trace_builder.h"
#include "lanescope/model/trace_copier.h"

namespace lanescope::view {
namespace {

// Where the kept slices of one track are.
class KeptMoments {
 public:
  // In order of starts.
  void add(std::int64_t start_ns, std::int64_t end_ns) {
    starts_ns_.push_back(start_ns);
    last_ends_ns_.push_back(last_ends_ns_.empty() ? end_ns
                                                  : std::max(last_ends_ns_.back(), end_ns));
  }
  // A slice holds this moment, or begins at it.
  bool hold(std::int64_t time_ns) const {
    const auto after = std::upper_bound(starts_ns_.begin(), starts_ns_.end(), time_ns);
    if (after == starts_ns_.begin()) return false;
    const auto i = static_cast<std::size_t>(after - starts_ns_.begin()) - 1;
    return starts_ns_[i] == time_ns || last_ends_ns_[i] > time_ns;
  }

 private:
  std::vector<std::int64_t> starts_ns_, last_ends_ns_;  // of this slice and those before it
};

class Cropper {
 public:
  // `streams`: of their slices; the others' window, and all else, is the first one.
  Cropper(const Trace& trace, const TraceWindow& window, const TraceWindow& streams, Edges edges)
      : trace_(trace),
        start_ns_(window.start_ns),
        end_ns_(window.end_ns),
        streams_(streams),
        edges_(edges) {}

  // Before run(). By CategoryId.
  void keep_only(const std::vector<bool>& kept) {
    kept_ = &kept;
    moments_.resize(trace_.tracks().size());
  }

  Result<CroppedTrace> run() {
    builder_.set_base_time_ns(trace_.base_time_ns());
    add_recording_losses(trace_.import_stats(), &builder_.stats());
    const std::int64_t first = std::max(start_ns_, trace_.window_start_ns());
    const std::int64_t last = std::min(end_ns_, trace_.window_end_ns());
    if (first <= last)
      builder_.set_window(first, last);
    else  // the capture window ends before, or begins after
      builder_.set_window(start_ns_, end_ns_);
    for (const Metadata& each : trace_.metadata())
      builder_.add_metadata(trace_.text(each.key), trace_.text(each.json));
    for (const StringId event : trace_.other_metadata_events())
      builder_.add_metadata_event(copier_.copy(event));
    for (std::uint32_t i = 0; i < trace_.processes().size(); ++i)
      copier_.copy_process(ProcessId{i});
    for (const Step& step : trace_.steps()) number_of_step_[raw(step.slice)] = step.number;
    for (const Track& track : trace_.tracks()) add_slices(track);
    add_instants();
    add_counters();
    add_flows();
    CroppedTrace cropped;
    cropped.crossing = crossing_;
    LANESCOPE_TRY(const Trace part, std::move(builder_).finish());
    TraceColumns columns = part.columns();  // shares the memory
    columns.values.stats = trace_.import_stats();
    cropped.trace = Trace::from_columns(std::move(columns));
    return cropped;
  }

  // Of whole slices, whose order stays. After run().
  std::vector<SliceId> take_originals() { return std::move(originals_); }

 private:
  bool is_inside(std::int64_t time_ns) const { return time_ns >= start_ns_ && time_ns < end_ns_; }
  bool is_kept(CategoryId category) const { return !kept_ || (*kept_)[raw(category)]; }

  // The slices of a track are in order of their starts.
  void add_slices(const Track& track) {
    const TraceWindow window =
        track.kind == TrackKind::kStream ? streams_ : TraceWindow{start_ns_, end_ns_};
    const auto& starts = trace_.slices().start_ns;
    const auto begin = starts.begin() + track.first_slice, end = begin + track.slice_count;
    const auto first_inside = std::lower_bound(begin, end, window.start_ns);
    const auto last = std::lower_bound(first_inside, end, window.end_ns);
    for (auto at = begin; at != last; ++at) {
      const SliceId slice{static_cast<std::uint32_t>(at - starts.begin())};
      if (!is_kept(trace_.slices().category[raw(slice)])) continue;
      if (at >= first_inside || trace_.end_ns(slice) > window.start_ns) add_slice(slice);
    }
  }

  void add_slice(SliceId slice) {
    const auto& slices = trace_.slices();
    const std::uint32_t i = raw(slice);
    std::int64_t start = trace_.start_ns(slice), end = trace_.end_ns(slice);
    const bool crosses = start < start_ns_ || end > end_ns_;
    if (crosses) ++crossing_;
    if (edges_ == Edges::kCut) {
      start = std::max(start, start_ns_);
      end = std::min(end, end_ns_);
    }
    builder_.skip_event();
    builder_.add_slice_at(slices.event_index[i], copier_.track(slices.track[i]),
                          copier_.copy(slices.category[i]), copier_.copy(slices.name[i]), start,
                          end - start, copier_.copy(slices.args[i]));
    const auto step = number_of_step_.find(i);
    if (step != number_of_step_.end() && (!crosses || edges_ == Edges::kWhole))
      builder_.add_step(step->second, row_);
    ++row_;
    if (kept_)
      moments_[raw(slices.track[i])].add(start, end);
    else
      originals_.push_back(slice);
  }

  void add_counters() {
    if (kept_) return;  // a value has no category
    const auto& counters = trace_.counters();
    for (std::size_t i = 0; i < counters.size(); ++i)
      if (is_inside(counters.time_ns[i]))
        builder_.add_counter(copier_.track(counters.track[i]), counters.time_ns[i],
                             counters.value[i]);
  }

  void add_instants() {
    const auto& instants = trace_.instants();
    const auto& times = instants.time_ns;
    const auto first = std::lower_bound(times.begin(), times.end(), start_ns_);
    const auto last = std::lower_bound(first, times.end(), end_ns_);
    for (auto at = first; at != last; ++at) {
      const auto i = static_cast<std::size_t>(at - times.begin());
      if (!is_kept(instants.category[i])) continue;
      builder_.skip_event();
      builder_.add_instant_at(instants.event_index[i], copier_.track(instants.track[i]),
                              copier_.copy(instants.category[i]), copier_.copy(instants.name[i]),
                              instants.time_ns[i], instants.scope[i],
                              copier_.copy(instants.args[i]));
    }
  }

  // TraceBuilder leaves them in order of their starts.
  void add_flows() {
    const auto flows = trace_.flows();
    const auto starts_before = [](const Flow& flow, std::int64_t time_ns) {
      return flow.from_ns < time_ns;
    };
    const auto first = std::lower_bound(flows.begin(), flows.end(), start_ns_, starts_before);
    const auto last = std::lower_bound(first, flows.end(), end_ns_, starts_before);
    for (auto flow = first; flow != last; ++flow)
      if (is_inside(flow->to_ns) && has_kept_ends(*flow)) add_flow(*flow);
  }

  bool has_kept_ends(const Flow& flow) const {
    return !kept_ || (moments_[raw(flow.from_track)].hold(flow.from_ns) &&
                      moments_[raw(flow.to_track)].hold(flow.to_ns));
  }

  void add_flow(const Flow& flow) {
    Flow own = flow;
    own.set_id(copier_.copy(flow.id()));
    own.name = copier_.copy(flow.name);
    own.category = copier_.copy(flow.category);
    own.from_track = copier_.track(flow.from_track);
    own.to_track = copier_.track(flow.to_track);
    builder_.add_flow(own);
  }

  const Trace& trace_;
  std::int64_t start_ns_, end_ns_;
  TraceWindow streams_;
  Edges edges_;
  std::unordered_map<std::uint32_t, std::int64_t> number_of_step_;  // by slice
  std::uint32_t row_ = 0;
  std::uint64_t crossing_ = 0;
  std::vector<SliceId> originals_;           // of each row
  const std::vector<bool>* kept_ = nullptr;  // categories; nullptr: all
  std::vector<KeptMoments> moments_;         // by track, with kept_
  TraceBuilder builder_;
  TraceCopier copier_{trace_, builder_};
};

void keep_capture_window(const Trace& whole, Trace& part) {
  TraceColumns columns = part.columns();  // shares the memory
  columns.values.window_start_ns = whole.window_start_ns();
  columns.values.window_end_ns = whole.window_end_ns();
  columns.values.has_window_span = whole.has_window_span();
  part = Trace::from_columns(std::move(columns));
}

}  // namespace

Result<CroppedTrace> crop_trace(const Trace& trace, std::int64_t start_ns, std::int64_t end_ns,
                                Edges edges) {
  const TraceWindow window{start_ns, end_ns};
  return Cropper(trace, window, window, edges).run();
}

Result<CroppedTrace> crop_categories(const Trace& trace, const std::vector<bool>& kept,
                                     const std::optional<TraceWindow>& window, Edges edges) {
  constexpr TraceWindow kAlways{std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max()};
  const TraceWindow times = window.value_or(kAlways);
  Cropper cropper(trace, times, times, edges);
  cropper.keep_only(kept);
  LANESCOPE_TRY(CroppedTrace cropped, cropper.run());
  if (!window) keep_capture_window(trace, cropped.trace);
  return cropped;
}

Result<StepTrace> crop_step(const Trace& trace, const StepNeeds& needs) {
  Cropper cropper(trace, needs.calls, needs.work, Edges::kWhole);
  LANESCOPE_TRY(CroppedTrace cropped, cropper.run());
  keep_capture_window(trace, cropped.trace);
  return StepTrace{std::move(cropped.trace), cropper.take_originals()};
}

std::int64_t trace_origin_ns(const Trace& trace) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Track& track : trace.tracks())
    if (track.slice_count > 0) first = std::min(first, trace.slices().start_ns[track.first_slice]);
  for (const std::int64_t time : trace.counters().time_ns) first = std::min(first, time);
  const StringId memory = trace.strings().find("[memory]");
  const auto& instants = trace.instants();
  for (std::size_t i = 0; i < instants.size(); ++i)
    if (instants.name[i] == memory) {
      first = std::min(first, instants.time_ns[i]);
      break;
    }
  return first == std::numeric_limits<std::int64_t>::max() ? 0 : first;
}

std::int64_t trace_end_ns(const Trace& trace) {
  std::int64_t last = trace_origin_ns(trace);
  const auto& slices = trace.slices();
  for (std::size_t i = 0; i < slices.size(); ++i)
    last = std::max(last, slices.start_ns[i] + slices.dur_ns[i]);
  for (const std::int64_t time : trace.counters().time_ns) last = std::max(last, time);
  return last;
}

}  // namespace lanescope::view

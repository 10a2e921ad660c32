#include "lanescope/view/crop_trace.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "lanescope/model/trace_builder.h"

namespace lanescope::view {
namespace {

class Cropper {
 public:
  Cropper(const Trace& trace, std::int64_t start_ns, std::int64_t end_ns)
      : trace_(trace), start_ns_(start_ns), end_ns_(end_ns) {}

  Result<Trace> run() {
    builder_.set_base_time_ns(trace_.base_time_ns());
    builder_.set_window(std::max(start_ns_, trace_.window_start_ns()),
                        std::min(end_ns_, trace_.window_end_ns()));
    for (const Metadata& each : trace_.metadata())
      builder_.add_metadata(trace_.text(each.key), trace_.text(each.json));
    for (const StringId event : trace_.other_metadata_events())
      builder_.add_metadata_event(copy(event));
    for (const Process& each : trace_.processes()) add_process(each);
    tracks_.assign(trace_.tracks().size(), kNone<TrackId>);
    add_slices();
    add_instants();
    const auto& counters = trace_.counters();
    for (std::size_t i = 0; i < counters.size(); ++i)
      if (is_inside(counters.time_ns[i]))
        builder_.add_counter(track(counters.track[i]), counters.time_ns[i], counters.value[i]);
    for (const Flow& flow : trace_.flows()) add_flow(flow);
    return std::move(builder_).finish();
  }

 private:
  bool is_inside(std::int64_t time_ns) const { return time_ns >= start_ns_ && time_ns < end_ns_; }
  StringId copy(StringId id) {
    return id == kNone<StringId> ? id : builder_.intern(trace_.text(id));
  }
  Scalar copy(const Scalar& scalar) {
    return scalar.is_text ? Scalar{true, 0, copy(scalar.text)} : scalar;
  }
  CategoryId copy(CategoryId id) {
    const StringId text = trace_.categories()[raw(id)].text;
    return text == kNone<StringId> ? builder_.no_category() : builder_.category(trace_.text(text));
  }

  void add_process(const Process& each) {
    const Scalar pid = copy(each.pid);
    builder_.process(pid);
    if (each.name != kNone<StringId>) builder_.set_process_name(pid, copy(each.name));
    if (each.labels != kNone<StringId>) builder_.set_process_labels(pid, copy(each.labels));
    if (each.sort_index) builder_.set_process_sort_index(pid, *each.sort_index);
  }

  TrackId track(TrackId id) {
    TrackId& known = tracks_[raw(id)];
    if (known != kNone<TrackId>) return known;
    const Track& each = trace_.track(id);
    const Scalar pid = copy(trace_.process(each.process).pid), tid = copy(each.tid);
    switch (each.kind) {
      case TrackKind::kThread:
        known = builder_.thread_track(pid, tid);
        break;
      case TrackKind::kStream:
        known = builder_.stream_track(pid, tid);
        builder_.set_stream_numbers(known, each.device, each.stream);
        break;
      case TrackKind::kAsync:
        known = builder_.async_track(pid, trace_.text(each.series), tid);
        break;
      case TrackKind::kCounter:
        known = builder_.counter_track(pid, trace_.text(each.name), trace_.text(each.series));
        break;
    }
    if (each.name != kNone<StringId> && each.kind != TrackKind::kCounter)
      builder_.set_track_name(known, copy(each.name));
    if (each.sort_index) builder_.set_track_sort_index(known, *each.sort_index);
    return known;
  }

  ArgsId copy(ArgsId id) {
    const ArgsView view = trace_.columns().args.view(id);
    if (view.empty()) return kNone<ArgsId>;
    ArgsBuilder& args = builder_.args();
    args.begin();
    for (std::size_t i = 0; i < view.size(); ++i) {
      const ArgField& field = view.field(i);
      const bool is_text = field.type == ArgType::kString || field.type == ArgType::kJson;
      std::uint64_t bits = view.bits(field);
      if (is_text) bits = raw(copy(StringId{static_cast<std::uint32_t>(bits)}));
      args.add(copy(field.key), arg_key(trace_.text(field.key)), field.type, bits);
    }
    return args.end();
  }

  void add_slices() {
    const auto& slices = trace_.slices();
    std::unordered_map<std::uint32_t, std::int64_t> number_of_step;  // by slice
    for (const Step& step : trace_.steps()) number_of_step[raw(step.slice)] = step.number;
    std::uint32_t row = 0;
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      const SliceId slice{i};
      const bool touches =
          trace_.start_ns(slice) < end_ns_ &&
          (trace_.start_ns(slice) >= start_ns_ || trace_.end_ns(slice) > start_ns_);
      if (!touches) continue;
      builder_.add_slice(track(slices.track[i]), copy(slices.category[i]), copy(slices.name[i]),
                         slices.start_ns[i], slices.dur_ns[i], copy(slices.args[i]));
      if (const auto step = number_of_step.find(i); step != number_of_step.end())
        builder_.add_step(step->second, row);
      ++row;
    }
  }

  void add_instants() {
    const auto& instants = trace_.instants();
    for (std::size_t i = 0; i < instants.size(); ++i)
      if (is_inside(instants.time_ns[i]))
        builder_.add_instant(track(instants.track[i]), copy(instants.category[i]),
                             copy(instants.name[i]), instants.time_ns[i], instants.scope[i],
                             copy(instants.args[i]));
  }

  void add_flow(const Flow& flow) {
    if (!is_inside(flow.from_ns) || !is_inside(flow.to_ns)) return;
    Flow own = flow;
    own.id = copy(flow.id);
    own.name = copy(flow.name);
    own.category = copy(flow.category);
    own.from_track = track(flow.from_track);
    own.to_track = track(flow.to_track);
    builder_.add_flow(own);
  }

  const Trace& trace_;
  std::int64_t start_ns_, end_ns_;
  TraceBuilder builder_;
  std::vector<TrackId> tracks_;
};

}  // namespace

Result<Trace> crop_trace(const Trace& trace, std::int64_t start_ns, std::int64_t end_ns) {
  return Cropper(trace, start_ns, end_ns).run();
}

}  // namespace lanescope::view

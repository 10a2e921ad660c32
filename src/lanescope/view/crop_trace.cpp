#include "lanescope/view/crop_trace.h"

#include <algorithm>
#include <unordered_map>

#include "lanescope/model/trace_builder.h"
#include "lanescope/model/trace_copier.h"

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
      builder_.add_metadata_event(copier_.copy(event));
    for (std::uint32_t i = 0; i < trace_.processes().size(); ++i)
      copier_.copy_process(ProcessId{i});
    add_slices();
    add_instants();
    const auto& counters = trace_.counters();
    for (std::size_t i = 0; i < counters.size(); ++i)
      if (is_inside(counters.time_ns[i]))
        builder_.add_counter(copier_.track(counters.track[i]), counters.time_ns[i],
                             counters.value[i]);
    for (const Flow& flow : trace_.flows()) add_flow(flow);
    return std::move(builder_).finish();
  }

 private:
  bool is_inside(std::int64_t time_ns) const { return time_ns >= start_ns_ && time_ns < end_ns_; }
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
      builder_.add_slice(copier_.track(slices.track[i]), copier_.copy(slices.category[i]),
                         copier_.copy(slices.name[i]), slices.start_ns[i], slices.dur_ns[i],
                         copier_.copy(slices.args[i]));
      if (const auto step = number_of_step.find(i); step != number_of_step.end())
        builder_.add_step(step->second, row);
      ++row;
    }
  }

  void add_instants() {
    const auto& instants = trace_.instants();
    for (std::size_t i = 0; i < instants.size(); ++i)
      if (is_inside(instants.time_ns[i]))
        builder_.add_instant(copier_.track(instants.track[i]), copier_.copy(instants.category[i]),
                             copier_.copy(instants.name[i]), instants.time_ns[i], instants.scope[i],
                             copier_.copy(instants.args[i]));
  }

  void add_flow(const Flow& flow) {
    if (!is_inside(flow.from_ns) || !is_inside(flow.to_ns)) return;
    Flow own = flow;
    own.id = copier_.copy(flow.id);
    own.name = copier_.copy(flow.name);
    own.category = copier_.copy(flow.category);
    own.from_track = copier_.track(flow.from_track);
    own.to_track = copier_.track(flow.to_track);
    builder_.add_flow(own);
  }

  const Trace& trace_;
  std::int64_t start_ns_, end_ns_;
  TraceBuilder builder_;
  TraceCopier copier_{trace_, builder_};
};

}  // namespace

Result<Trace> crop_trace(const Trace& trace, std::int64_t start_ns, std::int64_t end_ns) {
  return Cropper(trace, start_ns, end_ns).run();
}

}  // namespace lanescope::view

// One event of a Trace as a line of JSON.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "lanescope/codec/json_text.h"
#include "lanescope/format/kineto_json/event_order.h"
#include "lanescope/format/kineto_json/json_output.h"
#include "lanescope/format/kineto_json/write_places.h"
#include "lanescope/format/kineto_json/write_values.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// Borrows all. One thread.
class EventWriter {
 public:
  EventWriter(const Trace& trace, EventsOutput& output, JsonValues& values,
              const EventPlaces& places)
      : trace_(trace), output_(output), text_(output.text), values_(values), places_(places) {}

  void write_event(const EventRef& event) {
    switch (event.kind) {
      case EventKind::kSlice:
        return write_slice(event.index);
      case EventKind::kAsyncBegin:
        return write_async_begin(event.index);
      case EventKind::kAsyncEnd:
        return write_async_end(event.index);
      case EventKind::kInstant:
        return write_instant(event.index);
      case EventKind::kCounter:
        return write_counter(event.index);
      case EventKind::kFlowStart:
        return write_flow('s', event.index);
      case EventKind::kFlowStep:
        return write_flow('t', event.index);
      case EventKind::kFlowEnd:
        return write_flow('f', event.index);
    }
  }

 private:
  void begin_event(char phase, const std::string& category, StringId name) {
    text_.add("{\"ph\":\"");
    text_.add(phase);
    text_.add('"');
    text_.add(category);
    text_.add(",\"name\":");
    values_.add_string(name);
  }
  void add_time(const char* key, std::int64_t ns) {
    text_.add(key);
    text_.add_time(ns);
  }
  void add_ts(std::int64_t ns) { add_time(",\"ts\":", ns - places_.shift_ns()); }
  bool is_async(TrackId id) const { return trace_.track(id).kind == TrackKind::kAsync; }
  void write_slice(std::uint32_t i) {
    const SliceColumns& slices = trace_.slices();
    begin_event('X', places_.category(slices.category[i]), slices.name[i]);
    const auto row = places_.row_of(i);
    text_.add(row ? places_.of_row(*row) : places_.of(slices.track[i]));
    add_ts(slices.start_ns[i]);
    add_time(",\"dur\":", slices.dur_ns[i]);
    values_.write_args(slices.args[i]);
    output_.end_event();
  }
  void write_async_begin(std::uint32_t i) {
    const SliceColumns& slices = trace_.slices();
    begin_event('b', async_category(slices.track[i]), slices.name[i]);
    text_.add(places_.of(slices.track[i]));
    add_ts(slices.start_ns[i]);
    values_.write_args(slices.args[i]);
    output_.end_event();
    if (slices.dur_ns[i] == 0) write_async_end(i);
  }
  void write_async_end(std::uint32_t i) {
    const SliceColumns& slices = trace_.slices();
    begin_event('e', async_category(slices.track[i]), slices.name[i]);
    text_.add(places_.of(slices.track[i]));
    add_ts(slices.start_ns[i] + slices.dur_ns[i]);
    output_.end_event();
  }
  // An async track is one (category, id); its events all carry that category.
  std::string async_category(TrackId id) const {
    const std::string_view text = trace_.text(trace_.track(id).series);
    if (text.empty()) return {};
    std::string fragment = ",\"cat\":\"";
    codec::append_escaped_json(fragment, text);
    return fragment + '"';
  }
  void write_instant(std::uint32_t i) {
    const InstantColumns& instants = trace_.instants();
    const bool async = is_async(instants.track[i]);
    begin_event(async ? 'n' : 'i',
                async ? async_category(instants.track[i]) : places_.category(instants.category[i]),
                instants.name[i]);
    text_.add(places_.of(instants.track[i]));
    add_ts(instants.time_ns[i]);
    if (!async) {
      text_.add(",\"s\":\"");
      text_.add(instants.scope[i]);
      text_.add('"');
    }
    values_.write_args(instants.args[i]);
    output_.end_event();
  }
  void write_counter(std::uint32_t i) {
    const CounterColumns& counters = trace_.counters();
    const Track& track = trace_.track(counters.track[i]);
    begin_event('C', {}, track.name);
    text_.add(places_.of(counters.track[i]));
    add_ts(counters.time_ns[i]);
    text_.add(",\"args\":{");
    values_.add_string(track.series);
    text_.add(':');
    text_.add_double(counters.value[i]);
    text_.add('}');
    output_.end_event();
  }
  void write_flow(char phase, std::uint32_t i) {
    const Flow& flow = trace_.flows()[i];
    begin_event(phase, places_.category(flow.category), flow.name);
    text_.add(",\"id\":");
    values_.append_scalar(text_.raw(), flow.id());
    const TrackId track = phase == 's' ? flow.from_track : flow.to_track;
    const std::int64_t ns = phase == 's' ? flow.from_ns : flow.to_ns;
    const auto row = places_.row_at(track, ns);
    text_.add(row ? places_.of_row(*row) : places_.of(track));
    add_ts(ns);
    if (phase != 's' && flow.binds_enclosing) text_.add(",\"bp\":\"e\"");
    output_.end_event();
  }

  const Trace& trace_;
  EventsOutput& output_;
  JsonOutput& text_;
  JsonValues& values_;
  const EventPlaces& places_;
};

}  // namespace lanescope::format

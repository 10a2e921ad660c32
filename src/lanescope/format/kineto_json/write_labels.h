// The `M` events of a trace: names, labels and sort indices of processes, threads and streams.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lanescope/codec/json_text.h"
#include "lanescope/format/kineto_json/json_output.h"
#include "lanescope/format/kineto_json/write_places.h"
#include "lanescope/format/kineto_json/write_values.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

inline constexpr std::string_view kSpans = "Spans";  // the process of Kineto's own spans

// Borrows all. One thread.
class LabelWriter {
 public:
  LabelWriter(const Trace& trace, EventsOutput& output, JsonValues& values,
              const EventPlaces& places)
      : trace_(trace), output_(output), text_(output.text), values_(values), places_(places) {}

  // Writes the labels of all processes but that of Kineto's spans, whose labels come after the spans.
  void write_labels() {
    for (const Process& process : trace_.processes()) {
      if (!is_spans(process)) write_label_of(process);
    }
    // A label is of a pid and a tid. When a thread and a stream share them, the stream's counts.
    const Track *named = nullptr, *placed = nullptr;
    const std::vector<std::uint32_t> labelled = labelled_tracks();
    for (std::size_t at = 0; at < labelled.size(); ++at) {
      const std::string& place = places_.of(TrackId{labelled[at]});
      const Track& track = trace_.tracks()[labelled[at]];
      if (track.name != kNone<StringId>) named = &track;
      if (track.sort_index) placed = &track;
      if (at + 1 < labelled.size() && places_.of(TrackId{labelled[at + 1]}) == place) continue;
      if (named) write_label("thread_name", place, "name", named->name);
      if (placed) write_label("thread_sort_index", place, "sort_index", placed->sort_index);
      named = placed = nullptr;
    }
    write_sub_labels();
    for (const StringId event : trace_.other_metadata_events()) {
      text_.flush_if_full();
      text_.add(trace_.text(event));
      text_.add(",\n");
      ++output_.events;
    }
  }
  void write_spans_label() {
    for (const Process& process : trace_.processes())
      if (is_spans(process)) write_label_of(process);
  }

 private:
  bool is_spans(const Process& process) const {
    return process.pid.is_text && trace_.text(process.pid.text) == kSpans;
  }
  void write_label_of(const Process& process) {
    std::string place = ",\"pid\":";
    values_.append_scalar(place, process.pid);
    place += ",\"tid\":0";
    write_label("process_name", place, "name", process.name);
    write_label("process_labels", place, "labels", process.labels);
    write_label("process_sort_index", place, "sort_index", process.sort_index);
  }
  void write_sub_labels() {
    if (!places_.sub_tracks()) return;
    for (std::size_t i = 0; i < places_.sub_tracks()->rows().size(); ++i) {
      const SubTracks::Row& row = places_.sub_tracks()->rows()[i];
      const Track& track = trace_.track(row.track);
      text_.flush_if_full();
      begin_label("thread_name", places_.of_row(i), "name");
      text_.add('"');
      if (track.name == kNone<StringId>) {
        text_.add(track.kind == TrackKind::kStream ? "stream " : "thread ");
        codec::append_escaped_json(text_.raw(), values_.scalar_text(track.tid));
      } else {
        values_.add_string_body(track.name);
      }
      text_.add(" (overlaps ");
      text_.add_integer(row.number);
      text_.add(")\"}");
      output_.end_event();
      if (track.sort_index)
        write_label("thread_sort_index", places_.of_row(i), "sort_index", track.sort_index);
    }
  }
  void write_label(const char* name, const std::string& place, const char* key, StringId value) {
    if (value == kNone<StringId>) return;
    text_.flush_if_full();
    const std::size_t before = text_.raw().size();
    begin_label(name, place, key);
    values_.add_string(value);
    end_label(before);
  }
  void write_label(const char* name, const std::string& place, const char* key,
                   std::optional<std::int64_t> value) {
    if (!value) return;
    text_.flush_if_full();
    const std::size_t before = text_.raw().size();
    begin_label(name, place, key);
    text_.add_integer(*value);
    end_label(before);
  }
  // Removes the label again if an earlier piece wrote it.
  void end_label(std::size_t before) {
    text_.add('}');
    if (output_.in_pieces && !output_.labels.insert(text_.raw().substr(before)).second)
      text_.raw().resize(before);
    else
      output_.end_event();
  }
  void begin_label(const char* name, const std::string& place, const char* key) {
    text_.add("{\"ph\":\"M\",\"name\":\"");
    text_.add(name);
    text_.add('"');
    text_.add(place);
    text_.add(",\"args\":{\"");
    text_.add(key);
    text_.add("\":");
  }
  // By process and thread, not by order in the Trace: a reader sees tracks in the order
  // of the events.
  std::vector<std::uint32_t> labelled_tracks() const {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i) {
      const Track& track = trace_.tracks()[i];
      if (track.kind != TrackKind::kThread && track.kind != TrackKind::kStream) continue;
      if (track.name != kNone<StringId> || track.sort_index) order.push_back(i);
    }
    const auto key = [&](std::uint32_t i) {
      const Track& track = trace_.tracks()[i];
      const Scalar& pid = trace_.process(track.process).pid;
      return std::tuple(pid.is_text, pid.number, trace_.text(pid.text), track.tid.is_text,
                        track.tid.number, trace_.text(track.tid.text), track.kind);
    };
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return order;
  }

  const Trace& trace_;
  EventsOutput& output_;
  JsonOutput& text_;
  JsonValues& values_;
  const EventPlaces& places_;
};

}  // namespace lanescope::format

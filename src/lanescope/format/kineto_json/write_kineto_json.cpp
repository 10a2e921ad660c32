// Problem: the user of a profiler waits for the export. Idea: turn everything that repeats
// (category, process and thread, keys, names) into text once; an event is then a few copies and two
// numbers. Order: columns are already sorted runs (one per track), so merging is cheaper than
// sorting. Cost: O(n log tracks) to order, one pass to write.
#include "lanescope/format/kineto_json/write_kineto_json.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/codec/byte_sink.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/format/kineto_json/event_order.h"
#include "lanescope/format/kineto_json/json_output.h"
#include "lanescope/format/kineto_json/sub_tracks.h"
#include "lanescope/format/kineto_json/write_events.h"
#include "lanescope/format/kineto_json/write_labels.h"
#include "lanescope/format/kineto_json/write_places.h"
#include "lanescope/format/kineto_json/write_values.h"
#include "lanescope/format/lost_entry.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {
namespace {

class Writer {
 public:
  Writer(const Trace& trace, const WriteOptions& options, EventsOutput& output)
      : trace_(trace),
        options_(options),
        output_(output),
        text_(output.text),
        values_(trace, output.text),
        places_(trace, values_, options.moves_overlaps),
        labels_(trace, output, values_, places_),
        events_(trace, output, values_, places_) {
    for (const Metadata& entry : trace.metadata()) last_metadata_[raw(entry.key)] = &entry;
  }

  void begin() {
    text_.add("{\n");
    write_head();
    text_.add("\"traceEvents\":[\n");
  }
  void add_events() {
    labels_.write_labels();
    std::vector<EventRef> order = order_events(trace_);
    const auto marks = std::stable_partition(
        order.begin(), order.end(), [this](const EventRef& event) { return !is_mark(event); });
    const auto events = static_cast<std::size_t>(marks - order.begin());
    for (std::size_t i = 0; i < events && !text_.failed(); ++i) {
      text_.flush_if_full();
      events_.write_event(order[i]);
      if (options_.progress && i % 65536 == 0) options_.progress(i, events);
    }
    write_marks({marks, order.end()});
  }
  // `found`: of the whole trace, when this Trace is one piece of it.
  Result<WriteStats> end(const ImportStats& found) {
    WriteStats stats;
    stats.events = output_.events;
    if (const SubTracks* moved = places_.sub_tracks()) stats.moved_slices = moved->moved_count();
    if (output_.events > 0)
      text_.raw().erase(text_.raw().size() - 2, 1);  // the comma after the last event
    text_.add(']');
    write_tail(found);
    text_.add("\n}\n");
    stats.text_bytes = text_.text_bytes();
    LANESCOPE_TRY_VOID(text_.finish());
    return stats;
  }

 private:
  // The last entry with that key; nullptr: none. One look-up.
  const Metadata* find_metadata(std::string_view key) const {
    const auto it = last_metadata_.find(raw(trace_.strings().find(key)));
    return it == last_metadata_.end() ? nullptr : it->second;
  }
  void write_entry(const Metadata& entry) {
    text_.add("  ");
    values_.add_string(entry.key);
    text_.add(": ");
    values_.add_json(entry.json);
    text_.add(",\n");
  }
  // torch's order: schemaVersion, deviceProperties, the rest, displayTimeUnit, baseTimeNanoseconds,
  // the events, lanescope_lost, traceName.
  void write_head() {
    const auto is_placed = [](std::string_view key) {
      return key == "schemaVersion" || key == "deviceProperties" || key == "displayTimeUnit" ||
             key == "baseTimeNanoseconds" || key == "traceName";
    };
    for (const char* key : {"schemaVersion", "deviceProperties"})
      if (const Metadata* entry = find_metadata(key)) write_entry(*entry);
    for (const Metadata& entry : trace_.metadata()) {
      const std::string_view key = trace_.text(entry.key);
      if (is_placed(key) || find_metadata(key) != &entry) continue;
      text_.flush_if_full();
      write_entry(entry);
    }
    if (const Metadata* entry = find_metadata("displayTimeUnit")) write_entry(*entry);
    const std::int64_t base_ns = trace_.base_time_ns() + places_.shift_ns();
    if (base_ns != 0 || find_metadata("baseTimeNanoseconds")) {
      text_.add("  \"baseTimeNanoseconds\": ");
      text_.add_integer(base_ns);
      text_.add(",\n");
    }
    text_.add("  ");
  }
  void write_tail(const ImportStats& found) {
    if (const std::string lost = lost_entry(found); !lost.empty()) {
      text_.add(",\n  \"");
      text_.add(kLostEntry);
      text_.add("\": ");
      text_.add(lost);
    }
    const Metadata* entry = find_metadata("traceName");
    if (options_.trace_name.empty() && !entry) return;
    text_.add(",\n  \"traceName\": ");
    if (options_.trace_name.empty()) return values_.add_json(entry->json);
    text_.add('"');
    codec::append_escaped_json(text_.raw(), options_.trace_name);
    text_.add('"');
  }

  // Kineto ends its files with the spans and marks of the recording, and some programs count
  // from the end.
  bool is_mark(const EventRef& event) const {
    if (event.kind != EventKind::kSlice && event.kind != EventKind::kInstant) return false;
    const bool is_slice = event.kind == EventKind::kSlice;
    const Track& track = trace_.track(is_slice ? trace_.slices().track[event.index]
                                               : trace_.instants().track[event.index]);
    const Scalar& pid = trace_.process(track.process).pid;
    if (!pid.is_text) return false;
    const std::string_view process = trace_.text(pid.text);
    if (is_slice) return process == kSpans;
    return process == "Traces" ||
           (process.empty() &&
            trace_.text(trace_.instants().name[event.index]) == "Record Window End");
  }
  // Spans, their process's label, marks.
  void write_marks(std::vector<EventRef> marks) {
    std::stable_partition(marks.begin(), marks.end(),
                          [](const EventRef& event) { return event.kind == EventKind::kSlice; });
    bool labelled = false;
    for (const EventRef& mark : marks) {
      if (mark.kind != EventKind::kSlice && !std::exchange(labelled, true))
        labels_.write_spans_label();
      text_.flush_if_full();
      events_.write_event(mark);
    }
    if (!labelled) labels_.write_spans_label();
  }

  const Trace& trace_;
  const WriteOptions& options_;
  EventsOutput& output_;
  JsonOutput& text_;
  JsonValues values_;
  EventPlaces places_;
  LabelWriter labels_;
  EventWriter events_;
  std::unordered_map<std::uint32_t, const Metadata*> last_metadata_;  // by StringId of the key
};

Result<WriteStats> write_whole(const Trace& trace, const WriteOptions& options,
                               codec::ByteSink& sink) {
  EventsOutput output(sink, false);
  Writer writer(trace, options, output);
  writer.begin();
  writer.add_events();
  return writer.end(trace.import_stats());
}

Result<std::unique_ptr<codec::ByteSink>> open_sink(const std::filesystem::path& path,
                                                   const WriteOptions& options) {
  LANESCOPE_TRY(auto file, codec::create_file(path));
  return codec::pack_into(std::move(file), codec::packing_of_name(path), options.compression_level);
}

}  // namespace

Result<WriteStats> write_kineto_json(const Trace& trace, const std::filesystem::path& path,
                                     const WriteOptions& options) {
  LANESCOPE_TRY(const auto sink, open_sink(path, options));
  LANESCOPE_TRY(WriteStats stats, write_whole(trace, options, *sink));
  LANESCOPE_TRY_VOID(sink->finish());
  stats.file_bytes = sink->written_bytes();
  return stats;
}

std::string kineto_json_text(const Trace& trace, const WriteOptions& options) {
  std::string text;
  const auto sink = codec::string_sink(text);
  LANESCOPE_CHECK(write_whole(trace, options, *sink).has_value());
  return text;
}

struct KinetoJsonPieces::State {
  State(std::unique_ptr<codec::ByteSink> to, WriteOptions how)
      : options(std::move(how)), sink(std::move(to)), output(*sink, true) {}
  WriteOptions options;
  std::unique_ptr<codec::ByteSink> sink;
  EventsOutput output;
  bool begun = false;
};

KinetoJsonPieces::KinetoJsonPieces(std::unique_ptr<State> state) : state_(std::move(state)) {}
KinetoJsonPieces::KinetoJsonPieces(KinetoJsonPieces&&) noexcept = default;
KinetoJsonPieces& KinetoJsonPieces::operator=(KinetoJsonPieces&&) noexcept = default;
KinetoJsonPieces::~KinetoJsonPieces() = default;

Result<KinetoJsonPieces> KinetoJsonPieces::create(const std::filesystem::path& path,
                                                  const WriteOptions& options) {
  LANESCOPE_TRY(auto sink, open_sink(path, options));
  return KinetoJsonPieces(std::make_unique<State>(std::move(sink), options));
}

KinetoJsonPieces KinetoJsonPieces::create(std::unique_ptr<codec::ByteSink> sink,
                                          const WriteOptions& options) {
  return KinetoJsonPieces(std::make_unique<State>(std::move(sink), options));
}

Result<void> KinetoJsonPieces::add(const Trace& piece) {
  State& s = *state_;
  Writer writer(piece, s.options, s.output);
  if (!s.begun) writer.begin();
  s.begun = true;
  writer.add_events();
  return s.output.text.status();
}

Result<WriteStats> KinetoJsonPieces::finish(const ImportStats& found) {
  State& s = *state_;
  TraceBuilder empty;
  LANESCOPE_TRY(const Trace nothing, std::move(empty).finish());
  Writer writer(nothing, s.options, s.output);
  if (!s.begun) writer.begin();
  LANESCOPE_TRY(WriteStats stats, writer.end(found));
  LANESCOPE_TRY_VOID(s.sink->finish());
  stats.file_bytes = s.sink->written_bytes();
  return stats;
}

}  // namespace lanescope::format

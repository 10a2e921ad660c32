// Problem: the user of a profiler waits for the export. Idea: turn everything that repeats
// (category, process and thread, keys, names) into text once; an event is then a few copies and two
// numbers. Order: columns are already sorted runs (one per track), so merging is cheaper than
// sorting. Cost: O(n log tracks) to order, one pass to write.
#include "lanescope/format/kineto_json/write_kineto_json.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/codec/byte_sink.h"
#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/format/kineto_json/event_order.h"
#include "lanescope/format/kineto_json/event_reader.h"
#include "lanescope/format/kineto_json/json_output.h"
#include "lanescope/format/kineto_json/sub_tracks.h"
#include "lanescope/format/lost_entry.h"
#include "lanescope/format/spool/tensor_identities.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {
namespace {

constexpr std::string_view kSpans = "Spans";  // the process of Kineto's own spans

// The file being written; a Trace in pieces has one for all of them.
struct Output {
  Output(codec::ByteSink& sink, bool comes_in_pieces) : text(sink), in_pieces(comes_in_pieces) {}
  JsonOutput text;
  std::uint64_t events = 0;
  bool in_pieces;
  std::unordered_set<std::string> labels;  // written by earlier pieces
};

class Writer {
 public:
  Writer(const Trace& trace, const WriteOptions& options, Output& output)
      : trace_(trace),
        options_(options),
        output_(output),
        text_(output.text),
        string_state_(trace.strings().size(), kUnknown),
        tensors_(trace.strings().find(kTensorIdentities)) {
    for (const Category& category : trace.categories()) {
      std::string& fragment = categories_.emplace_back();
      if (category.text == kNone<StringId>) continue;
      fragment = ",\"cat\":\"";
      codec::append_escaped_json(fragment, trace.text(category.text));
      fragment += '"';
    }
    for (const Track& track : trace.tracks()) tracks_.push_back(track_fragment(track));
    for (const Metadata& entry : trace.metadata()) last_metadata_[raw(entry.key)] = &entry;
    if (options.moves_overlaps) add_sub_tracks();
  }

  void begin() {
    text_.add("{\n");
    write_head();
    text_.add("\"traceEvents\":[\n");
  }
  void add_events() {
    write_labels();
    std::vector<EventRef> order = order_events(trace_);
    const auto marks = std::stable_partition(
        order.begin(), order.end(), [this](const EventRef& event) { return !is_mark(event); });
    const auto events = static_cast<std::size_t>(marks - order.begin());
    for (std::size_t i = 0; i < events && !text_.failed(); ++i) {
      text_.flush_if_full();
      write_event(order[i]);
      if (options_.progress && i % 65536 == 0) options_.progress(i, events);
    }
    write_marks({marks, order.end()});
  }
  // `found`: of the whole trace, when this Trace is one piece of it.
  Result<WriteStats> end(const ImportStats& found) {
    WriteStats stats;
    stats.events = output_.events;
    if (sub_tracks_) stats.moved_slices = sub_tracks_->moved_count();
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
  enum StringState : std::uint8_t { kUnknown, kPlain, kNeedsEscape, kStrictJson, kNotJson };

  std::string track_fragment(const Track& track) const {
    std::string fragment = ",\"pid\":";
    append_scalar(fragment, trace_.process(track.process).pid);
    if (track.kind == TrackKind::kThread || track.kind == TrackKind::kStream) {
      fragment += ",\"tid\":";
      append_scalar(fragment, track.tid);
    } else if (track.kind == TrackKind::kAsync) {
      fragment += ",\"tid\":0,\"id\":";
      append_scalar(fragment, track.tid);
    }
    return fragment;
  }
  void add_sub_tracks() {
    sub_tracks_.emplace(trace_);
    for (const SubTracks::Row& row : sub_tracks_->rows()) {
      Track track = trace_.track(row.track);
      track.tid = {false, row.tid, kNone<StringId>};
      sub_places_.push_back(track_fragment(track));
    }
  }
  void write_sub_labels() {
    if (!sub_tracks_) return;
    for (std::size_t i = 0; i < sub_places_.size(); ++i) {
      const SubTracks::Row& row = sub_tracks_->rows()[i];
      const Track& track = trace_.track(row.track);
      text_.flush_if_full();
      begin_label("thread_name", sub_places_[i], "name");
      text_.add('"');
      if (track.name == kNone<StringId>) {
        text_.add(track.kind == TrackKind::kStream ? "stream " : "thread ");
        codec::append_escaped_json(text_.raw(), scalar_text(track.tid));
      } else {
        add_string_body(track.name);
      }
      text_.add(" (overlaps ");
      text_.add_integer(row.number);
      text_.add(")\"}");
      end_event();
      if (track.sort_index)
        write_label("thread_sort_index", sub_places_[i], "sort_index", track.sort_index);
    }
  }
  std::string scalar_text(const Scalar& scalar) const {
    return scalar.is_text ? std::string(trace_.text(scalar.text)) : std::to_string(scalar.number);
  }
  void append_scalar(std::string& out, const Scalar& scalar) const {
    if (!scalar.is_text) {
      out += std::to_string(scalar.number);
      return;
    }
    out += '"';
    codec::append_escaped_json(out, trace_.text(scalar.text));
    out += '"';
  }

  // A string's text between quotes. Checks once per string whether it needs escapes.
  void add_string(StringId id) {
    text_.add('"');
    add_string_body(id);
    text_.add('"');
  }
  void add_string_body(StringId id) {
    if (id == kNone<StringId>) return;
    const std::string_view text = trace_.text(id);
    std::uint8_t& state = string_state_[raw(id)];
    if (state == kPlain) return text_.add(text);
    const std::size_t before = text_.raw().size();
    codec::append_escaped_json(text_.raw(), text);
    if (state == kUnknown)
      state = std::string_view(text_.raw()).substr(before) == text ? kPlain : kNeedsEscape;
  }
  // Raw JSON. If a program gave something as JSON that is not JSON, it becomes a string.
  void add_json(StringId id) {
    if (json_state_.empty()) json_state_.resize(string_state_.size(), kUnknown);
    std::uint8_t& state = json_state_[raw(id)];
    if (state == kUnknown) state = codec::is_strict_json(trace_.text(id)) ? kStrictJson : kNotJson;
    if (state == kStrictJson)
      text_.add(trace_.text(id));
    else
      add_string(id);
  }

  // The last entry with that key; nullptr: none. One look-up.
  const Metadata* find_metadata(std::string_view key) const {
    const auto it = last_metadata_.find(raw(trace_.strings().find(key)));
    return it == last_metadata_.end() ? nullptr : it->second;
  }
  void write_entry(const Metadata& entry) {
    text_.add("  ");
    add_string(entry.key);
    text_.add(": ");
    add_json(entry.json);
    text_.add(",\n");
  }
  // torch's order: schemaVersion, deviceProperties, the rest, displayTimeUnit, baseTimeNanoseconds,
  // the events, traceName.
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
    if (trace_.base_time_ns() != 0 || find_metadata("baseTimeNanoseconds")) {
      text_.add("  \"baseTimeNanoseconds\": ");
      text_.add_integer(trace_.base_time_ns());
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
    if (options_.trace_name.empty()) return add_json(entry->json);
    text_.add('"');
    codec::append_escaped_json(text_.raw(), options_.trace_name);
    text_.add('"');
  }

  void end_event() {
    text_.add("},\n");
    ++output_.events;
  }
  void write_label(const char* name, const std::string& place, const char* key, StringId value) {
    if (value == kNone<StringId>) return;
    text_.flush_if_full();
    const std::size_t before = text_.raw().size();
    begin_label(name, place, key);
    add_string(value);
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
      end_event();
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
      if (mark.kind != EventKind::kSlice && !std::exchange(labelled, true)) write_spans_label();
      text_.flush_if_full();
      write_event(mark);
    }
    if (!labelled) write_spans_label();
  }
  bool is_spans(const Process& process) const {
    return process.pid.is_text && trace_.text(process.pid.text) == kSpans;
  }
  void write_spans_label() {
    for (const Process& process : trace_.processes())
      if (is_spans(process)) write_label_of(process);
  }
  void write_label_of(const Process& process) {
    std::string place = ",\"pid\":";
    append_scalar(place, process.pid);
    place += ",\"tid\":0";
    write_label("process_name", place, "name", process.name);
    write_label("process_labels", place, "labels", process.labels);
    write_label("process_sort_index", place, "sort_index", process.sort_index);
  }
  void write_labels() {
    for (const Process& process : trace_.processes()) {
      if (!is_spans(process)) write_label_of(process);
    }
    // A label is of a pid and a tid. When a thread and a stream share them, the stream's counts.
    const Track *named = nullptr, *placed = nullptr;
    const std::vector<std::uint32_t> labelled = labelled_tracks();
    for (std::size_t at = 0; at < labelled.size(); ++at) {
      const std::string& place = tracks_[labelled[at]];
      const Track& track = trace_.tracks()[labelled[at]];
      if (track.name != kNone<StringId>) named = &track;
      if (track.sort_index) placed = &track;
      if (at + 1 < labelled.size() && tracks_[labelled[at + 1]] == place) continue;
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

  void begin_event(char phase, const std::string& category, StringId name) {
    text_.add("{\"ph\":\"");
    text_.add(phase);
    text_.add('"');
    text_.add(category);
    text_.add(",\"name\":");
    add_string(name);
  }
  void add_time(const char* key, std::int64_t ns) {
    text_.add(key);
    text_.add_time(ns);
  }
  const std::string& category(CategoryId id) const { return categories_[raw(id)]; }
  const std::string& place(TrackId id) const { return tracks_[raw(id)]; }
  bool is_async(TrackId id) const { return trace_.track(id).kind == TrackKind::kAsync; }

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
  void write_slice(std::uint32_t i) {
    const SliceColumns& slices = trace_.slices();
    begin_event('X', category(slices.category[i]), slices.name[i]);
    const auto row = sub_tracks_ ? sub_tracks_->row_of(i) : std::nullopt;
    text_.add(row ? sub_places_[*row] : place(slices.track[i]));
    add_time(",\"ts\":", slices.start_ns[i]);
    add_time(",\"dur\":", slices.dur_ns[i]);
    write_args(slices.args[i]);
    end_event();
  }
  void write_async_begin(std::uint32_t i) {
    const SliceColumns& slices = trace_.slices();
    begin_event('b', async_category(slices.track[i]), slices.name[i]);
    text_.add(place(slices.track[i]));
    add_time(",\"ts\":", slices.start_ns[i]);
    write_args(slices.args[i]);
    end_event();
    if (slices.dur_ns[i] == 0) write_async_end(i);
  }
  void write_async_end(std::uint32_t i) {
    const SliceColumns& slices = trace_.slices();
    begin_event('e', async_category(slices.track[i]), slices.name[i]);
    text_.add(place(slices.track[i]));
    add_time(",\"ts\":", slices.start_ns[i] + slices.dur_ns[i]);
    end_event();
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
                async ? async_category(instants.track[i]) : category(instants.category[i]),
                instants.name[i]);
    text_.add(place(instants.track[i]));
    add_time(",\"ts\":", instants.time_ns[i]);
    if (!async) {
      text_.add(",\"s\":\"");
      text_.add(instants.scope[i]);
      text_.add('"');
    }
    write_args(instants.args[i]);
    end_event();
  }
  void write_counter(std::uint32_t i) {
    const CounterColumns& counters = trace_.counters();
    const Track& track = trace_.track(counters.track[i]);
    begin_event('C', {}, track.name);
    text_.add(place(counters.track[i]));
    add_time(",\"ts\":", counters.time_ns[i]);
    text_.add(",\"args\":{");
    add_string(track.series);
    text_.add(':');
    text_.add_double(counters.value[i]);
    text_.add('}');
    end_event();
  }
  void write_flow(char phase, std::uint32_t i) {
    const Flow& flow = trace_.flows()[i];
    begin_event(phase, category(flow.category), flow.name);
    text_.add(",\"id\":");
    append_scalar(text_.raw(), flow.id);
    const TrackId track = phase == 's' ? flow.from_track : flow.to_track;
    const std::int64_t ns = phase == 's' ? flow.from_ns : flow.to_ns;
    const auto row = sub_tracks_ ? sub_tracks_->row_at(trace_, track, ns) : std::nullopt;
    text_.add(row ? sub_places_[*row] : place(track));
    add_time(",\"ts\":", ns);
    if (phase != 's' && flow.binds_enclosing) text_.add(",\"bp\":\"e\"");
    end_event();
  }

  void write_args(ArgsId id) {
    const ArgsView args = trace_.args(id);
    if (args.empty()) return;
    // The reader puts fields of the event after its arguments; only there do they count as fields.
    std::size_t own = args.size();
    while (own > 0 && is_other_field(args.field(own - 1))) --own;
    bool is_open = false;
    for (std::size_t i = 0; i < own; ++i) {
      if (args.field(i).key == tensors_) continue;
      text_.add(std::exchange(is_open, true) ? "," : ",\"args\":{");
      add_string(args.field(i).key);
      text_.add(':');
      write_value(args, args.field(i));
    }
    if (is_open) text_.add('}');
    for (std::size_t i = own; i < args.size(); ++i) {
      text_.add(",\"");
      codec::append_escaped_json(text_.raw(),
                                 trace_.text(args.field(i).key).substr(kOtherFieldPrefix.size()));
      text_.add("\":");
      write_value(args, args.field(i));
    }
  }
  // An argument that a program named "event:ts" must not become the event's time.
  bool is_other_field(const ArgField& field) const {
    std::string_view key = trace_.text(field.key);
    if (!key.starts_with(kOtherFieldPrefix)) return false;
    key.remove_prefix(kOtherFieldPrefix.size());
    for (const std::string_view known :
         {"ph", "ts", "dur", "name", "cat", "pid", "tid", "id", "id2", "bp", "s", "args"})
      if (key == known) return false;
    return true;
  }
  void write_value(const ArgsView& args, const ArgField& field) {
    const std::uint64_t bits = args.bits(field);
    switch (field.type) {
      case ArgType::kNull:
        return text_.add("null");
      case ArgType::kFalse:
        return text_.add("false");
      case ArgType::kTrue:
        return text_.add("true");
      case ArgType::kInt32:
        return text_.add_integer(static_cast<std::int32_t>(bits));
      case ArgType::kInt64:
        return text_.add_integer(static_cast<std::int64_t>(bits));
      case ArgType::kUint64:
        return text_.add(std::to_string(bits));
      case ArgType::kDouble:
        return text_.add_double(std::bit_cast<double>(bits));
      case ArgType::kString:
        return add_string(StringId{static_cast<std::uint32_t>(bits)});
      case ArgType::kJson:
        return add_json(StringId{static_cast<std::uint32_t>(bits)});
    }
  }

  const Trace& trace_;
  const WriteOptions& options_;
  Output& output_;
  JsonOutput& text_;
  std::vector<std::string> categories_, tracks_;  // ,"cat":"..." and ,"pid":...,"tid":...
  std::unordered_map<std::uint32_t, const Metadata*> last_metadata_;  // by StringId of the key
  std::vector<std::uint8_t> string_state_, json_state_;
  std::optional<SubTracks> sub_tracks_;
  std::vector<std::string> sub_places_;  // of its rows
  StringId tensors_;  // the key of identities of tensors; kNone: no event has them
};

Result<WriteStats> write_whole(const Trace& trace, const WriteOptions& options,
                               codec::ByteSink& sink) {
  Output output(sink, false);
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
  Output output;
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

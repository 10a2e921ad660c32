// Idea: the rows of all tracks are merged, so that packets are in order of time and Perfetto has little to sort.
#include "lanescope/format/perfetto/write_pftrace.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/codec/json_mend.h"
#include "lanescope/format/lost_entry.h"
#include "lanescope/format/perfetto/fields.h"
#include "lanescope/format/perfetto/flow_places.h"
#include "lanescope/format/perfetto/packet_output.h"
#include "lanescope/format/perfetto/write_tracks.h"
#include "lanescope/format/spool/tensor_identities.h"
#include "lanescope/model/nested_rows.h"

namespace lanescope::format {
namespace {

using codec::WireWriter;

// The first time that a packet will have. Perfetto's times are not negative.
std::int64_t first_ns(const Trace& trace) {
  std::int64_t first = 0;
  for (const std::int64_t ns : trace.slices().start_ns) first = std::min(first, ns);
  for (const std::int64_t ns : trace.instants().time_ns) first = std::min(first, ns);
  for (const std::int64_t ns : trace.counters().time_ns) first = std::min(first, ns);
  return first;
}

class PftraceWriter {
 public:
  PftraceWriter(const Trace& trace, const WriteOptions& options, codec::ByteSink& sink)
      : trace_(trace),
        options_(options),
        out_(trace, sink),
        tracks_(trace, out_),
        flows_(trace),
        shift_(first_ns(trace)),
        tensors_(trace.strings().find(kTensorIdentities)) {
    // Numbers by which Kineto joins its own records. Perfetto would store each one.
    for (const char* const key : {"Ev Idx", "Record function id", "Python id", "Python parent id"})
      if (const StringId known = trace.strings().find(key); known != kNone<StringId>)
        for_programs_.push_back(known);
  }

  Result<WriteStats> write() {
    write_clock();
    write_own_trace();
    tracks_.write();
    sort_marks();
    write_slices();
    write_marks(std::numeric_limits<std::int64_t>::max());
    WriteStats stats;
    stats.events = events_;
    stats.text_bytes = stats.file_bytes = out_.bytes();
    LANESCOPE_TRY_VOID(out_.finish());
    return stats;
  }

 private:
  std::uint64_t wire_time(std::int64_t ns) const {
    return static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(shift_);
  }

  // Without the clock of the day, Perfetto still shows times since the first event.
  void write_clock() {
    std::string snapshot;
    const auto add = [&](std::uint64_t clock, std::uint64_t time) {
      std::string text;
      WireWriter(text).integer(pftrace::kClockId, clock);
      WireWriter(text).integer(pftrace::kClockTime, time);
      WireWriter(snapshot).bytes(pftrace::kClocks, text);
    };
    std::int64_t day_ns = 0;
    add(pftrace::kBootTime, 0);
    if (trace_.base_time_ns() > 0 &&
        !__builtin_add_overflow(trace_.base_time_ns(), shift_, &day_ns) && day_ns > 0)
      add(pftrace::kRealtime, static_cast<std::uint64_t>(day_ns));
    WireWriter(snapshot).integer(pftrace::kPrimaryClock, pftrace::kBootTime);
    std::string packet;
    WireWriter(packet).integer(pftrace::kTimestamp, 0);
    WireWriter(packet).bytes(pftrace::kClockSnapshot, snapshot);
    out_.packet(packet);
  }

  void own(pftrace::OwnTrace field, const std::string& content) {
    std::string message, packet;
    WireWriter(message).bytes(field, content);
    WireWriter(packet).bytes(pftrace::kOwnField, message);
    out_.packet(packet);
  }
  void write_own_trace() {
    std::string values, packet;
    WireWriter(values).signed_integer(pftrace::kOwnBaseTime, trace_.base_time_ns());
    WireWriter(values).signed_integer(pftrace::kOwnShift, shift_);
    WireWriter(packet).bytes(pftrace::kOwnField, values);
    out_.packet(packet);
    for (const Metadata& entry : trace_.metadata())
      write_metadata(trace_.text(entry.key), trace_.text(entry.json));
    if (const std::string lost = lost_entry(trace_.import_stats()); !lost.empty())
      write_metadata(kLostEntry, lost);
    for (const StringId event : trace_.other_metadata_events())
      own(pftrace::kOwnMetadataEvent, std::string(trace_.text(event)));
    for (const FlowKind& kind : flows_.kinds()) write_flow_kind(kind);
    for (const SpelledFlow& spelled : flows_.spelled()) write_flow(spelled);
  }
  void write_metadata(std::string_view key, std::string_view json) {
    std::string pair;
    WireWriter(pair).bytes(pftrace::kOwnKey, key);
    WireWriter(pair).bytes(pftrace::kOwnValue, json);
    own(pftrace::kOwnMetadata, pair);
  }
  void write_flow_kind(const FlowKind& kind) {
    std::string text;
    const StringId category = trace_.categories()[raw(kind.category)].text;
    if (kind.name != kNone<StringId>)
      WireWriter(text).bytes(pftrace::kOwnFlowName, trace_.text(kind.name));
    if (category != kNone<StringId>)
      WireWriter(text).bytes(pftrace::kOwnFlowCategory, trace_.text(category));
    if (kind.binds_enclosing) WireWriter(text).integer(pftrace::kOwnFlowBinds, 1);
    own(pftrace::kOwnFlowKind, text);
  }
  void write_flow(const SpelledFlow& spelled) {
    const Flow& flow = trace_.flows()[spelled.flow];
    std::string text;
    WireWriter writer(text);
    writer.integer(pftrace::kOwnWireId, spelled.wire_id);
    writer.integer(pftrace::kOwnFromTrack, tracks_.uuid(flow.from_track));
    writer.signed_integer(pftrace::kOwnFromNs, flow.from_ns);
    writer.integer(pftrace::kOwnToTrack, tracks_.uuid(flow.to_track));
    writer.signed_integer(pftrace::kOwnToNs, flow.to_ns);
    writer.integer(pftrace::kOwnFlowKindIndex, spelled.kind);
    if (flow.id_is_text)
      writer.bytes(pftrace::kOwnFlowIdText, trace_.text(flow.id().text));
    else
      writer.signed_integer(pftrace::kOwnFlowId, flow.id_value);
    own(pftrace::kOwnFlow, text);
  }

  // A row of a track and what is left of it.
  struct Row {
    EdgeCursor edges;
    std::uint64_t uuid;
  };
  std::vector<Row> rows_of(const std::vector<NestedRows>& nested) {
    std::vector<Row> rows;
    for (std::uint32_t i = 0; i < nested.size(); ++i) {
      for (std::size_t row = 0; row < nested[i].row_count(); ++row) {
        const TrackId track{i};
        rows.push_back({EdgeCursor(trace_, nested[i].row(row)),
                        row == 0 ? tracks_.uuid(track) : tracks_.add_row(track, row)});
      }
    }
    return rows;
  }
  void write_slices() {
    std::vector<NestedRows> nested;
    for (const Track& track : trace_.tracks()) nested.push_back(find_nested_rows(trace_, track));
    std::vector<Row> rows = rows_of(nested);
    using Next = std::pair<std::int64_t, std::size_t>;  // when, in which row
    std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
    const auto wait = [&](std::size_t i) {
      if (!rows[i].edges.is_done()) queue.emplace(rows[i].edges.time_ns(), i);
    };
    for (std::size_t i = 0; i < rows.size(); ++i) wait(i);
    while (!queue.empty() && !out_.failed()) {
      const std::size_t i = queue.top().second;
      queue.pop();
      // As long as no other row is next.
      do {
        write_edge(rows[i]);
        rows[i].edges.next();
      } while (!rows[i].edges.is_done() &&
               (queue.empty() || Next(rows[i].edges.time_ns(), i) < queue.top()));
      wait(i);
    }
  }
  void write_edge(const Row& row) {
    write_marks(row.edges.time_ns());
    if (row.edges.is_end())
      write_end(row.edges.slice(), row.uuid);
    else
      write_begin(row.edges.slice(), row.uuid);
  }

  // Instants and values of counters, in order of time: first all instants are numbered, then the values.
  std::int64_t mark_ns(std::size_t mark) const {
    const std::size_t instants = trace_.instants().size();
    return mark < instants ? trace_.instants().time_ns[mark]
                           : trace_.counters().time_ns[mark - instants];
  }
  void sort_marks() {
    marks_.resize(trace_.instants().size() + trace_.counters().size());
    std::iota(marks_.begin(), marks_.end(), std::size_t{0});
    std::sort(marks_.begin(), marks_.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(mark_ns(a), a) < std::pair(mark_ns(b), b);
    });
  }
  void write_marks(std::int64_t until_ns) {
    const std::size_t instants = trace_.instants().size();
    for (; next_mark_ < marks_.size() && mark_ns(marks_[next_mark_]) <= until_ns && !out_.failed();
         ++next_mark_) {
      const std::size_t mark = marks_[next_mark_];
      if (mark < instants)
        write_instant(static_cast<std::uint32_t>(mark));
      else
        write_value(static_cast<std::uint32_t>(mark - instants));
    }
  }

  void write_begin(SliceId slice, std::uint64_t uuid) {
    const SliceColumns& slices = trace_.slices();
    const std::uint32_t i = raw(slice);
    begin_event(pftrace::kSliceBegin, uuid);
    add_labels(slices.name[i], slices.category[i]);
    add_args(slices.args[i]);
    for (const FlowEnd& end : flows_.ends_of(i))
      WireWriter(event_).fixed64(end.is_end ? pftrace::kEndingFlows : pftrace::kFlows, end.wire_id);
    end_event(slices.start_ns[i], own_);
    if (options_.progress && events_ % 65536 == 0) options_.progress(events_, slices.size());
    ++events_;
  }
  void write_end(SliceId slice, std::uint64_t uuid) {
    begin_event(pftrace::kSliceEnd, uuid);
    end_event(trace_.end_ns(slice));
  }
  void write_instant(std::uint32_t i) {
    const InstantColumns& instants = trace_.instants();
    begin_event(pftrace::kInstant, tracks_.uuid(instants.track[i]));
    add_labels(instants.name[i], instants.category[i]);
    add_args(instants.args[i]);
    if (instants.scope[i] != 't')
      WireWriter(own_).integer(pftrace::kOwnEventScope,
                               static_cast<unsigned char>(instants.scope[i]));
    end_event(instants.time_ns[i], own_);
    ++events_;
  }
  void write_value(std::uint32_t i) {
    const CounterColumns& counters = trace_.counters();
    begin_event(pftrace::kCounter, tracks_.uuid(counters.track[i]));
    WireWriter(event_).real(pftrace::kDoubleValue, counters.value[i]);
    end_event(counters.time_ns[i]);
    ++events_;
  }

  void begin_event(std::uint64_t type, std::uint64_t uuid) {
    event_.clear();
    WireWriter(event_).integer(pftrace::kType, type);
    WireWriter(event_).integer(pftrace::kTrackUuid, uuid);
  }
  void end_event(std::int64_t ns, std::string_view own = {}) {
    packet_.clear();
    WireWriter(packet_).integer(pftrace::kTimestamp, wire_time(ns));
    WireWriter(packet_).bytes(pftrace::kTrackEvent, event_);
    if (!own.empty()) WireWriter(packet_).bytes(pftrace::kOwnField, own);
    out_.packet(packet_);
  }
  void add_labels(StringId name, CategoryId category) {
    const StringId text = trace_.categories()[raw(category)].text;
    if (text != kNone<StringId>)
      WireWriter(event_).integer(pftrace::kCategoryIids, out_.iid(pftrace::kEventCategories, text));
    if (name != kNone<StringId>)
      WireWriter(event_).integer(pftrace::kNameIid, out_.iid(pftrace::kEventNames, name));
  }

  // Into event_, and into own_ what only programs read.
  void add_args(ArgsId id) {
    own_.clear();
    const ArgsView args = trace_.args(id);
    std::uint64_t place = 0;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const StringId key = args.field(i).key;
      if (key == tensors_) continue;  // as in JSON: they mean nothing in a file
      annotation_.clear();
      WireWriter(annotation_)
          .integer(pftrace::kAnnotationNameIid, out_.iid(pftrace::kAnnotationNames, key));
      add_value(args, args.field(i));
      if (std::find(for_programs_.begin(), for_programs_.end(), key) == for_programs_.end()) {
        WireWriter(event_).bytes(pftrace::kAnnotations, annotation_);
      } else {
        argument_.clear();
        WireWriter(argument_).integer(pftrace::kOwnPlace, place);
        WireWriter(argument_).bytes(pftrace::kOwnAnnotation, annotation_);
        WireWriter(own_).bytes(pftrace::kOwnArgument, argument_);
      }
      ++place;
    }
  }
  void add_value(const ArgsView& args, const ArgField& field) {
    WireWriter writer(annotation_);
    const std::uint64_t bits = args.bits(field);
    switch (field.type) {
      case ArgType::kNull:
        return;  // the name alone: JSON that is null ends Perfetto 52, and with it its page
      case ArgType::kFalse:
        return writer.integer(pftrace::kBool, 0);
      case ArgType::kTrue:
        return writer.integer(pftrace::kBool, 1);
      case ArgType::kInt32:
      case ArgType::kInt64:
        return writer.signed_integer(pftrace::kInt, args.integer(&field).value_or(0));
      case ArgType::kUint64:
        return writer.integer(pftrace::kUint, bits);
      case ArgType::kDouble:
        return writer.fixed64(pftrace::kDouble, bits);
      case ArgType::kString:
        return writer.integer(pftrace::kStringIid, out_.iid(pftrace::kAnnotationTexts, text(bits)));
      case ArgType::kJson:
        return add_json(text(bits));
    }
  }
  // As in the JSON file: what is not JSON is a text. A list is one text, too, because Perfetto makes an argument of each of its
  // numbers otherwise, and parses it each time.
  void add_json(StringId id) {
    if (json_.empty()) json_.resize(trace_.strings().size());
    const std::string_view json = trace_.text(id);
    JsonKind& kind = json_[raw(id)];
    if (kind == JsonKind::kUnknown)
      kind = !codec::is_strict_json(json) ? JsonKind::kNotJson
             : json.starts_with('[')      ? JsonKind::kList
                                          : JsonKind::kOther;
    WireWriter writer(annotation_);
    if (kind == JsonKind::kOther)
      writer.bytes(pftrace::kJson, json);
    else
      writer.integer(pftrace::kStringIid, kind == JsonKind::kList
                                              ? out_.list_iid(id)
                                              : out_.iid(pftrace::kAnnotationTexts, id));
  }
  static StringId text(std::uint64_t bits) { return StringId{static_cast<std::uint32_t>(bits)}; }

  const Trace& trace_;
  const WriteOptions& options_;
  PacketOutput out_;
  TrackWriter tracks_;
  FlowPlaces flows_;
  std::int64_t shift_;
  StringId tensors_;                    // kNone: no event has them
  std::vector<StringId> for_programs_;  // keys of arguments that Perfetto does not get
  std::uint64_t events_ = 0;
  std::vector<std::size_t> marks_;  // in order of time: mark_ns
  std::size_t next_mark_ = 0;
  enum class JsonKind : std::uint8_t { kUnknown, kNotJson, kList, kOther };
  std::vector<JsonKind> json_;  // by text
  std::string packet_, event_, annotation_, argument_;
  std::string own_;  // of the packet of an event
};

}  // namespace

Result<WriteStats> write_pftrace(const Trace& trace, const std::filesystem::path& path,
                                 const WriteOptions& options) {
  LANESCOPE_TRY(auto file, codec::create_file(path));
  LANESCOPE_TRY(WriteStats stats, PftraceWriter(trace, options, *file).write());
  LANESCOPE_TRY_VOID(file->finish());
  stats.file_bytes = file->written_bytes();
  return stats;
}

std::string pftrace_bytes(const Trace& trace) {
  std::string bytes;
  const auto sink = codec::string_sink(bytes);
  const auto written = PftraceWriter(trace, {}, *sink).write();
  (void)written;  // a string takes everything
  return bytes;
}

}  // namespace lanescope::format

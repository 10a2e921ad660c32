#include "lanescope/format/kineto_json/event_sink.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "lanescope/base/memory_watch.h"
#include "lanescope/codec/decimal.h"
#include "lanescope/codec/json_mend.h"
#include "lanescope/format/kineto_json/value_reader.h"

namespace lanescope::format {
namespace {

std::size_t room_for(std::size_t now, double times, double most) {
  return static_cast<std::size_t>(std::min(static_cast<double>(now) * times, most));
}

}  // namespace

void EventSink::add(const EventFields& event, IssueBits notes, ArgsId args, std::string_view text,
                    std::uint64_t offset) {
  ImportStats& stats = builder_.stats();
  // Metadata has no time. Keep the whole text of what is more than a name or an index.
  if (event.phase == 'M')
    notes &= ~(issue_bit(ImportIssue::kBadTime) | issue_bit(ImportIssue::kFieldLost));
  for (IssueBits left = notes; left != 0; left &= left - 1)
    stats.count(static_cast<ImportIssue>(std::countr_zero(left)), offset);
  // Writers that put a comma after each event end the array with {}: nothing is lost.
  if (!event.has_phase) {
    if (text.find(':') == std::string_view::npos) return drop(args);
    stats.count(ImportIssue::kMissingField, offset);
    return drop(args);
  }
  const bool is_profile = event.phase == 'P' && CpuProfiles::has_name(builder_.text(event.name));
  if (event.phase == '\0' || (!is_profile && !std::strchr("XBEiIRCstfbenSTFpM", event.phase))) {
    stats.count(ImportIssue::kUnknownPhase, offset);
    return drop(args);
  }
  if (event.phase == 'M') {
    add_metadata(event, args, text, offset);
    return drop(args);
  }
  if (!event.time_ns) {
    // An unusable time has already been counted.
    if (!(notes & issue_bit(ImportIssue::kBadTime)))
      stats.count(ImportIssue::kMissingField, offset);
    return drop(args);
  }
  if (is_profile) return add_profile(event, args, offset);
  add_timed(event, args, offset);
}

void EventSink::add_profile(const EventFields& event, ArgsId args_id, std::uint64_t offset) {
  const ArgsView args = builder_.args().view(args_id);
  std::string_view data = "{}";
  for (std::size_t i = 0; i < args.size(); ++i)
    if (args.field(i).type == ArgType::kJson && builder_.text(args.field(i).key) == "data")
      data = builder_.text(StringId{static_cast<std::uint32_t>(args.bits(args.field(i)))});
  if (!event.id)
    builder_.stats().count(ImportIssue::kMissingField, offset);
  else
    profiles_.add(builder_.text(event.name), event.pid.value_or(Scalar{}),
                  event.tid.value_or(Scalar{}), *event.id, *event.time_ns, data, offset);
  drop(args_id);
}

void EventSink::expect_in_all(double times, double most_rows) const {
  // Reading ended where 27 bytes of each slice were in memory, and did not end with 17. The first megabytes promise up to half as
  // many slices more than come, so this refuses below 17 to 26 (docs/measurements/index_file.md).
  constexpr std::size_t kInUseOfSlice_bytes = 17;
  expect_in_use(room_for(builder_.slices().size(), times, most_rows) * kInUseOfSlice_bytes);
}

// Memory that is not touched costs nothing, and growing step by step copies all rows twice.
void EventSink::expect(double times, double most_rows) {
  constexpr double kWordsOfRow = 8;
  const auto room = [times](std::size_t now, double most) { return room_for(now, times, most); };
  builder_.expect_slices(room(builder_.slices().size(), most_rows));
  chrome_.expect_flows(room(chrome_.flow_count(), most_rows));
  builder_.args().expect_words(room(builder_.args().word_count(), kWordsOfRow * most_rows));
}

void EventSink::drop(ArgsId args) {
  if (args != kNone<ArgsId>) builder_.args().cancel();
  builder_.skip_event();
}

void EventSink::add_timed(const EventFields& event, ArgsId args, std::uint64_t offset) {
  ImportStats& stats = builder_.stats();
  const char phase = event.phase;
  const std::int64_t time = *event.time_ns;
  const Scalar pid = event.pid.value_or(Scalar{}), tid = event.tid.value_or(Scalar{});
  const CategoryId category = event.category == kNone<StringId> && (phase == 'X')
                                  ? category_by_process(pid)
                                  : category_of(event.category);
  StringId name = event.name;
  if (name == kNone<StringId> && phase != 'E') {
    name = builder_.intern("");
    stats.count(ImportIssue::kMissingName, offset);
  }
  const auto track = [&] {
    return track_of(pid, tid,
                    is_on_stream(builder_.kind(category)) ? TrackUse::kStream : TrackUse::kThread);
  };
  const auto drop_without_id = [&] {
    stats.count(ImportIssue::kMissingField, offset);
    drop(args);
  };
  switch (phase) {
    case 'X':
      if (!event.dur_ns) stats.count(ImportIssue::kMissingDuration, offset);
      return builder_.add_slice(track(), category, name, time, event.dur_ns.value_or(0), args);
    case 'B':
      return chrome_.add_begin(track(), category, name, time, args);
    case 'E':  // whatever its category, it makes no new track
      return chrome_.add_end(track_of(pid, tid, TrackUse::kPoint), name, time, args);
    case 'i':
    case 'I':
    case 'R': {
      const std::string_view scope = builder_.text(event.scope);
      return builder_.add_instant(track(), category, name, time,
                                  scope == "p" || scope == "g" ? scope[0] : 't', args);
    }
    case 'C':
      add_counter(event, name, args, offset);
      return drop(args);
    case 's':
    case 't':
    case 'f':
      if (!event.id) return drop_without_id();
      if (args != kNone<ArgsId>) builder_.args().cancel();  // arrows carry no arguments
      return chrome_.add_flow(phase, track_of(pid, tid, TrackUse::kPoint), category, name,
                              *event.id, time, builder_.text(event.bind) == "e");
    default:
      if (!event.id) return drop_without_id();
      // A track is one category and id, and an empty category is none there.
      const std::string_view text = builder_.text(event.category);
      chrome_.add_async(phase, builder_.async_track(pid, text, *event.id),
                        text.empty() ? builder_.no_category() : category, name, time, args);
  }
}

void EventSink::add_counter(const EventFields& event, StringId event_name, ArgsId args_id,
                            std::uint64_t offset) {
  const ArgsView args = builder_.args().view(args_id);
  struct Sample {
    StringId series;
    double value;
  };
  std::vector<Sample> samples;
  bool lost = args.empty();
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ArgField& field = args.field(i);
    if (const auto value = args.number(&field)) {
      samples.push_back({field.key, *value});
    } else if (field.type == ArgType::kString) {
      const std::string_view text =
          builder_.text(StringId{static_cast<std::uint32_t>(args.bits(field))});
      if (codec::is_json_number(text))
        samples.push_back({field.key, parse_double(text)});
      else
        lost = true;
    } else {
      lost = true;
    }
  }
  if (lost) builder_.stats().count(ImportIssue::kFieldLost, offset);
  std::string name(builder_.text(event_name));
  if (event.id) {  // several counters of one name
    name.push_back('[');
    if (event.id->is_text)
      name.append(builder_.text(event.id->text));
    else
      name.append(std::to_string(event.id->number));
    name.push_back(']');
  }
  for (const Sample& sample : samples)
    builder_.add_counter(builder_.counter_track(event.pid.value_or(Scalar{}), name,
                                                std::string(builder_.text(sample.series))),
                         *event.time_ns, sample.value);
}

void EventSink::add_metadata(const EventFields& event, ArgsId args_id, std::string_view text,
                             std::uint64_t offset) {
  const std::string_view name = builder_.text(event.name);
  const Scalar pid = event.pid.value_or(Scalar{}), tid = event.tid.value_or(Scalar{});
  const ArgsView args = builder_.args().view(args_id);
  const ArgField* found = nullptr;
  const std::string_view wanted = name == "process_labels"        ? "labels"
                                  : name.ends_with("_sort_index") ? "sort_index"
                                                                  : "name";
  for (std::size_t i = 0; i < args.size(); ++i)
    if (builder_.text(args.field(i).key) == wanted) found = &args.field(i);
  if (found && (found->type == ArgType::kString || found->type == ArgType::kJson)) {
    const auto value = StringId{static_cast<std::uint32_t>(args.bits(*found))};
    if (name == "process_name") return builder_.set_process_name(pid, value);
    if (name == "process_labels") return builder_.set_process_labels(pid, value);
    if (name == "thread_name") return chrome_.set_thread_name(pid, tid, value);
  }
  if (const auto index = args.integer(found)) {
    if (name == "process_sort_index") return builder_.set_process_sort_index(pid, *index);
    if (name == "thread_sort_index") return chrome_.set_thread_sort_index(pid, tid, *index);
  }
  if (codec::is_strict_json(text)) return builder_.add_metadata_event(builder_.intern(text));
  std::string mended;
  if (codec::mend_json(text, true, mended).status == codec::MendStatus::kDone)
    builder_.add_metadata_event(builder_.intern(mended));
  else
    builder_.stats().count(ImportIssue::kMetadataLost, offset);
}

// torch.autograd.profiler before Kineto wrote no categories: processes named as follows held its rows.
CategoryId EventSink::category_by_process(const Scalar& pid) {
  if (!pid.is_text) return builder_.no_category();
  const std::string_view process = builder_.text(pid.text);
  if (process == "CPU functions") return builder_.category("cpu_op");
  if (process == "CUDA functions") return builder_.category("kernel");
  return builder_.no_category();
}

CategoryId EventSink::category_of(StringId text) {
  if (text == kNone<StringId>) return builder_.no_category();
  for (const auto& [known, category] : categories_)
    if (known == text) return category;
  const CategoryId category = builder_.category(builder_.text(text));
  if (categories_.size() < 64) categories_.emplace_back(text, category);
  return category;
}

TrackId EventSink::track_of(const Scalar& pid, const Scalar& tid, TrackUse use) {
  const auto mix = [](const Scalar& scalar) {
    return scalar.is_text ? raw(scalar.text) * 31u : static_cast<std::uint32_t>(scalar.number);
  };
  TrackEntry& entry =
      tracks_[(mix(pid) * 7u + mix(tid) * 3u + static_cast<unsigned>(use)) % tracks_.size()];
  if (!entry.used || entry.use != use || !(entry.pid == pid) || !(entry.tid == tid)) {
    entry.track = use == TrackUse::kPoint ? chrome_.point_track(pid, tid)
                                          : chrome_.track(pid, tid, use == TrackUse::kStream);
    entry.pid = pid;
    entry.tid = tid;
    entry.use = use;
    entry.used = true;
  }
  return entry.track;
}

}  // namespace lanescope::format

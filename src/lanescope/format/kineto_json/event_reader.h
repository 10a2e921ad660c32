// Trace events as JSON text become calls of TraceBuilder: the hot loop of reading.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/codec/json_index.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// Arguments under this prefix were fields of the event itself that lanescope has no column for:
// "event:finished".
inline constexpr std::string_view kOtherFieldPrefix = "event:";

// Fields of an event, in docs/formats/kineto_json.md. One thread; borrows the builder.
class EventReader {
 public:
  explicit EventReader(TraceBuilder& builder);

  enum class Stop : std::uint8_t {
    kEnd,       // all of the text was used
    kArrayEnd,  // the `]` behind the last event was met and used
    kRefused,   // text[used] starts an event that is not strict JSON; nothing of it was added
  };
  struct Outcome {
    Stop stop = Stop::kEnd;
    std::size_t used = 0;
    bool after_comma = false;  // the last token used was a comma
  };
  // Starts at a `{`: events with commas between them, the array's `]` and whatever follows it.
  // `offset` is text's place in the unpacked input, for counters. Each event is added when all of
  // it was understood, so reading can go on at text[used]. `text` is followed by
  // codec::kJsonPadding readable bytes.
  Outcome read_events(std::string_view text, std::uint64_t offset);

  // One event's strict JSON, as mended, that stood at `offset`. False: it is no event even so.
  bool read_mended(std::string& event, std::uint64_t offset);

 private:
  struct Event;
  struct Walk;
  struct Value {
    ArgType type = ArgType::kNull;
    std::uint64_t bits = 0;
    std::string_view raw;
  };
  enum class TrackUse : std::uint8_t { kThread, kStream, kFlow };
  struct KeyEntry {
    std::string text;
    StringId id = kNone<StringId>;
    ArgKey known = ArgKey::kCount;
    std::uint32_t next = 0;  // the entry that followed this one last time
  };
  struct TrackEntry {
    Scalar pid, tid;
    TrackUse use = TrackUse::kThread;
    bool used = false;
    TrackId track{};
  };

  // False: the text is not strict JSON (or not what the caller asked for); the event must be
  // dropped.
  bool read_event(Walk& walk, Event& event);
  bool read_field(Walk& walk, std::string_view key, Event& event);
  bool read_args(Walk& walk, Event& event);
  bool read_other(Walk& walk, std::string_view key, Event& event);
  bool read_text(Walk& walk, Event& event, StringId& text);
  bool read_phase(Walk& walk, Event& event);
  bool read_category(Walk& walk, Event& event);
  bool read_time(Walk& walk, Event& event, std::optional<std::int64_t>& time);
  bool read_scalar(Walk& walk, Event& event, std::optional<Scalar>& scalar);
  bool read_value(Walk& walk, Event& event, Value& value);
  static bool read_number(Value& value);

  void commit(Event& event, std::string_view text, std::uint64_t offset);
  void commit_counter(const Event& event, const Scalar& pid, std::int64_t time, ArgsId args,
                      std::uint64_t offset);
  void commit_metadata(const Event& event, ArgsId args, std::string_view text,
                       std::uint64_t offset);

  StringId intern_string(std::string_view raw, bool& ok);
  StringId intern_json(std::string_view text, bool& strict);
  const KeyEntry& arg_key_entry(std::string_view key);
  CategoryId category_of(StringId text);
  TrackId track_of(const Scalar& pid, const Scalar& tid, TrackUse use);

  TraceBuilder& builder_;
  codec::JsonIndex index_;
  bool escapes_ = true;  // the text at hand holds a backslash
  std::string scratch_;
  std::vector<KeyEntry> keys_;  // [0] stands before the first key of every event
  std::uint32_t key_at_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> key_by_text_;
  std::vector<bool> strict_;  // by StringId: nested JSON that was checked
  std::array<TrackEntry, 64> tracks_;
  std::vector<std::pair<StringId, CategoryId>> categories_;
  StringId last_category_ = kNone<StringId>;
};

}  // namespace lanescope::format

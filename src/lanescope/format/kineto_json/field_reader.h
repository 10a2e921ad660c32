// Reads the fields of one trace event token by token, in any order. For events whose pattern is not known.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lanescope/format/kineto_json/event_patterns.h"
#include "lanescope/format/kineto_json/event_sink.h"
#include "lanescope/format/kineto_json/json_walk.h"
#include "lanescope/format/kineto_json/value_reader.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// Prefix of arguments that were fields of the event itself, without a column in
// lanescope: "event:finished".
inline constexpr std::string_view kOtherFieldPrefix = "event:";

struct ReadEvent : EventFields {
  struct Other {  // a field without a column
    StringId key;
    ArgType type;
    std::uint64_t bits;
  };
  bool args_open = false;  // its arguments are in the builder's ArgsBuilder, which waits for more
  IssueBits notes = 0;
  std::vector<Other> others;

  void note(ImportIssue issue) { notes |= issue_bit(issue); }
};

// One thread. Borrows the builder and the reader of values.
class FieldReader {
 public:
  FieldReader(TraceBuilder& builder, ValueReader& values) : builder_(builder), values_(values) {
    keys_.emplace_back();
  }

  // The event whose `{` is at the walk. `drafts`: also notes where its values are; `tokens` are those of the whole text. False:
  // not strict JSON, or not an event; drop it.
  bool read(JsonWalk& walk, ReadEvent& event, bool drafts, const std::uint32_t* tokens);
  // The draft of the event read last, if one was wanted. Its phase, category, scope and bind are not set.
  EventDraft& draft() { return draft_; }

 private:
  struct KeyEntry {
    std::string text;
    StringId id = kNone<StringId>;
    ArgKey known = ArgKey::kCount;
    std::uint32_t next = 0;  // the entry that followed this one last time
  };

  // All return false as read() does.
  bool read_fields(JsonWalk& walk, ReadEvent& event);
  bool read_field(JsonWalk& walk, std::string_view key, ReadEvent& event);
  bool read_args(JsonWalk& walk, ReadEvent& event);
  bool read_other(JsonWalk& walk, std::string_view key, ReadEvent& event);
  bool read_value(JsonWalk& walk, ReadEvent& event, ArgValue& value);
  bool read_text(JsonWalk& walk, ReadEvent& event, StringId& text);
  bool read_phase(JsonWalk& walk, ReadEvent& event);
  bool read_time(JsonWalk& walk, ReadEvent& event, std::optional<std::int64_t>& time);
  bool read_scalar(JsonWalk& walk, ReadEvent& event, std::optional<Scalar>& scalar,
                   bool may_be_object = false);
  const KeyEntry& arg_key_entry(std::string_view key);

  // Notes where a value of the drafted event is; the walk is just after it.
  void draft_value(ValueSlot slot, const JsonWalk& walk, const std::uint32_t* from,
                   const KeyEntry* key = nullptr);

  TraceBuilder& builder_;
  ValueReader& values_;
  EventDraft draft_;
  bool drafting_ = false;
  const std::uint32_t* tokens_ = nullptr;
  std::string scratch_;
  std::vector<KeyEntry> keys_;  // [0]: before the first key of every event
  std::uint32_t key_at_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> key_by_text_;
};

}  // namespace lanescope::format

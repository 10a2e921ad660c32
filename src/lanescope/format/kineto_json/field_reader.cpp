// A key decides how its value is read; the size of the key finds it quickly. Numbers, texts and times that are of the wrong type
// are read where that is possible, and noted.
#include "lanescope/format/kineto_json/field_reader.h"

#include "lanescope/base/json_escape.h"
#include "lanescope/codec/decimal.h"

namespace lanescope::format {

bool FieldReader::read(JsonWalk& walk, ReadEvent& event, bool drafts, const std::uint32_t* tokens) {
  drafting_ = drafts;
  tokens_ = tokens;
  if (drafting_) draft_.reset();
  if (read_fields(walk, event)) return true;
  if (event.args_open) builder_.args().cancel();
  return false;
}

bool FieldReader::read_fields(JsonWalk& walk, ReadEvent& event) {
  if (!walk.take('{')) return false;
  if (walk.take('}')) return true;
  do {
    std::string_view key;
    if (!walk.take_string(key) || !walk.take(':') || walk.ended()) return false;
    if (has_escape(key)) {
      draft_.usable = false;
      std::string plain;
      if (!unescape_json(key, plain) || !read_field(walk, plain, event)) return false;
    } else if (!read_field(walk, key, event)) {
      return false;
    }
  } while (walk.take(','));
  return walk.take('}');
}

bool FieldReader::read_field(JsonWalk& walk, std::string_view key, ReadEvent& event) {
  const std::uint32_t* const from = walk.at;
  const auto value = [&](ValueSlot slot, bool read) {
    if (read && drafting_) draft_value(slot, walk, from);
    return read;
  };
  switch (key.size()) {
    case 1:
      if (key == "s" && walk.peek() == '"') return read_text(walk, event, event.scope);
      break;
    case 2:
      if (key == "ph") return read_phase(walk, event);
      if (key == "ts") return value(ValueSlot::kTime, read_time(walk, event, event.time_ns));
      if (key == "id") return value(ValueSlot::kId, read_scalar(walk, event, event.id));
      if (key == "bp") return read_text(walk, event, event.bind);
      break;
    case 3:
      if (key == "cat") return read_text(walk, event, event.category);
      if (key == "pid") return value(ValueSlot::kPid, read_scalar(walk, event, event.pid));
      if (key == "tid") return value(ValueSlot::kTid, read_scalar(walk, event, event.tid));
      if (key == "dur") return value(ValueSlot::kDuration, read_time(walk, event, event.dur_ns));
      if (key == "id2")  // Chrome writes {"local": "0x1"}
        return value(ValueSlot::kId, read_scalar(walk, event, event.id, true));
      break;
    case 4:
      if (key == "name") return value(ValueSlot::kName, read_text(walk, event, event.name));
      if (key == "args" && walk.peek() == '{') return read_args(walk, event);
      break;
    default:
      break;
  }
  return read_other(walk, key, event);
}

bool FieldReader::read_value(JsonWalk& walk, ReadEvent& event, ArgValue& value) {
  bool odd = false;
  if (!values_.read(walk, value, odd)) return false;
  if (odd) event.note(ImportIssue::kNotANumber);
  return true;
}

bool FieldReader::read_text(JsonWalk& walk, ReadEvent& event, StringId& text) {
  ArgValue value;
  if (!read_value(walk, event, value)) return false;
  if (value.type == ArgType::kString) {
    text = StringId{static_cast<std::uint32_t>(value.bits)};
  } else if (value.type != ArgType::kNull) {
    draft_.usable = false;  // a pattern would not count it again
    event.note(ImportIssue::kWrongType);
    text = builder_.intern(value.raw);
  }
  return true;
}

bool FieldReader::read_phase(JsonWalk& walk, ReadEvent& event) {
  std::string_view raw;
  if (walk.peek() == '"') {
    if (!walk.take_string(raw)) return false;
    if (raw.size() == 1 && raw[0] != '\\') {
      event.phase = raw[0];
    } else {  // an escaped letter, or no phase at all
      if (!unescape_json(raw, scratch_)) return false;
      event.phase = scratch_.size() == 1 ? scratch_[0] : '?';
    }
    event.has_phase = true;
    return true;
  }
  StringId text = kNone<StringId>;
  if (!read_text(walk, event, text)) return false;
  event.phase = '?';
  event.has_phase = text != kNone<StringId>;
  return true;
}

bool FieldReader::read_time(JsonWalk& walk, ReadEvent& event, std::optional<std::int64_t>& time) {
  ArgValue value;
  std::int64_t ns = 0;
  if (walk.peek() == '"') {  // Ascend and Chrome's own tools write some times as texts
    if (!walk.take_string(value.raw)) return false;
    event.note(ImportIssue::kWrongType);
  } else {
    const std::uint32_t* const before = walk.at;
    if (walk.ended()) return false;
    if (parse_plain_time(walk.take_token(), ns) && is_possible_time(ns)) {
      time = ns;
      return true;
    }
    walk.at = before;
    if (!read_value(walk, event, value)) return false;
    if (value.type == ArgType::kNull) return true;
  }
  const codec::Decimal decimal = codec::parse_decimal(value.raw, 3);
  if (decimal.status == codec::DecimalStatus::kNotANumber) {
    event.note(value.type == ArgType::kDouble ? ImportIssue::kBadTime : ImportIssue::kWrongType);
  } else if (decimal.status == codec::DecimalStatus::kOutOfRange ||
             !is_possible_time(decimal.value)) {
    event.note(ImportIssue::kBadTime);
  } else {
    if (decimal.cut) event.note(ImportIssue::kSubNanosecond);
    time = decimal.value;
  }
  return true;
}

bool FieldReader::read_scalar(JsonWalk& walk, ReadEvent& event, std::optional<Scalar>& scalar,
                              bool may_be_object) {
  ArgValue value;
  if (!read_value(walk, event, value)) return false;
  Scalar result;
  switch (value.type) {
    case ArgType::kNull:
      return true;
    case ArgType::kInt32:
    case ArgType::kInt64:
      result.number = static_cast<std::int64_t>(value.bits);
      break;
    case ArgType::kString:
      result.is_text = true;
      result.text = StringId{static_cast<std::uint32_t>(value.bits)};
      break;
    default: {
      const codec::Decimal whole = codec::parse_decimal(value.raw, 0);
      if (whole.status == codec::DecimalStatus::kOk && !whole.cut) {  // 7.0
        result.number = whole.value;
      } else {
        if (!may_be_object || value.type != ArgType::kJson) event.note(ImportIssue::kWrongType);
        result.is_text = true;
        result.text = builder_.intern(value.raw);
      }
    }
  }
  scalar = result;
  return true;
}

// Keeps a field without a column as an argument "event:<key>".
bool FieldReader::read_other(JsonWalk& walk, std::string_view key, ReadEvent& event) {
  ArgValue value;
  if (!read_value(walk, event, value)) return false;
  if (value.type == ArgType::kNull && key == "args") return true;
  scratch_.assign(kOtherFieldPrefix).append(key);
  event.others.push_back({builder_.intern(scratch_), value.type, value.bits});
  return true;
}

bool FieldReader::read_args(JsonWalk& walk, ReadEvent& event) {
  ArgsBuilder& args = builder_.args();
  if (event.args_open) {  // if there are two "args", the last one counts
    args.cancel();
    draft_.usable = false;
  }
  args.begin();
  event.args_open = true;
  ++walk.at;
  if (walk.take('}')) return true;
  key_at_ = 0;
  do {
    std::string_view key;
    if (!walk.take_string(key) || !walk.take(':')) return false;
    const KeyEntry* entry = nullptr;
    if (has_escape(key)) {
      draft_.usable = false;
      std::string plain;
      if (!unescape_json(key, plain)) return false;
      entry = &arg_key_entry(plain);
    } else {
      entry = &arg_key_entry(key);
    }
    ArgValue value;
    const std::uint32_t* const from = walk.at;
    if (!read_value(walk, event, value)) return false;
    if (drafting_) draft_value(ValueSlot::kArg, walk, from, entry);
    args.add(entry->id, entry->known, value.type, value.bits);
  } while (walk.take(','));
  return walk.take('}');
}

const FieldReader::KeyEntry& FieldReader::arg_key_entry(std::string_view key) {
  const std::uint32_t guess = keys_[key_at_].next;
  if (guess != 0 && keys_[guess].text == key) {
    key_at_ = guess;
    return keys_[guess];
  }
  const StringId id = builder_.intern(key);
  const auto [it, added] =
      key_by_text_.try_emplace(raw(id), static_cast<std::uint32_t>(keys_.size()));
  if (added) keys_.push_back({std::string(key), id, arg_key(key), 0});
  keys_[key_at_].next = it->second;
  key_at_ = it->second;
  return keys_[key_at_];
}

void FieldReader::draft_value(ValueSlot slot, const JsonWalk& walk, const std::uint32_t* from,
                              const KeyEntry* key) {
  std::uint32_t end = *walk.at;
  while (end > *from && JsonWalk::is_blank(walk.text[end - 1])) --end;
  draft_.values.push_back({slot, key ? key->known : ArgKey::kCount, key ? key->id : kNone<StringId>,
                           *from, end, static_cast<std::uint32_t>(from - tokens_),
                           static_cast<std::uint32_t>(walk.at - tokens_)});
}

}  // namespace lanescope::format

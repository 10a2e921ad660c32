// Problem: hundreds of thousands of events, each 250 bytes of JSON with a dozen fields in any
// order. Idea: simdjson finds where tokens start. An event with a known pattern (event_patterns.h)
// is read value by value; another one is read token by token, and learned. Text that is not strict
// JSON is refused before any part of the event is added; the slow path then repairs it and comes
// back here. Cost: about one pass over the text.
#include "lanescope/format/kineto_json/event_reader.h"

#include "lanescope/base/json_escape.h"
#include "lanescope/codec/decimal.h"

namespace lanescope::format {
namespace {

std::optional<Scalar>& scalar_of(ValueSlot slot, EventFields& event) {
  return slot == ValueSlot::kPid ? event.pid : slot == ValueSlot::kTid ? event.tid : event.id;
}

}  // namespace

struct EventReader::Event : EventFields {
  struct Other {
    StringId key;
    ArgType type;
    std::uint64_t bits;
  };
  bool args_open = false;
  IssueBits notes = 0;
  std::vector<Other> others;

  void note(ImportIssue issue) { notes |= issue_bit(issue); }
};

EventReader::EventReader(TraceBuilder& builder, EventSink& sink) : EventReader(builder) {
  sink_ = &sink;
}

EventReader::EventReader(TraceBuilder& texts) : builder_(texts), values_(texts) {
  keys_.emplace_back();
}

EventReader::Outcome EventReader::read_events(std::string_view text, std::uint64_t offset) {
  if (!index_.build(text.data(), text.size())) return {Stop::kRefused, 0, false};
  tokens_ = index_.tokens().data();
  JsonWalk walk(text, index_.tokens());
  bool after_comma = false;
  while (walk.peek() == '{') {
    const std::uint32_t begin = *walk.at;
    if (!read_known(walk, text, offset) && !read_unknown(walk, text, offset))
      return {Stop::kRefused, begin, after_comma};
    after_comma = walk.take(',');
    if (walk.ended()) return {Stop::kEnd, text.size(), after_comma};
    if (!after_comma) {
      const std::uint32_t next = *walk.at;
      if (walk.take(']')) return {Stop::kArrayEnd, next + 1, false};
      return {Stop::kRefused, next, false};
    }
  }
  return {Stop::kRefused, *walk.at, after_comma};
}

bool EventReader::read_mended(std::string& event, std::uint64_t offset) {
  const std::size_t size = event.size();
  event.resize(size + codec::kJsonPadding);
  const Outcome outcome = read_events(std::string_view(event).substr(0, size), offset);
  return outcome.stop == Stop::kEnd && !outcome.after_comma;
}

// Equal pieces of text have equal tokens, so read only what is between them. Interns texts in the
// order of the file, like read_event(), so giving up changes nothing.
bool EventReader::read_known(JsonWalk& walk, std::string_view text, std::uint64_t offset) {
  JsonWalk ahead = walk;
  const std::uint32_t begin = *walk.at;
  const char* at = text.data() + begin;
  const char* const end = text.data() + text.size();
  EventFields event;
  known_.reset();
  std::uint32_t index = EventPatterns::kRoot;
  for (;;) {
    index = patterns_.find(index, at, static_cast<std::size_t>(end - at));
    if (index == EventPatterns::kRoot) return false;
    const EventPatterns::Edge& edge = patterns_.edge(index);
    ahead.at += edge.tokens;
    at += edge.size;
    if (edge.slot == ValueSlot::kEnd) break;
    if (ahead.ended()) return false;
    at = ahead.text + *ahead.at;  // only blanks can come before it
    if (edge.slot == ValueSlot::kArg) known_.edges[known_.count] = index;
    const std::size_t size = ahead.at[1] - ahead.at[0];
    std::uint64_t whole = 0;
    if (edge.slot >= ValueSlot::kPid && size <= 8 && codec::parse_digits(at, size, whole) &&
        (*at != '0' || size == 1)) {  // most values: integers of a few digits and nothing more
      if (edge.slot == ValueSlot::kArg)
        known_.add(ArgType::kInt32, whole);
      else
        scalar_of(edge.slot, event) =
            Scalar{false, static_cast<std::int64_t>(whole), kNone<StringId>};
      ++ahead.at;
      at += size;
    } else if (!read_slot(ahead, edge.slot, event, at)) {
      return false;
    }
  }
  EventPatterns::Pattern& pattern = patterns_.finish(index);
  event.has_phase = true;
  event.phase = pattern.phase;
  event.category = pattern.category;
  event.scope = pattern.scope;
  event.bind = pattern.bind;
  walk = ahead;
  const auto size = static_cast<std::size_t>(at - text.data()) - begin;
  add_known(pattern, event, text.substr(begin, size), offset + begin, begin);
  return true;
}

// `text` is the event's, at `begin` of the piece and at `offset` of all.
void EventReader::add_known(EventPatterns::Pattern& pattern, const EventFields& event,
                            std::string_view text, std::uint64_t offset, std::uint32_t begin) {
  if (sink_) return sink_->add(event, known_.notes, add_known_args(pattern), text, offset);
  const auto size = static_cast<std::uint32_t>(text.size());
  if (known_.count > 0 && !(pattern.has_shape && pattern.types == known_.types))
    return put_into_batch(event, known_.notes, add_known_args(pattern), begin, size);
  batch_->add(event, known_.notes, known_.count > 0 ? pattern.shape : EventBatch::kNoShape,
              {known_.words.data(), known_.word_count}, begin, size);
}

// Takes the arguments out of the builder again: only their shape stays there.
void EventReader::put_into_batch(const EventFields& event, IssueBits notes, ArgsId args,
                                 std::uint32_t begin, std::uint32_t size) {
  if (args == kNone<ArgsId>)
    return batch_->add(event, notes, EventBatch::kNoShape, {}, begin, size);
  const ArgsView view = builder_.args().view(args);
  const std::uint32_t shape = builder_.args().kind(args);
  if (builder_.args().kind_count() > shapes_in_batches_) {
    batch_->learn_shape(view);
    ++shapes_in_batches_;
  }
  words_.clear();
  for (std::size_t i = 0; i < view.size(); ++i) {
    const std::uint64_t bits = view.bits(view.field(i));
    const std::uint32_t count = arg_words(view.field(i).type);
    if (count >= 1) words_.push_back(static_cast<std::uint32_t>(bits));
    if (count == 2) words_.push_back(static_cast<std::uint32_t>(bits >> 32));
  }
  builder_.args().cancel();
  batch_->add(event, notes, shape, words_, begin, size);
}

// `end`: after the value. Handles only simple values.
bool EventReader::read_slot(JsonWalk& walk, ValueSlot slot, EventFields& event, const char*& end) {
  if (slot == ValueSlot::kTime || slot == ValueSlot::kDuration) {
    std::int64_t ns = 0;
    std::string_view token;
    const bool quoted = walk.peek() == '"';  // counted, as in read_time()
    if (quoted && !walk.take_string(token)) return false;
    if (!quoted) token = walk.take_token();
    if (!parse_plain_time(token, ns) || !is_possible_time(ns)) return false;
    if (quoted) known_.notes |= issue_bit(ImportIssue::kWrongType);
    end = token.data() + token.size() + quoted;
    (slot == ValueSlot::kTime ? event.time_ns : event.dur_ns) = ns;
    return true;
  }
  bool odd = false;
  ArgValue value;
  if (!values_.read(walk, value, odd) || odd) return false;
  end = value.raw.data() + value.raw.size() + (value.type == ArgType::kString);
  const StringId text{static_cast<std::uint32_t>(value.bits)};
  if (slot == ValueSlot::kArg) {
    known_.add(value.type, value.bits);
  } else if (slot == ValueSlot::kName) {
    if (value.type != ArgType::kString) return false;
    event.name = text;
  } else if (value.type == ArgType::kString) {
    scalar_of(slot, event) = Scalar{true, 0, text};
  } else if (value.type == ArgType::kInt32 || value.type == ArgType::kInt64) {
    scalar_of(slot, event) = Scalar{false, static_cast<std::int64_t>(value.bits), kNone<StringId>};
  } else {
    return false;
  }
  return true;
}

ArgsId EventReader::add_known_args(EventPatterns::Pattern& pattern) {
  if (known_.count == 0) return kNone<ArgsId>;
  ArgsBuilder& args = builder_.args();
  if (pattern.has_shape && pattern.types == known_.types)
    return args.add_event(pattern.shape, {known_.words.data(), known_.word_count});
  args.begin();
  const std::uint32_t* word = known_.words.data();
  for (std::size_t i = 0; i < known_.count; ++i) {
    const EventPatterns::Edge& edge = patterns_.edge(known_.edges[i]);
    const ArgType type = known_.type(i);
    const std::uint32_t words = arg_words(type);
    std::uint64_t bits = words >= 1 ? word[0] : 0;
    if (words == 2) bits |= static_cast<std::uint64_t>(word[1]) << 32;
    args.add(edge.key, edge.known, type, bits);
    word += words;
  }
  const ArgsId id = args.end();
  pattern.types = known_.types;
  pattern.shape = args.kind(id);
  pattern.has_shape = true;
  return id;
}

bool EventReader::read_unknown(JsonWalk& walk, std::string_view text, std::uint64_t offset) {
  const std::uint32_t* const first = walk.at;
  const std::uint32_t begin = *first;
  drafting_ = patterns_.wants_draft();
  if (drafting_) draft_.reset();
  Event event;
  if (!read_event(walk, event)) {
    if (event.args_open) builder_.args().cancel();
    return false;
  }
  const std::uint32_t end = walk.at[-1] + 1;
  commit(event, text.substr(begin, end - begin), offset + begin, begin);
  if (drafting_ && event.has_phase && (event.notes & ~issue_bit(ImportIssue::kWrongType)) == 0 &&
      event.others.empty()) {
    draft_.phase = event.phase;
    draft_.category = event.category;
    draft_.scope = event.scope;
    draft_.bind = event.bind;
    patterns_.learn(draft_, text, begin, end, static_cast<std::uint32_t>(first - tokens_),
                    static_cast<std::uint32_t>(walk.at - tokens_));
  }
  return true;
}

bool EventReader::read_event(JsonWalk& walk, Event& event) {
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

bool EventReader::read_field(JsonWalk& walk, std::string_view key, Event& event) {
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
      if (key == "id2") return value(ValueSlot::kId, read_scalar(walk, event, event.id));
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

bool EventReader::read_value(JsonWalk& walk, Event& event, ArgValue& value) {
  bool odd = false;
  if (!values_.read(walk, value, odd)) return false;
  if (odd) event.note(ImportIssue::kNotANumber);
  return true;
}

bool EventReader::read_text(JsonWalk& walk, Event& event, StringId& text) {
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

bool EventReader::read_phase(JsonWalk& walk, Event& event) {
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

bool EventReader::read_time(JsonWalk& walk, Event& event, std::optional<std::int64_t>& time) {
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

bool EventReader::read_scalar(JsonWalk& walk, Event& event, std::optional<Scalar>& scalar) {
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
        event.note(ImportIssue::kWrongType);
        result.is_text = true;
        result.text = builder_.intern(value.raw);
      }
    }
  }
  scalar = result;
  return true;
}

// Keeps a field without a column as an argument "event:<key>".
bool EventReader::read_other(JsonWalk& walk, std::string_view key, Event& event) {
  ArgValue value;
  if (!read_value(walk, event, value)) return false;
  if (value.type == ArgType::kNull && key == "args") return true;
  scratch_.assign(kOtherFieldPrefix).append(key);
  event.others.push_back({builder_.intern(scratch_), value.type, value.bits});
  return true;
}

bool EventReader::read_args(JsonWalk& walk, Event& event) {
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

const EventReader::KeyEntry& EventReader::arg_key_entry(std::string_view key) {
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

void EventReader::draft_value(ValueSlot slot, const JsonWalk& walk, const std::uint32_t* from,
                              const KeyEntry* key) {
  std::uint32_t end = *walk.at;
  while (end > *from && JsonWalk::is_blank(walk.text[end - 1])) --end;
  draft_.values.push_back({slot, key ? key->known : ArgKey::kCount, key ? key->id : kNone<StringId>,
                           *from, end, static_cast<std::uint32_t>(from - tokens_),
                           static_cast<std::uint32_t>(walk.at - tokens_)});
}

void EventReader::commit(Event& event, std::string_view text, std::uint64_t offset,
                         std::uint32_t begin) {
  ArgsBuilder& args = builder_.args();
  if (!event.others.empty() && !event.args_open) {
    args.begin();
    event.args_open = true;
  }
  for (const Event::Other& other : event.others)
    args.add(other.key, ArgKey::kCount, other.type, other.bits);
  bool overflowed = false;
  const ArgsId args_id = event.args_open ? args.end(&overflowed) : kNone<ArgsId>;
  if (overflowed) event.note(ImportIssue::kFieldLost);
  if (sink_) return sink_->add(event, event.notes, args_id, text, offset);
  put_into_batch(event, event.notes, args_id, begin, static_cast<std::uint32_t>(text.size()));
}

}  // namespace lanescope::format

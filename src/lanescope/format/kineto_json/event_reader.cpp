// Problem: 250 bytes of JSON an event, a dozen fields in any order, hundreds of thousands of
// events. Idea: simdjson finds where tokens start; one walk over those positions picks the fields
// up without copying, and predicts each argument's key from the one before it, because writers
// repeat themselves. Whatever is not strict JSON is refused before anything of the event was added;
// the careful path then mends its text and comes back here. Cost: about one pass over the text.
#include "lanescope/format/kineto_json/event_reader.h"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "lanescope/codec/decimal.h"
#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"

namespace lanescope::format {
namespace {

// 73 years either way: far beyond any clock since 1970, and starts, ends and their differences then
// fit 64 bits.
constexpr std::int64_t kMaxTimeNs = std::int64_t{1} << 61;
bool is_possible_time(std::int64_t ns) { return ns >= -kMaxTimeNs && ns <= kMaxTimeNs; }

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Microseconds with up to three decimals, which is how nearly all times are written. False: see the
// general parser.
bool parse_plain_time(std::string_view token, std::int64_t& ns) {
  if (token.size() > 18) return false;
  std::int64_t value = 0;
  std::size_t at = 0;
  for (; at < token.size() && token[at] >= '0' && token[at] <= '9'; ++at)
    value = value * 10 + (token[at] - '0');
  if (at == 0 || at > 14) return false;
  int decimals = 0;
  if (at < token.size()) {
    if (token[at] != '.') return false;
    for (++at; at < token.size(); ++at, ++decimals) {
      if (token[at] < '0' || token[at] > '9' || decimals == 3) return false;
      value = value * 10 + (token[at] - '0');
    }
    if (decimals == 0) return false;
  }
  for (; decimals < 3; ++decimals) value *= 10;
  ns = value;
  return true;
}

// NaN and the infinities as C++, Python and JavaScript print them. Empty: the token is none of
// them.
std::optional<double> not_a_number(std::string_view token) {
  std::string_view bare = token;
  const bool negative = !bare.empty() && bare[0] == '-';
  if (negative) bare.remove_prefix(1);
  if (bare == "nan" || bare == "NaN" || bare == "NAN")
    return std::numeric_limits<double>::quiet_NaN();
  if (bare == "inf" || bare == "Infinity" || bare == "Inf" || bare == "INF")
    return negative ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::infinity();
  return std::nullopt;
}

double parse_double(std::string_view token) {
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error == std::errc()) return value;
  return std::strtod(std::string(token).c_str(), nullptr);  // 1e400 is infinite, 1e-400 is zero
}

void set_integer(auto& value, std::int64_t whole) {
  value.type = whole >= INT32_MIN && whole <= INT32_MAX ? ArgType::kInt32 : ArgType::kInt64;
  value.bits = static_cast<std::uint64_t>(whole);
}

constexpr std::uint32_t bit(ImportIssue issue) { return 1u << static_cast<unsigned>(issue); }
static_assert(kImportIssueCount <= 32);

}  // namespace

// The tokens of a text, front to back.
struct EventReader::Walk {
  const char* text;
  const std::uint32_t* at;
  const std::uint32_t* last;  // *last is the size of the text

  bool ended() const { return at >= last; }
  char peek() const { return at < last ? text[*at] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at;
    return true;
  }
  // The token here, without blanks behind it, and on to the next one.
  std::string_view take_token() {
    const char* begin = text + at[0];
    const char* end = text + at[1];
    while (end > begin && is_blank(end[-1])) --end;
    ++at;
    return {begin, static_cast<std::size_t>(end - begin)};
  }
  // What stands between the quotes.
  bool take_string(std::string_view& raw) {
    if (peek() != '"') return false;
    raw = take_token();
    if (raw.size() < 2 || raw.back() != '"') return false;
    raw = raw.substr(1, raw.size() - 2);
    return true;
  }
  // A list or an object, brackets counted, content not looked at.
  bool take_nested(std::string_view& raw) {
    const std::uint32_t begin = *at;
    int depth = 0;
    while (!ended()) {
      const char c = text[*at++];
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) {
        raw = {text + begin, at[-1] + 1 - begin};
        return true;
      }
    }
    return false;
  }
};

struct EventReader::Event {
  struct Other {
    StringId key;
    ArgType type;
    std::uint64_t bits;
  };
  char phase = '\0';  // '?': none that a reader could know
  bool has_phase = false;
  StringId name = kNone<StringId>, category = kNone<StringId>;
  std::optional<std::int64_t> time_ns, dur_ns;
  std::optional<Scalar> pid, tid, id;
  StringId scope = kNone<StringId>, bind = kNone<StringId>;
  bool args_open = false;
  std::uint32_t notes = 0;  // one bit an ImportIssue
  std::vector<Other> others;

  void note(ImportIssue issue) { notes |= bit(issue); }
};

EventReader::EventReader(TraceBuilder& builder) : builder_(builder) { keys_.emplace_back(); }

EventReader::Outcome EventReader::read_events(std::string_view text, std::uint64_t offset) {
  escapes_ = std::memchr(text.data(), '\\', text.size()) != nullptr;
  if (!index_.build(text.data(), text.size())) return {Stop::kRefused, 0, false};
  const auto tokens = index_.tokens();
  Walk walk{text.data(), tokens.data(), tokens.data() + tokens.size() - 1};
  bool after_comma = false;
  while (walk.peek() == '{') {
    const std::uint32_t begin = *walk.at;
    Event event;
    if (!read_event(walk, event)) {
      if (event.args_open) builder_.args().cancel();
      return {Stop::kRefused, begin, after_comma};
    }
    commit(event, text.substr(begin, walk.at[-1] + 1 - begin), offset + begin);
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

bool EventReader::read_event(Walk& walk, Event& event) {
  if (!walk.take('{')) return false;
  if (walk.take('}')) return true;
  do {
    std::string_view key;
    if (!walk.take_string(key) || !walk.take(':') || walk.ended()) return false;
    if (escapes_ && key.find('\\') != std::string_view::npos) {
      std::string plain;
      if (!codec::unescape_json(key, plain) || !read_field(walk, plain, event)) return false;
    } else if (!read_field(walk, key, event)) {
      return false;
    }
  } while (walk.take(','));
  return walk.take('}');
}

bool EventReader::read_field(Walk& walk, std::string_view key, Event& event) {
  switch (key.size()) {
    case 1:
      if (key == "s" && walk.peek() == '"') return read_text(walk, event, event.scope);
      break;
    case 2:
      if (key == "ph") return read_phase(walk, event);
      if (key == "ts") return read_time(walk, event, event.time_ns);
      if (key == "id") return read_scalar(walk, event, event.id);
      if (key == "bp") return read_text(walk, event, event.bind);
      break;
    case 3:
      if (key == "cat") return read_category(walk, event);
      if (key == "pid") return read_scalar(walk, event, event.pid);
      if (key == "tid") return read_scalar(walk, event, event.tid);
      if (key == "dur") return read_time(walk, event, event.dur_ns);
      if (key == "id2") return read_scalar(walk, event, event.id);
      break;
    case 4:
      if (key == "name") return read_text(walk, event, event.name);
      if (key == "args" && walk.peek() == '{') return read_args(walk, event);
      break;
    default:
      break;
  }
  return read_other(walk, key, event);
}

// Any value: its type, its bits as ArgsTable takes them, and its text (of a string: what stands
// between the quotes).
bool EventReader::read_value(Walk& walk, Event& event, Value& value) {
  const char first = walk.peek();
  if (first == '"') {
    value.type = ArgType::kString;
    if (!walk.take_string(value.raw)) return false;
    bool ok = true;
    value.bits = raw(intern_string(value.raw, ok));
    return ok;
  }
  if (first == '{' || first == '[') {
    value.type = ArgType::kJson;
    if (!walk.take_nested(value.raw)) return false;
    bool strict = true;
    value.bits = raw(intern_json(value.raw, strict));
    return strict;
  }
  if (walk.ended()) return false;
  value.raw = walk.take_token();
  if (first == '-' || (first >= '0' && first <= '9')) {
    if (read_number(value)) return true;
  } else if (value.raw == "null") {
    value.type = ArgType::kNull;
    return true;
  } else if (value.raw == "true" || value.raw == "false") {
    value.type = first == 't' ? ArgType::kTrue : ArgType::kFalse;
    return true;
  }
  const std::optional<double> odd = not_a_number(value.raw);
  if (!odd) return false;
  event.note(ImportIssue::kNotANumber);
  value.type =
      *odd != *odd ? ArgType::kNull : ArgType::kDouble;  // JSON has no NaN; 1e999 is infinite
  if (value.type == ArgType::kDouble) value.bits = std::bit_cast<std::uint64_t>(*odd);
  return true;
}

bool EventReader::read_number(Value& value) {
  const std::string_view text = value.raw;
  if (text.size() <= 18) {  // fits without a check
    const bool negative = text[0] == '-';
    std::int64_t whole = 0;
    std::size_t at = negative ? 1 : 0;
    const std::size_t digits = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      whole = whole * 10 + (text[at] - '0');
    const bool plain =
        at == text.size() && at > digits && (text[digits] != '0' || at == digits + 1);
    if (plain && (whole != 0 || !negative)) {
      set_integer(value, negative ? -whole : whole);
      return true;
    }
  }
  if (!codec::is_json_number(text)) return false;
  if (text.find_first_of(".eE") == std::string_view::npos && text != "-0") {
    std::int64_t whole = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), end, whole).ec == std::errc()) {
      set_integer(value, whole);
      return true;
    }
    std::uint64_t big = 0;
    if (text[0] != '-' && std::from_chars(text.data(), end, big).ec == std::errc()) {
      value.type = ArgType::kUint64;
      value.bits = big;
      return true;
    }
  }
  value.type = ArgType::kDouble;
  value.bits = std::bit_cast<std::uint64_t>(parse_double(text));
  return true;
}

bool EventReader::read_text(Walk& walk, Event& event, StringId& text) {
  Value value;
  if (!read_value(walk, event, value)) return false;
  if (value.type == ArgType::kString) {
    text = StringId{static_cast<std::uint32_t>(value.bits)};
  } else if (value.type != ArgType::kNull) {
    event.note(ImportIssue::kWrongType);
    text = builder_.intern(value.raw);
  }
  return true;
}

bool EventReader::read_phase(Walk& walk, Event& event) {
  std::string_view raw;
  if (walk.peek() == '"') {
    if (!walk.take_string(raw)) return false;
    if (raw.size() == 1 && raw[0] != '\\') {
      event.phase = raw[0];
    } else {  // an escaped letter, or no phase at all
      if (!codec::unescape_json(raw, scratch_)) return false;
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

// Writers go category by category, so the last one is asked first.
bool EventReader::read_category(Walk& walk, Event& event) {
  const std::uint32_t* const before = walk.at;
  std::string_view raw;
  if (walk.take_string(raw) && last_category_ != kNone<StringId> &&
      builder_.text(last_category_) == raw && raw.find('\\') == std::string_view::npos) {
    event.category = last_category_;
    return true;
  }
  walk.at = before;
  if (!read_text(walk, event, event.category)) return false;
  last_category_ = event.category;
  return true;
}

bool EventReader::read_time(Walk& walk, Event& event, std::optional<std::int64_t>& time) {
  Value value;
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

bool EventReader::read_scalar(Walk& walk, Event& event, std::optional<Scalar>& scalar) {
  Value value;
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

// A field of the event that lanescope has no column for is kept among the arguments under
// "event:<key>".
bool EventReader::read_other(Walk& walk, std::string_view key, Event& event) {
  Value value;
  if (!read_value(walk, event, value)) return false;
  if (value.type == ArgType::kNull && key == "args") return true;
  scratch_.assign(kOtherFieldPrefix).append(key);
  event.others.push_back({builder_.intern(scratch_), value.type, value.bits});
  return true;
}

bool EventReader::read_args(Walk& walk, Event& event) {
  ArgsTable& args = builder_.args();
  if (event.args_open) args.cancel();  // of two "args" the last one counts
  args.begin();
  event.args_open = true;
  ++walk.at;
  if (walk.take('}')) return true;
  key_at_ = 0;
  do {
    std::string_view key;
    if (!walk.take_string(key) || !walk.take(':')) return false;
    const KeyEntry* entry = nullptr;
    if (escapes_ && key.find('\\') != std::string_view::npos) {
      std::string plain;
      if (!codec::unescape_json(key, plain)) return false;
      entry = &arg_key_entry(plain);
    } else {
      entry = &arg_key_entry(key);
    }
    const StringId id = entry->id;
    const ArgKey known = entry->known;
    Value value;
    const char first = walk.peek();
    if (first >= '0' && first <= '9') {  // most arguments are plain integers
      value.raw = walk.take_token();
      if (!read_number(value)) return false;
    } else if (!read_value(walk, event, value)) {
      return false;
    }
    args.add(id, known, value.type, value.bits);
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

StringId EventReader::intern_string(std::string_view raw, bool& ok) {
  if (!escapes_ || raw.find('\\') == std::string_view::npos) return builder_.intern(raw);
  ok = codec::unescape_json(raw, scratch_);
  return ok ? builder_.intern(scratch_) : kNone<StringId>;
}

// The walk checks brackets by count only; each distinct text is checked once here.
StringId EventReader::intern_json(std::string_view text, bool& strict) {
  const StringId id = builder_.intern(text);
  if (raw(id) >= strict_.size()) strict_.resize(raw(id) + 1 + raw(id) / 2);
  if (!strict_[raw(id)]) {
    strict = codec::is_strict_json(text);
    strict_[raw(id)] = strict;
  }
  return id;
}

CategoryId EventReader::category_of(StringId text) {
  if (text == kNone<StringId>) return builder_.no_category();
  for (const auto& [known, category] : categories_)
    if (known == text) return category;
  const CategoryId category = builder_.category(builder_.text(text));
  if (categories_.size() < 64) categories_.emplace_back(text, category);
  return category;
}

TrackId EventReader::track_of(const Scalar& pid, const Scalar& tid, TrackUse use) {
  const auto mix = [](const Scalar& scalar) {
    return scalar.is_text ? raw(scalar.text) * 31u : static_cast<std::uint32_t>(scalar.number);
  };
  TrackEntry& entry =
      tracks_[(mix(pid) * 7u + mix(tid) * 3u + static_cast<unsigned>(use)) % tracks_.size()];
  if (!entry.used || entry.use != use || !(entry.pid == pid) || !(entry.tid == tid)) {
    entry.track = use == TrackUse::kFlow ? builder_.flow_track(pid, tid)
                                         : builder_.track(pid, tid, use == TrackUse::kStream);
    entry.pid = pid;
    entry.tid = tid;
    entry.use = use;
    entry.used = true;
  }
  return entry.track;
}

void EventReader::commit(Event& event, std::string_view text, std::uint64_t offset) {
  ImportStats& stats = builder_.stats();
  for (std::uint32_t notes = event.notes; notes != 0; notes &= notes - 1)
    stats.count(static_cast<ImportIssue>(std::countr_zero(notes)), offset);

  ArgsTable& args = builder_.args();
  if (!event.others.empty() && !event.args_open) {
    args.begin();
    event.args_open = true;
  }
  for (const Event::Other& other : event.others)
    args.add(other.key, ArgKey::kCount, other.type, other.bits);
  bool overflowed = false;
  const ArgsId args_id = event.args_open ? args.end(&overflowed) : kNone<ArgsId>;
  if (overflowed) stats.count(ImportIssue::kFieldLost, offset);

  const auto drop = [&](std::optional<ImportIssue> issue = std::nullopt) {
    if (args_id != kNone<ArgsId>) args.cancel();
    if (issue) stats.count(*issue, offset);
    builder_.skip_event();
  };
  if (!event.has_phase) return drop(ImportIssue::kMissingField);
  const char phase = event.phase;
  if (phase == '\0' || !std::strchr("XBEiIRCstfbenSTFpM", phase))
    return drop(ImportIssue::kUnknownPhase);
  if (phase == 'M') {
    commit_metadata(event, args_id, text, offset);
    return drop();
  }
  if (!event.time_ns) {
    // A time that was there but unusable has been counted for what it was.
    const bool counted = event.notes & bit(ImportIssue::kBadTime);
    return drop(counted ? std::nullopt : std::optional(ImportIssue::kMissingField));
  }
  const std::int64_t time = *event.time_ns;
  const Scalar pid = event.pid.value_or(Scalar{}), tid = event.tid.value_or(Scalar{});
  const CategoryId category = category_of(event.category);
  if (event.name == kNone<StringId> && phase != 'E') {
    event.name = builder_.intern("");
    stats.count(ImportIssue::kMissingName, offset);
  }
  const auto track = [&] {
    return track_of(pid, tid,
                    is_on_stream(builder_.kind(category)) ? TrackUse::kStream : TrackUse::kThread);
  };
  switch (phase) {
    case 'X':
      if (!event.dur_ns) stats.count(ImportIssue::kMissingDuration, offset);
      builder_.add_slice(track(), category, event.name, time, event.dur_ns.value_or(0), args_id);
      return;
    case 'B':
      builder_.add_begin(track(), category, event.name, time, args_id);
      return;
    case 'E':
      builder_.add_end(track(), event.name, time, args_id);
      return;
    case 'i':
    case 'I':
    case 'R': {
      const std::string_view scope = builder_.text(event.scope);
      builder_.add_instant(track(), category, event.name, time,
                           scope == "p" || scope == "g" ? scope[0] : 't', args_id);
      return;
    }
    case 'C': {
      commit_counter(event, pid, time, args_id, offset);
      return drop();
    }
    case 's':
    case 't':
    case 'f':
      if (!event.id) return drop(ImportIssue::kMissingField);
      if (args_id != kNone<ArgsId>) args.cancel();  // arrows carry no arguments
      builder_.add_flow(phase, track_of(pid, tid, TrackUse::kFlow), category, event.name, *event.id,
                        time, builder_.text(event.bind) == "e");
      return;
    default:
      if (!event.id) return drop(ImportIssue::kMissingField);
      builder_.add_async(phase, builder_.async_track(pid, builder_.text(event.category), *event.id),
                         category, event.name, time, args_id);
  }
}

void EventReader::commit_counter(const Event& event, const Scalar& pid, std::int64_t time,
                                 ArgsId args_id, std::uint64_t offset) {
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
  std::string name(builder_.text(event.name));
  if (event.id) {  // several counters of one name
    name.push_back('[');
    if (event.id->is_text)
      name.append(builder_.text(event.id->text));
    else
      name.append(std::to_string(event.id->number));
    name.push_back(']');
  }
  for (const Sample& sample : samples)
    builder_.add_counter(
        builder_.counter_track(pid, name, std::string(builder_.text(sample.series))), time,
        sample.value);
}

void EventReader::commit_metadata(const Event& event, ArgsId args_id, std::string_view text,
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
    if (name == "thread_name") return builder_.set_thread_name(pid, tid, value);
  }
  if (const auto index = args.integer(found)) {
    if (name == "process_sort_index") return builder_.set_process_sort_index(pid, *index);
    if (name == "thread_sort_index") return builder_.set_thread_sort_index(pid, tid, *index);
  }
  if (codec::is_strict_json(text)) return builder_.add_metadata_event(builder_.intern(text));
  std::string mended;
  if (codec::mend_json(text, true, mended).status == codec::MendStatus::kDone)
    builder_.add_metadata_event(builder_.intern(mended));
  else
    builder_.stats().count(ImportIssue::kMetadataLost, offset);
}

}  // namespace lanescope::format

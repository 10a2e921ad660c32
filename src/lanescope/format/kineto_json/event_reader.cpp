// Problem: hundreds of thousands of events, each 250 bytes of JSON with a dozen fields in any
// order. Idea: simdjson finds where tokens start. An event with a known pattern (event_patterns.h)
// is read value by value; another one is read token by token, and learned. Text that is not strict
// JSON is refused before any part of the event is added; the slow path then repairs it and comes
// back here. Cost: about one pass over the text.
#include "lanescope/format/kineto_json/event_reader.h"

#include "lanescope/codec/decimal.h"

namespace lanescope::format {
namespace {

std::optional<Scalar>& scalar_of(ValueSlot slot, EventFields& event) {
  return slot == ValueSlot::kPid ? event.pid : slot == ValueSlot::kTid ? event.tid : event.id;
}

}  // namespace

EventReader::EventReader(TraceBuilder& builder, EventSink& sink, bool learns)
    : EventReader(builder, learns) {
  sink_ = &sink;
}

EventReader::EventReader(TraceBuilder& texts, bool learns)
    : builder_(texts), values_(texts), fields_(texts, values_), learns_(learns) {}

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
// order of the file, like read_unknown(), so giving up changes nothing.
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
    const bool quoted = walk.peek() == '"';  // counted, as FieldReader does
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
  const bool drafts = learns_ && patterns_.wants_draft();
  ReadEvent event;
  if (!fields_.read(walk, event, drafts, tokens_)) return false;
  const std::uint32_t end = walk.at[-1] + 1;
  commit(event, text.substr(begin, end - begin), offset + begin, begin);
  if (drafts && event.has_phase && (event.notes & ~issue_bit(ImportIssue::kWrongType)) == 0 &&
      event.others.empty()) {
    EventDraft& draft = fields_.draft();
    draft.phase = event.phase;
    draft.category = event.category;
    draft.scope = event.scope;
    draft.bind = event.bind;
    patterns_.learn(draft, text, begin, end, static_cast<std::uint32_t>(first - tokens_),
                    static_cast<std::uint32_t>(walk.at - tokens_));
  }
  return true;
}

void EventReader::commit(ReadEvent& event, std::string_view text, std::uint64_t offset,
                         std::uint32_t begin) {
  ArgsBuilder& args = builder_.args();
  if (!event.others.empty() && !event.args_open) {
    args.begin();
    event.args_open = true;
  }
  for (const ReadEvent::Other& other : event.others)
    args.add(other.key, ArgKey::kCount, other.type, other.bits);
  bool overflowed = false;
  const ArgsId args_id = event.args_open ? args.end(&overflowed) : kNone<ArgsId>;
  if (overflowed) event.note(ImportIssue::kFieldLost);
  if (sink_) return sink_->add(event, event.notes, args_id, text, offset);
  put_into_batch(event, event.notes, args_id, begin, static_cast<std::uint32_t>(text.size()));
}

}  // namespace lanescope::format

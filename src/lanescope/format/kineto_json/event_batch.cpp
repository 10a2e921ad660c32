#include "lanescope/format/kineto_json/event_batch.h"

#include <algorithm>

namespace lanescope::format {

void EventBatch::start(const TraceBuilder& texts) {
  texts_ = &texts;
  events_.clear();
  words_.clear();
  new_texts_.clear();
  new_shapes_.clear();
  first_text_ = static_cast<std::uint32_t>(texts.strings().size());
}

EventBatch::Kind EventBatch::put(const std::optional<Scalar>& scalar, std::int64_t& value) {
  if (!scalar) return Kind::kNone;
  value = scalar->is_text ? raw(scalar->text) : scalar->number;
  return scalar->is_text ? Kind::kText : Kind::kNumber;
}

void EventBatch::add(const EventFields& event, IssueBits notes, std::uint32_t shape,
                     std::span<const std::uint32_t> words, std::uint32_t begin,
                     std::uint32_t size) {
  words_.insert(words_.end(), words.begin(), words.end());
  Event& out = events_.emplace_back();
  out.time_ns = event.time_ns.value_or(0);
  out.dur_ns = event.dur_ns.value_or(0);
  out.notes = notes;
  out.name = event.name;
  out.category = event.category;
  out.scope = event.scope;
  out.bind = event.bind;
  out.shape = shape;
  out.word_end = static_cast<std::uint32_t>(words_.size());
  out.text_end = static_cast<std::uint32_t>(texts_->strings().size());
  out.begin = begin;
  out.size = size;
  out.pid_kind = put(event.pid, out.pid);
  out.tid_kind = put(event.tid, out.tid);
  out.id_kind = put(event.id, out.id);
  out.phase = event.phase;
  out.has_phase = event.has_phase;
  out.has_time = event.time_ns.has_value();
  out.has_dur = event.dur_ns.has_value();
}

void EventBatch::learn_shape(const ArgsView& args) {
  std::vector<Field>& fields = new_shapes_.emplace_back();
  fields.reserve(args.size());
  for (std::size_t i = 0; i < args.size(); ++i)
    fields.push_back({args.field(i).key, args.field(i).type});
}

// The views stay valid while the thread goes on: a pool never moves its texts.
void EventBatch::end() {
  const StringPool& pool = texts_->strings();
  for (std::uint32_t i = first_text_; i < pool.size(); ++i)
    new_texts_.push_back(pool.view(StringId{i}));
}

std::optional<Scalar> BatchAdder::scalar(EventBatch::Kind kind, std::int64_t value) const {
  if (kind == EventBatch::Kind::kNone) return std::nullopt;
  if (kind == EventBatch::Kind::kNumber) return Scalar{false, value, kNone<StringId>};
  return Scalar{true, 0, texts_[static_cast<std::size_t>(value)]};
}

ArgsId BatchAdder::add_args(std::uint32_t shape_index, std::span<const std::uint32_t> words,
                            ArgsBuilder& args) {
  Shape& shape = shapes_[shape_index];
  words_.assign(words.begin(), words.end());
  for (const std::uint32_t at : shape.text_words) words_[at] = raw(texts_[words_[at]]);
  if (shape.id != EventBatch::kNoShape) return args.add_event(shape.id, words_);
  args.begin();
  const std::uint32_t* word = words_.data();
  for (const Field& field : shape.fields) {
    const std::uint32_t count = arg_words(field.type);
    std::uint64_t bits = count >= 1 ? word[0] : 0;
    if (count == 2) bits |= static_cast<std::uint64_t>(word[1]) << 32;
    args.add(field.key, field.known, field.type, bits);
    word += count;
  }
  const ArgsId id = args.end();
  shape.id = args.kind(id);
  return id;
}

// A text gets its number when the event that brought it is added: that is the order in which one
// thread alone would have met all texts.
void BatchAdder::add(const EventBatch& batch, std::string_view text_of_piece, std::uint64_t offset,
                     TraceBuilder& builder, EventSink& sink) {
  const auto add_texts = [&](std::size_t end) {
    while (texts_.size() < end)
      texts_.push_back(builder.intern(batch.new_texts_[texts_.size() - batch.first_text_]));
  };
  std::size_t new_shape = 0;
  std::uint32_t word = 0;
  for (const EventBatch::Event& event : batch.events_) {
    add_texts(event.text_end);
    ArgsId args = kNone<ArgsId>;
    if (event.shape != EventBatch::kNoShape) {
      for (; shapes_.size() <= event.shape; ++new_shape) {
        Shape& shape = shapes_.emplace_back();
        std::uint32_t at = 0;
        for (const EventBatch::Field& field : batch.new_shapes_[new_shape]) {
          const StringId key = text(field.key);
          shape.fields.push_back({key, arg_key(builder.text(key)), field.type});
          if (field.type == ArgType::kString || field.type == ArgType::kJson)
            shape.text_words.push_back(at);
          at += arg_words(field.type);
        }
      }
      args = add_args(event.shape, std::span(batch.words_).subspan(word, event.word_end - word),
                      builder.args());
    }
    word = event.word_end;
    EventFields fields;
    fields.phase = event.phase;
    fields.has_phase = event.has_phase;
    fields.name = text(event.name);
    fields.category = text(event.category);
    fields.scope = text(event.scope);
    fields.bind = text(event.bind);
    if (event.has_time) fields.time_ns = event.time_ns;
    if (event.has_dur) fields.dur_ns = event.dur_ns;
    fields.pid = scalar(event.pid_kind, event.pid);
    fields.tid = scalar(event.tid_kind, event.tid);
    fields.id = scalar(event.id_kind, event.id);
    sink.add(fields, event.notes, args, text_of_piece.substr(event.begin, event.size),
             offset + event.begin);
  }
  add_texts(batch.first_text_ + batch.new_texts_.size());
}

}  // namespace lanescope::format

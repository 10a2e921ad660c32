// What one thread has read from one piece of the text: events that do not belong to a Trace yet.
// Their texts and shapes are numbered by the thread that read them, and get their numbers in the
// trace when the events are added, in the order of the file. So all numbers of a trace are the same
// however many threads read it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lanescope/format/kineto_json/event_sink.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// One thread fills it, another one adds it. Memory: about 100 bytes an event and 4 a word of
// arguments; it is used again for the next piece.
class EventBatch {
 public:
  static constexpr std::uint32_t kNoShape = 0xffffffff;

  // The events' texts are in `texts`, which must live until the batch has been added.
  void start(const TraceBuilder& texts);
  // `words`: values of arguments, without their shape. The event's JSON is `size` bytes at `begin`.
  void add(const EventFields& event, IssueBits notes, std::uint32_t shape,
           std::span<const std::uint32_t> words, std::uint32_t begin, std::uint32_t size);
  // Call it when the arguments of an event have a shape that is new in `texts`.
  void learn_shape(const ArgsView& args);
  // Call it after the last event. It also takes the texts of events that were given up.
  void end();

 private:
  friend class BatchAdder;

  enum class Kind : std::uint8_t { kNone, kNumber, kText };  // of a pid, tid or id
  struct Event {
    std::int64_t time_ns, dur_ns, pid, tid, id;
    IssueBits notes;
    StringId name, category, scope, bind;
    std::uint32_t shape, word_end, text_end;  // ends: after the last one of this event
    std::uint32_t begin, size;
    Kind pid_kind, tid_kind, id_kind;
    char phase;
    bool has_phase, has_time, has_dur;
  };
  struct Field {
    StringId key;
    ArgType type;
  };
  static Kind put(const std::optional<Scalar>& scalar, std::int64_t& value);

  const TraceBuilder* texts_ = nullptr;
  std::vector<Event> events_;
  std::vector<std::uint32_t> words_;
  std::uint32_t first_text_ = 0;  // number of the first of new_texts_
  std::vector<std::string_view> new_texts_;
  std::vector<std::vector<Field>> new_shapes_;
};

// Adds the batches of one reading thread to the trace, in the order of their pieces.
class BatchAdder {
 public:
  // `text` and `offset`: of the piece that the batch was read from.
  void add(const EventBatch& batch, std::string_view text, std::uint64_t offset,
           TraceBuilder& builder, EventSink& sink);

 private:
  struct Field {
    StringId key;  // in the trace
    ArgKey known;
    ArgType type;
  };
  struct Shape {
    std::vector<Field> fields;
    std::vector<std::uint32_t> text_words;    // which words are texts
    std::uint32_t id = EventBatch::kNoShape;  // in the trace, once an event had it
  };
  StringId text(StringId local) const {
    return local == kNone<StringId> ? local : texts_[raw(local)];
  }
  std::optional<Scalar> scalar(EventBatch::Kind kind, std::int64_t value) const;
  ArgsId add_args(std::uint32_t shape, std::span<const std::uint32_t> words, ArgsBuilder& args);

  std::vector<StringId> texts_;  // in the trace, by number in the thread
  std::vector<Shape> shapes_;
  std::vector<std::uint32_t> words_;
};

}  // namespace lanescope::format

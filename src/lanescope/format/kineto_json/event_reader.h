// Reads trace events from JSON, straight into a trace or into a batch: the hot loop of reading.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/codec/json_index.h"
#include "lanescope/format/kineto_json/event_batch.h"
#include "lanescope/format/kineto_json/event_patterns.h"
#include "lanescope/format/kineto_json/event_sink.h"
#include "lanescope/format/kineto_json/field_reader.h"
#include "lanescope/format/kineto_json/json_walk.h"
#include "lanescope/format/kineto_json/value_reader.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// docs/formats/kineto_json.md lists the fields of an event. One thread; borrows all that it is given.
class EventReader {
 public:
  // Adds events to the builder's trace.
  // `learns`: recognises events that look like earlier ones. False is slower and gives the same trace.
  EventReader(TraceBuilder& builder, EventSink& sink, bool learns);
  // Puts events into batches; `texts` is used only to number their texts and shapes.
  EventReader(TraceBuilder& texts, bool learns);
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // Where the events of the next read_events() go, for a reader of batches.
  void fill(EventBatch& batch) {
    batch_ = &batch;
    batch.start(builder_);
  }

  enum class Stop : std::uint8_t {
    kEnd,       // all of the text was used
    kArrayEnd,  // the `]` after the last event was found and used
    kRefused,   // text[used] starts an event that is not strict JSON; no part of
                // it was added
  };
  struct Outcome {
    Stop stop = Stop::kEnd;
    std::size_t used = 0;
    bool after_comma = false;  // the last token used was a comma
  };
  // Starts at a `{` and reads events with commas between them, up to the array's `]`. `offset`
  // is the place of `text` in the unpacked input, for counters. Adds each event when all of it
  // is understood, so reading can go on at text[used]. After `text`, codec::kJsonPadding bytes
  // must be readable.
  Outcome read_events(std::string_view text, std::uint64_t offset);

  // Reads one event whose JSON at `offset` was repaired. False: it is still not an event.
  bool read_mended(std::string& event, std::uint64_t offset);

 private:
  // The arguments of the event in read_known(), in the form of ArgsBuilder.
  struct KnownArgs {
    std::size_t count = 0, word_count = 0;
    EventPatterns::ArgTypes types{};
    IssueBits notes = 0;                                       // of the event
    std::array<std::uint32_t, EventPatterns::kMaxArgs> edges;  // for each argument, its key
    std::array<std::uint32_t, 2 * EventPatterns::kMaxArgs> words;

    void reset() {
      count = word_count = 0;
      types = {};
      notes = 0;
    }
    void add(ArgType type, std::uint64_t bits) {
      types[count / 16] |= static_cast<std::uint64_t>(type) << (count % 16 * 4);
      ++count;
      words[word_count] = static_cast<std::uint32_t>(bits);
      if (type == ArgType::kInt32) {
        ++word_count;
        return;
      }
      words[word_count + 1] = static_cast<std::uint32_t>(bits >> 32);  // kept if the type has two
      word_count += arg_words(type);
    }
    ArgType type(std::size_t i) const {
      return static_cast<ArgType>(types[i / 16] >> (i % 16 * 4) & 15);
    }
  };

  // False: no pattern matches; nothing was added, and the walk did not move.
  bool read_known(JsonWalk& walk, std::string_view text, std::uint64_t offset);
  bool read_unknown(JsonWalk& walk, std::string_view text, std::uint64_t offset);
  bool read_slot(JsonWalk& walk, ValueSlot slot, EventFields& event, const char*& end);
  void add_known(EventPatterns::Pattern& pattern, const EventFields& event, std::string_view text,
                 std::uint64_t offset, std::uint32_t begin);
  ArgsId add_known_args(EventPatterns::Pattern& pattern);
  void put_into_batch(const EventFields& event, IssueBits notes, ArgsId args, std::uint32_t begin,
                      std::uint32_t size);
  void commit(ReadEvent& event, std::string_view text, std::uint64_t offset, std::uint32_t begin);

  TraceBuilder& builder_;
  EventSink* sink_ = nullptr;  // either this or batch_ is set
  EventBatch* batch_ = nullptr;
  std::size_t shapes_in_batches_ = 0;
  std::vector<std::uint32_t> words_;  // of an event that goes into a batch
  ValueReader values_;
  FieldReader fields_;  // borrows values_
  codec::JsonIndex index_;
  EventPatterns patterns_;
  const bool learns_;
  const std::uint32_t* tokens_ = nullptr;  // of the current text
  KnownArgs known_;
};

}  // namespace lanescope::format

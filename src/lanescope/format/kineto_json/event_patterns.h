// Patterns of events from one writer: the text between their values, which repeats byte for byte.
//
// Problem: nine tenths of a trace are keys, quotes, blanks and commas that are the same as in the
// event before. Idea: a tree whose edges are pieces of text. An edge from the root is the text from
// an event's `{` to its first value; the next edges are the texts between two values; the last edge
// is the text up to the event's `}`. The reader compares whole pieces and parses only values.
// Example: {"ph":"X","ts":5,"args":{"a":1}} is the pieces `{"ph":"X","ts":`, `,"args":{"a":` and
// `}}`. Phase and category count as text, not as values.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/model/args.h"

namespace lanescope::format {

enum class ValueSlot : std::uint8_t { kEnd, kName, kTime, kDuration, kPid, kTid, kId, kArg };

// An event that was read in full, piece by piece, to be learned.
struct EventDraft {
  struct Value {
    ValueSlot slot;
    ArgKey known;  // for kArg, like `key`
    StringId key;
    std::uint32_t begin, end;              // bytes of the text
    std::uint32_t begin_token, end_token;  // tokens of it
  };
  bool usable = true;  // false: patterns cannot express it
  char phase = '\0';
  StringId category = kNone<StringId>, scope = kNone<StringId>, bind = kNone<StringId>;
  std::vector<Value> values;

  void reset() {
    values.clear();
    usable = true;
    phase = '\0';
    category = scope = bind = kNone<StringId>;
  }
};

// One thread. Memory: at most kMaxTextBytes and kMaxEdges edges for any file. When they are used
// up, forgets everything and starts to learn again.
class EventPatterns {
 public:
  static constexpr std::size_t kMaxTextBytes = 128 * 1024, kMaxEdges = 2048, kMaxArgs = 32;

  using ArgTypes = std::array<std::uint64_t, kMaxArgs / 16>;  // four bits an argument

  // The fixed parts of an event, and the argument types of the last such event.
  struct Pattern {
    char phase;
    StringId category, scope, bind;
    ArgTypes types{};
    std::uint32_t shape = 0;
    bool has_shape = false;
    std::uint32_t next = 0;  // the root's edge of the event that followed
  };
  struct Edge {
    std::size_t text = 0;      // place in texts_
    std::uint32_t size = 0;    // bytes
    std::uint32_t tokens = 0;  // JSON tokens that start in them
    ValueSlot slot = ValueSlot::kEnd;
    ArgKey known = ArgKey::kCount;
    StringId key = kNone<StringId>;
    std::uint32_t pattern = 0;  // of kEnd
    std::uint32_t first_child = 0, next_sibling = 0, last_taken = 0;
  };
  static constexpr std::uint32_t kRoot = 0;

  EventPatterns();

  // The edge after `from` whose text is at `at`; kRoot: none. `left` bytes of text,
  // then codec::kJsonPadding.
  std::uint32_t find(std::uint32_t from, const char* at, std::size_t left) {
    const std::uint32_t guess = edges_[from].last_taken;
    if (guess != kRoot && matches(edges_[guess], at, left)) return guess;
    return find_other(from, at, left);
  }
  const Edge& edge(std::uint32_t index) const { return edges_[index]; }
  // The event that an edge with kEnd completes; the next event probably starts as it did then.
  Pattern& finish(std::uint32_t end);

  // Whether to draft and learn an event that matches no pattern. False if most of the patterns that
  // were learned last were never used.
  bool wants_draft();
  // `event` is the text of the draft's event, `first_token` the number of its `{`, `end_token` that
  // of the token after its `}`.
  void learn(const EventDraft& draft, std::string_view text, std::uint32_t begin, std::uint32_t end,
             std::uint32_t first_token, std::uint32_t end_token);

 private:
  using TwoWords [[gnu::vector_size(16)]] = std::uint64_t;
  template <typename Word = std::uint64_t>
  static Word load(const char* at) {
    Word word{};
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  // Compares two words at a time; the last two overlap those before. Nearly all texts are equal, so it asks once, at the end.
  // Short texts end in zeros.
  bool matches(const Edge& edge, const char* at, std::size_t left) const {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    if (edge.size > left) return false;
    const char* const text = texts_.data() + edge.text;
    if (edge.size < kWord) {
      const std::size_t unused = 8 * (kWord - edge.size);
      const std::uint64_t differs = load(text) ^ load(at);
      return (std::endian::native == std::endian::little ? differs << unused : differs >> unused) ==
             0;
    }
    if (edge.size < sizeof(TwoWords)) {
      const std::size_t last = edge.size - kWord;
      return ((load(text) ^ load(at)) | (load(text + last) ^ load(at + last))) == 0;
    }
    const std::size_t last = edge.size - sizeof(TwoWords);
    TwoWords differs = load<TwoWords>(text + last) ^ load<TwoWords>(at + last);
    for (std::size_t i = 0; i < last; i += sizeof(TwoWords))
      differs |= load<TwoWords>(text + i) ^ load<TwoWords>(at + i);
    return (differs[0] | differs[1]) == 0;
  }
  std::uint32_t find_other(std::uint32_t from, const char* at, std::size_t left);
  std::uint32_t add(std::uint32_t from, std::string_view text, std::uint32_t tokens,
                    const EventDraft::Value& value);
  void forget();

  std::string texts_;
  std::vector<Edge> edges_;  // [kRoot] has no text
  std::vector<Pattern> patterns_;
  std::uint32_t last_pattern_ = 0;  // [0]: before the first event
  std::uint32_t credit_ = 0;        // events that may be learned
  std::uint32_t waiting_ = 0;       // events that were not
};

inline EventPatterns::Pattern& EventPatterns::finish(std::uint32_t end) {
  last_pattern_ = edges_[end].pattern;
  Pattern& pattern = patterns_[last_pattern_];
  edges_[kRoot].last_taken = pattern.next;
  if (credit_ < kMaxEdges) ++credit_;
  return pattern;
}

}  // namespace lanescope::format

// Makes the arguments of a Trace, event by event: interns the shapes and appends the words.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "lanescope/model/args.h"

namespace lanescope {

// One thread. Strings are ids of the Trace's texts. Cost: an append, and one hash lookup an event.
class ArgsBuilder {
 public:
  // The fields of one event: begin(), add_*() in file order, then end(). No fields: kNone<ArgsId>.
  void begin();
  void add(StringId key, ArgKey known, ArgType type, std::uint64_t bits = 0);
  void add_int(StringId key, ArgKey known, std::int64_t value);
  void add_uint(StringId key, ArgKey known, std::uint64_t value);
  void add_double(StringId key, ArgKey known, double value);
  void add_string(StringId key, ArgKey known, StringId value);
  void add_json(StringId key, ArgKey known, StringId raw_text);
  // At most 65535 words per event; the rest is left out, and `overflowed` is set.
  ArgsId end(bool* overflowed = nullptr);
  // The shape of an event's arguments. Another event with this shape has the same fields in
  // the same order.
  std::uint32_t shape(ArgsId id) const { return table_.words[raw(id)]; }
  ArgsId add_event(std::uint32_t shape, std::span<const std::uint32_t> words) {
    event_start_ = table_.words.size();
    table_.words.push_back(shape);
    table_.words.insert(table_.words.end(), words.begin(), words.end());
    return ArgsId{static_cast<std::uint32_t>(event_start_)};
  }
  // Removes everything since the last begin() or add_event(), also after end().
  void cancel();

  // Valid until the next begin() or add_event().
  ArgsView view(ArgsId id) const { return table_.view(id); }
  std::size_t shape_count() const { return table_.shapes.size(); }

  // With the rough number of words to come, their list need not grow step by step.
  void expect_words(std::size_t count) { table_.words.reserve(count); }
  std::size_t word_count() const { return table_.words.size(); }

  // All of it, without a copy except of much spare room. The builder is empty afterwards.
  ArgsTable<GrowingColumn> take() &&;

 private:
  struct Pending {
    StringId key;
    ArgKey known;
    ArgType type;
    bool operator==(const Pending&) const = default;
  };
  std::uint32_t shape_of_pending();

  ArgsTable<GrowingColumn> table_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> shape_by_hash_;
  std::vector<Pending> pending_;
  std::uint64_t pending_hash_ = 0;
  std::size_t event_start_ = 0;
  bool pending_overflow_ = false;
};

}  // namespace lanescope

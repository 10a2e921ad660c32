// Makes the arguments of a Trace, event by event: interns the shapes, decides which values events
// share, and appends the words.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "lanescope/model/args.h"

namespace lanescope {

// One thread. Strings are ids of the Trace's texts. The result depends only on the events and
// their order. Cost: an append, and two hash lookups an event.
//
// The builder learns which values to share. After certain numbers of events of one kind (the same
// keys and types in the same order), it examines a run of them. A field is shared from then on if
// the run has few different values of it, and few of these appear first in the run's second half;
// the same must hold for the combinations of these fields. So an id that is new in each event stays
// the event's own, and the grid of a kernel is shared. Of two numbers that are new in each event, the
// difference may be shared in the same way.
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
  // The kind of an event's arguments. Another event of this kind has the same fields in the same
  // order.
  std::uint32_t kind(ArgsId id) const {
    return kind_of_shape_[table_.variants[table_.words[raw(id)]].shape];
  }
  std::size_t kind_count() const { return kinds_.size(); }
  // `words`: the values of all fields, one after the other.
  ArgsId add_event(std::uint32_t kind, std::span<const std::uint32_t> words);
  // Removes everything since the last begin() or add_event(), also after end().
  void cancel();

  // Valid until the next begin() or add_event().
  ArgsView view(ArgsId id) const { return table_.view(id); }

  // Takes roughly how many words will come, so that their list need not grow step by step.
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
  // Where a value of a kind is kept.
  struct Place {
    bool is_shared = false;
    std::optional<std::uint16_t> base;  // the field of the event's own that is subtracted from it
    bool operator==(const Place&) const = default;
  };
  struct Difference {
    std::uint16_t at, base;  // places in the words of all values
  };
  struct Kind {
    std::uint32_t plain_shape = 0, plain_variant = 0;  // nothing is shared
    std::uint32_t shape = 0;                           // of the next event
    std::uint32_t last_variant = 0;                    // found last
    std::uint32_t word_count = 0;                      // of all values
    std::uint32_t events = 0, next_look = 0;           // the event that is looked at next
    std::uint32_t looks = 0;                           // that are over
    std::uint32_t shape_events = 0;                    // events before the first one with `shape`
    std::uint32_t shape_variants = 0;                  // made since then
    std::vector<Place> places;  // of the fields of `shape`; none: it is plain_shape
    // Places in the words of all values; no shared ones: `shape` is plain_shape.
    std::vector<std::uint16_t> own, shared;
    std::vector<Difference> differences;   // some of the shared ones
    std::vector<std::uint32_t> looked_at;  // words of the events of the present look
  };

  std::uint32_t kind_of_pending();
  void look(std::uint32_t kind_index, std::span<const std::uint32_t> words);
  void share(std::uint32_t kind_index, std::vector<Place> places);
  void share_less(std::uint32_t kind_index);  // no differences; where there are none, nothing
  void share_nothing(Kind& kind);
  // The variant of the shape of the next event that has its shared values, made if there is none.
  std::uint32_t find_variant(Kind& kind, std::span<const std::uint32_t> words);
  void grow_slots();

  ArgsTable<GrowingColumn> table_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> kind_by_hash_;
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> kind_of_shape_;
  std::vector<std::uint32_t> shared_count_;  // of a shape: words of its shared values
  std::vector<std::uint32_t> slots_;         // of variants with shared values: number + 1; 0: free
  std::size_t used_slots_ = 0;
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> pending_words_;
  std::vector<std::uint32_t> subtracted_;  // the values of an event, some as differences
  std::uint64_t pending_hash_ = 0;
  std::size_t event_start_ = 0;
  bool pending_overflow_ = false;
};

}  // namespace lanescope

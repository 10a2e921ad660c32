#include "lanescope/model/args_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace lanescope {
namespace {

constexpr std::size_t kMaxEventWords = 65535;

// A look at a run of events of one kind: which values repeat. A long loop of a program repeats only
// after many events, so later looks are longer.
struct Look {
  std::uint32_t first, count;  // events; count is even
};
constexpr std::array kLooks{Look{0, 32}, Look{512, 512}, Look{4096, 2048}, Look{32768, 4096},
                            Look{262144, 4096}};
constexpr std::uint32_t kNever = 0xffffffff;
// Sharing ends when, after so many variants, more than one of two events needed a new one.
constexpr std::uint32_t kManyVariants = 256;
// Differences are tried between so many fields of a kind: the known writers have up to five ids.
constexpr std::size_t kMostIds = 8;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  return hash * 0xd6e8feb86659fd93;
}

// The hash of a variant is that of its shape, then of its values.
std::uint64_t add_to_hash(std::uint64_t hash, std::uint32_t word) {
  return (hash ^ word) * 0x9e3779b97f4a7c15;
}
std::size_t folded(std::uint64_t hash) { return static_cast<std::size_t>(hash ^ (hash >> 32)); }

// About how many different values there are, and how many of them are first met in the second half.
// Two values count as one where their hashes are equal, a few of a hundred: enough to tell ids, which
// are all new, from what repeats.
struct Different {
  std::size_t all = 0, late = 0;
  // Among so many; with fewer, they must repeat more.
  bool repeat(std::size_t count) const { return all <= count / 4 && late <= count / 2 / 8; }
};
Different count_different(std::span<const std::uint64_t> values) {
  constexpr unsigned kHashBits = 16;
  std::vector<bool> seen(std::size_t{1} << kHashBits);
  Different found;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t folded = values[i] ^ (values[i] >> 32);
    const auto place = static_cast<std::size_t>((folded * 0x9e3779b97f4a7c15) >> (64 - kHashBits));
    if (seen[place]) continue;
    seen[place] = true;
    ++found.all;
    if (i >= values.size() / 2) ++found.late;
  }
  return found;
}

// The events of a look.
struct LookedAt {
  std::span<const ArgField> fields;  // nothing is shared
  std::span<const std::uint32_t> words;
  std::size_t words_of_one, count;

  // The values of a field, or what they are more (modulo 2^32) than those of `base`, both kInt32.
  void take_values(std::uint16_t field, std::optional<std::uint16_t> base,
                   std::span<std::uint64_t> values) const {
    const bool is_wide = arg_words(fields[field].type) == 2;
    for (std::size_t event = 0; event < count; ++event) {
      const std::uint32_t* const one = words.data() + event * words_of_one;
      const std::uint32_t* const at = one + fields[field].word;
      if (base)
        values[event] = at[0] - one[fields[*base].word];
      else
        values[event] = at[0] | (is_wide ? static_cast<std::uint64_t>(at[1]) << 32 : 0);
    }
  }
};

}  // namespace

void ArgsBuilder::begin() {
  pending_.clear();
  pending_words_.clear();
  pending_hash_ = 0;
  pending_overflow_ = false;
  event_start_ = table_.words.size();
}

void ArgsBuilder::add(StringId key, ArgKey known, ArgType type, std::uint64_t bits) {
  const std::uint32_t count = arg_words(type);
  if (pending_.size() >= 30000 || 1 + pending_words_.size() + count > kMaxEventWords) {
    pending_overflow_ = true;
    return;
  }
  pending_.push_back({key, known, type});
  pending_hash_ = mix(
      pending_hash_, (static_cast<std::uint64_t>(raw(key)) << 8) | static_cast<std::uint8_t>(type));
  if (count >= 1) pending_words_.push_back(static_cast<std::uint32_t>(bits));
  if (count == 2) pending_words_.push_back(static_cast<std::uint32_t>(bits >> 32));
}

void ArgsBuilder::add_int(StringId key, ArgKey known, std::int64_t value) {
  const bool narrow = value >= INT32_MIN && value <= INT32_MAX;
  add(key, known, narrow ? ArgType::kInt32 : ArgType::kInt64, static_cast<std::uint64_t>(value));
}

void ArgsBuilder::add_uint(StringId key, ArgKey known, std::uint64_t value) {
  if (value <= INT64_MAX) return add_int(key, known, static_cast<std::int64_t>(value));
  add(key, known, ArgType::kUint64, value);
}

void ArgsBuilder::add_double(StringId key, ArgKey known, double value) {
  add(key, known, ArgType::kDouble, std::bit_cast<std::uint64_t>(value));
}

void ArgsBuilder::add_string(StringId key, ArgKey known, StringId value) {
  add(key, known, ArgType::kString, raw(value));
}

void ArgsBuilder::add_json(StringId key, ArgKey known, StringId raw_text) {
  add(key, known, ArgType::kJson, raw(raw_text));
}

ArgsId ArgsBuilder::end(bool* overflowed) {
  if (overflowed) *overflowed = pending_overflow_;
  if (pending_.empty()) return kNone<ArgsId>;
  return add_event(kind_of_pending(), pending_words_);
}

void ArgsBuilder::cancel() {
  table_.words.resize(event_start_);
  pending_.clear();
}

ArgsId ArgsBuilder::add_event(std::uint32_t kind_index, std::span<const std::uint32_t> words) {
  event_start_ = table_.words.size();
  Kind& kind = kinds_[kind_index];
  if (kind.events >= kind.next_look) look(kind_index, words);
  ++kind.events;
  if (kind.shared.empty()) {
    table_.words.push_back(kind.plain_variant);
    table_.words.insert(table_.words.end(), words.begin(), words.end());
  } else {
    if (!kind.differences.empty()) {
      subtracted_.assign(words.begin(), words.end());
      for (const auto& [at, base] : kind.differences) subtracted_[at] -= words[base];
      words = subtracted_;
    }
    table_.words.push_back(find_variant(kind, words));
    for (const std::uint16_t at : kind.own) table_.words.push_back(words[at]);
    if (kind.shape_variants > kManyVariants &&
        kind.shape_variants > (kind.events - kind.shape_events) / 2)
      share_less(kind_index);
  }
  return ArgsId{static_cast<std::uint32_t>(event_start_)};
}

std::uint32_t ArgsBuilder::kind_of_pending() {
  const auto [first, last] = kind_by_hash_.equal_range(pending_hash_);
  for (auto it = first; it != last; ++it) {
    const ArgShape& shape = table_.shapes[kinds_[it->second].plain_shape];
    const ArgField* const fields = table_.fields.data() + shape.first_field;
    bool same = shape.field_count == pending_.size();
    for (std::size_t i = 0; same && i < pending_.size(); ++i)
      same = fields[i].key == pending_[i].key && fields[i].type == pending_[i].type;
    if (same) return it->second;
  }
  ArgShape shape;
  shape.first_field = static_cast<std::uint32_t>(table_.fields.size());
  shape.field_count = static_cast<std::uint32_t>(pending_.size());
  shape.slots.fill(-1);
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Pending& field = pending_[i];
    if (field.known != ArgKey::kCount)
      shape.slots[static_cast<std::size_t>(field.known)] = static_cast<std::int16_t>(i);
    table_.fields.push_back(
        {field.key, field.type, false, static_cast<std::uint16_t>(word), ArgField::kNoBase});
    word += arg_words(field.type);
  }
  const auto index = static_cast<std::uint32_t>(kinds_.size());
  Kind& kind = kinds_.emplace_back();
  kind.plain_shape = kind.shape = static_cast<std::uint32_t>(table_.shapes.size());
  kind.plain_variant = kind.last_variant = static_cast<std::uint32_t>(table_.variants.size());
  kind.word_count = word;
  table_.shapes.push_back(shape);
  table_.variants.push_back({kind.shape, 0});
  kind_of_shape_.push_back(index);
  shared_count_.push_back(0);
  kind_by_hash_.emplace(pending_hash_, index);
  return index;
}

// Before the event with these words is added.
void ArgsBuilder::look(std::uint32_t kind_index, std::span<const std::uint32_t> words) {
  Kind& kind = kinds_[kind_index];
  if (kind.looks == kLooks.size() || kind.word_count == 0) {
    kind.next_look = kNever;
    return;
  }
  const Look& now = kLooks[kind.looks];
  kind.looked_at.insert(kind.looked_at.end(), words.begin(), words.end());
  kind.next_look = kind.events + 1;
  if (kind.next_look < now.first + now.count) return;

  const std::vector<std::uint32_t> events = std::exchange(kind.looked_at, {});
  ++kind.looks;
  kind.next_look = kind.looks < kLooks.size() ? kLooks[kind.looks].first : kNever;
  const ArgShape shape = table_.shapes[kind.plain_shape];
  const LookedAt run{{table_.fields.data() + shape.first_field, shape.field_count},
                     events,
                     kind.word_count,
                     now.count};
  std::vector<Place> places(shape.field_count);
  std::vector<std::uint64_t> values(now.count);
  std::vector<std::pair<std::size_t, std::uint16_t>> shared;  // different values, field
  const auto share_if_repeated = [&](std::uint16_t field, std::optional<std::uint16_t> base) {
    run.take_values(field, base, values);
    const Different different = count_different(values);
    // A difference saves four bytes an event, and a variant has all shared values once more.
    if (!different.repeat(base ? now.count / 2 : now.count)) return;
    places[field] = {true, base};
    shared.emplace_back(different.all, field);
  };
  std::vector<std::uint16_t> ids;
  for (std::uint16_t i = 0; i < shape.field_count; ++i) {
    if (arg_words(run.fields[i].type) != 0) share_if_repeated(i, std::nullopt);
    if (run.fields[i].type == ArgType::kInt32 && !places[i].is_shared && ids.size() < kMostIds)
      ids.push_back(i);
  }
  // An id less an earlier one, which stays the event's own.
  for (std::size_t i = 1; i < ids.size(); ++i)
    for (std::size_t base = 0; base < i && !places[ids[i]].is_shared; ++base)
      if (!places[ids[base]].is_shared) share_if_repeated(ids[i], ids[base]);
  // Their combinations must repeat, too.
  std::sort(shared.begin(), shared.end());
  for (; !shared.empty(); shared.pop_back()) {
    std::vector<std::uint64_t> all(now.count);
    for (const auto& [different, field] : shared) {
      run.take_values(field, places[field].base, values);
      for (std::size_t event = 0; event < now.count; ++event)
        all[event] = mix(all[event], values[event]);
    }
    if (count_different(all).repeat(now.count)) break;
    places[shared.back().second] = {};
  }
  if (shared.empty())
    share_nothing(kind);
  else
    share(kind_index, std::move(places));
}

void ArgsBuilder::share(std::uint32_t kind_index, std::vector<Place> places) {
  Kind& kind = kinds_[kind_index];
  if (places == kind.places) return;
  kind.own.clear();
  kind.shared.clear();
  kind.differences.clear();
  const ArgShape plain = table_.shapes[kind.plain_shape];
  ArgShape shape = plain;
  shape.first_field = static_cast<std::uint32_t>(table_.fields.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    ArgField field = table_.fields[plain.first_field + i];
    std::vector<std::uint16_t>& words = places[i].is_shared ? kind.shared : kind.own;
    const std::uint16_t from = field.word;
    field.is_shared = places[i].is_shared;
    field.word = static_cast<std::uint16_t>(words.size());
    for (std::uint32_t word = 0; word < arg_words(field.type); ++word)
      words.push_back(static_cast<std::uint16_t>(from + word));
    if (const auto base = places[i].base) {  // an earlier field
      kind.differences.push_back({from, table_.fields[plain.first_field + *base].word});
      field.base = table_.fields[shape.first_field + *base].word;
    }
    table_.fields.push_back(field);
  }
  kind.places = std::move(places);
  kind.shape = static_cast<std::uint32_t>(table_.shapes.size());
  kind.shape_events = kind.events;
  kind.shape_variants = 0;
  table_.shapes.push_back(shape);
  kind_of_shape_.push_back(kind_index);
  shared_count_.push_back(static_cast<std::uint32_t>(kind.shared.size()));
}

void ArgsBuilder::share_less(std::uint32_t kind_index) {
  std::vector<Place> places = kinds_[kind_index].places;
  bool is_any_left = false;
  for (Place& place : places) {
    if (place.base) place = {};
    is_any_left = is_any_left || place.is_shared;
  }
  if (kinds_[kind_index].differences.empty() || !is_any_left)
    share_nothing(kinds_[kind_index]);
  else
    share(kind_index, std::move(places));
}

void ArgsBuilder::share_nothing(Kind& kind) {
  kind.shape = kind.plain_shape;
  kind.places.clear();
  kind.own.clear();
  kind.shared.clear();
  kind.differences.clear();
}

std::uint32_t ArgsBuilder::find_variant(Kind& kind, std::span<const std::uint32_t> words) {
  const auto has_values_of = [&](const ArgVariant& variant) {
    const std::uint32_t* shared = table_.shared.data() + variant.first_word;
    for (const std::uint16_t at : kind.shared)
      if (*shared++ != words[at]) return false;
    return true;
  };
  // Often it is that of the event before.
  if (const ArgVariant& last = table_.variants[kind.last_variant];
      last.shape == kind.shape && has_values_of(last))
    return kind.last_variant;
  if (2 * (used_slots_ + 1) > slots_.size()) grow_slots();
  const std::size_t mask = slots_.size() - 1;
  std::uint64_t hash = kind.shape;
  for (const std::uint16_t at : kind.shared) hash = add_to_hash(hash, words[at]);
  std::size_t slot = folded(hash) & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const ArgVariant& variant = table_.variants[slots_[slot] - 1];
    if (variant.shape == kind.shape && has_values_of(variant))
      return kind.last_variant = slots_[slot] - 1;
  }
  const auto made = static_cast<std::uint32_t>(table_.variants.size());
  table_.variants.push_back({kind.shape, static_cast<std::uint32_t>(table_.shared.size())});
  for (const std::uint16_t at : kind.shared) table_.shared.push_back(words[at]);
  slots_[slot] = made + 1;
  ++used_slots_;
  ++kind.shape_variants;
  return kind.last_variant = made;
}

void ArgsBuilder::grow_slots() {
  slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < table_.variants.size(); ++i) {
    const ArgVariant& variant = table_.variants[i];
    const std::uint32_t count = shared_count_[variant.shape];
    if (count == 0) continue;
    std::uint64_t hash = variant.shape;
    for (const std::uint32_t word : std::span(table_.shared).subspan(variant.first_word, count))
      hash = add_to_hash(hash, word);
    std::size_t slot = folded(hash) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = i + 1;
  }
}

ArgsTable<GrowingColumn> ArgsBuilder::take() && {
  ArgsTable<GrowingColumn> taken = std::move(table_);
  *this = ArgsBuilder();
  // A little spare room is cheaper than a copy of the words.
  if (taken.words.capacity() - taken.words.size() > taken.words.size() / 8)
    taken.words.shrink_to_fit();
  taken.variants.shrink_to_fit();
  taken.shared.shrink_to_fit();
  taken.shapes.shrink_to_fit();
  taken.fields.shrink_to_fit();
  return taken;
}

}  // namespace lanescope

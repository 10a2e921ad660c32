#include "lanescope/model/args_builder.h"

#include <bit>
#include <utility>

namespace lanescope {
namespace {

constexpr std::size_t kMaxEventWords = 65535;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  return hash * 0xd6e8feb86659fd93;
}

}  // namespace

void ArgsBuilder::begin() {
  pending_.clear();
  pending_hash_ = 0;
  pending_overflow_ = false;
  event_start_ = table_.words.size();
  table_.words.push_back(0);  // the shape, known at end()
}

void ArgsBuilder::add(StringId key, ArgKey known, ArgType type, std::uint64_t bits) {
  const std::uint32_t count = arg_words(type);
  if (pending_.size() >= 30000 || table_.words.size() - event_start_ + count > kMaxEventWords) {
    pending_overflow_ = true;
    return;
  }
  pending_.push_back({key, known, type});
  pending_hash_ = mix(
      pending_hash_, (static_cast<std::uint64_t>(raw(key)) << 8) | static_cast<std::uint8_t>(type));
  if (count >= 1) table_.words.push_back(static_cast<std::uint32_t>(bits));
  if (count == 2) table_.words.push_back(static_cast<std::uint32_t>(bits >> 32));
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
  if (pending_.empty()) {
    table_.words.resize(event_start_);
    return kNone<ArgsId>;
  }
  table_.words[event_start_] = shape_of_pending();
  return ArgsId{static_cast<std::uint32_t>(event_start_)};
}

void ArgsBuilder::cancel() {
  table_.words.resize(event_start_);
  pending_.clear();
}

std::uint32_t ArgsBuilder::shape_of_pending() {
  const auto [first, last] = shape_by_hash_.equal_range(pending_hash_);
  for (auto it = first; it != last; ++it) {
    const ArgShape& shape = table_.shapes[it->second];
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
    table_.fields.push_back({field.key, field.type, static_cast<std::uint16_t>(word)});
    word += arg_words(field.type);
  }
  table_.shapes.push_back(shape);
  const auto id = static_cast<std::uint32_t>(table_.shapes.size() - 1);
  shape_by_hash_.emplace(pending_hash_, id);
  return id;
}

ArgsTable<GrowingColumn> ArgsBuilder::take() && {
  ArgsTable<GrowingColumn> taken = std::move(table_);
  *this = ArgsBuilder();
  // A little spare room is cheaper than a copy of the words.
  if (taken.words.capacity() - taken.words.size() > taken.words.size() / 8)
    taken.words.shrink_to_fit();
  taken.shapes.shrink_to_fit();
  taken.fields.shrink_to_fit();
  return taken;
}

}  // namespace lanescope

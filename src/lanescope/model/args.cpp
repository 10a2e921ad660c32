#include "lanescope/model/args.h"

#include <bit>
#include <cstring>
#include <string>
#include <utility>

namespace lanescope {
namespace {

constexpr std::size_t kMaxEventWords = 65535;

struct KeyRow {
  ArgKey key;
  std::string_view text;
};
// The first row of a key is torch 2's spelling; later rows are older or foreign ones.
constexpr KeyRow kKeys[] = {
    {ArgKey::kExternalId, "External id"},
    {ArgKey::kExternalId, "external id"},
    {ArgKey::kRecordFunctionId, "Record function id"},
    {ArgKey::kSequenceNumber, "Sequence number"},
    {ArgKey::kFwdThreadId, "Fwd thread id"},
    {ArgKey::kEvIdx, "Ev Idx"},
    {ArgKey::kInputDims, "Input Dims"},
    {ArgKey::kInputDims, "Input dims"},
    {ArgKey::kInputType, "Input type"},
    {ArgKey::kInputStrides, "Input Strides"},
    {ArgKey::kConcreteInputs, "Concrete Inputs"},
    {ArgKey::kCallStack, "Call stack"},
    {ArgKey::kModuleHierarchy, "Module Hierarchy"},
    {ArgKey::kOverloadName, "Overload name"},
    {ArgKey::kOverloadName, "Overload Name"},
    {ArgKey::kCorrelation, "correlation"},
    {ArgKey::kCbid, "cbid"},
    {ArgKey::kDevice, "device"},
    {ArgKey::kContext, "context"},
    {ArgKey::kStream, "stream"},
    {ArgKey::kQueued, "queued"},
    {ArgKey::kPriority, "priority"},
    {ArgKey::kRegistersPerThread, "registers per thread"},
    {ArgKey::kSharedMemory, "shared memory"},
    {ArgKey::kBlocksPerSm, "blocks per SM"},
    {ArgKey::kWarpsPerSm, "warps per SM"},
    {ArgKey::kGrid, "grid"},
    {ArgKey::kBlock, "block"},
    {ArgKey::kOccupancy, "est. achieved occupancy %"},
    {ArgKey::kOccupancy, "theoretical occupancy %"},
    {ArgKey::kGraphId, "graph id"},
    {ArgKey::kGraphNodeId, "graph node id"},
    {ArgKey::kBytes, "bytes"},
    {ArgKey::kMemoryBandwidth, "memory bandwidth (GB/s)"},
    {ArgKey::kCollectiveName, "Collective name"},
    {ArgKey::kInMsgNelems, "In msg nelems"},
    {ArgKey::kOutMsgNelems, "Out msg nelems"},
    {ArgKey::kInSplitSize, "In split size"},
    {ArgKey::kOutSplitSize, "Out split size"},
    {ArgKey::kGroupSize, "Group size"},
    {ArgKey::kDtype, "dtype"},
    {ArgKey::kProcessGroupName, "Process Group Name"},
    {ArgKey::kProcessGroupDescription, "Process Group Description"},
    {ArgKey::kProcessGroupRanks, "Process Group Ranks"},
    {ArgKey::kCollectiveSeq, "Seq"},
    {ArgKey::kMemoryBytes, "Bytes"},
    {ArgKey::kTotalAllocated, "Total Allocated"},
    {ArgKey::kTotalReserved, "Total Reserved"},
    {ArgKey::kAddr, "Addr"},
    {ArgKey::kDeviceId, "Device Id"},
    {ArgKey::kDeviceType, "Device Type"},
    {ArgKey::kPythonId, "Python id"},
    {ArgKey::kPythonParentId, "Python parent id"},
    {ArgKey::kPythonModuleId, "Python module id"},
    {ArgKey::kCudaSyncKind, "cuda_sync_kind"},
    {ArgKey::kWaitOnStream, "wait_on_stream"},
    {ArgKey::kWaitOnEventCorrelation, "wait_on_cuda_event_record_corr_id"},
    {ArgKey::kWaitOnEventId, "wait_on_cuda_event_id"},
    {ArgKey::kEventId, "event_id"},
    {ArgKey::kFlops, "flops"},
    {ArgKey::kLaunchStep, "launch step"},
    {ArgKey::kLaunchedBeforeWindow, "launched before window"},
    {ArgKey::kOccupancyLimit, "occupancy limit"},
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  return hash * 0xd6e8feb86659fd93;
}

}  // namespace

ArgKey arg_key(std::string_view text) {
  for (const KeyRow& row : kKeys)
    if (row.text == text) return row.key;
  return ArgKey::kCount;
}

std::string_view arg_key_text(ArgKey key) {
  for (const KeyRow& row : kKeys)
    if (row.key == key) return row.text;
  return {};
}

void ArgsTable::begin() {
  pending_.clear();
  pending_hash_ = 0;
  pending_overflow_ = false;
  event_start_ = words_.size();
  words_.push_back(0);  // the shape, known at end()
}

void ArgsTable::add(StringId key, ArgKey known, ArgType type, std::uint64_t bits) {
  const std::uint32_t count = arg_words(type);
  if (pending_.size() >= 30000 || words_.size() - event_start_ + count > kMaxEventWords) {
    pending_overflow_ = true;
    return;
  }
  pending_.push_back({key, known, type});
  pending_hash_ = mix(
      pending_hash_, (static_cast<std::uint64_t>(raw(key)) << 8) | static_cast<std::uint8_t>(type));
  if (count >= 1) words_.push_back(static_cast<std::uint32_t>(bits));
  if (count == 2) words_.push_back(static_cast<std::uint32_t>(bits >> 32));
}

void ArgsTable::add_int(StringId key, ArgKey known, std::int64_t value) {
  const bool narrow = value >= INT32_MIN && value <= INT32_MAX;
  add(key, known, narrow ? ArgType::kInt32 : ArgType::kInt64, static_cast<std::uint64_t>(value));
}

void ArgsTable::add_uint(StringId key, ArgKey known, std::uint64_t value) {
  if (value <= INT64_MAX) return add_int(key, known, static_cast<std::int64_t>(value));
  add(key, known, ArgType::kUint64, value);
}

void ArgsTable::add_double(StringId key, ArgKey known, double value) {
  add(key, known, ArgType::kDouble, std::bit_cast<std::uint64_t>(value));
}

void ArgsTable::add_string(StringId key, ArgKey known, StringId value) {
  add(key, known, ArgType::kString, raw(value));
}

void ArgsTable::add_json(StringId key, ArgKey known, StringId raw_text) {
  add(key, known, ArgType::kJson, raw(raw_text));
}

ArgsId ArgsTable::end(bool* overflowed) {
  if (overflowed) *overflowed = pending_overflow_;
  if (pending_.empty()) {
    words_.resize(event_start_);
    return kNone<ArgsId>;
  }
  words_[event_start_] = shape_of_pending();
  return ArgsId{static_cast<std::uint32_t>(event_start_)};
}

void ArgsTable::cancel() {
  words_.resize(event_start_);
  pending_.clear();
}

std::uint32_t ArgsTable::shape_of_pending() {
  const auto [first, last] = shape_by_hash_.equal_range(pending_hash_);
  for (auto it = first; it != last; ++it) {
    const std::vector<ArgField>& fields = shapes_[it->second].fields;
    bool same = fields.size() == pending_.size();
    for (std::size_t i = 0; same && i < fields.size(); ++i)
      same = fields[i].key == pending_[i].key && fields[i].type == pending_[i].type;
    if (same) return it->second;
  }
  ArgShape shape;
  shape.slots.fill(-1);
  shape.fields.reserve(pending_.size());
  std::uint32_t word = 0;
  for (const Pending& field : pending_) {
    if (field.known != ArgKey::kCount)
      shape.slots[static_cast<std::size_t>(field.known)] =
          static_cast<std::int16_t>(shape.fields.size());
    shape.fields.push_back({field.key, field.type, static_cast<std::uint16_t>(word)});
    word += arg_words(field.type);
  }
  shapes_.push_back(std::move(shape));
  const auto id = static_cast<std::uint32_t>(shapes_.size() - 1);
  shape_by_hash_.emplace(pending_hash_, id);
  return id;
}

ArgsView ArgsTable::view(ArgsId id) const {
  if (id == kNone<ArgsId>) return {};
  const std::uint32_t* words = words_.data() + raw(id);
  return {&shapes_[words[0]], words + 1};
}

std::size_t ArgsTable::memory_bytes() const {
  std::size_t bytes = words_.capacity() * sizeof(std::uint32_t);
  for (const ArgShape& shape : shapes_)
    bytes += sizeof(ArgShape) + shape.fields.capacity() * sizeof(ArgField) + 48;
  return bytes;
}

std::uint64_t ArgsView::bits(const ArgField& field) const {
  const std::uint32_t count = arg_words(field.type);
  std::uint64_t value = count >= 1 ? words_[field.word] : 0;
  if (count == 2) value |= static_cast<std::uint64_t>(words_[field.word + 1]) << 32;
  return value;
}

std::optional<std::int64_t> ArgsView::integer(const ArgField* field) const {
  if (!field) return std::nullopt;
  if (field->type == ArgType::kInt32) return static_cast<std::int32_t>(words_[field->word]);
  if (field->type == ArgType::kInt64) return static_cast<std::int64_t>(bits(*field));
  return std::nullopt;
}

std::optional<double> ArgsView::number(const ArgField* field) const {
  if (!field) return std::nullopt;
  if (field->type == ArgType::kDouble) return std::bit_cast<double>(bits(*field));
  if (field->type == ArgType::kUint64) return static_cast<double>(bits(*field));
  if (const auto whole = integer(field)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<StringId> ArgsView::text(ArgKey key) const {
  const ArgField* field = find(key);
  if (!field || (field->type != ArgType::kString && field->type != ArgType::kJson))
    return std::nullopt;
  return StringId{words_[field->word]};
}

}  // namespace lanescope

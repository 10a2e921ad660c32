// An event's arguments: all that the file has, compact, in order, and typed where analyses need it.
//
// Problem: a trace has few kinds of events and each kind repeats the same keys, so storing key and
// value per event wastes most of the memory. Idea: the list of (key, type) is interned as an
// ArgShape; an event keeps its shape and 32-bit words. Example: {"External id": 7, "Ev Idx": 3} is
// the shape [External id:int32, Ev Idx:int32] and the words [shape, 7, 3].
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lanescope/base/ids.h"
#include "lanescope/base/string_pool.h"

namespace lanescope {

// Keys that analyses ask for; a lookup by one of these costs two loads. Other keys can be
// found by text.
enum class ArgKey : std::uint8_t {
  kExternalId,
  kRecordFunctionId,
  kSequenceNumber,
  kFwdThreadId,
  kEvIdx,
  kInputDims,
  kInputType,
  kInputStrides,
  kConcreteInputs,
  kCallStack,
  kModuleHierarchy,
  kOverloadName,
  kCorrelation,
  kCbid,
  kDevice,
  kContext,
  kStream,
  kQueued,
  kPriority,
  kRegistersPerThread,
  kSharedMemory,
  kBlocksPerSm,
  kWarpsPerSm,
  kGrid,
  kBlock,
  kOccupancy,
  kGraphId,
  kGraphNodeId,
  kBytes,
  kMemoryBandwidth,
  kCollectiveName,
  kInMsgNelems,
  kOutMsgNelems,
  kInSplitSize,
  kOutSplitSize,
  kGroupSize,
  kDtype,
  kProcessGroupName,
  kProcessGroupDescription,
  kProcessGroupRanks,
  kCollectiveSeq,
  kMemoryBytes,
  kTotalAllocated,
  kTotalReserved,
  kAddr,
  kDeviceId,
  kDeviceType,
  kPythonId,
  kPythonParentId,
  kPythonModuleId,
  kCudaSyncKind,
  kWaitOnStream,
  kWaitOnEventCorrelation,
  kWaitOnEventId,
  kEventId,
  kFlops,
  kLaunchStep,
  kLaunchedBeforeWindow,
  kOccupancyLimit,
  kCount
};
inline constexpr std::size_t kArgKeyCount = static_cast<std::size_t>(ArgKey::kCount);
// Accepts every spelling of the known writers ("External id", "external id", ...); kCount:
// none of them.
ArgKey arg_key(std::string_view text);
std::string_view arg_key_text(ArgKey key);  // torch 2's spelling

enum class ArgType : std::uint8_t {
  kNull,
  kFalse,
  kTrue,
  kInt32,
  kInt64,
  kUint64,
  kDouble,
  kString,
  kJson
};
constexpr std::uint32_t arg_words(ArgType type) {  // 32-bit words a value takes
  switch (type) {
    case ArgType::kNull:
    case ArgType::kFalse:
    case ArgType::kTrue:
      return 0;
    case ArgType::kInt32:
    case ArgType::kString:
    case ArgType::kJson:
      return 1;
    default:
      return 2;
  }
}

struct ArgField {
  StringId key;
  ArgType type;
  std::uint16_t word;  // offset of the value after the shape word
};

struct ArgShape {
  std::vector<ArgField> fields;
  std::array<std::int16_t, kArgKeyCount>
      slots;  // index into fields, -1 when absent; the last of equal keys wins
};

class ArgsView;

// All arguments of one Trace. Written by TraceBuilder, read-only afterwards (any thread).
// Strings are ids of the Trace's pool; kJson is the raw JSON text of a list or an object, as the
// file had it.
class ArgsTable {
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
  std::uint32_t shape(ArgsId id) const { return words_[raw(id)]; }
  ArgsId add_event(std::uint32_t shape, std::span<const std::uint32_t> words) {
    event_start_ = words_.size();
    words_.push_back(shape);
    words_.insert(words_.end(), words.begin(), words.end());
    return ArgsId{static_cast<std::uint32_t>(event_start_)};
  }
  // Removes everything since the last begin() or add_event(), also after end().
  void cancel();

  ArgsView view(ArgsId id) const;
  std::size_t memory_bytes() const;
  void shrink_to_fit() { words_.shrink_to_fit(); }
  std::size_t shape_count() const { return shapes_.size(); }

 private:
  friend class ArgsView;
  struct Pending {
    StringId key;
    ArgKey known;
    ArgType type;
    bool operator==(const Pending&) const = default;
  };
  std::uint32_t shape_of_pending();

  std::vector<std::uint32_t> words_;
  std::vector<ArgShape> shapes_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> shape_by_hash_;
  std::vector<Pending> pending_;
  std::uint64_t pending_hash_ = 0;
  std::size_t event_start_ = 0;
  bool pending_overflow_ = false;
};

// One event's arguments. Borrows the table; cheap to copy. Missing, or of another type: nullopt.
class ArgsView {
 public:
  ArgsView() = default;
  bool empty() const { return shape_ == nullptr; }
  std::size_t size() const { return shape_ ? shape_->fields.size() : 0; }
  const ArgField& field(std::size_t index) const { return shape_->fields[index]; }
  bool has(ArgKey key) const { return find(key) != nullptr; }
  const ArgField* find(ArgKey key) const {
    if (!shape_) return nullptr;
    const int slot = shape_->slots[static_cast<std::size_t>(key)];
    return slot < 0 ? nullptr : &shape_->fields[static_cast<std::size_t>(slot)];
  }
  std::optional<std::int64_t> integer(ArgKey key) const { return integer(find(key)); }
  // Integers count as numbers.
  std::optional<double> number(ArgKey key) const { return number(find(key)); }
  std::optional<double> number(const ArgField* field) const;
  std::optional<StringId> text(ArgKey key) const;  // kString or kJson: text of the value
  std::optional<std::int64_t> integer(const ArgField* field) const;
  std::uint64_t bits(const ArgField& field) const;  // the words as stored

 private:
  friend class ArgsTable;
  ArgsView(const ArgShape* shape, const std::uint32_t* words) : shape_(shape), words_(words) {}
  const ArgShape* shape_ = nullptr;
  const std::uint32_t* words_ = nullptr;
};

}  // namespace lanescope

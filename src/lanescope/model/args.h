// An event's arguments: all that the file has, compact, in order, and typed where analyses need it.
//
// Problem: a trace has few kinds of events, each kind repeats the same keys, and most of its values
// repeat, too (the grid of a kernel, the device). Idea: the list of (key, type) is interned as an
// ArgShape, and the values that repeat are interned together as an ArgVariant of that shape; an
// event keeps its variant and the other values, in 32-bit words. Example: {"correlation": 7,
// "device": 0, "stream": 3} is the shape [correlation:int32, device:int32 shared, stream:int32
// shared], the variant [shape, 0, 3], and the words [variant, 7]. Numbers that count the same thing
// from different beginnings ("External id" and "Ev Idx" of an operator) have a difference that
// repeats: then one of them is the event's own, and the variant has the difference of the other.
// ArgsBuilder makes them, and decides what is shared.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lanescope/base/ids.h"
#include "lanescope/model/column.h"

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
  kSamples,
  kSelfSamples,
  kOnCpuSamples,
  kSampleLines,
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
  static constexpr std::uint16_t kNoBase = 0xffff;

  StringId key;
  ArgType type;
  bool is_shared;      // the value is a variant's, not the event's own
  std::uint16_t word;  // its offset in the words of the variant, or of the event after the first
  // kInt32 alone: the variant has the value less (modulo 2^32) the event's own word at this offset.
  std::uint16_t base = kNoBase;
};

struct ArgShape {
  std::uint32_t first_field;  // fields [first_field, first_field + field_count) of the table
  std::uint32_t field_count;
  std::array<std::int16_t, kArgKeyCount>
      slots;  // which of these fields, -1 when absent; the last of equal keys wins
};

// Values that many events have together.
struct ArgVariant {
  std::uint32_t shape;
  std::uint32_t first_word;  // of ArgsTable::shared
};

// One event's arguments. Borrows the table; cheap to copy. Missing, or of another type: nullopt.
class ArgsView {
 public:
  ArgsView() = default;
  // `fields`: those of `shape`. `own` and `shared`: the values of the event and of its variant.
  ArgsView(const ArgShape* shape, const ArgField* fields, const std::uint32_t* own,
           const std::uint32_t* shared)
      : shape_(shape), fields_(fields), words_{own, shared} {}
  bool empty() const { return shape_ == nullptr; }
  std::size_t size() const { return shape_ ? shape_->field_count : 0; }
  const ArgField& field(std::size_t index) const { return fields_[index]; }
  bool has(ArgKey key) const { return find(key) != nullptr; }
  const ArgField* find(ArgKey key) const {
    if (!shape_) return nullptr;
    const int slot = shape_->slots[static_cast<std::size_t>(key)];
    return slot < 0 ? nullptr : &fields_[slot];
  }
  std::optional<std::int64_t> integer(ArgKey key) const { return integer(find(key)); }
  // Integers count as numbers.
  std::optional<double> number(ArgKey key) const { return number(find(key)); }
  std::optional<double> number(const ArgField* field) const;
  std::optional<StringId> text(ArgKey key) const;  // kString or kJson: text of the value
  std::optional<std::int64_t> integer(const ArgField* field) const;
  std::uint64_t bits(const ArgField& field) const;  // the words as stored

 private:
  const std::uint32_t* words(const ArgField& field) const {
    return words_[field.is_shared ? 1 : 0] + field.word;
  }
  std::uint32_t first_word(const ArgField& field) const {
    const std::uint32_t word = *words(field);
    return field.base == ArgField::kNoBase ? word : word + words_[0][field.base];
  }

  const ArgShape* shape_ = nullptr;
  const ArgField* fields_ = nullptr;
  std::array<const std::uint32_t*, 2> words_{};  // the event's own, the variant's
};

// All arguments of one Trace. Strings are ids of the Trace's texts; kJson is the raw JSON text of
// a list or an object, as the file had it.
template <template <typename> class List>
struct ArgsTable {
  List<std::uint32_t> words;  // of an event: its variant, then its values. An ArgsId points here
  List<ArgVariant> variants;
  List<std::uint32_t> shared;  // the values of all variants, one variant after the other
  List<ArgShape> shapes;
  List<ArgField> fields;  // of all shapes, one shape after the other

  // kNone: no arguments.
  [[gnu::always_inline]] ArgsView view(ArgsId id) const {
    if (id == kNone<ArgsId>) return {};
    const std::uint32_t* const event = words.data() + raw(id);
    const ArgVariant& variant = variants[*event];
    const ArgShape& shape = shapes[variant.shape];
    return {&shape, fields.data() + shape.first_field, event + 1,
            shared.data() + variant.first_word};
  }
};

using ArgsColumns = ArgsTable<Column>;

}  // namespace lanescope

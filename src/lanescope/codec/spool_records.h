// The records of a spool: 48 bytes each, and what these bytes mean for each kind of record.
//
// All kinds have their kind at the same place, and nearly all have a time in front. So read `head`
// first, then the member that the kind names:
//
//   switch (record.head.kind) {
//     case RecordKind::kInstant: use(record.instant.name, record.instant.detail);
//
// A writer makes the record of one kind; it becomes a Record by itself, and what is not named is 0:
//
//   spool.write_control(NoteRecord{.begin_tsc = ticks(), .line = text, .session = 3});
//
// Times are ticks of the recorder's clock. Texts are ids; 0 is the empty text, or none. Records of
// device activities are in activity_layout.h. docs/formats/spool.md names all fields alike.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lanescope::spool {

enum class RecordKind : std::uint8_t {
  kNone = 0,
  // In chunks of threads.
  kRange = 1,  // RangeRecord; with kFrameScope a FrameRecord
  kRangeEnd = 2,
  kEndByHandle = 3,
  kInstant = 4,
  kMemory = 5,       // MemoryRecord
  kOutOfMemory = 6,  // MemoryRecord; its bytes were asked for
  kCallNumbers = 7,
  kTensor = 8,
  kSample = 9,
  // In kept chunks.
  kKeptFrom = 15,
  // In control chunks.
  kAnchor = 16,
  kWindowStart = 17,  // WindowRecord
  kWindowStop = 18,   // WindowRecord
  kMetadata = 19,
  kSourceNote = 20,  // NoteRecord
};

// What all kinds have at the same place. What a kind does not have is reserved, and 0.
struct RecordHead {
  std::uint64_t begin_tsc = 0;
  std::uint64_t end_tsc = 0;  // no time in memory, call numbers, tensor and anchor records
  std::uint32_t reserved0 = 0;
  RecordKind kind = RecordKind::kNone;  // or an ActivityKind
  std::uint8_t reserved1 = 0;
  std::uint16_t reserved2 = 0;
  std::uint64_t reserved3[3] = {};
};

// at::RecordScope's numbers; lanescope's own ranges are kUserScope.
inline constexpr std::uint8_t kFunctionScope = 0;
inline constexpr std::uint8_t kBackwardScope = 1;
inline constexpr std::uint8_t kUserScope = 7;
// A Python frame; the values of at::RecordScope are far below.
inline constexpr std::uint8_t kFrameScope = 64;

enum RecordFlag : std::uint16_t {
  kHasSequence = 1,       // of a range: its sequence number is set
  kHasForwardThread = 2,  // of a range: its forward thread is set
  kAsync = 4,             // may end on another thread
  kNvtx = 8,              // an NVTX range
  kModuleFrame = 16,      // a frame of an nn.Module
};

struct RangeRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t end_tsc = 0;  // 0: not ended, or ended by a record of one of the next two kinds
  std::uint32_t name = 0;
  RecordKind kind = RecordKind::kRange;
  std::uint8_t scope = 0;
  std::uint16_t flags = 0;  // RecordFlag
  std::int64_t sequence_number = 0;
  std::uint32_t forward_thread = 0;  // torch's numbering
  std::uint32_t detail = 0;          // what codec/op_details.h packs: shapes, types, ...; 0: none
  std::uint64_t handle = 0;
};

// A Python frame: a range with two other numbers.
struct FrameRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t end_tsc = 0;
  std::uint32_t name = 0;
  RecordKind kind = RecordKind::kRange;
  std::uint8_t scope = kFrameScope;
  std::uint16_t flags = 0;   // RecordFlag
  std::int64_t module = 0;   // with kModuleFrame: its number among the modules of its class
  std::uint32_t depth = 0;   // among the thread's frames, from 1
  std::uint32_t detail = 0;  // as in a range, and so is its handle
  std::uint64_t handle = 0;
};

// Where a thread's record is: the sequence of its chunk, and its number in the chunk.
struct RecordPlace {
  std::uint32_t slot = 0;
  std::uint32_t sequence = 0;
  bool operator==(const RecordPlace&) const = default;
};

// Ends the range at `place` of this thread, in a chunk that is no longer written.
struct RangeEndRecord {
  std::uint64_t reserved0 = 0;
  std::uint64_t end_tsc = 0;
  std::uint32_t reserved1 = 0;
  RecordKind kind = RecordKind::kRangeEnd;
  std::uint8_t reserved2 = 0;
  std::uint16_t reserved3 = 0;
  RecordPlace place;
  std::uint64_t reserved4[2] = {};
};

// Ends the last open range of any thread that has this handle.
struct EndByHandleRecord {
  std::uint64_t reserved0 = 0;
  std::uint64_t end_tsc = 0;
  std::uint32_t reserved1 = 0;
  RecordKind kind = RecordKind::kEndByHandle;
  std::uint8_t reserved2 = 0;
  std::uint16_t reserved3 = 0;
  std::uint64_t reserved4[2] = {};
  std::uint64_t handle = 0;
};

struct InstantRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t reserved0 = 0;
  std::uint32_t name = 0;
  RecordKind kind = RecordKind::kInstant;
  std::uint8_t reserved1 = 0;
  std::uint16_t reserved2 = 0;
  std::uint64_t reserved3 = 0;
  std::uint32_t reserved4 = 0;
  std::uint32_t detail = 0;  // as in a range
  std::uint64_t reserved5 = 0;
};

struct MemoryRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t total_allocated = 0;     // bytes
  std::uint32_t total_reserved_low = 0;  // see total_reserved()
  RecordKind kind = RecordKind::kMemory;
  std::uint8_t device_type = 0;    // c10::DeviceType: 0 CPU, 1 CUDA
  std::int16_t device_index = -1;  // -1: CPU
  std::int64_t bytes = 0;          // negative: freed
  std::uint32_t total_reserved_high = 0;
  std::uint32_t reserved0 = 0;
  std::uint64_t address = 0;

  std::uint64_t total_reserved() const {  // bytes
    return total_reserved_low | std::uint64_t{total_reserved_high} << 32;
  }
  void set_total_reserved(std::uint64_t bytes_reserved) {
    total_reserved_low = static_cast<std::uint32_t>(bytes_reserved);
    total_reserved_high = static_cast<std::uint32_t>(bytes_reserved >> 32);
  }
};

enum CallNumberFlag : std::uint16_t {
  kHasSeq = 1,
  kHasCommsId = 2,
  kHasRecordFunctionId = 4,
};

// Numbers that change in each call. They belong to this thread's next range, if it has that name.
// They are not part of the range's detail, so equal details are kept once. Only collectives have
// `seq` and `comms_id`.
struct CallNumbersRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t record_function_id = 0;
  std::uint32_t name = 0;
  RecordKind kind = RecordKind::kCallNumbers;
  std::uint8_t reserved0 = 0;
  std::uint16_t flags = 0;  // CallNumberFlag
  std::int64_t seq = 0;
  std::uint64_t reserved1 = 0;
  std::uint64_t comms_id = 0;
};

// What a tensor is to the range or frame of its TensorRecord.
enum class TensorRole : std::uint8_t {
  kInput = 0,  // an operator takes it; only for the next range, if it has that name
  kParameter = 1,
  kGradient = 2,  // of the parameter before it
  kOptimizerParameter = 3,
  kOptimizerGradient = 4,
  kOptimizerState = 5,
  kLost = 6,  // an input without identity: there were too many tensors
};
inline constexpr std::uint32_t kMostInput = 0xffffff;

// A tensor of this thread's next range or frame.
struct TensorRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t implementation = 0;  // address of its TensorImpl
  std::uint32_t operator_name = 0;   // kInput and kLost only
  RecordKind kind = RecordKind::kTensor;
  std::uint8_t device_type = 0;   // c10::DeviceType
  std::int16_t device_index = 0;  // -1: the device has no index
  std::int64_t bytes = 0;         // from its first element to the end of its last; -1: not strided
  std::uint32_t input : 24 = 0;   // position among the inputs, at most kMostInput
  TensorRole role = TensorRole::kLost;
  std::uint32_t item = 0;     // position in a list of tensors, from 1; 0: no list
  std::uint64_t address = 0;  // of its storage; 0: none
};

enum SampleFlag : std::uint8_t {
  kCpuTimeKnown = 1,  // of the thread, since its sample before
  kOnCpu = 2,         // with kCpuTimeKnown: it ran for at least half of that time
  kHeldLock = 4,      // it held the interpreter's lock (GIL)
  kOthersWaited = 8,  // with kHeldLock: other threads waited for it
  kCollected = 16,    // with kHeldLock: garbage was being collected
};

// A run of equal samples of a thread's Python stack. It is in a chunk of the thread that takes the
// samples.
struct SampleRecord {
  std::uint64_t begin_tsc = 0;  // the first sample
  std::uint64_t end_tsc = 0;    // the last one
  std::uint32_t node = 0;       // the innermost frame: a kSampleNode of codec/op_details.h
  RecordKind kind = RecordKind::kSample;
  std::uint8_t flags = 0;  // SampleFlag
  std::uint16_t reserved0 = 0;
  std::uint64_t thread = 0;  // OS thread id
  std::uint32_t samples = 0;
  std::uint32_t period_ns = 0;  // mean distance of samples
  std::uint32_t process = 0;    // a child of the recorded process; 0: that one
  std::uint32_t reserved1 = 0;
};

// Comes before each record of a kept chunk, and says from which thread and place that record came.
struct KeptFromRecord {
  std::uint64_t reserved0 = 0, reserved1 = 0;
  std::uint32_t reserved2 = 0;
  RecordKind kind = RecordKind::kKeptFrom;
  std::uint8_t reserved3 = 0;
  std::uint16_t reserved4 = 0;
  RecordPlace place;
  std::uint32_t thread = 0;
  std::uint32_t reserved5 = 0;
  std::uint64_t reserved6 = 0;
};

// One moment on three clocks.
struct AnchorRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t width_ticks = 0;  // how long the reading took
  std::uint32_t reserved0 = 0;
  RecordKind kind = RecordKind::kAnchor;
  std::uint8_t reserved1 = 0;
  std::uint16_t reserved2 = 0;
  std::int64_t monotonic_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t reserved3 = 0;
  std::uint64_t realtime_ns = 0;  // CLOCK_REALTIME
};

struct WindowRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t reserved0 = 0;
  std::uint32_t reserved1 = 0;
  RecordKind kind = RecordKind::kWindowStart;
  std::uint8_t reserved2 = 0;
  std::uint16_t reserved3 = 0;
  std::uint32_t cycle = 0;
  std::uint32_t reserved4 = 0;
  std::uint32_t session = 0;
  std::uint32_t options = 0;  // see record_options.h
  std::uint64_t last_ns = 0;  // of a ring's start: how long before the window's end counts; else 0
};

struct MetadataRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t reserved0 = 0;
  std::uint32_t key = 0;
  RecordKind kind = RecordKind::kMetadata;
  std::uint8_t reserved1 = 0;
  std::uint16_t reserved2 = 0;
  std::uint64_t reserved3 = 0;
  std::uint32_t session = 0;  // 0: every session
  std::uint32_t json = 0;
  std::uint64_t reserved4 = 0;
};

// One line for the user: a source that could not start, its cost.
struct NoteRecord {
  std::uint64_t begin_tsc = 0;
  std::uint64_t reserved0 = 0;
  std::uint32_t line = 0;
  RecordKind kind = RecordKind::kSourceNote;
  std::uint8_t reserved1 = 0;
  std::uint16_t reserved2 = 0;
  std::uint64_t reserved3 = 0;
  std::uint32_t session = 0;
  std::uint32_t reserved4 = 0;
  std::uint64_t reserved5 = 0;
};

// A record of any kind. `head` is valid for all of them: their first members have equal types.
union Record {
  RecordHead head;
  RangeRecord range;
  FrameRecord frame;  // a range, too: it may be read as either
  RangeEndRecord range_end;
  EndByHandleRecord end_by_handle;
  InstantRecord instant;
  MemoryRecord memory;
  CallNumbersRecord call_numbers;
  TensorRecord tensor;
  SampleRecord sample;
  KeptFromRecord kept_from;
  AnchorRecord anchor;
  WindowRecord window;
  MetadataRecord metadata;
  NoteRecord note;

  Record() : head{} {}  // all bytes 0
  Record(const RangeRecord& of) : range(of) {}
  Record(const FrameRecord& of) : frame(of) {}
  Record(const RangeEndRecord& of) : range_end(of) {}
  Record(const EndByHandleRecord& of) : end_by_handle(of) {}
  Record(const InstantRecord& of) : instant(of) {}
  Record(const MemoryRecord& of) : memory(of) {}
  Record(const CallNumbersRecord& of) : call_numbers(of) {}
  Record(const TensorRecord& of) : tensor(of) {}
  Record(const SampleRecord& of) : sample(of) {}
  Record(const KeptFromRecord& of) : kept_from(of) {}
  Record(const AnchorRecord& of) : anchor(of) {}
  Record(const WindowRecord& of) : window(of) {}
  Record(const MetadataRecord& of) : metadata(of) {}
  Record(const NoteRecord& of) : note(of) {}
};

// Whether every T has the size of a record, no gaps between its fields, and its kind at the usual
// place.
template <typename... T>
consteval bool are_records() {
  constexpr bool right_size = ((sizeof(T) == 48) && ...);
  constexpr bool right_alignment = ((alignof(T) == 8) && ...);
  constexpr bool kind_in_place = ((offsetof(T, kind) == 20) && ...);
  constexpr bool no_gaps =
      ((std::is_standard_layout_v<T> && std::has_unique_object_representations_v<T>)&&...);
  return right_size && right_alignment && kind_in_place && no_gaps;
}
static_assert(
    are_records<RecordHead, RangeRecord, FrameRecord, RangeEndRecord, EndByHandleRecord,
                InstantRecord, MemoryRecord, CallNumbersRecord, TensorRecord, SampleRecord,
                KeptFromRecord, AnchorRecord, WindowRecord, MetadataRecord, NoteRecord>());
static_assert(sizeof(Record) == 48 && alignof(Record) == 8 && std::is_trivially_copyable_v<Record>);

}  // namespace lanescope::spool

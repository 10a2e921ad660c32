// The bytes of a spool: the file that a recording is written to while the program runs.
// docs/formats/spool.md explains it.
//
//   page 0            FileHeader
//   page 1 ...        chunks of kChunkBytes each: a ChunkHeader, then records, texts,
//                     thread slots or control records
//
// Everything is little-endian and naturally aligned. A chunk fills from its front. `used` grows
// with a release store after the bytes that it covers are written, so a file of a killed process
// shows only complete records.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lanescope::spool {

inline constexpr char kMagic[8] = {'L', 'S', 'S', 'P', 'O', 'O', 'L', '\n'};
// 1: without kActivities chunks; 2: without rings; 3: without activities in threads' chunks;
// 4: without small chunks; 5: without Python frames
inline constexpr std::uint32_t kLayoutVersion = 6;
inline constexpr std::size_t kHeaderBytes = 4096;
inline constexpr std::size_t kChunkBytes = 128 * 1024;
inline constexpr std::size_t kChunkHeaderBytes = 128;
inline constexpr std::uint32_t kChunkMagic = 0x4b43534c;  // "LSCK"
inline constexpr std::uint32_t kNoThread = 0xffffffff;
inline constexpr std::size_t kMaxTextBytes = 32 * 1024;  // cuts longer names and details

enum class RecordKind : std::uint8_t {
  kNone = 0,
  // Records of a thread's chunks.
  kRange = 1,  // a range; end_tsc 0 = not ended, or ended by one of the next two
  // end_tsc ends the range at slot (a & 0xffffffff) of this thread's chunk (a >> 32)
  kRangeEnd = 2,
  kEndByHandle = 3,  // end_tsc ends the last open range of any thread whose d is this d
  kInstant = 4,      // begin_tsc, name, c: detail
  kMemory = 5,       // see set_memory()
  kOutOfMemory = 6,  // the same fields; a: bytes asked for
  kCallNumbers = 7,  // for this thread's next range, if it has that name; flags: CallNumberFlag; a:
                     // Seq, d: Comms Id, end_tsc: Record function id
  kTensor = 8,       // see set_tensor(): a tensor of this thread's next range or frame
  // Records of kKept chunks. The next record is of thread b, from the place a (as in kRangeEnd).
  kKeptFrom = 15,
  // Records of control chunks.
  kAnchor = 16,  // begin_tsc, a: CLOCK_MONOTONIC ns, d: CLOCK_REALTIME ns, end_tsc: width of the
                 // reading in ticks
  kWindowStart = 17,  // begin_tsc; a: cycle; b: session; c: options (RecordOption bits); d: of a
                      // ring, the nanoseconds before the window's end that count, else 0
  kWindowStop = 18,   // begin_tsc; a: cycle; b: session
  kMetadata = 19,     // name: key, c: JSON text, b: session
  // name: one line for the user (a source that could not start, its cost), b: session
  kSourceNote = 20,
};

// at::RecordScope's numbers; lanescope's own ranges are kUserScope.
inline constexpr std::uint8_t kFunctionScope = 0;
inline constexpr std::uint8_t kBackwardScope = 1;
inline constexpr std::uint8_t kUserScope = 7;
// A Python frame; the values of at::RecordScope are far below. b: its depth among the thread's
// frames, from 1.
inline constexpr std::uint8_t kFrameScope = 64;

enum RecordFlag : std::uint16_t {
  kHasSequence = 1,       // a is a sequence number
  kHasForwardThread = 2,  // b is the forward thread (torch's numbering)
  kAsync = 4,             // may end on another thread
  kNvtx = 8,              // an NVTX range
  kModuleFrame = 16,      // of an nn.Module; a is its number among those of its class
};

// Numbers that change in each call are not part of the range's detail: so the detail repeats, and
// the spool keeps it once. Only collectives have the first two.
enum CallNumberFlag : std::uint16_t {
  kHasSeq = 1,               // a
  kHasCommsId = 2,           // d
  kHasRecordFunctionId = 4,  // end_tsc, which is no time
};

// 48 bytes. Unused fields are 0.
struct Record {
  std::uint64_t begin_tsc = 0;
  std::uint64_t end_tsc = 0;  // 0: open
  std::uint32_t name = 0;     // text id; 0 is the empty text
  std::uint8_t kind = 0;      // RecordKind
  std::uint8_t scope = 0;
  std::uint16_t flags = 0;  // RecordFlag
  std::int64_t a = 0;       // sequence number; module number
  std::uint32_t b = 0;      // forward thread; depth of a frame
  std::uint32_t c = 0;      // text id of the detail (shapes, ...); 0: none
  std::uint64_t d = 0;      // handle
};
static_assert(sizeof(Record) == 48 && alignof(Record) == 8);

// A detail (Record::c) is the text id of what codec/op_details.h packs: shapes, types,
// concrete inputs, keywords.

// A memory event needs more 64-bit numbers and fewer names: another view of the same 48 bytes.
struct MemoryFields {
  std::int64_t bytes = 0;             // a; negative: freed
  std::uint64_t address = 0;          // d
  std::uint64_t total_allocated = 0;  // end_tsc
  std::uint64_t total_reserved = 0;   // name: low half, b: high half
  std::uint8_t device_type = 0;       // scope; c10::DeviceType: 0 CPU, 1 CUDA
  std::int16_t device_index = -1;     // flags; -1 CPU
};
inline void set_memory(Record& record, const MemoryFields& fields) {
  record.a = fields.bytes;
  record.d = fields.address;
  record.end_tsc = fields.total_allocated;
  record.name = static_cast<std::uint32_t>(fields.total_reserved);
  record.b = static_cast<std::uint32_t>(fields.total_reserved >> 32);
  record.scope = fields.device_type;
  record.flags = static_cast<std::uint16_t>(fields.device_index);
}
inline MemoryFields memory_fields(const Record& record) {
  return {record.a,       record.d,
          record.end_tsc, record.name | static_cast<std::uint64_t>(record.b) << 32,
          record.scope,   static_cast<std::int16_t>(record.flags)};
}

// What a kTensor record tells about its tensor.
enum class TensorRole : std::uint8_t {
  kInput = 0,  // an operator takes it; only for the next range, if it has that name
  kParameter = 1,
  kGradient = 2,  // of the parameter before it
  kOptimizerParameter = 3,
  kOptimizerGradient = 4,
  kOptimizerState = 5,
  kLost = 6,  // an input without identity: there were too many tensors
};

// Which tensor it is: another view of the same 48 bytes.
struct TensorFields {
  std::uint32_t operator_name = 0;      // name; kInput and kLost only
  TensorRole role = TensorRole::kLost;  // b: high byte
  std::uint32_t input = 0;              // b: low 24 bits; position among the inputs
  std::uint32_t item = 0;               // c: position in a list of tensors, from 1; 0: no list
  std::uint64_t address = 0;            // d: of its storage; 0: none
  std::uint64_t implementation = 0;     // end_tsc: address of its TensorImpl
  std::int64_t bytes = 0;         // a: from its first to behind its last element; -1: not strided
  std::uint8_t device_type = 0;   // scope; c10::DeviceType
  std::int16_t device_index = 0;  // flags; -1: the device has no index
};
inline constexpr std::uint32_t kMostInput = 0xffffff;
inline void set_tensor(Record& record, const TensorFields& fields) {
  record.name = fields.operator_name;
  record.b = static_cast<std::uint32_t>(fields.role) << 24 | (fields.input & kMostInput);
  record.c = fields.item;
  record.d = fields.address;
  record.end_tsc = fields.implementation;
  record.a = fields.bytes;
  record.scope = fields.device_type;
  record.flags = static_cast<std::uint16_t>(fields.device_index);
}
inline TensorFields tensor_fields(const Record& record) {
  return {record.name,
          static_cast<TensorRole>(record.b >> 24),
          record.b & kMostInput,
          record.c,
          record.d,
          record.end_tsc,
          record.a,
          record.scope,
          static_cast<std::int16_t>(record.flags)};
}

enum class ChunkKind : std::uint32_t {
  kFree = 0,        // prepared, never used
  kRecords = 1,     // of one thread
  kTexts = 2,       // {u32 id, u32 size, bytes, padding to 8} ...; used counts bytes
  kThreads = 3,     // ThreadSlot; used counts slots
  kControl = 4,     // Record; used counts records
  kActivities = 5,  // of an activity source, see activity_layout.h; used counts records
  kKept = 6,        // records still needed from chunks that a ring reused; used counts records
  kShared = 7,      // small chunks of many threads; used counts those handed out
};

enum class ChunkState : std::uint32_t {
  kOpen = 0,    // its writer still fills it, or was killed
  kClosed = 1,  // complete; checksum holds
};

struct ChunkHeader {
  std::uint32_t magic;
  std::uint32_t number;  // position in the file, from 0
  std::uint64_t spool_id;
  ChunkKind kind;
  std::uint32_t thread;    // kRecords: thread slot number, counted over all kThreads chunks
  std::uint32_t sequence;  // kRecords: counts this thread's chunks, from 1
  std::uint32_t place;     // 0: a whole chunk; else a small one, at this position in chunk `number`
  std::atomic<std::uint32_t> used;  // release; pairs with the acquire of whoever reads
                                    // the live file
  ChunkState state;
  std::uint32_t checksum;  // chunk_checksum(), written before `state`
  std::uint32_t reserved1;
  std::uint64_t in_memory_next;  // used only by the writing process; 0 in a closed chunk
  std::uint8_t padding[kChunkHeaderBytes - 56];
};
static_assert(sizeof(ChunkHeader) == kChunkHeaderBytes);

inline constexpr std::size_t kChunkPayloadBytes = kChunkBytes - kChunkHeaderBytes;
inline constexpr std::uint32_t kRecordsPerChunk = kChunkPayloadBytes / sizeof(Record);

// Threads begin with small chunks (kind kRecords, a ChunkHeader each), so that a thread with few
// records takes little room. They are inside a chunk of kind kShared, each at `place` times its
// size; place 0 is the header of the shared chunk.
inline constexpr std::size_t kSmallChunkBytes = 1024;
inline constexpr std::uint32_t kSmallChunks = kChunkBytes / kSmallChunkBytes - 1;
inline constexpr std::uint32_t kRecordsPerSmallChunk =
    (kSmallChunkBytes - kChunkHeaderBytes) / sizeof(Record);

struct ThreadSlot {
  std::uint32_t os_tid;
  std::uint32_t has_torch_tid;
  std::uint64_t torch_tid;  // at::RecordFunction::currentThreadId()
  std::atomic<std::uint64_t>
      dropped;  // records lost because no chunk was ready or the size limit was reached
  std::atomic<std::uint64_t> depth_overflow;  // ranges lost because too many were open
  std::atomic<std::uint64_t>
      reentered;  // records lost because a signal handler recorded during a record
  char name[64];  // ends with 0
  std::uint8_t padding[24];
};
static_assert(sizeof(ThreadSlot) == 128);
inline constexpr std::uint32_t kThreadsPerChunk = kChunkPayloadBytes / sizeof(ThreadSlot);

enum class ClockKind : std::uint32_t { kTsc = 1, kCntvct = 2, kMonotonicNs = 3 };
enum class FileState : std::uint32_t { kRecording = 0, kFinished = 1 };

struct FileHeader {
  char magic[8];
  std::uint32_t layout_version;
  std::uint32_t header_bytes, chunk_bytes, record_bytes;
  std::uint64_t spool_id;  // random; chunks repeat it
  std::uint64_t pid;
  std::uint64_t ticks_per_second;  // estimate made before the first window
  ClockKind clock;
  FileState state;
  std::uint64_t max_bytes;                            // the file's size limit
  std::atomic<std::uint64_t> dropped_without_thread;  // records lost on threads that have no slot
  std::atomic<std::uint64_t> dropped_texts;           // texts that found no room
  char process_name[64];
  char host_name[64];
  std::atomic<std::uint64_t> dropped_activities;  // activity records that a source lost, or that
                                                  // found no room
  // In ticks: for lack of room, a ring reused chunks with records up to here too early.
  std::atomic<std::uint64_t> ring_lost_until;
};
static_assert(sizeof(FileHeader) <= kHeaderBytes);

// CRC-32 (as in gzip) of the chunk's first 32 bytes, of `used`, and of the used payload. `bytes` is
// one whole chunk of `chunk_bytes`.
std::uint32_t chunk_checksum(const std::byte* bytes, std::uint32_t used,
                             std::size_t chunk_bytes = kChunkBytes);
// The payload bytes that `used` counts; at most the whole payload.
std::size_t used_bytes(ChunkKind kind, std::uint32_t used, std::size_t chunk_bytes = kChunkBytes);

}  // namespace lanescope::spool

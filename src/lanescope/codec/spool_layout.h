// The bytes of a spool: the file that a recording is written to while the program runs. Its records
// are in spool_records.h. docs/formats/spool.md explains it.
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

#include "lanescope/codec/spool_records.h"

namespace lanescope::spool {

inline constexpr char kMagic[8] = {'L', 'S', 'S', 'P', 'O', 'O', 'L', '\n'};
// 1: without kActivities chunks; 2: without rings; 3: without activities in threads' chunks;
// 4: without small chunks; 5: without Python frames; 6: without samples of Python stacks
inline constexpr std::uint32_t kLayoutVersion = 7;
inline constexpr std::size_t kHeaderBytes = 4096;
inline constexpr std::size_t kChunkBytes = 128 * 1024;
inline constexpr std::size_t kChunkHeaderBytes = 128;
inline constexpr std::uint32_t kChunkMagic = 0x4b43534c;  // "LSCK"
inline constexpr std::uint32_t kNoThread = 0xffffffff;
inline constexpr std::size_t kMaxTextBytes = 32 * 1024;  // cuts longer names and details

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
  // In ticks: for lack of room, a ring reused chunks too early; their records reach up to here.
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

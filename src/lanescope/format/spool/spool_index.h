// What a spool has besides its ranges: places of its chunks, texts, threads, windows,
// clock anchors, metadata.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/format/spool/spool_bytes.h"
#include "lanescope/format/spool/tick_map.h"
#include "lanescope/model/import_stats.h"

namespace lanescope::format {

struct SpoolChunk {
  std::uint64_t offset = 0;
  std::size_t bytes = spool::kChunkBytes;  // fewer in a small chunk
  spool::ChunkKind kind = spool::ChunkKind::kFree;
  std::uint32_t thread = 0, sequence = 0;
  std::uint32_t used = 0;  // records, slots or bytes that are there
  std::uint32_t checksum = 0;
  bool closed = false, cut = false;  // cut: the file ends inside
};

struct SpoolThread {
  std::uint32_t os_tid = 0;
  std::uint64_t torch_tid = 0;
  bool has_torch_tid = false;
  std::string name;
  std::uint64_t lost_records = 0;
};

struct SpoolWindow {
  std::uint32_t session = 0, cycle = 0, options = 0;
  std::uint64_t start = 0, stop = 0;  // ticks; stop 0: never closed
  std::uint64_t last_ns = 0;          // for a ring: how much of its end counts; 0: all
};

struct SpoolMetadata {
  std::uint32_t session = 0;  // 0: every session
  std::string key, json;
};

struct SpoolIndex {
  std::uint64_t pid = 0, ticks_per_second = 0;
  std::string process_name, host_name;
  bool finished = false;
  std::vector<SpoolChunk> record_chunks;    // by thread, then sequence
  std::vector<SpoolChunk> activity_chunks;  // by sequence: codec/activity_layout.h
  std::vector<SpoolChunk> kept_chunks;      // pairs of records from chunks that a ring reused
  std::uint64_t ring_lost_until = 0;        // ticks; before that, a ring has gaps
  std::vector<std::string> texts;           // by id; missing ones are empty
  std::vector<bool> has_text;
  std::vector<SpoolThread> threads;  // by number
  std::vector<SpoolWindow> windows;  // as written
  std::size_t stop_looks = 0;        // how many windows were checked to find those that stopped
  std::vector<TickAnchor> anchors;
  std::vector<SpoolMetadata> metadata;
  std::vector<std::pair<std::uint32_t, std::string>> notes;  // session, line
};

// Reads everything but the records. kCorruptInput: not a spool. kUnsupported: a layout of another
// version. `live`: open chunks are expected and not counted. Memory: texts, and 48 bytes per chunk.
Result<SpoolIndex> read_spool_index(const SpoolBytes& bytes, bool live, ImportStats* stats);

// Room for one chunk. Not cleared: a read fills what it gives away.
class ChunkBuffer {
 public:
  std::byte* data() const { return bytes_.get(); }
  operator std::span<std::byte>() const { return {bytes_.get(), spool::kChunkBytes}; }

 private:
  std::unique_ptr<std::byte[]> bytes_ =
      std::make_unique_for_overwrite<std::byte[]>(spool::kChunkBytes);
};

// Reads the payload of a chunk or small chunk into `buffer` (kChunkBytes). Returns the records.
// With `stats`, also checks the checksum and counts damage; without, that was done before.
std::span<const spool::Record> read_records(const SpoolBytes& bytes, const SpoolChunk& chunk,
                                            std::span<std::byte> buffer, ImportStats* stats);

// About how many records they have, at most what fits; an open chunk may not say.
std::size_t count_records(std::span<const SpoolChunk> chunks);

}  // namespace lanescope::format

#include "lanescope/codec/spool_layout.h"

#include <algorithm>

#include "lanescope/codec/crc32.h"

namespace lanescope::spool {

std::size_t used_bytes(ChunkKind kind, std::uint32_t used, std::size_t chunk_bytes) {
  if (kind == ChunkKind::kShared) return 0;  // each small chunk has its checksum
  std::size_t unit = 1;
  if (kind == ChunkKind::kRecords || kind == ChunkKind::kControl ||
      kind == ChunkKind::kActivities || kind == ChunkKind::kKept)
    unit = sizeof(Record);
  if (kind == ChunkKind::kThreads) unit = sizeof(ThreadSlot);
  return std::min(used * unit, (chunk_bytes - kChunkHeaderBytes) / unit * unit);
}

std::uint32_t chunk_checksum(const std::byte* bytes, std::uint32_t used, std::size_t chunk_bytes) {
  constexpr std::size_t kFixedBytes = 32;  // everything before `used`
  static_assert(offsetof(ChunkHeader, used) == kFixedBytes);
  ChunkKind kind;
  static_assert(sizeof kind == 4);
  std::copy_n(bytes + offsetof(ChunkHeader, kind), sizeof kind,
              reinterpret_cast<std::byte*>(&kind));
  std::uint32_t sum = crc32(0, bytes, kFixedBytes);
  sum = crc32(sum, reinterpret_cast<const std::byte*>(&used), sizeof used);
  return crc32(sum, bytes + kChunkHeaderBytes, used_bytes(kind, used, chunk_bytes));
}

}  // namespace lanescope::spool

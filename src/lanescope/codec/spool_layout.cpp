#include "lanescope/codec/spool_layout.h"

#include <zlib.h>

#include <algorithm>

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
  uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes), kFixedBytes);
  sum = crc32_z(sum, reinterpret_cast<const Bytef*>(&used), sizeof used);
  sum = crc32_z(sum, reinterpret_cast<const Bytef*>(bytes + kChunkHeaderBytes),
                used_bytes(kind, used, chunk_bytes));
  return static_cast<std::uint32_t>(sum);
}

}  // namespace lanescope::spool

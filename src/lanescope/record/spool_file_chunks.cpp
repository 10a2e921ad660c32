// What happens to single chunks of the file: they are claimed, closed, mended and read. The file
// itself, its places and its room on the disk: spool_file.cpp.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "lanescope/record/spool_file.h"

namespace lanescope::record {
namespace {

void seal(spool::ChunkHeader* chunk, std::size_t chunk_bytes) {
  const std::uint32_t used = chunk->used.load(std::memory_order_acquire);
  chunk->in_memory_next = 0;
  chunk->checksum =
      spool::chunk_checksum(reinterpret_cast<const std::byte*>(chunk), used, chunk_bytes);
  // A process killed between the two leaves an open chunk, which is read without its checksum.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  chunk->state = spool::ChunkState::kClosed;
}

}  // namespace

void SpoolFile::claim(spool::ChunkHeader* chunk, spool::ChunkKind kind, std::uint32_t thread,
                      std::uint32_t sequence) noexcept {
  chunk->thread = thread;
  chunk->sequence = sequence;
  chunk->kind = kind;
}

void SpoolFile::close_chunk(spool::ChunkHeader* chunk) noexcept {
  seal_chunk(chunk);
  unmap_chunks(chunk, 1);
}

void SpoolFile::seal_chunk(spool::ChunkHeader* chunk) noexcept {
  seal(chunk, spool::kChunkBytes);
  const MutexLock lock(mutex_);
  used_chunk_count_ = std::max(used_chunk_count_, chunk->number + 1);
}

void SpoolFile::unmap_chunks(spool::ChunkHeader* first, std::uint32_t count) const noexcept {
  unmap(first, count * spool::kChunkBytes);
}

void SpoolFile::close_small_chunk(spool::ChunkHeader* chunk) noexcept {
  seal(chunk, spool::kSmallChunkBytes);
}

void SpoolFile::give_back(std::uint32_t number) noexcept {
  check_for_cut();
  if (is_cut()) return;
  const auto kind = static_cast<std::uint32_t>(spool::ChunkKind::kFree);
  const std::uint64_t at = place_of(number) + offsetof(spool::ChunkHeader, kind);
  if (pwrite(fd_, &kind, sizeof kind, static_cast<off_t>(at)) != sizeof kind) return;
  const MutexLock lock(mutex_);
  add_place(number);
}

void SpoolFile::end_range(std::uint32_t number, std::uint32_t place, std::uint32_t slot,
                          std::uint64_t end_tsc) noexcept {
  check_for_cut();
  if (is_cut()) return;
  alignas(spool::ChunkHeader) std::byte bytes[spool::kSmallChunkBytes];
  const auto at = static_cast<off_t>(place_of(number) + place * spool::kSmallChunkBytes);
  if (pread(fd_, bytes, sizeof bytes, at) != static_cast<ssize_t>(sizeof bytes)) return;
  const auto* header = reinterpret_cast<const spool::ChunkHeader*>(bytes);
  const std::uint32_t used = header->used.load(std::memory_order_relaxed);
  if (slot >= std::min(used, spool::kRecordsPerSmallChunk)) return;
  const std::size_t record = spool::kChunkHeaderBytes + slot * sizeof(spool::Record);
  spool::RangeRecord& range = reinterpret_cast<spool::Record*>(bytes + record)->range;
  if (range.kind != spool::RecordKind::kRange || range.end_tsc != 0) return;
  range.end_tsc = end_tsc;
  const std::uint32_t checksum = spool::chunk_checksum(bytes, used, sizeof bytes);
  // One write, from the checksum to the end: a killed process leaves all of it or nothing.
  const std::size_t from = offsetof(spool::ChunkHeader, checksum);
  memcpy(bytes + from, &checksum, sizeof checksum);
  const std::size_t size = record + sizeof(spool::Record) - from;
  if (pwrite(fd_, bytes + from, size, at + static_cast<off_t>(from)) != static_cast<ssize_t>(size))
    return;  // the range looks open
}

bool SpoolFile::read_chunk(std::uint32_t number, std::byte* into) const noexcept {
  const std::uint64_t offset = place_of(number);
  for (std::size_t got = 0; got < spool::kChunkBytes;) {
    const ssize_t count =
        pread(fd_, into + got, spool::kChunkBytes - got, static_cast<off_t>(offset + got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    got += static_cast<std::size_t>(count);
  }
  return true;
}

bool SpoolFile::ends_as_written() const noexcept {
  if (used_chunk_count_ == 0) return true;
  const std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[spool::kChunkBytes]);
  if (!bytes) return true;  // no memory: nobody can tell
  if (!read_chunk(used_chunk_count_ - 1, bytes.get())) return false;
  const auto is_whole = [&](std::size_t place, std::size_t chunk_bytes) {
    const std::byte* at = bytes.get() + place * spool::kSmallChunkBytes;
    spool::ChunkHeader header;
    memcpy(static_cast<void*>(&header), at, sizeof header);
    const std::uint32_t used = header.used.load(std::memory_order_relaxed);
    return header.magic == spool::kChunkMagic && header.spool_id == id_ &&
           (header.state != spool::ChunkState::kClosed ||
            header.checksum == spool::chunk_checksum(at, used, chunk_bytes));
  };
  const auto& last = *reinterpret_cast<const spool::ChunkHeader*>(bytes.get());
  if (!is_whole(0, spool::kChunkBytes)) return false;
  if (last.kind != spool::ChunkKind::kShared) return true;
  const std::uint32_t small = std::min(last.used.load(), spool::kSmallChunks);
  for (std::uint32_t place = 1; place <= small; ++place)
    if (!is_whole(place, spool::kSmallChunkBytes)) return false;
  return true;
}

bool SpoolFile::copy_live_chunk(std::uint32_t number, std::byte* into) const noexcept {
  // A free chunk may have no bytes on the disk, and no room there.
  spool::ChunkKind kind{};
  const std::uint64_t kind_at = place_of(number) + offsetof(spool::ChunkHeader, kind);
  if (pread(fd_, &kind, sizeof kind, static_cast<off_t>(kind_at)) != sizeof kind ||
      kind == spool::ChunkKind::kFree)
    return false;
  void* at = map(place_of(number), spool::kChunkBytes, PROT_READ);
  if (!at) return false;
  // Read all counts before the words: then the copy has all that they cover.
  std::uint32_t used[spool::kSmallChunks + 1] = {};
  const auto* bytes = static_cast<const std::byte*>(at);
  const auto used_at = [](std::size_t place) {
    return place * spool::kSmallChunkBytes + offsetof(spool::ChunkHeader, used);
  };
  const bool is_shared =
      static_cast<const spool::ChunkHeader*>(at)->kind == spool::ChunkKind::kShared;
  const std::size_t parts = is_shared ? spool::kSmallChunks + 1 : 1;
  for (std::size_t place = 0; place < parts; ++place)  // acquire: pairs with commit()'s release
    used[place] = reinterpret_cast<const std::atomic<std::uint32_t>*>(bytes + used_at(place))
                      ->load(std::memory_order_acquire);
  auto* words = static_cast<std::uint64_t*>(at);
  for (std::size_t i = 0; i < spool::kChunkBytes / sizeof *words; ++i) {
    // relaxed: an end_tsc written meanwhile is either there or 0
    const std::uint64_t word = __atomic_load_n(words + i, __ATOMIC_RELAXED);
    memcpy(into + i * sizeof word, &word, sizeof word);
  }
  for (std::size_t place = 0; place < parts; ++place)
    memcpy(into + used_at(place), &used[place], sizeof used[place]);
  unmap(at, spool::kChunkBytes);
  return !is_cut();
}

}  // namespace lanescope::record

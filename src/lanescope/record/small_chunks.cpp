#include "lanescope/record/small_chunks.h"

#include "lanescope/record/spool_file.h"

namespace lanescope::record {
namespace {

std::byte* bytes_of(spool::ChunkHeader* chunk) { return reinterpret_cast<std::byte*>(chunk); }

}  // namespace

// In a shared chunk, `in_memory_next` counts small chunks that are not released yet.
bool SmallChunks::begin(spool::ChunkHeader* fresh) noexcept {
  if (!fresh) return false;
  SpoolFile::claim(fresh, spool::ChunkKind::kShared);
  shared_ = fresh;
  return true;
}

spool::ChunkHeader* SmallChunks::cut() noexcept {
  const std::uint32_t place = shared_->used.load(std::memory_order_relaxed) + 1;
  auto* small =
      reinterpret_cast<spool::ChunkHeader*>(bytes_of(shared_) + place * spool::kSmallChunkBytes);
  small->number = shared_->number;
  small->spool_id = shared_->spool_id;
  small->place = place;
  small->magic = spool::kChunkMagic;
  ++shared_->in_memory_next;
  shared_->used.store(place, std::memory_order_release);  // pairs with the reader's acquire
  if (place == spool::kSmallChunks) shared_ = nullptr;
  return small;
}

spool::ChunkHeader* SmallChunks::release(spool::ChunkHeader* small) noexcept {
  auto* shared = reinterpret_cast<spool::ChunkHeader*>(bytes_of(small) -
                                                       small->place * spool::kSmallChunkBytes);
  const MutexLock lock(mutex_);
  return --shared->in_memory_next == 0 && shared != shared_ ? shared : nullptr;
}

spool::ChunkHeader* SmallChunks::finish() noexcept {
  const MutexLock lock(mutex_);
  spool::ChunkHeader* shared = shared_;
  shared_ = nullptr;
  return shared && shared->in_memory_next == 0 ? shared : nullptr;
}

}  // namespace lanescope::record

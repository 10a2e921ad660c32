#include "lanescope/record/intern_table.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace lanescope::record {

InternTable::InternTable() {
  texts_.intern("");  // id 0
  overflow_id_ = raw(texts_.intern("(too many names)"));
}

std::uint32_t InternTable::intern(std::string_view text, const char** stored,
                                  std::size_t max_bytes) noexcept {
  text = text.substr(0, max_bytes);
  try {
    const MutexLock lock(mutex_);
    StringId id = texts_.find(text);
    if (id == kNone<StringId>) {
      if (texts_.memory_bytes() + text.size() > kMaxBytes) return overflow_id_;
      id = texts_.intern(text);
      write_pending();
    }
    if (stored) *stored = texts_.view(id).data();
    return raw(id);
  } catch (...) {  // no memory
    return 0;
  }
}

std::uint32_t InternTable::intern_for_spool(std::string_view text, std::size_t max_bytes) noexcept {
  text = text.substr(0, max_bytes);
  try {
    const MutexLock lock(mutex_);
    if (!file_ || getpid() != pid_) return 0;
    if (spool_ids_used_ == spool_ids_.size()) {
      if (texts_.memory_bytes() > kMaxBytes) return overflow_id_;
      std::string placeholder = "(text of one recording) " + std::to_string(spool_ids_.size());
      while (texts_.find(placeholder) != kNone<StringId>) placeholder += '.';  // ids only rise
      spool_ids_.push_back(raw(texts_.intern(placeholder)));
      write_pending();
    }
    const std::uint32_t id = spool_ids_[spool_ids_used_++];
    if (write(id, text)) return id;
    ++lost_spool_texts_;
    return 0;
  } catch (...) {  // no memory
    return 0;
  }
}

void InternTable::attach(SpoolFile* file, ChunkPool* pool) noexcept {
  const MutexLock lock(mutex_);
  file_ = file;
  pool_ = pool;
  written_ = 0;
  spool_ids_used_ = 0;
  lost_spool_texts_ = 0;
  pid_ = getpid();
  write_pending();
}

void InternTable::flush() noexcept {
  const MutexLock lock(mutex_);
  write_pending();
}

void InternTable::detach() noexcept {
  const MutexLock lock(mutex_);
  if (!file_) return;
  write_pending();
  file_->header().dropped_texts.store(texts_.size() - written_ + lost_spool_texts_,
                                      std::memory_order_relaxed);
  if (chunk_) file_->close_chunk(chunk_);
  file_ = nullptr;
  pool_ = nullptr;
  chunk_ = nullptr;
}

void InternTable::unlock_in_child() {
  file_ = nullptr;  // the parent's, not mapped here
  pool_ = nullptr;
  chunk_ = nullptr;
  mutex_.unlock();
}

void InternTable::write_pending() {
  if (!file_ || getpid() != pid_) return;
  while (written_ < texts_.size() &&
         (std::binary_search(spool_ids_.begin(), spool_ids_.end(), written_) ||
          write(written_, texts_.view(StringId{written_}))))
    ++written_;
}

bool InternTable::write(std::uint32_t id, std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  const std::uint32_t bytes = (8 + size + 7) & ~7u;
  std::uint32_t used = chunk_ ? chunk_->used.load(std::memory_order_relaxed) : 0;
  if (!chunk_ || used + bytes > spool::kChunkPayloadBytes) {
    spool::ChunkHeader* fresh = pool_->take();
    if (!fresh) fresh = file_->make_chunk();
    if (!fresh) return false;
    SpoolFile::claim(fresh, spool::ChunkKind::kTexts);
    if (chunk_) file_->close_chunk(chunk_);
    chunk_ = fresh;
    used = 0;
  }
  char* at = reinterpret_cast<char*>(chunk_) + spool::kChunkHeaderBytes + used;
  std::memcpy(at, &id, sizeof id);
  std::memcpy(at + 4, &size, sizeof size);
  if (size != 0) std::memcpy(at + 8, text.data(), size);
  chunk_->used.store(used + bytes, std::memory_order_release);  // pairs with the reader's acquire
  return true;
}

}  // namespace lanescope::record

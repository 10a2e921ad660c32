#include "lanescope/record/kept_ranges.h"

#include <atomic>

namespace lanescope::record {
namespace {

using spool::Record;
using spool::RecordKind;
constexpr std::uint32_t kPairs = spool::kRecordsPerChunk / 2;

}  // namespace

// Stores the kind last and clears it first: a process killed between two stores leaves whole pairs
// or empty ones.
void KeptRanges::write(Record* pair, std::uint32_t thread, spool::RecordPlace from,
                       const Record& record) noexcept {
  pair[1] = record;
  spool::KeptFromRecord& kept_from = pair[0].kept_from;
  kept_from.place = from;
  kept_from.thread = thread;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::atomic_ref<RecordKind>(kept_from.kind)
      .store(RecordKind::kKeptFrom, std::memory_order_release);
}

void KeptRanges::free_pair(Record* pair) noexcept {
  std::atomic_ref<RecordKind>(pair[0].kept_from.kind)
      .store(RecordKind::kNone, std::memory_order_release);
  free_.push_back(pair);  // has room: see find_pair()
}

Record* KeptRanges::find_pair() {
  if (free_.empty()) {
    if (chunks_.size() == kMaxChunks) return nullptr;
    free_.reserve((chunks_.size() + 1) * kPairs);  // free_pair() never allocates
    chunks_.reserve(kMaxChunks);
    spool::ChunkHeader* chunk = file_->make_chunk();
    if (!chunk) return nullptr;
    SpoolFile::claim(chunk, spool::ChunkKind::kKept);
    chunk->used.store(kPairs * 2, std::memory_order_release);  // pairs with the reader's acquire
    chunks_.push_back(chunk);
    auto* first =
        reinterpret_cast<Record*>(reinterpret_cast<std::byte*>(chunk) + spool::kChunkHeaderBytes);
    for (std::uint32_t at = kPairs; at-- > 0;) free_.push_back(first + 2 * at);
  }
  Record* pair = free_.back();
  free_.pop_back();
  return pair;
}

void KeptRanges::add(std::uint32_t thread, spool::RecordPlace place,
                     const spool::RangeRecord& range) {
  if (range.handle != 0)
    for (auto pair = ends_.begin(); pair != ends_.end(); ++pair)
      if (const spool::EndByHandleRecord& end = (*pair)[1].end_by_handle;
          end.handle == range.handle && end.end_tsc >= range.begin_tsc) {
        free_pair(*pair);  // it ended before the wanted time begins
        ends_.erase(pair);
        return;
      }
  const auto [known, is_new] = ranges_.try_emplace({thread, place}, nullptr);
  if (!is_new) return;
  known->second = find_pair();
  if (!known->second) {
    ranges_.erase(known);
    ++lost_;
    return;
  }
  write(known->second, thread, place, range);
}

void KeptRanges::remove(std::uint32_t thread, spool::RecordPlace place) noexcept {
  const auto known = ranges_.find({thread, place});
  if (known == ranges_.end()) return;
  free_pair(known->second);
  ranges_.erase(known);
}

void KeptRanges::end_by_handle(std::uint32_t thread, const spool::EndByHandleRecord& end) {
  // Rare: only ranges that end on another thread than they began.
  for (auto kept = ranges_.begin(); kept != ranges_.end(); ++kept)
    if (const spool::RangeRecord& range = kept->second[1].range;
        range.handle == end.handle && range.begin_tsc <= end.end_tsc) {
      free_pair(kept->second);
      ranges_.erase(kept);
      return;
    }
  if (ends_.size() == kMaxEnds) {
    free_pair(ends_.front());
    ends_.erase(ends_.begin());
  }
  ends_.reserve(kMaxEnds);
  if (Record* pair = find_pair()) {
    write(pair, thread, {}, end);
    ends_.push_back(pair);
  }
}

void KeptRanges::keep_only(const std::function<bool(std::uint64_t begin)>& wanted) noexcept {
  for (auto range = ranges_.begin(); range != ranges_.end();) {
    if (wanted(range->second[1].range.begin_tsc)) {
      ++range;
    } else {
      free_pair(range->second);
      range = ranges_.erase(range);
    }
  }
}

void KeptRanges::finish() noexcept {
  for (spool::ChunkHeader* chunk : chunks_) file_->close_chunk(chunk);
  chunks_.clear();
  free_.clear();
  ranges_.clear();
  ends_.clear();
}

}  // namespace lanescope::record

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
void KeptRanges::write(Record* place, std::uint32_t thread, std::uint64_t from,
                       const Record& record) noexcept {
  place[1] = record;
  place->a = static_cast<std::int64_t>(from);
  place->b = thread;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::atomic_ref<std::uint8_t>(place->kind)
      .store(static_cast<std::uint8_t>(RecordKind::kKeptFrom), std::memory_order_release);
}

void KeptRanges::free_place(Record* place) noexcept {
  std::atomic_ref<std::uint8_t>(place->kind)
      .store(static_cast<std::uint8_t>(RecordKind::kNone), std::memory_order_release);
  free_.push_back(place);  // has room: see find_place()
}

Record* KeptRanges::find_place() {
  if (free_.empty()) {
    if (chunks_.size() == kMaxChunks) return nullptr;
    free_.reserve((chunks_.size() + 1) * kPairs);  // free_place() never allocates
    chunks_.reserve(kMaxChunks);
    spool::ChunkHeader* chunk = file_->make_chunk();
    if (!chunk) return nullptr;
    SpoolFile::claim(chunk, spool::ChunkKind::kKept);
    chunk->used.store(kPairs * 2, std::memory_order_release);  // pairs with the reader's acquire
    chunks_.push_back(chunk);
    auto* first =
        reinterpret_cast<Record*>(reinterpret_cast<std::byte*>(chunk) + spool::kChunkHeaderBytes);
    for (std::uint32_t pair = kPairs; pair-- > 0;) free_.push_back(first + 2 * pair);
  }
  Record* place = free_.back();
  free_.pop_back();
  return place;
}

void KeptRanges::add(std::uint32_t thread, std::uint64_t place, const Record& range) {
  if (range.d != 0)
    for (auto end = ends_.begin(); end != ends_.end(); ++end)
      if ((*end)[1].d == range.d && (*end)[1].end_tsc >= range.begin_tsc) {
        free_place(*end);  // it ended before the wanted time begins
        ends_.erase(end);
        return;
      }
  const auto [known, is_new] = ranges_.try_emplace({thread, place}, nullptr);
  if (!is_new) return;
  known->second = find_place();
  if (!known->second) {
    ranges_.erase(known);
    ++lost_;
    return;
  }
  write(known->second, thread, place, range);
}

void KeptRanges::remove(std::uint32_t thread, std::uint64_t place) noexcept {
  const auto known = ranges_.find({thread, place});
  if (known == ranges_.end()) return;
  free_place(known->second);
  ranges_.erase(known);
}

void KeptRanges::end_by_handle(std::uint32_t thread, const Record& end) {
  // Rare: only ranges that end on another thread than they began.
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range)
    if (range->second[1].d == end.d && range->second[1].begin_tsc <= end.end_tsc) {
      free_place(range->second);
      ranges_.erase(range);
      return;
    }
  if (ends_.size() == kMaxEnds) {
    free_place(ends_.front());
    ends_.erase(ends_.begin());
  }
  ends_.reserve(kMaxEnds);
  if (Record* place = find_place()) {
    write(place, thread, 0, end);
    ends_.push_back(place);
  }
}

void KeptRanges::keep_only(const std::function<bool(std::uint64_t begin)>& wanted) noexcept {
  for (auto range = ranges_.begin(); range != ranges_.end();) {
    if (wanted(range->second[1].begin_tsc)) {
      ++range;
    } else {
      free_place(range->second);
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

#include "lanescope/record/ring.h"

#include <algorithm>
#include <limits>
#include <span>

#include "lanescope/codec/activity_layout.h"

namespace lanescope::record {
namespace {

using spool::Record;
using spool::RecordKind;
constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();

std::uint64_t minus(std::uint64_t tick, std::uint64_t less) {
  return tick > less ? tick - less : 0;
}

// A little more than asked for: the counter's rate is an estimate, and old chunks are searched
// every 64th of the time.
std::uint64_t with_slack(std::uint64_t last) { return last + last / 64; }

const Record* records_of(const std::byte* chunk) {
  return reinterpret_cast<const Record*>(chunk + spool::kChunkHeaderBytes);
}

bool is_in_any(const std::vector<RingWindow>& windows, std::uint64_t tick) {
  return std::any_of(windows.begin(), windows.end(), [&](const RingWindow& window) {
    return window.start <= tick && (window.stop == 0 || tick <= window.stop);
  });
}

// Calls `see(thread, sequence, records)` for a chunk in memory, or for each of its small chunks.
template <typename See>
void for_each_part(const std::byte* chunk, const See& see) {
  const auto* header = reinterpret_cast<const spool::ChunkHeader*>(chunk);
  const auto see_one = [&](const std::byte* part, std::uint32_t most) {
    const auto* own = reinterpret_cast<const spool::ChunkHeader*>(part);
    const std::uint32_t used = std::min(own->used.load(std::memory_order_acquire), most);
    see(own->thread, own->sequence, std::span<const Record>(records_of(part), used));
  };
  if (header->kind != spool::ChunkKind::kShared) return see_one(chunk, spool::kRecordsPerChunk);
  for (std::uint32_t place = 1; place <= spool::kSmallChunks; ++place)
    see_one(chunk + place * spool::kSmallChunkBytes, spool::kRecordsPerSmallChunk);
}

std::uint64_t key_of(std::uint32_t thread, std::uint64_t sequence) {
  return std::uint64_t{thread} << 32 | sequence;
}

}  // namespace

Ring::Ring(SpoolFile* file, bool on)
    : file_(file), on_(on), kept_(file), buffer_(on ? spool::kChunkBytes : 0) {}

// ---- What is wanted ----

void Ring::window_opened(const RingWindow& window) noexcept {
  const MutexLock lock(mutex_);
  try {
    windows_.push_back(window);
  } catch (...) {  // no memory: as if nobody had asked for it
  }
  drop_stale();
}

void Ring::window_closed(std::uint32_t session, std::uint64_t stop) noexcept {
  const MutexLock lock(mutex_);
  for (RingWindow& window : windows_)
    if (window.session == session && window.stop == 0) window.stop = stop;
}

void Ring::forget(std::uint32_t session) noexcept {
  const MutexLock lock(mutex_);
  std::erase_if(windows_, [&](const RingWindow& window) { return window.session == session; });
  drop_stale();
}

void Ring::drop_stale() {
  if (!on_) return;
  // Drop windows that end before the last seconds of their session.
  std::uint64_t now = 0;
  for (const RingWindow& window : windows_) now = std::max({now, window.start, window.stop});
  for (std::size_t i = windows_.size(); i-- > 0;) {
    const RingWindow window = windows_[i];
    if (window.last != 0 && window.stop != 0 && wanted_from(window, now) > window.stop)
      windows_.erase(windows_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  // A copy: clang's check does not follow the lock into lambdas.
  const std::vector<RingWindow> windows = windows_;
  kept_.keep_only([&](std::uint64_t begin) { return is_in_any(windows, begin); });
}

std::vector<RingWindow> Ring::windows() const {
  const MutexLock lock(mutex_);
  return windows_;
}

// A session's last seconds count back from the end of its newest window.
std::uint64_t Ring::wanted_from(const RingWindow& window, std::uint64_t now) const {
  if (window.last == 0) return window.start;
  std::uint64_t end = 0;
  for (const RingWindow& other : windows_)
    if (other.session == window.session) end = std::max(end, other.stop != 0 ? other.stop : now);
  return std::max(window.start, minus(end, with_slack(window.last)));
}

bool Ring::is_wanted(const Chunk& chunk, std::uint64_t now, bool rings_too) const {
  for (const RingWindow& window : windows_)
    if ((rings_too || window.last == 0) && chunk.newest >= wanted_from(window, now) &&
        chunk.oldest <= (window.stop != 0 ? window.stop : kForever))
      return true;
  return false;
}

std::optional<std::uint64_t> Ring::covered(std::uint32_t session,
                                           std::uint64_t now) const noexcept {
  const MutexLock lock(mutex_);
  std::optional<std::uint64_t> ticks;
  const std::uint64_t lost = file_->header().ring_lost_until.load(std::memory_order_relaxed);
  for (const RingWindow& window : windows_) {
    if (window.session != session || window.last == 0) continue;
    const std::uint64_t end = window.stop != 0 ? window.stop : now;
    ticks = minus(end, std::max({window.start, minus(end, window.last), lost}));
  }
  return ticks;
}

std::uint64_t Ring::oldest_wanted(std::uint64_t now) const noexcept {
  const MutexLock lock(mutex_);
  std::uint64_t oldest = now;
  for (const RingWindow& window : windows_) oldest = std::min(oldest, wanted_from(window, now));
  return oldest;
}

// ---- Chunks come and go ----

void Ring::add(const spool::ChunkHeader* chunk, std::uint64_t now) noexcept {
  if (!on_) return;
  Chunk added;
  added.number = chunk->number;
  added.thread = chunk->thread;
  added.sequence = chunk->sequence;
  added.oldest = now;
  const bool activities = chunk->kind == spool::ChunkKind::kActivities;
  added.is_shared = chunk->kind == spool::ChunkKind::kShared;
  // A device's clock may be a little ahead. A time of 0 is unknown.
  const auto see = [&](std::uint64_t tick) {
    if (tick == 0) return;
    added.oldest = std::min(added.oldest, tick);
    added.newest = std::max(added.newest, std::min(tick, now));
  };
  const auto see_record = [&](const Record& record) {
    const RecordKind kind = record.head.kind;
    if (activities) {
      if (spool::activity_kind(record) == spool::ActivityKind::kContinued) return;  // no times
    } else if (kind == RecordKind::kMemory || kind == RecordKind::kOutOfMemory) {
      return see(record.memory.begin_tsc);
    } else if (kind == RecordKind::kRangeEnd || kind == RecordKind::kEndByHandle ||
               (kind == RecordKind::kRange && record.range.end_tsc == 0)) {
      added.has_open_ranges = true;
    }
    see(record.head.begin_tsc);
    see(record.head.end_tsc);
  };
  for_each_part(reinterpret_cast<const std::byte*>(chunk),
                [&](std::uint32_t, std::uint32_t, std::span<const Record> records) {
                  for (const Record& record : records) see_record(record);
                });
  const MutexLock lock(mutex_);
  try {
    chunks_.insert(added);
  } catch (...) {  // no memory: that chunk is never given back
  }
}

void Ring::add_small(const spool::ChunkHeader* chunk) noexcept {
  if (!on_) return;
  const MutexLock lock(mutex_);
  try {
    small_[key_of(chunk->thread, chunk->sequence)] =
        std::uint64_t{chunk->number} << 32 | chunk->place;
  } catch (...) {  // no memory: a range in it that ends later may look open
  }
}

void Ring::give_back_old(std::uint64_t now) noexcept {
  if (!on_) return;
  const MutexLock lock(mutex_);
  if (now < next_check_) return;
  std::uint64_t horizon = 0, shortest = kForever;
  bool any_open = false;
  for (const RingWindow& window : windows_) {
    any_open |= window.stop == 0;
    if (window.last == 0) continue;
    horizon = std::max(horizon, wanted_from(window, now));
    shortest = std::min(shortest, window.last);
  }
  if (!any_open) return;  // what closed windows left stays as it is
  next_check_ = now + (shortest == kForever ? 0 : shortest / 64);
  for (auto chunk = chunks_.begin(); chunk != chunks_.end() && chunk->newest < horizon;) {
    if (is_wanted(*chunk, now, true)) {
      ++chunk;
      continue;
    }
    give_back(*chunk);
    chunk = chunks_.erase(chunk);
  }
}

bool Ring::give_back_oldest(std::uint64_t now) noexcept {
  if (!on_) return false;
  const MutexLock lock(mutex_);
  for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk) {
    if (is_wanted(*chunk, now, false)) continue;
    std::atomic<std::uint64_t>& lost = file_->header().ring_lost_until;
    if (is_wanted(*chunk, now, true) && chunk->newest > lost.load(std::memory_order_relaxed))
      lost.store(chunk->newest, std::memory_order_relaxed);
    give_back(*chunk);
    chunks_.erase(chunk);
    return true;
  }
  return false;
}

void Ring::give_back(const Chunk& chunk) {
  if (copy_ && chunk.number < copied_.size() && !copied_[chunk.number]) {
    copied_[chunk.number] = true;
    copy_(chunk.number);
  }
  if (chunk.has_open_ranges || chunk.is_shared) {
    try {
      keep_open_ranges(chunk);
    } catch (...) {  // no memory: some long ranges are lost
    }
  }
  file_->give_back(chunk.number);
}

void Ring::keep_open_ranges(const Chunk& chunk) {
  if (!file_->read_chunk(chunk.number, buffer_.data())) return;
  // Clang's check does not follow the lock into lambdas.
  const auto forget_small =
      [this](std::uint32_t thread, std::uint32_t sequence, auto)
          LANESCOPE_NO_THREAD_SAFETY { small_.erase(key_of(thread, sequence)); };
  const auto move = [this](std::uint32_t thread, std::uint32_t sequence,
                           std::span<const Record> records) LANESCOPE_NO_THREAD_SAFETY {
    for (std::size_t slot = 0; slot < records.size(); ++slot) {
      const Record& record = records[slot];
      const RecordKind kind = record.head.kind;
      if (kind == RecordKind::kRange && record.range.end_tsc == 0 &&
          is_in_any(windows_, record.range.begin_tsc))
        kept_.add(thread, {static_cast<std::uint32_t>(slot), sequence}, record.range);
      else if (kind == RecordKind::kRangeEnd && !end_in_small(thread, record.range_end))
        kept_.remove(thread, record.range_end.place);
      else if (kind == RecordKind::kEndByHandle)
        kept_.end_by_handle(thread, record.end_by_handle);
    }
  };
  if (chunk.is_shared) for_each_part(buffer_.data(), forget_small);
  for_each_part(buffer_.data(), move);
}

// The chunk of the end is reused before that of its range, so write the end into the range. True:
// the range is in a small chunk.
bool Ring::end_in_small(std::uint32_t thread, const spool::RangeEndRecord& end) {
  const auto known = small_.find(key_of(thread, end.place.sequence));
  if (known == small_.end()) return false;
  file_->end_range(static_cast<std::uint32_t>(known->second >> 32),
                   static_cast<std::uint32_t>(known->second), end.place.slot, end.end_tsc);
  return true;
}

std::uint64_t Ring::lost_open_ranges() const noexcept {
  const MutexLock lock(mutex_);
  return kept_.lost();
}

void Ring::finish() noexcept {
  const MutexLock lock(mutex_);
  kept_.finish();
}

// ---- Copies ----

void Ring::start_copy(Copy copy, std::uint32_t count, std::uint64_t now) {
  const MutexLock lock(mutex_);
  copied_.assign(count, false);
  if (on_)
    for (const Chunk& chunk : chunks_)
      if (chunk.number < count && !is_wanted(chunk, now, true) && !chunk.has_open_ranges)
        copied_[chunk.number] = true;  // else it may hold the end of a range that is wanted
  copy_ = std::move(copy);
  // These change from now on when chunks are reused; chunks are copied as they were.
  for (const spool::ChunkHeader* chunk : kept_.chunks()) {
    if (chunk->number < count) copied_[chunk->number] = true;
    copy_(chunk->number);
  }
}

void Ring::copy_chunk(std::uint32_t number) {
  const MutexLock lock(mutex_);
  if (!copy_ || number >= copied_.size() || copied_[number]) return;
  copied_[number] = true;
  copy_(number);
}

void Ring::stop_copy() noexcept {
  const MutexLock lock(mutex_);
  copy_ = nullptr;
  copied_.clear();
}

}  // namespace lanescope::record

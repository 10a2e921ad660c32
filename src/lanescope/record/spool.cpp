#include "lanescope/record/spool.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(1);
constexpr std::size_t kMaxThreadChunks = 256;  // 1023 threads each

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

struct Anchor {
  std::uint64_t ticks = 0, width = 0, monotonic_ns = 0, realtime_ns = 0;
};

// The monotonic clock read between two reads of the counter; the narrowest of several wins, which
// leaves out moments when the thread was interrupted. The realtime clock is read beside it: it only
// says when the recording was, not how long.
Anchor read_anchor() {
  Anchor best;
  for (int tries = 0; tries < 8; ++tries) {
    const std::uint64_t before = ticks();
    const std::uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t after = ticks();
    const std::uint64_t realtime = clock_ns(CLOCK_REALTIME);
    if (tries == 0 || after - before < best.width)
      best = {before + (after - before) / 2, after - before, monotonic, realtime};
  }
  return best;
}

// Good to about one part in ten thousand; only a recording that was killed before its second anchor
// needs it.
std::uint64_t estimate_ticks_per_second() {
  const Anchor first = read_anchor();
  Anchor last;
  do last = read_anchor();
  while (last.monotonic_ns - first.monotonic_ns < 1'000'000);
  const double seconds = static_cast<double>(last.monotonic_ns - first.monotonic_ns) * 1e-9;
  return static_cast<std::uint64_t>(static_cast<double>(last.ticks - first.ticks) / seconds);
}

}  // namespace

Result<std::unique_ptr<Spool>> Spool::create(const std::string& path, std::uint64_t max_bytes,
                                             std::uint32_t ready_chunks, InternTable* texts) {
  LANESCOPE_TRY(auto file, SpoolFile::create(path, max_bytes));
  std::unique_ptr<Spool> spool(new Spool());
  spool->file_ = std::move(file);
  spool->id_ = spool->file_->header().spool_id;
  spool->texts_ = texts;
  {
    const MutexLock lock(spool->mutex_);
    spool->thread_chunks_.reserve(kMaxThreadChunks);  // new_thread() never allocates
  }
  spool->first_target_ = std::clamp<std::uint32_t>(ready_chunks, 2, ChunkPool::kCapacity / 2);
  spool->file_->header().ticks_per_second = estimate_ticks_per_second();
  texts->attach(spool->file_.get(), &spool->pool_);
  spool->write_anchor();
  // The host's signals are the host's: the background thread takes none.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    spool->thread_ = std::thread([raw = spool.get()] { raw->run(); });
    pthread_setname_np(spool->thread_.native_handle(), "lanescope");
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return Error{Errc::kUnavailable, "cannot start the recorder's background thread"};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return spool;
}

Spool::~Spool() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  texts_->detach();
}

void Spool::prepare() noexcept { refill(first_target_); }

void Spool::set_window_open(bool open) noexcept {
  {
    const MutexLock lock(mutex_);
    window_open_ = open;
  }
  wake_.notify_all();
}

void Spool::run() noexcept {
  using Clock = std::chrono::steady_clock;
  std::uint32_t target = first_target_;
  auto anchor_interval = std::chrono::milliseconds(10);
  auto next_anchor = Clock::now() + anchor_interval;
  auto next_refill = Clock::now();
  mutex_.lock();
  while (!ending_) {
    if (window_open_)
      wake_.wait_for(mutex_, kLookInterval);
    else
      wake_.wait(mutex_);
    if (ending_) break;
    mutex_.unlock();
    close_full_chunks();
    const auto now = Clock::now();
    const std::uint32_t ready = pool_.ready_count();
    // Threads nearly emptied the pool between two looks: prepare more ahead.
    if (ready < target / 4)
      target = std::min({target * 2, first_target_ * 8, ChunkPool::kCapacity / 2});
    if (ready < target && now >= next_refill) {
      refill(target);
      // A full disk is not asked again a thousand times a second.
      if (pool_.ready_count() == 0) next_refill = now + std::chrono::milliseconds(100);
    }
    texts_->flush();
    if (now >= next_anchor) {
      write_anchor();
      anchor_interval = std::min(anchor_interval * 4, std::chrono::milliseconds(1000));
      next_anchor = now + anchor_interval;
    }
    mutex_.lock();
  }
  mutex_.unlock();
}

void Spool::refill(std::uint32_t target) noexcept {
  const MutexLock lock(refill_mutex_);
  for (std::uint32_t ready = pool_.ready_count(); ready < target; ++ready) {
    spool::ChunkHeader* chunk = file_->make_chunk();
    if (!chunk) return;
    if (!pool_.put(chunk)) return file_->discard_chunk(chunk);
  }
}

void Spool::close_full_chunks() noexcept {
  for (spool::ChunkHeader* chunk = pool_.take_full(); chunk;) {
    auto* next = reinterpret_cast<spool::ChunkHeader*>(chunk->in_memory_next);
    file_->close_chunk(chunk);
    chunk = next;
  }
}

spool::ChunkHeader* Spool::take_or_make() noexcept {
  spool::ChunkHeader* chunk = pool_.take();
  return chunk ? chunk : file_->make_chunk();
}

spool::ThreadSlot* Spool::new_thread(std::uint32_t* number) noexcept {
  const MutexLock lock(mutex_);
  spool::ChunkHeader* chunk = thread_chunks_.empty() ? nullptr : thread_chunks_.back();
  std::uint32_t used = chunk ? chunk->used.load(std::memory_order_relaxed) : 0;
  if (!chunk || used == spool::kThreadsPerChunk) {
    if (thread_chunks_.size() == thread_chunks_.capacity()) return nullptr;
    chunk = take_or_make();
    if (!chunk) return nullptr;
    SpoolFile::claim(chunk, spool::ChunkKind::kThreads);
    // `sequence` says which slots these are: the first chunk holds 0 .. kThreadsPerChunk - 1.
    chunk->sequence = static_cast<std::uint32_t>(thread_chunks_.size());
    thread_chunks_.push_back(chunk);
    used = 0;
  }
  auto* slots = reinterpret_cast<spool::ThreadSlot*>(reinterpret_cast<std::byte*>(chunk) +
                                                     spool::kChunkHeaderBytes);
  *number = chunk->sequence * spool::kThreadsPerChunk + used;
  chunk->used.store(used + 1, std::memory_order_release);  // pairs with the reader's acquire
  return &slots[used];
}

void Spool::thread_totals(std::uint64_t* dropped, std::uint64_t* depth_overflow,
                          std::uint32_t* threads) const noexcept {
  const MutexLock lock(mutex_);
  for (spool::ChunkHeader* chunk : thread_chunks_) {
    const auto* slots = reinterpret_cast<const spool::ThreadSlot*>(
        reinterpret_cast<const std::byte*>(chunk) + spool::kChunkHeaderBytes);
    const std::uint32_t used = chunk->used.load(std::memory_order_relaxed);
    for (std::uint32_t index = 0; index < used; ++index) {
      *dropped += slots[index].dropped.load(std::memory_order_relaxed) +
                  slots[index].reentered.load(std::memory_order_relaxed);
      *depth_overflow += slots[index].depth_overflow.load(std::memory_order_relaxed);
    }
    *threads += used;
  }
}

void Spool::write_control(const spool::Record& record) noexcept {
  const MutexLock lock(mutex_);
  std::uint32_t used = control_ ? control_->used.load(std::memory_order_relaxed) : 0;
  if (!control_ || used == spool::kRecordsPerChunk) {
    spool::ChunkHeader* fresh = take_or_make();
    if (!fresh) return;
    SpoolFile::claim(fresh, spool::ChunkKind::kControl);
    if (control_) file_->close_chunk(control_);
    control_ = fresh;
    used = 0;
  }
  auto* records = reinterpret_cast<spool::Record*>(reinterpret_cast<std::byte*>(control_) +
                                                   spool::kChunkHeaderBytes);
  records[used] = record;
  control_->used.store(used + 1, std::memory_order_release);  // pairs with the reader's acquire
}

std::uint32_t Spool::write_activities(const spool::Record* records, std::uint32_t count) noexcept {
  const MutexLock lock(activities_mutex_);
  constexpr auto kContinued = static_cast<std::uint8_t>(spool::ActivityKind::kContinued);
  std::uint32_t at = 0;
  while (at < count) {
    std::uint32_t used = activities_ ? activities_->used.load(std::memory_order_relaxed) : 0;
    std::uint32_t fit = activities_ ? std::min(count - at, spool::kRecordsPerChunk - used) : 0;
    if (at + fit < count && fit != 0 && records[at + fit].kind == kContinued) --fit;
    if (fit == 0) {
      spool::ChunkHeader* fresh = take_or_make();
      if (!fresh) break;
      SpoolFile::claim(fresh, spool::ChunkKind::kActivities, spool::kNoThread, ++activity_chunks_);
      if (activities_) file_->close_chunk(activities_);
      activities_ = fresh;
      continue;
    }
    auto* to = reinterpret_cast<spool::Record*>(reinterpret_cast<std::byte*>(activities_) +
                                                spool::kChunkHeaderBytes);
    std::copy_n(records + at, fit, to + used);
    activities_->used.store(used + fit,
                            std::memory_order_release);  // pairs with the reader's acquire
    at += fit;
  }
  if (at < count) count_activity_drops(count - at);
  return at;
}

void Spool::write_anchor() noexcept {
  const Anchor anchor = read_anchor();
  spool::Record record;
  record.kind = static_cast<std::uint8_t>(spool::RecordKind::kAnchor);
  record.begin_tsc = anchor.ticks;
  record.end_tsc = anchor.width;
  record.a = static_cast<std::int64_t>(anchor.monotonic_ns);
  record.d = anchor.realtime_ns;
  write_control(record);
}

void Spool::finish(bool leave_mapped) noexcept {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  write_anchor();
  close_full_chunks();
  texts_->detach();
  {
    const MutexLock lock(activities_mutex_);
    if (activities_) file_->close_chunk(activities_);
    activities_ = nullptr;
  }
  while (spool::ChunkHeader* chunk = pool_.take()) file_->discard_chunk(chunk);
  {
    const MutexLock lock(mutex_);
    if (control_) file_->close_chunk(control_);
    control_ = nullptr;
    if (!leave_mapped)
      for (spool::ChunkHeader* chunk : thread_chunks_) file_->close_chunk(chunk);
    thread_chunks_.clear();
  }
  if (!leave_mapped) file_->finish();
}

}  // namespace lanescope::record

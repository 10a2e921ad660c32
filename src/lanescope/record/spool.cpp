#include "lanescope/record/spool.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/record/clock_anchor.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record {
namespace {

constexpr auto kCheckInterval = std::chrono::milliseconds(1);
// While threads take less than an eighth of what is ready between two checks, and nothing else needs
// the next one soon.
constexpr auto kCalmInterval = std::chrono::milliseconds(8);
constexpr std::uint32_t kCalmShare = 8;
constexpr std::uint32_t kChunksAtOnce = 8;                       // are made together
constexpr auto kSignalInterval = std::chrono::milliseconds(50);  // no window is open
constexpr std::size_t kMaxThreadChunks = 256;                    // 1023 threads each
// A thread's first chunks are small. After kFirstSmallChunks it takes whole ones. When none is
// ready (many threads may have begun at once) it takes more small ones, up to kMostSmallChunks.
constexpr std::uint32_t kFirstSmallChunks = 8, kMostSmallChunks = 64;
constexpr std::uint64_t kRetryMs = 100;
// What threads may prepare by themselves while the background thread waits for a core: 64 MiB
// between two of its checks. When a thread had to wait 10 ms or more (a slow disk), the next one comes
// after ten times as long. A thread that only lost its core did not wait.
constexpr std::uint32_t kMostOwnChunks = 512, kRests = 10;
constexpr std::uint64_t kLongWaitMs = 10;
constexpr std::uint32_t kReadyOnFullDisk = 4;  // 512 KiB to end with

long waits_of_this_thread() {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

}  // namespace

Result<std::unique_ptr<Spool>> Spool::create(const SpoolOptions& options, InternTable* texts) {
  LANESCOPE_TRY(auto file, SpoolFile::create(options.path, options.max_bytes, options.guard,
                                             options.disk_reserve_bytes));
  std::unique_ptr<Spool> spool(new Spool());
  spool->file_ = std::move(file);
  spool->id_ = spool->file_->header().spool_id;
  spool->texts_ = texts;
  {
    const MutexLock lock(spool->mutex_);
    spool->thread_chunks_.reserve(kMaxThreadChunks);  // new_thread() never allocates
  }
  spool->closed_.emplace(spool->file_.get());
  spool->ring_.emplace(spool->file_.get(), options.ring);
  spool->dumper_.emplace(spool.get(), options.dumps);
  spool->on_check_ = options.on_check;
  spool->max_target_ = ChunkPool::kCapacity / 2;
  // In a ring with a size limit, chunks that wait empty take room from records: at most an eighth.
  if (options.ring)
    spool->max_target_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
        options.max_bytes / spool::kChunkBytes / 8, 2, ChunkPool::kCapacity / 2));
  spool->first_target_ = std::clamp<std::uint32_t>(options.ready_chunks, 2, spool->max_target_);
  spool->file_->header().ticks_per_second = estimate_ticks_per_second();
  texts->attach(spool->file_.get(), &spool->pool_);
  spool->write_anchor();
  // Signals belong to the program: the background thread takes none.
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);  // the guard's
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    spool->thread_ = std::thread([raw = spool.get()] { raw->run(); });
    pthread_setname_np(spool->thread_.native_handle(), "lanescope");
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    unlink(options.path.c_str());  // if the file stayed, its name would be taken
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
  if (dumper_) dumper_->finish();
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
  auto interval = kCheckInterval;
  std::uint32_t ready_before = pool_.ready_count();
  mutex_.lock();
  while (!ending_) {
    if (window_open_)
      wake_.wait_for(mutex_, interval);
    else if (ring_->is_on())
      wake_.wait_for(mutex_, kSignalInterval);
    else
      wake_.wait(mutex_);
    if (ending_) break;
    const bool is_open = window_open_;
    mutex_.unlock();
    // First: what is below may take milliseconds.
    const bool is_measured = is_open && on_check_ && on_check_();
    file_->check_for_cut();
    close_full_chunks();
    if (!is_open) closed_->unmap();
    own_chunks_.store(0, std::memory_order_relaxed);
    ring_->give_back_old(ticks());
    dumper_->check_requests();
    const auto now = Clock::now();
    const std::uint32_t ready = pool_.ready_count();
    const bool is_calm =
        !is_measured && !ring_->is_on() && ready + target / kCalmShare >= ready_before;
    interval = is_calm ? std::min(interval * 2, kCalmInterval) : kCheckInterval;
    // Threads nearly emptied the pool between two checks: prepare more ahead.
    if (ready < target / 4) target = std::min({target * 2, first_target_ * 8, max_target_});
    if (ready + std::min(kChunksAtOnce, target / 4 + 1) <= target && now >= next_refill) {
      const bool is_room = refill(target);
      // Do not ask a full disk a thousand times a second. A ring makes room by itself.
      if (!is_room && (!ring_->is_on() || pool_.ready_count() == 0))
        next_refill = now + std::chrono::milliseconds(kRetryMs);
    }
    ready_before = pool_.ready_count();
    if (file_->take_disk_full() && !ring_->is_on()) return_unused();
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

bool Spool::refill(std::uint32_t target) noexcept {
  const MutexLock lock(refill_mutex_);
  std::array<spool::ChunkHeader*, kChunksAtOnce> made{};
  for (std::uint32_t ready = pool_.ready_count(); ready < target;) {
    const std::uint32_t count =
        make_chunks(std::span(made).first(std::min(target - ready, kChunksAtOnce)));
    if (count == 0) return false;
    bool is_full = false;
    for (spool::ChunkHeader* chunk : std::span(made).first(count))
      if (is_full = is_full || !pool_.put(chunk); is_full) file_->discard_chunk(chunk);
    if (is_full) break;
    ready += count;
  }
  return true;
}

// The program needs the disk more than we need waiting chunks. (A ring uses them for ever.)
void Spool::return_unused() noexcept {
  while (pool_.ready_count() > kReadyOnFullDisk)
    if (spool::ChunkHeader* chunk = pool_.take()) file_->return_chunk(chunk);
}

void ClosedChunks::add(spool::ChunkHeader* chunk) noexcept {
  if (count_ == chunks_.size()) unmap();
  chunks_[count_++] = chunk;
}

void ClosedChunks::unmap() noexcept {
  const auto place = [&](std::size_t at) { return reinterpret_cast<std::byte*>(chunks_[at]); };
  std::sort(chunks_.begin(), chunks_.begin() + count_, std::less<>());
  for (std::size_t first = 0, next = 1; first < count_; first = next++) {
    while (next < count_ && place(next) == place(next - 1) + spool::kChunkBytes) ++next;
    file_->unmap_chunks(chunks_[first], static_cast<std::uint32_t>(next - first));
  }
  count_ = 0;
}

void Spool::close_full_chunks() noexcept {
  // The pool's list begins with the newest chunk, but a thread's chunks must be closed in order.
  spool::ChunkHeader* first = nullptr;
  for (spool::ChunkHeader* chunk = pool_.take_full(); chunk;) {
    auto* next = reinterpret_cast<spool::ChunkHeader*>(chunk->in_memory_next);
    chunk->in_memory_next = reinterpret_cast<std::uintptr_t>(first);
    first = chunk;
    chunk = next;
  }
  for (spool::ChunkHeader* chunk = first; chunk;) {
    auto* next = reinterpret_cast<spool::ChunkHeader*>(chunk->in_memory_next);
    if (chunk->place != 0)
      close_small(chunk);
    else
      close_recorded(chunk);
    chunk = next;
  }
}

void Spool::close_recorded(spool::ChunkHeader* chunk) noexcept {
  ring_->add(chunk, ticks());
  file_->seal_chunk(chunk);
  closed_->add(chunk);
}

void Spool::close_small(spool::ChunkHeader* chunk) noexcept {
  SpoolFile::close_small_chunk(chunk);
  ring_->add_small(chunk);
  if (spool::ChunkHeader* shared = small_.release(chunk)) close_recorded(shared);
}

spool::ChunkHeader* Spool::take_for_thread(std::uint32_t chunks) noexcept {
  if (chunks >= kFirstSmallChunks)
    if (spool::ChunkHeader* chunk = pool_.take()) return chunk;
  return chunks < kMostSmallChunks ? take_small() : make_own();
}

spool::ChunkHeader* Spool::make_own() noexcept {
  // First, because each record that finds no room gets here, and reading the clock costs as much as
  // dropping it.
  if (own_chunks_.load(std::memory_order_relaxed) >= kMostOwnChunks) return nullptr;
  const std::uint64_t began = ticks(), per_ms = file_->header().ticks_per_second / 1000;
  if (began < no_room_until_.load(std::memory_order_relaxed)) {
    own_chunks_.store(kMostOwnChunks, std::memory_order_relaxed);  // until the next check
    return nullptr;
  }
  if (began < no_own_until_.load(std::memory_order_relaxed)) return nullptr;
  // The background thread may sleep for some milliseconds more.
  if (own_chunks_.fetch_add(1, std::memory_order_relaxed) == 0) wake_.notify_one();
  const long waits = waits_of_this_thread();
  spool::ChunkHeader* chunk = make_chunk();
  const std::uint64_t ended = ticks();
  if (!chunk) no_room_until_.store(ended + kRetryMs * per_ms, std::memory_order_relaxed);
  if (ended - began > kLongWaitMs * per_ms && waits_of_this_thread() != waits)
    no_own_until_.store(ended + kRests * (ended - began), std::memory_order_relaxed);
  return chunk;
}

spool::ChunkHeader* Spool::take_small() noexcept {
  // Before the lock: on a full disk, each record of each new thread gets here.
  const std::uint64_t now = ticks();
  if (now < no_room_until_.load(std::memory_order_relaxed) && pool_.ready_count() == 0)
    return nullptr;
  return small_.take([&]() -> spool::ChunkHeader* {
    spool::ChunkHeader* chunk = take_or_make();
    no_room_until_.store(chunk ? 0 : now + file_->header().ticks_per_second * kRetryMs / 1000,
                         std::memory_order_relaxed);
    return chunk;
  });
}

std::uint32_t Spool::make_chunks(std::span<spool::ChunkHeader*> chunks) noexcept {
  const std::uint32_t made = file_->make_chunks(chunks);
  return made == 0 && ring_->give_back_oldest(ticks()) ? file_->make_chunks(chunks) : made;
}

spool::ChunkHeader* Spool::make_chunk() noexcept {
  spool::ChunkHeader* chunk = nullptr;
  return make_chunks({&chunk, 1}) == 1 ? chunk : nullptr;
}

spool::ChunkHeader* Spool::take_or_make() noexcept {
  spool::ChunkHeader* chunk = pool_.take();
  return chunk ? chunk : make_chunk();
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
    if (control_) replace_control_chunk(fresh);
    control_ = fresh;
    used = fresh->used.load(std::memory_order_relaxed);
  }
  auto* records = reinterpret_cast<spool::Record*>(reinterpret_cast<std::byte*>(control_) +
                                                   spool::kChunkHeaderBytes);
  records[used] = record;
  control_->used.store(used + 1, std::memory_order_release);  // pairs with the reader's acquire
}

void Spool::write_metadata(std::uint32_t session, std::string_view key,
                           std::string_view json) noexcept {
  write_control(
      spool::MetadataRecord{.begin_tsc = ticks(),
                            .key = texts_->intern(key),
                            .session = session,
                            .json = texts_->intern_for_spool(json, Recorder::kMaxMetadataBytes)});
}

bool Spool::metadata_fits(std::string_view key, std::string_view json) {
  return key.size() <= spool::kMaxTextBytes && json.size() <= Recorder::kMaxMetadataBytes;
}

// One anchor a second fills a chunk in 45 minutes. In a ring, the fresh chunk takes over all
// records except old anchors, and the full chunk is given back.
void Spool::replace_control_chunk(spool::ChunkHeader* fresh) noexcept {
  const auto records_of = [](spool::ChunkHeader* chunk) {
    return reinterpret_cast<spool::Record*>(reinterpret_cast<std::byte*>(chunk) +
                                            spool::kChunkHeaderBytes);
  };
  const spool::Record* from = records_of(control_);
  const spool::Record* const end = from + control_->used.load(std::memory_order_relaxed);
  const std::uint64_t now = ticks(), oldest = ring_->oldest_wanted(now);
  const std::uint64_t margin = 2 * file_->header().ticks_per_second;  // the anchor before it, too
  const auto is_needed = [&](const spool::Record& record) {
    return record.head.kind != spool::RecordKind::kAnchor ||
           record.anchor.begin_tsc + margin >= oldest;
  };
  const auto needed = static_cast<std::uint32_t>(std::count_if(from, end, is_needed));
  const bool copied = dumper_->is_copying();
  if (!ring_->is_on() || copied || needed > spool::kRecordsPerChunk / 2)
    return file_->close_chunk(control_);
  std::copy_if(from, end, records_of(fresh), is_needed);
  fresh->used.store(needed, std::memory_order_release);  // pairs with the reader's acquire
  const std::uint32_t number = control_->number;
  file_->close_chunk(control_);
  file_->give_back(number);
}

std::uint32_t Spool::write_activities(const spool::Record* records, std::uint32_t count) noexcept {
  const MutexLock lock(activities_mutex_);
  std::uint32_t at = 0;
  while (at < count) {
    std::uint32_t used = activities_ ? activities_->used.load(std::memory_order_relaxed) : 0;
    std::uint32_t fit = activities_ ? std::min(count - at, spool::kRecordsPerChunk - used) : 0;
    if (at + fit < count && fit != 0 &&
        spool::activity_kind(records[at + fit]) == spool::ActivityKind::kContinued)
      --fit;
    if (fit == 0) {
      spool::ChunkHeader* fresh = take_or_make();
      if (!fresh) break;
      SpoolFile::claim(fresh, spool::ChunkKind::kActivities, spool::kNoThread, ++activity_chunks_);
      if (activities_) {
        ring_->add(activities_, ticks());
        file_->close_chunk(activities_);
      }
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

void Spool::write_anchor() noexcept { write_control(read_anchor()); }

void Spool::finish(bool leave_mapped) noexcept {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  dumper_->finish();
  write_anchor();
  close_full_chunks();
  closed_->unmap();
  ring_->finish();
  texts_->detach();
  {
    const MutexLock lock(activities_mutex_);
    if (activities_) file_->close_chunk(activities_);
    activities_ = nullptr;
  }
  if (spool::ChunkHeader* shared = small_.finish()) file_->close_chunk(shared);
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

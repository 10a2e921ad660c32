#include "lanescope/record/spool_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "lanescope/codec/json_text.h"
#include "lanescope/codec/spool_ending.h"
#include "lanescope/record/clock_anchor.h"
#include "lanescope/record/spool.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record {
namespace {

constexpr std::size_t kMaxWaitingChunks = 256;
constexpr std::size_t kMaxWaitingDumps = 4;

// Also for chunks that were closed: the checksum covers `used` and the payload.
void seal(std::byte* chunk, std::size_t chunk_bytes) {
  spool::ChunkHeader header;
  memcpy(static_cast<void*>(&header), chunk, sizeof header);
  header.in_memory_next = 0;
  header.state = spool::ChunkState::kClosed;
  memcpy(chunk, static_cast<const void*>(&header), sizeof header);
  header.checksum =
      spool::chunk_checksum(chunk, header.used.load(std::memory_order_relaxed), chunk_bytes);
  memcpy(chunk, static_cast<const void*>(&header), sizeof header);
}

// The file of a copy. Chunks are taken under the ring's lock and written without it.
class CopyFile {
 public:
  explicit CopyFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {}
  ~CopyFile() {
    if (fd_ < 0) return;
    close(fd_);
    unlink(part_.c_str());
  }
  CopyFile(const CopyFile&) = delete;
  CopyFile& operator=(const CopyFile&) = delete;

  Result<void> open() {
    struct stat info {};
    if (stat(path_.c_str(), &info) == 0)
      return Error{Errc::kIo, fmt::format("{}: exists already and is not overwritten", path_)};
    fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ >= 0) return {};
    return Error{Errc::kIo, fmt::format("{}: {}", part_, strerror(errno))};
  }

  // `bytes`: kChunkBytes as copied from the file. Chunks without content are left out.
  void take(std::vector<std::byte> bytes) {
    spool::ChunkHeader header;
    memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
    const std::uint32_t used = header.used.load(std::memory_order_relaxed);
    if (header.magic != spool::kChunkMagic || header.kind == spool::ChunkKind::kFree || used == 0)
      return;
    seal(bytes.data(), spool::kChunkBytes);
    if (header.kind == spool::ChunkKind::kShared)
      for (std::size_t place = 1; place <= spool::kSmallChunks; ++place)
        seal(bytes.data() + place * spool::kSmallChunkBytes, spool::kSmallChunkBytes);
    std::size_t waiting = 0;
    {
      const MutexLock lock(mutex_);
      waiting_.push_back(std::move(bytes));
      waiting = waiting_.size();
    }
    if (waiting > kMaxWaitingChunks) write_waiting();
  }

  void write_waiting() {
    const MutexLock one_writer(write_mutex_);
    std::vector<std::vector<std::byte>> chunks;
    {
      const MutexLock lock(mutex_);
      chunks.swap(waiting_);
    }
    for (const auto& chunk : chunks) {
      write(chunk, end_);
      end_ += spool::kChunkBytes;
    }
  }

  // Writes the first page and gives the file its name.
  Result<void> finish(std::span<const std::byte> header) {
    write_waiting();
    const MutexLock one_writer(write_mutex_);
    write(header, 0);
    if (error_ == 0 && ftruncate(fd_, static_cast<off_t>(end_)) != 0) error_ = errno;
    if (error_ == 0 && rename(part_.c_str(), path_.c_str()) != 0) error_ = errno;
    if (error_ != 0)
      return Error{Errc::kIo, fmt::format("{}: could not be written: {}", path_, strerror(error_))};
    close(fd_);
    fd_ = -1;
    return {};
  }

 private:
  void write(std::span<const std::byte> bytes, std::uint64_t at) LANESCOPE_REQUIRES(write_mutex_) {
    rlimit limit{};
    // Growing over RLIMIT_FSIZE would raise SIGXFSZ, which kills.
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        at + bytes.size() > limit.rlim_cur)
      error_ = EFBIG;
    while (error_ == 0 && !bytes.empty()) {
      const ssize_t count = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        error_ = count < 0 ? errno : ENOSPC;
        return;
      }
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      at += static_cast<std::size_t>(count);
    }
  }

  const std::string path_, part_;
  int fd_ = -1;
  Mutex write_mutex_;  // before mutex_
  std::uint64_t end_ LANESCOPE_GUARDED_BY(write_mutex_) = spool::kHeaderBytes;
  int error_ LANESCOPE_GUARDED_BY(write_mutex_) = 0;
  Mutex mutex_;
  std::vector<std::vector<std::byte>> waiting_ LANESCOPE_GUARDED_BY(mutex_);
};

// The last control chunk of a copy: ends the open windows at `now`, and says why the copy was made.
std::vector<std::byte> last_control(const SpoolFile& file, const std::vector<RingWindow>& windows,
                                    std::uint64_t now, std::uint32_t key, std::uint32_t json) {
  std::vector<spool::Record> records = {read_anchor()};
  for (const RingWindow& window : windows) {
    if (window.stop != 0) continue;
    if (records.size() + 1 == spool::kRecordsPerChunk) break;
    records.push_back(spool::WindowRecord{.begin_tsc = now,
                                          .kind = spool::RecordKind::kWindowStop,
                                          .cycle = window.cycle,
                                          .session = window.session});
  }
  records.push_back(spool::MetadataRecord{.begin_tsc = now, .key = key, .json = json});
  std::vector<std::byte> bytes(spool::kChunkBytes);
  spool::ChunkHeader header{};
  header.magic = spool::kChunkMagic;
  header.number = file.chunk_count();
  header.kind = spool::ChunkKind::kControl;
  header.thread = spool::kNoThread;
  header.used = static_cast<std::uint32_t>(records.size());
  memcpy(bytes.data(), static_cast<const void*>(&header), sizeof header);
  memcpy(bytes.data() + spool::kChunkHeaderBytes, records.data(),
         records.size() * sizeof records[0]);
  return bytes;
}

std::vector<std::byte> finished_header(SpoolFile& file) {
  std::vector<std::byte> page(spool::kHeaderBytes);
  const auto* words = reinterpret_cast<const std::uint64_t*>(&file.header());
  for (std::size_t i = 0; i < spool::kHeaderBytes / sizeof *words; ++i) {
    // relaxed: counters go on
    const std::uint64_t word = __atomic_load_n(words + i, __ATOMIC_RELAXED);
    memcpy(page.data() + i * sizeof word, &word, sizeof word);
  }
  const auto finished = spool::FileState::kFinished;
  memcpy(page.data() + offsetof(spool::FileHeader, state), &finished, sizeof finished);
  return page;
}

std::uint64_t to_ns(std::uint64_t ticks, std::uint64_t ticks_per_second) {
  return static_cast<std::uint64_t>(
      static_cast<double>(ticks) * 1e9 /
      static_cast<double>(std::max<std::uint64_t>(ticks_per_second, 1)));
}

}  // namespace

Result<DumpInfo> dump_spool(Spool& spool, const std::string& path, const std::string& why) {
  SpoolFile& file = spool.file();
  Ring& ring = spool.ring();
  if (file.is_cut())
    return Error{Errc::kIo, fmt::format("{}: cut while it was written; there is nothing to copy",
                                        file.path())};
  CopyFile copy(path);
  LANESCOPE_TRY_VOID(copy.open());
  std::string json = "{\"reason\": \"";
  codec::append_escaped_json(json, why);
  json += "\"}";
  const std::uint32_t key_id = spool.texts().intern("lanescope_dump");
  const std::uint32_t json_id = spool.texts().intern_for_spool(json);
  spool.texts().flush();
  const std::uint64_t now = ticks();
  std::vector<RingWindow> windows = ring.windows();
  // Chunks made from here on contain nothing from before `now`.
  const std::uint32_t count = file.chunk_count();
  ring.start_copy(
      [&](std::uint32_t number) {
        std::vector<std::byte> bytes(spool::kChunkBytes);
        if (file.copy_live_chunk(number, bytes.data())) copy.take(std::move(bytes));
      },
      count, now);
  for (std::uint32_t number = 0; number < count; ++number) {
    ring.copy_chunk(number);
    copy.write_waiting();
  }
  ring.stop_copy();
  for (const RingWindow& window : ring.windows())
    if (window.start > now) windows.push_back(window);
  copy.take(last_control(file, windows, now, key_id, json_id));
  LANESCOPE_TRY_VOID(copy.finish(finished_header(file)));
  DumpInfo info;
  info.path = path;
  for (const RingWindow& window : windows) {
    const std::uint64_t end = window.stop != 0 ? window.stop : now;
    const std::uint64_t all = end > window.start ? end - window.start : 0;
    info.covered_ns =
        std::max(info.covered_ns,
                 to_ns(window.last == 0 ? all : ring.covered(window.session, now).value_or(all),
                       file.header().ticks_per_second));
  }
  return info;
}

Result<DumpInfo> Dumper::dump(const std::string& path, const std::string& why) {
  if (settings_.flush_sources) settings_.flush_sources();
  const MutexLock one(copy_mutex_);
  try {
    copying_.store(true, std::memory_order_release);
    spool_->wait_for_control();
    auto info = dump_spool(*spool_, path, why);
    copying_.store(false, std::memory_order_release);
    return info;
  } catch (...) {
    spool_->ring().stop_copy();
    copying_.store(false, std::memory_order_release);
    return Error{Errc::kLimit, fmt::format("{}: no memory for the copy", path)};
  }
}

std::uint64_t Dumper::request(std::string why, std::uint64_t replaces) noexcept {
  const MutexLock lock(mutex_);
  try {
    if (replaces != 0)
      for (DumpRequest& wanted : waiting_)
        if (wanted.number == replaces) {  // not made yet: one dump now serves both
          wanted.why = std::move(why);
          return wanted.number = ++numbers_;
        }
    if (waiting_.size() >= kMaxWaitingDumps) return 0;
    waiting_.push_back({numbers_ + 1, replaces, std::move(why)});
    return ++numbers_;
  } catch (...) {  // no memory, no dump
    return 0;
  }
}

void Dumper::check_requests() noexcept {
  if (settings_.signals) {
    const std::uint32_t signals = settings_.signals->load(std::memory_order_relaxed);
    if (signals != seen_signals_) {
      seen_signals_ = signals;
      request(settings_.signal_name);
    }
  }
  if (busy_.load(std::memory_order_acquire)) return;  // pairs with the thread's release
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) return;
  }
  if (thread_.joinable()) thread_.join();
  busy_.store(true, std::memory_order_relaxed);
  try {  // signals stay blocked in the new thread, as in this one
    thread_ = std::thread([this] {
      make_waiting();
      busy_.store(false, std::memory_order_release);
    });
    pthread_setname_np(thread_.native_handle(), "lanescope-dump");
  } catch (...) {  // no thread
    make_waiting();
    busy_.store(false, std::memory_order_relaxed);
  }
}

void Dumper::finish() noexcept {
  if (thread_.joinable()) thread_.join();
  make_waiting();
}

std::string Dumper::next_path() const {
  std::string stem = spool_->path();
  if (stem.ends_with(spool::kEnding)) stem.resize(stem.size() - spool::kEnding.size());
  for (int number = 1;; ++number) {
    std::string path = fmt::format("{}_dump{}{}", stem, number, spool::kEnding);
    struct stat info {};
    // A known dump that is gone was converted into something else.
    const MutexLock lock(mutex_);
    const bool is_known = std::any_of(made_.begin(), made_.end(),
                                      [&](const DumpedFile& made) { return made.path == path; });
    if (!is_known && stat(path.c_str(), &info) != 0) return path;
  }
}

std::string Dumper::note_dump(const DumpRequest& wanted, const std::string& path) {
  const MutexLock lock(mutex_);
  std::string gone;
  for (DumpedFile& made : made_)
    if (made.number == wanted.replaces && !made.is_replaced && wanted.replaces != 0) {
      made.is_replaced = true;
      if (unlink(made.path.c_str()) == 0) gone = made.path;
    }
  made_.push_back({wanted.number, path});
  return gone;
}

void Dumper::make_waiting() noexcept {
  try {
    while (true) {
      DumpRequest wanted;
      {
        const MutexLock lock(mutex_);
        if (waiting_.empty()) return;
        wanted = std::move(waiting_.front());
        waiting_.erase(waiting_.begin());
      }
      const auto made = dump(next_path(), wanted.why);
      const std::string gone = made ? note_dump(wanted, made->path) : "";
      if (settings_.quiet) continue;
      std::string line =
          made ? fmt::format("{}: the last {:.3g} s are in {}", wanted.why,
                             static_cast<double>(made->covered_ns) * 1e-9, made->path)
               : fmt::format("{}, but the dump failed: {}", wanted.why, made.error().message);
      if (!gone.empty()) line += fmt::format("; {} is removed", gone);
      fprintf(stderr, "lanescope: %s\n", line.c_str());
    }
  } catch (...) {  // no memory
  }
}

std::vector<std::string> Dumper::paths() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> paths;
  for (const DumpedFile& made : made_)
    if (!made.is_replaced) paths.push_back(made.path);
  return paths;
}

}  // namespace lanescope::record

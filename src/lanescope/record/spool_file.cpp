#include "lanescope/record/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "lanescope/record/file_growth.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record {
namespace {

// A program without standard input or output writes to whatever gets their numbers.
constexpr int kFirstDescriptor = 3;

std::uint64_t random_id() {
  std::uint64_t id = 0;
  if (getrandom(&id, sizeof id, GRND_NONBLOCK) != sizeof id) id = ticks() * 0x9e3779b97f4a7c15u;
  return id | 1;
}

void read_process_name(char* name, std::size_t size) {
  const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t got = read(fd, name, size - 1);
  close(fd);
  if (got > 0 && name[got - 1] == '\n') name[got - 1] = 0;
}

}  // namespace

std::uint64_t SpoolFile::place_of(std::uint32_t number) {
  return spool::kHeaderBytes + std::uint64_t{number} * spool::kChunkBytes;
}

Result<std::unique_ptr<SpoolFile>> SpoolFile::create(const std::string& path,
                                                     std::uint64_t max_bytes, BusGuard* guard,
                                                     std::optional<std::uint64_t> disk_reserve) {
  std::unique_ptr<SpoolFile> file(new SpoolFile());
  file->guard_ = guard;
  if (guard) file->faults_before_ = guard->faults();
  file->path_ = path;
  file->max_bytes_ = max_bytes;
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd >= 0 && fd < kFirstDescriptor) {
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, kFirstDescriptor);
    close(fd);
    fd = high;
  }
  file->fd_ = fd;
  struct stat info {};
  if (fd >= 0 && fstat(fd, &info) == 0) file->inode_ = {info.st_dev, info.st_ino};
  if (fd < 0)
    return Error{
        Errc::kIo,
        errno == EEXIST
            ? fmt::format("{}: exists already; it may be what a killed process left, so it "
                          "is not overwritten",
                          path)
            : fmt::format("{}: cannot make the recording's file: {}", path, strerror(errno))};
  // Never waits. For leftovers.h: a file that a process has open is not a leftover.
  static_cast<void>(flock(fd, LOCK_EX | LOCK_NB));
  if (struct statvfs disk{}; !disk_reserve && fstatvfs(fd, &disk) == 0)
    disk_reserve = default_disk_reserve(std::uint64_t{disk.f_blocks} * disk.f_frsize,
                                        std::uint64_t{disk.f_bavail} * disk.f_frsize);
  {
    const MutexLock lock(file->mutex_);
    file->reserve_ = disk_reserve.value_or(0);
  }
  int error = reserve_room(fd, 0, spool::kHeaderBytes);
  if (error == 0) error = append_zeroes(fd, 0, spool::kHeaderBytes);
  if (error != 0) {
    unlink(path.c_str());
    return Error{Errc::kIo, fmt::format("{}: cannot reserve space for the recording: {}", path,
                                        strerror(error))};
  }
  void* at = file->map(0, spool::kHeaderBytes, PROT_READ | PROT_WRITE);
  if (!at) {
    unlink(path.c_str());
    return Error{Errc::kIo,
                 fmt::format("{}: cannot map the recording's file: {}", path, strerror(errno))};
  }
  auto* header = static_cast<spool::FileHeader*>(at);
  file->header_ = header;
  std::copy_n(spool::kMagic, sizeof header->magic, header->magic);
  header->layout_version = spool::kLayoutVersion;
  header->header_bytes = spool::kHeaderBytes;
  header->chunk_bytes = spool::kChunkBytes;
  header->record_bytes = sizeof(spool::Record);
  header->spool_id = file->id_ = random_id();
  header->pid = static_cast<std::uint64_t>(getpid());
  header->clock = kTickClock;
  header->max_bytes = max_bytes;
  read_process_name(header->process_name, sizeof header->process_name);
  gethostname(header->host_name, sizeof header->host_name - 1);
  file->bytes_.store(spool::kHeaderBytes, std::memory_order_relaxed);
  return file;
}

SpoolFile::~SpoolFile() {
  if (header_) {
    if (guard_) guard_->remove(header_);
    munmap(header_, spool::kHeaderBytes);
  }
  if (const int fd = fd_; fd >= 0 && is_ours(fd)) close(fd);
}

void SpoolFile::refuse(std::string why) {
  if (refusal_.empty()) refusal_ = std::move(why);
}

std::uint64_t SpoolFile::default_disk_reserve(std::uint64_t disk_bytes, std::uint64_t free_bytes) {
  constexpr std::uint64_t kLeast = 1'000'000'000;
  return std::min(std::max(disk_bytes / 20, kLeast), free_bytes / 2);
}

spool::ChunkHeader* SpoolFile::make_chunk() noexcept {
  spool::ChunkHeader* chunk = nullptr;
  return make_chunks({&chunk, 1}) == 1 ? chunk : nullptr;
}

std::uint32_t SpoolFile::make_chunks(std::span<spool::ChunkHeader*> chunks) noexcept {
  Places places;
  {
    const MutexLock lock(mutex_);
    places = take_places(static_cast<std::uint32_t>(chunks.size()));
  }
  if (places.count == 0) return 0;
  // Without the lock: page faults take most of the time, and new threads may wait for the lock.
  std::byte* const at = map_places(places);
  if (!at) return 0;
  for (std::uint32_t made = 0; made < places.count; ++made) {
    auto* chunk = reinterpret_cast<spool::ChunkHeader*>(at + made * spool::kChunkBytes);
    chunk->magic = spool::kChunkMagic;
    chunk->number = places.first + made;
    chunk->spool_id = header_->spool_id;
    chunks[made] = chunk;
  }
  return places.count;
}

bool SpoolFile::is_ours(int fd) const noexcept {
  struct stat info {};
  return fstat(fd, &info) == 0 && Inode{info.st_dev, info.st_ino} == inode_;
}

// A program that becomes a daemon closes all descriptors, and its next file gets our number.
bool SpoolFile::keep_descriptor() noexcept {
  if (is_ours(fd_)) return true;
  const int fd = open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  const int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, kFirstDescriptor) : -1;
  if (fd >= 0) close(fd);
  if (high >= 0 && is_ours(high)) {
    fd_ = high;
    static_cast<void>(flock(high, LOCK_EX | LOCK_NB));
    return true;
  }
  if (high >= 0) close(high);
  fd_ = -1;
  return false;
}

void* SpoolFile::map(std::uint64_t offset, std::size_t bytes, int protection) const noexcept {
  const int fd = fd_;
  void* at = mmap(nullptr, bytes, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  if (!is_ours(fd)) {  // closed, and used again, since the last check
    munmap(at, bytes);
    errno = EBADF;
    return nullptr;
  }
  madvise(at, bytes, MADV_DONTFORK);
  if (guard(static_cast<std::byte*>(at), bytes)) return at;
  munmap(at, bytes);
  errno = ENOMEM;
  return nullptr;
}

bool SpoolFile::guard(std::byte* at, std::size_t bytes) const noexcept {
  if (!guard_) return true;
  for (std::size_t done = 0; done < bytes; done += spool::kChunkBytes)
    if (!guard_->add(at + done, std::min(bytes - done, spool::kChunkBytes))) {
      forget_guarded(at, done);
      return false;
    }
  return true;
}

void SpoolFile::forget_guarded(std::byte* at, std::size_t bytes) const noexcept {
  if (!guard_) return;
  for (std::size_t done = 0; done < bytes; done += spool::kChunkBytes) guard_->remove(at + done);
}

// Once the file was cut, it is unknown which memory belongs to it, so it stays mapped.
void SpoolFile::unmap(void* at, std::size_t bytes) const noexcept {
  if (is_cut()) return;
  forget_guarded(static_cast<std::byte*>(at), bytes);
  munmap(at, bytes);
}

void SpoolFile::check_for_cut() noexcept {
  const MutexLock lock(mutex_);
  check_size();
}

void SpoolFile::check_size() {
  if (is_cut()) return;
  struct stat info {};
  // The first page is empty in a file that somebody cut to nothing and made longer again.
  if (!keep_descriptor() || fstat(fd_, &info) != 0 ||
      static_cast<std::uint64_t>(info.st_size) < place_of(chunk_count_) || header_->spool_id != id_)
    end_recording();
}

void SpoolFile::end_recording() noexcept {
  cut_.store(true, std::memory_order_relaxed);
  if (guard_) guard_->report();
}

bool SpoolFile::is_deleted() const noexcept {
  struct stat info {};
  return fstat(fd_, &info) == 0 && info.st_nlink == 0;
}

SpoolFile::Places SpoolFile::take_places(std::uint32_t most) {
  check_size();
  if (is_cut()) return {};
  if (!given_back_.empty()) {
    const std::uint32_t number = given_back_.back();
    given_back_.pop_back();
    return {number, 1, true};
  }
  if (returned_.empty()) return append_places(most);
  if (!reserve_place(returned_.back())) return {};
  const std::uint32_t number = returned_.back();
  returned_.pop_back();
  return {number, 1, false};
}

SpoolFile::Places SpoolFile::append_places(std::uint32_t most) {
  const std::uint64_t offset = place_of(chunk_count_);
  const std::uint64_t fit = max_bytes_ > offset ? (max_bytes_ - offset) / spool::kChunkBytes : 0;
  if (fit == 0) {
    refuse(
        fmt::format("the size limit of {} bytes was reached (--max-size, max_size=)", max_bytes_));
    return {};
  }
  auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, fit));
  // Where there is no room for all, one is as good as before.
  if (count > 1 && !reserve_places(chunk_count_, count)) count = 1;
  if (count == 1 && !reserve_place(chunk_count_)) return {};
  if (const int error = append_zeroes(fd_, offset, count * spool::kChunkBytes); error == ESTALE) {
    end_recording();
    return {};
  } else if (error != 0) {
    if (count > 1) return append_places(1);
    refuse_for_room(strerror(error));
    return {};
  }
  const Places places{chunk_count_, count, false};
  chunk_count_ += count;
  bytes_.store(place_of(chunk_count_), std::memory_order_relaxed);
  return places;
}

// False: nothing has changed, and nothing is refused yet.
bool SpoolFile::reserve_places(std::uint32_t first, std::uint32_t count) {
  const std::uint64_t bytes = count * spool::kChunkBytes;
  if (!leaves_reserve(bytes)) return false;
  if (reserve_room(fd_, place_of(first), bytes) == 0) return true;
  static_cast<void>(!fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(place_of(first)), static_cast<off_t>(bytes)));
  room_ = 0;
  return false;
}

bool SpoolFile::reserve_place(std::uint32_t number) {
  if (!leaves_reserve(spool::kChunkBytes)) {
    refuse_for_room(fmt::format(
        "its disk would have less than {} bytes free, the reserve (--disk-reserve, disk_reserve=)",
        reserve_));
    return false;
  }
  const int error = reserve_room(fd_, place_of(number), spool::kChunkBytes);
  if (error == 0) return true;
  // Some of it may be reserved. Setting the length would give it back, but cover up a cut.
  static_cast<void>(!fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(place_of(number)), spool::kChunkBytes));
  room_ = 0;
  refuse_for_room(strerror(error));
  return false;
}

void SpoolFile::refuse_for_room(std::string why) {
  refuse(std::move(why));
  disk_refused_.store(true, std::memory_order_relaxed);
}

// Other programs fill the disk, too, so check it ten times a second.
bool SpoolFile::leaves_reserve(std::uint64_t bytes) {
  if (reserve_ == 0) return true;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::int64_t now_ns = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  if (room_ < bytes || now_ns >= look_again_ns_) {
    struct statvfs disk {};
    if (fstatvfs(fd_, &disk) != 0) return true;
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    room_ = free > reserve_ ? free - reserve_ : 0;
    look_again_ns_ = now_ns + 100'000'000;
  }
  if (room_ < bytes) return false;
  room_ -= bytes;
  return true;
}

std::byte* SpoolFile::map_places(const Places& places) {
  const std::size_t size = places.count * spool::kChunkBytes;
  void* at = map(place_of(places.first), size, PROT_READ | PROT_WRITE);
  if (!at) {
    const int error = errno;
    const MutexLock lock(mutex_);
    refuse(strerror(error));
    for (std::uint32_t unused = 0; unused < places.count; ++unused)
      add_place(places.first + unused);
    return nullptr;
  }
  // A place that was given back already has kind kFree, so a process killed here leaves no half
  // chunk. MAP_POPULATE only reads shared pages; a store to each page now keeps write faults out of
  // the hot path.
  auto* bytes = static_cast<volatile unsigned char*>(at);
  if (places.used_before)
    memset(at, 0, size);
  else
    for (std::size_t page = 0; page < size; page += 4096) bytes[page] = 0;
  return static_cast<std::byte*>(at);
}

void SpoolFile::discard_chunk(spool::ChunkHeader* chunk) noexcept {
  const std::uint32_t number = chunk->number;
  unmap(chunk, spool::kChunkBytes);
  if (is_cut()) return;
  const MutexLock lock(mutex_);
  add_place(number);
}

void SpoolFile::return_chunk(spool::ChunkHeader* chunk) noexcept {
  const std::uint32_t number = chunk->number;
  unmap(chunk, spool::kChunkBytes);
  const MutexLock lock(mutex_);
  check_size();
  if (is_cut()) return;
  try {
    returned_.reserve(returned_.size() + 1);
  } catch (...) {  // no memory
    return add_place(number);
  }
  if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(place_of(number)), spool::kChunkBytes) != 0)
    return add_place(number);
  returned_.push_back(number);
}

void SpoolFile::add_place(std::uint32_t number) {
  try {
    given_back_.push_back(number);
  } catch (...) {  // no memory: that place stays empty
  }
}

std::uint32_t SpoolFile::chunk_count() const noexcept {
  const MutexLock lock(mutex_);
  return chunk_count_;
}

void SpoolFile::finish() noexcept {
  const MutexLock lock(mutex_);
  check_size();
  if (is_cut()) return;  // the rest of it stays as it is
  for (const std::uint32_t number : returned_) add_place(number);
  returned_.clear();
  std::sort(given_back_.begin(), given_back_.end());
  for (; !given_back_.empty() && given_back_.back() + 1 >= used_chunk_count_;
       given_back_.pop_back())
    if (given_back_.back() + 1 == used_chunk_count_) --used_chunk_count_;
  const std::uint64_t size = place_of(used_chunk_count_);
  if (ftruncate(fd_, static_cast<off_t>(size)) == 0) bytes_.store(size, std::memory_order_relaxed);
  if (!ends_as_written()) return end_recording();
  header_->state = spool::FileState::kFinished;
}

std::string SpoolFile::refusal() const {
  const MutexLock lock(mutex_);
  return refusal_;
}

}  // namespace lanescope::record

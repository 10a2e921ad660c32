#include "lanescope/base/spill_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lanescope/base/byte_size.h"
#include "lanescope/base/free_memory.h"
#include "lanescope/base/memory_watch.h"

namespace lanescope {
namespace {

constexpr std::uintptr_t kPage = 4096;
// Where a group limits the memory. Around a missing page the system reads as much as the disk is set to, 8 MiB on some: in a small
// group these pages of one column push out those of the others. What is read ends with the file.
constexpr std::size_t kPieceInGroup = 512u << 10;

constinit std::atomic<SpillMemory*> made_of_process = nullptr;

// Closes itself.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// A file without a name: it is gone when the process ends, however that is.
int open_nameless(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
    return descriptor;
  std::string name = folder + "/lanescope-spill-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

bool lies_in_memory(const struct statfs& info) {
  return info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC;
}

std::uint64_t free_bytes(const struct statfs& info) {
  return static_cast<std::uint64_t>(info.f_bavail) * static_cast<std::uint64_t>(info.f_bsize);
}

// All of it, now: a full disk would be a signal in the middle of the work later on. The free room is
// asked for first: an attempt that fails fills the disk for a moment.
bool take_room(int file, std::size_t bytes) {
  struct statfs info {};
  if (::fstatfs(file, &info) != 0 || free_bytes(info) < bytes) return false;
  if (::fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0) return true;
  if (errno != EOPNOTSUPP) return false;
  // NFS and others: the best that can be known.
  return free_bytes(info) / 2 >= bytes && ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
}

std::string size_text(std::uint64_t bytes) {
  return std::to_string((bytes + (1u << 20) - 1) >> 20).append(" MiB");
}

std::uint64_t budget_of_process() {
  if (const MemoryWatch* const watch = MemoryWatch::of_process()) watch->begin();
  if (const char* const text = std::getenv("LANESCOPE_MEMORY"))
    if (const auto bytes = parse_byte_size(text)) return *bytes;
  return free_memory_bytes().value_or(std::uint64_t{4} << 30) / 2;
}

std::vector<std::string> folders_of_process() {
  std::vector<std::string> folders;
  const auto add = [&](const char* variable, const char* below) {
    const char* const text = std::getenv(variable);
    if (text && text[0] == '/') folders.push_back(std::string(text) + below);
  };
  add("TMPDIR", "");
  add("XDG_CACHE_HOME", "");
  add("HOME", "/.cache");
  folders.emplace_back("/var/tmp");
  return folders;
}

}  // namespace

SpillFailed::SpillFailed(std::string_view message) : message_{} {
  std::memcpy(message_, message.data(), std::min(message.size(), sizeof message_ - 1));
}

void throw_no_memory(std::size_t bytes) {
  constexpr std::size_t kMiB = 1u << 20;
  rlimit addresses{};
  if (::getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY)
    throw std::bad_alloc();
  std::array<char, 256> message{};
  std::snprintf(message.data(), message.size(),
                "`ulimit -v` allows %llu MiB of addresses; expected %llu MiB more at once than are "
                "left; raise it, or take a smaller trace",
                static_cast<unsigned long long>(addresses.rlim_cur / kMiB),
                static_cast<unsigned long long>((bytes + kMiB - 1) / kMiB));
  throw SpillFailed(message.data());
}

SpillMemory::SpillMemory(std::uint64_t budget_bytes, std::vector<std::string> folders,
                         std::size_t piece_bytes)
    : budget_bytes_(budget_bytes), folders_(std::move(folders)), piece_bytes_(piece_bytes) {}

void* SpillMemory::map_memory(std::size_t bytes) const {
  void* const block =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw_no_memory(bytes);
  return block;
}

// nullptr: the folder has no room.
void* SpillMemory::map_pieces(const std::string& folder, std::size_t bytes) const {
  const std::size_t share = (bytes / kMostPieces / kPage + 1) * kPage;
  const std::size_t piece = piece_bytes_ == 0 ? bytes : std::max(piece_bytes_, share);
  void* const block =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) throw_no_memory(bytes);
  for (std::size_t at = 0; at < bytes; at += piece) {
    const std::size_t size = std::min(piece, bytes - at);
    const File file(open_nameless(folder));
    const bool has_room = file.get() >= 0 && take_room(file.get(), size);
    if (has_room && ::mmap(static_cast<char*>(block) + at, size, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, file.get(), 0) != MAP_FAILED)
      continue;
    ::munmap(block, bytes);
    if (has_room) throw_no_memory(size);
    return nullptr;
  }
  const MemoryWatch* const watch = MemoryWatch::of_process();
  if (watch && watch->is_little()) ::madvise(block, bytes, MADV_RANDOM);
  return block;
}

void* SpillMemory::map_file(std::size_t bytes) const {
  std::string tried;
  for (const std::string& folder : folders_) {
    struct statfs info {};
    if (::statfs(folder.c_str(), &info) != 0 || lies_in_memory(info)) continue;
    if (::access(folder.c_str(), W_OK) != 0) continue;
    if (void* const block = map_pieces(folder, bytes)) return block;
    if (!tried.empty()) tried.append(", ");
    tried.append(size_text(free_bytes(info))).append(" in ").append(folder);
  }
  std::string message = "memory is short; expected ";
  message.append(size_text(bytes)).append(" of disk for what does not fit, found ");
  message.append(tried.empty() ? "no folder to write to" : tried);
  message.append("; free some, or set TMPDIR to a folder on a larger disk");
  throw SpillFailed(message);
}

void* SpillMemory::allocate(std::size_t bytes) {
  if (bytes < kLeastSpilled) return nullptr;
  const std::uint64_t used = in_memory_bytes_.load(std::memory_order_relaxed);
  const bool fits = bytes <= budget_bytes_ && used <= budget_bytes_ - bytes;
  if (fits && bytes < kLargeBlock) return nullptr;
  void* const block = fits ? map_memory(bytes) : map_file(bytes);
  (fits ? in_memory_bytes_ : on_disk_bytes_) += bytes;
  const std::lock_guard lock(mutex_);
  blocks_.emplace(block, Block{bytes, !fits});
  ++block_count_;
  return block;
}

bool SpillMemory::release(void* block) noexcept {
  if (reinterpret_cast<std::uintptr_t>(block) % kPage != 0 ||
      block_count_.load(std::memory_order_relaxed) == 0)
    return false;
  Block found{};
  {
    const std::lock_guard lock(mutex_);
    const auto it = blocks_.find(block);
    if (it == blocks_.end()) return false;
    found = it->second;
    blocks_.erase(it);
    --block_count_;
  }
  (found.on_disk ? on_disk_bytes_ : in_memory_bytes_) -= found.bytes;
  ::munmap(block, found.bytes);
  return true;
}

SpillMemory& SpillMemory::of_process() {
  static SpillMemory* const memory = [] {
    const std::uint64_t budget = budget_of_process();
    const std::size_t piece = MemoryWatch::of_process() ? kPieceInGroup : 0;
    auto* const made = new SpillMemory(budget, folders_of_process(), piece);
    made_of_process = made;
    return made;
  }();
  return *memory;
}

SpillMemory* SpillMemory::of_process_if_made() noexcept { return made_of_process; }

}  // namespace lanescope

// Large blocks of memory of which the system can write a part to the disk.
//
// Problem: a trace larger than memory must open, and what an analysis makes of it is as large again.
// Without swap, a process that takes more memory than there is gets killed. Idea: large blocks come
// from memory up to a budget; those beyond it are pages of a file that has no name, which the system
// writes out and reads back as it does with every file. Nothing above knows the difference. Why:
// docs/decisions/larger_than_memory.md.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope {

// No disk has room for a block. what(): which disks were tried, what is free there, and what to do.
class SpillFailed : public std::bad_alloc {
 public:
  explicit SpillFailed(std::string_view message);
  const char* what() const noexcept override { return message_; }

 private:
  char message_[512];  // copying must not need memory
};

// For a block that the system does not give. Under `ulimit -v` a SpillFailed that names the limit and the block, else
// std::bad_alloc. Takes no memory.
[[noreturn]] void throw_no_memory(std::size_t bytes);

// Any thread.
class SpillMemory {
 public:
  // malloc keeps the pages of smaller blocks for reuse. It gives those of larger ones back anyway.
  static constexpr std::size_t kLargeBlock = 32u << 20;
  // Beyond the budget, blocks of this size and more lie on disk, too.
  static constexpr std::size_t kLeastSpilled = 1u << 20;
  static constexpr std::size_t kMostPieces = 256;  // of a block: a process may have 65,530 mappings

  // `budget_bytes`: how much of the blocks of kLeastSpilled and more may be in memory. Each thread
  // may exceed it by one block. `folders`: where the files go; the first folder with room is used.
  // Folders that are in memory themselves (tmpfs) are skipped. `piece_bytes`: how much of a block lies in one file (0: all); it grows
  // with blocks of more than kMostPieces of them. Nothing is read ahead beyond the end of a file.
  SpillMemory(std::uint64_t budget_bytes, std::vector<std::string> folders,
              std::size_t piece_bytes = 0);
  SpillMemory(const SpillMemory&) = delete;
  SpillMemory& operator=(const SpillMemory&) = delete;
  // Blocks that are not released stay valid.
  ~SpillMemory() = default;

  // Zeros, aligned to a page. nullptr: take the block from malloc, and call count_malloc() if it
  // has kLeastSpilled or more. Throws SpillFailed, and throw_no_memory() if the system gives no
  // addresses.
  void* allocate(std::size_t bytes);
  // False: the block is not from allocate().
  bool release(void* block) noexcept;
  // A block of malloc was made, or is gone. It counts towards the budget, too.
  void count_malloc(std::uint64_t bytes) noexcept { in_memory_bytes_ += bytes; }
  void forget_malloc(std::uint64_t bytes) noexcept { in_memory_bytes_ -= bytes; }

  std::uint64_t in_memory_bytes() const { return in_memory_bytes_; }
  std::uint64_t on_disk_bytes() const { return on_disk_bytes_; }

  // The one of this process. Budget: half of the memory free at the first call, or LANESCOPE_MEMORY (such as 4GiB). Files: in
  // $TMPDIR, the user's cache folder or /var/tmp. Never destroyed. Do not call it from inside itself: it reads files, so it
  // takes and frees small blocks.
  static SpillMemory& of_process();
  // nullptr before of_process() has returned once. Safe at any moment, also while a block is freed.
  static SpillMemory* of_process_if_made() noexcept;

 private:
  struct Block {
    std::size_t bytes;
    bool on_disk;
  };
  void* map_memory(std::size_t bytes) const;
  void* map_file(std::size_t bytes) const;
  void* map_pieces(const std::string& folder, std::size_t bytes) const;

  const std::uint64_t budget_bytes_;
  const std::vector<std::string> folders_;
  const std::size_t piece_bytes_;
  std::atomic<std::uint64_t> in_memory_bytes_ = 0, on_disk_bytes_ = 0;
  std::atomic<std::size_t> block_count_ = 0;
  std::mutex mutex_;  // guards blocks_
  std::map<void*, Block> blocks_;
};

}  // namespace lanescope

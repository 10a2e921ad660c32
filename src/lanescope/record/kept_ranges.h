// Records that are still needed after the ring has reused their chunks. These are ranges that were open
// when their chunk closed, and ends by handle whose chunk was reused before the chunk of their range. They
// are in chunks of kind kKept, as pairs: kKeptFrom with the thread and the place, then the record.
#pragma once
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "lanescope/record/spool_file.h"

namespace lanescope::record {

// One thread at a time. May throw std::bad_alloc, then nothing has changed.
class KeptRanges {
 public:
  static constexpr std::uint32_t kMaxChunks = 8;  // 1364 ranges each
  static constexpr std::uint32_t kMaxEnds = 256;  // ends by handle; then the oldest is removed

  explicit KeptRanges(SpoolFile* file) : file_(file) {}
  // Keeps an open range of a thread's chunk that is reused.
  void add(std::uint32_t thread, spool::RecordPlace place, const spool::RangeRecord& range);
  // Call it when the chunk of the record that ends this range is reused: the range is no longer needed.
  // Does nothing if the range is not kept.
  void remove(std::uint32_t thread, spool::RecordPlace place) noexcept;
  // Call it when the chunk of an end by handle is reused. Removes the range of the end if that is kept. Else
  // keeps the end until add() gets the range.
  void end_by_handle(std::uint32_t thread, const spool::EndByHandleRecord& end);
  // Removes the ranges whose begin is not `wanted`.
  void keep_only(const std::function<bool(std::uint64_t begin)>& wanted) noexcept;
  std::uint64_t lost() const noexcept { return lost_; }
  const std::vector<spool::ChunkHeader*>& chunks() const noexcept { return chunks_; }
  void finish() noexcept;

 private:
  struct Key {
    std::uint32_t thread;
    spool::RecordPlace place;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      const std::uint64_t place = std::uint64_t{key.place.sequence} << 32 | key.place.slot;
      return static_cast<std::size_t>((key.thread * 0x9e3779b97f4a7c15u ^ place) *
                                      0xd6e8feb86659fd93u);
    }
  };
  spool::Record* find_pair();
  void free_pair(spool::Record* pair) noexcept;
  static void write(spool::Record* pair, std::uint32_t thread, spool::RecordPlace from,
                    const spool::Record& record) noexcept;

  SpoolFile* file_;
  std::vector<spool::ChunkHeader*> chunks_;
  // Pairs of records in these chunks.
  std::vector<spool::Record*> free_;
  std::unordered_map<Key, spool::Record*, KeyHash> ranges_;
  std::vector<spool::Record*> ends_;
  std::uint64_t lost_ = 0;
};

}  // namespace lanescope::record

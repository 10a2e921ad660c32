// Buffers that CUPTI fills: mapped and touched ahead of time, zeroed by our thread after use, so
// that the launching thread never waits for page faults or zeroing (measured: 2 ms a buffer when it
// does, under 1 us when it does not).
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace lanescope::record_cupti {

struct Buffer {
  std::uint8_t* data = nullptr;
  std::size_t valid_bytes = 0;  // that CUPTI wrote
  std::size_t bytes = 0;        // that it was allowed to write
};

// Any thread. Never throws: room for all buffers is reserved at the start.
class BufferPool {
 public:
  // `limit`: buffers there may be at most; each of `bytes`.
  BufferPool(std::size_t bytes, std::size_t limit);
  ~BufferPool() = default;  // buffers stay mapped: CUPTI may still hold some
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  std::size_t buffer_bytes() const { return bytes_; }
  // A zeroed buffer; makes one when none is ready. Null: the limit is reached, or no memory.
  std::uint8_t* take() noexcept;
  // For a CUPTI that crashes without a buffer: a small one beyond the limit. What lands in it is
  // dropped (see is_spill).
  std::uint8_t* take_spill() noexcept;
  static constexpr std::size_t kSpillBytes = 60 * 1024;  // no size that BufferSizing gives
  static bool is_spill(const Buffer& buffer) { return buffer.bytes == kSpillBytes; }
  // CUPTI is done with it.
  void complete(Buffer buffer) noexcept;
  // The oldest completed one; data null: none.
  Buffer next_completed() noexcept;
  // Decoded: zeroes what CUPTI was allowed to use and makes it ready again; a spill is given back.
  void recycle(Buffer buffer) noexcept;
  // Makes buffers until `count` are ready, or the limit.
  void prepare(std::size_t count) noexcept;

  std::size_t ready() const noexcept;
  std::size_t made() const noexcept;
  std::size_t outside() const noexcept;  // with CUPTI, or waiting to be decoded
  std::uint64_t refused() const noexcept;

 private:
  std::uint8_t* make() noexcept;

  const std::size_t bytes_, limit_;
  mutable std::mutex mutex_;
  std::vector<std::uint8_t*> ready_;  // all below: guarded by mutex_
  std::vector<Buffer> completed_;     // a ring
  std::size_t first_completed_ = 0, completed_count_ = 0;
  std::size_t made_ = 0, spills_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace lanescope::record_cupti

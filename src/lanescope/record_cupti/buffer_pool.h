// Buffers that CUPTI fills. They are mapped and touched ahead of time, and our thread zeroes them
// after use. So the launching thread never waits for page faults or zeroing (measured: 2 ms a
// buffer if it does, under 1 us if not).
//
// The pool knows each address that it gave out. With two profilers in a process, CUPTI gives all
// buffers to the one that registered last. So the pool leaves foreign buffers alone, and can write
// off buffers that do not come back.
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
  std::uint32_t place = 0;      // for the pool
};

// Any thread. Never throws: room for all buffers is reserved at the start.
class BufferPool {
 public:
  // At most `limit` buffers of `bytes` each, without those that are written off.
  BufferPool(std::size_t bytes, std::size_t limit);
  ~BufferPool() = default;  // buffers stay mapped: CUPTI may still hold some
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  std::size_t buffer_bytes() const { return bytes_; }
  // A zeroed buffer; makes one when none is ready. Null: the limit is reached, or no memory.
  std::uint8_t* take() noexcept;
  // For a CUPTI that crashes without a buffer: a small one beyond the limit. Records in it are
  // dropped (see is_spill).
  std::uint8_t* take_spill() noexcept;
  static constexpr std::size_t kSpillBytes = 60 * 1024;  // no size that BufferSizing gives
  static bool is_spill(const Buffer& buffer) { return buffer.bytes == kSpillBytes; }
  // CUPTI has given it back; a written-off buffer counts again. False: not one of ours.
  bool complete(Buffer buffer) noexcept;
  // The oldest completed one; data null: none.
  Buffer next_completed() noexcept;
  // After decoding: zeroes what CUPTI was allowed to use and makes the buffer ready again;
  // frees a spill.
  void recycle(Buffer buffer) noexcept;
  // Makes buffers until `count` are ready, or the limit.
  void prepare(std::size_t count) noexcept;
  // Writes off outstanding buffers: from now on they count neither here nor towards the limit.
  // Returns how many there were.
  std::size_t write_off() noexcept;
  // Written-off buffers count as outstanding again.
  void restore_written_off() noexcept;

  std::size_t ready() const noexcept;
  std::size_t made() const noexcept;
  std::size_t outstanding()
      const noexcept;  // with CUPTI and not written off, or waiting to be decoded
  std::size_t written_off() const noexcept;
  std::uint64_t completed() const noexcept;  // so far
  std::uint64_t refused() const noexcept;

 private:
  enum class State : std::uint8_t { kReady, kOutstanding, kCompleted, kWrittenOff, kFree };
  struct Place {
    std::uint8_t* data = nullptr;
    State state = State::kFree;
    bool is_spill = false;
  };
  std::uint8_t* make() noexcept;
  void count_as_outstanding(const Place& place) noexcept;
  std::uint32_t place_for(std::uint8_t* data, State state, bool is_spill) noexcept;

  const std::size_t bytes_, limit_;
  mutable std::mutex mutex_;
  std::vector<Place> places_;  // all below: guarded by mutex_
  std::vector<std::uint32_t> ready_;
  std::vector<Buffer> completed_;  // a ring
  std::size_t first_completed_ = 0, completed_count_ = 0;
  // Written-off buffers count only in written_off_.
  std::size_t made_ = 0, spills_ = 0, outstanding_ = 0, written_off_ = 0;
  std::uint64_t completed_so_far_ = 0, refused_ = 0;
};

}  // namespace lanescope::record_cupti

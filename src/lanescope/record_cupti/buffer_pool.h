// Buffers that CUPTI fills: mapped and touched ahead of time, zeroed by our thread after use, so
// that the launching thread never waits for page faults or zeroing (measured: 2 ms a buffer when it
// does, under 1 us when it does not).
//
// The pool knows each address that it gave out. CUPTI hands the buffers of another profiler of the
// process to whoever registered last, and ours to that one: what is not ours is left alone, and
// what stays away can be given up.
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
  std::uint32_t place = 0;      // the pool's own
};

// Any thread. Never throws: room for all buffers is reserved at the start.
class BufferPool {
 public:
  // `limit`: buffers there may be at most, those given up left out; each of `bytes`.
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
  // CUPTI is done with it. One that was given up is ours again. False: not one of ours.
  bool complete(Buffer buffer) noexcept;
  // The oldest completed one; data null: none.
  Buffer next_completed() noexcept;
  // Decoded: zeroes what CUPTI was allowed to use and makes it ready again; a spill is given back.
  void recycle(Buffer buffer) noexcept;
  // Makes buffers until `count` are ready, or the limit.
  void prepare(std::size_t count) noexcept;
  // Those that CUPTI has count no longer, neither here nor for the limit. How many they were.
  std::size_t give_up() noexcept;
  // Those given up count again.
  void hope_again() noexcept;

  std::size_t ready() const noexcept;
  std::size_t made() const noexcept;
  std::size_t outside() const noexcept;  // with CUPTI and not given up, or waiting to be decoded
  std::size_t given_up() const noexcept;
  std::uint64_t completed() const noexcept;  // so far
  std::uint64_t refused() const noexcept;

 private:
  enum class State : std::uint8_t { kReady, kOutside, kCompleted, kGivenUp, kFree };
  struct Place {
    std::uint8_t* data = nullptr;
    State state = State::kFree;
    bool is_spill = false;
  };
  std::uint8_t* make() noexcept;
  void count_again(const Place& place) noexcept;
  std::uint32_t place_for(std::uint8_t* data, State state, bool is_spill) noexcept;

  const std::size_t bytes_, limit_;
  mutable std::mutex mutex_;
  std::vector<Place> places_;  // all below: guarded by mutex_
  std::vector<std::uint32_t> ready_;
  std::vector<Buffer> completed_;  // a ring
  std::size_t first_completed_ = 0, completed_count_ = 0;
  // Given up ones are in none of these but their own.
  std::size_t made_ = 0, spills_ = 0, outside_ = 0, given_up_ = 0;
  std::uint64_t completed_so_far_ = 0, refused_ = 0;
};

}  // namespace lanescope::record_cupti

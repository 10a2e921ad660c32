// How much of a buffer CUPTI is told to fill. CUPTI gives back full buffers whose work is done, and
// others only while all of their work is; a program that always has work under way keeps the last
// one, so what a kill takes is what fits into it. Small where the GPU works off few records, large
// where it works off many; how fast a program launches says nothing: it may be queueing far ahead.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace lanescope::record_cupti {

// Any thread.
class BufferSizing {
 public:
  static constexpr std::size_t kSmallest = std::size_t{2} << 10;  // 9 or 10 kernels
  // The work of a buffer is what the GPU did in so long; its pace is looked at once a second.
  static constexpr std::uint64_t kBufferNs = 100'000'000, kPaceNs = 1'000'000'000;
  // With so many buffers outside, each of 9 kernels or more, what they hold is done, though CUPTI
  // has not said so yet: a queue of the GPU has room for 1024 launches.
  static constexpr std::size_t kManyOutside = 128;

  // CUPTI gave back a buffer with so many bytes of records.
  void completed(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
  }

  // The size of the buffer that is asked for now: a power of two, at least kSmallest, at most
  // `largest` (a power of two). `outside`: how many CUPTI has, or has given back a moment ago.
  // `seen`: kept for each launching thread, 0 at first; CUPTI fills a buffer for each of them.
  std::size_t next(std::uint64_t now_ns, std::size_t largest, std::size_t outside,
                   std::uint64_t& seen) {
    const std::lock_guard lock(mutex_);
    if (since_ns_ == 0) since_ns_ = now_ns;
    if (const std::uint64_t took = now_ns - since_ns_; took >= kPaceNs) {
      const auto per_buffer = static_cast<double>(bytes_) / static_cast<double>(took) * kBufferNs;
      wanted_ = static_cast<std::size_t>(per_buffer) / std::max<std::size_t>(1, threads_);
      since_ns_ = now_ns;
      bytes_ = threads_ = 0;
      ++second_;
    }
    if (std::exchange(seen, second_) != second_) ++threads_;
    if (outside > kManyOutside) return largest;
    return std::bit_floor(std::clamp(wanted_, std::min(kSmallest, largest), largest));
  }

 private:
  std::mutex mutex_;
  std::uint64_t since_ns_ = 0;  // below: guarded by mutex_
  std::uint64_t second_ = 1;
  std::size_t bytes_ = 0, threads_ = 0, wanted_ = 0;
};

}  // namespace lanescope::record_cupti

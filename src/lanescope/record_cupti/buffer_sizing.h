// Decides how much of a buffer CUPTI may fill. CUPTI gives back a full buffer when the work in it
// is done. It gives back a buffer that is not full only when all work of the GPU is done. If the
// GPU always has work, the last buffer never comes back, and a kill loses what is in it. So buffers
// are small if the GPU finishes few records, and large if it finishes many. The launch rate does
// not help, because a program may queue far ahead.
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
  // A buffer holds what the GPU does in kBufferNs; its pace is measured every kPaceNs.
  static constexpr std::uint64_t kBufferNs = 100'000'000, kPaceNs = 1'000'000'000;
  // If so many buffers of at least 9 kernels each are outstanding, the work in the oldest is done,
  // though CUPTI has not said so yet: a GPU queue has room for 1024 launches.
  static constexpr std::size_t kManyOutstanding = 128;

  // CUPTI gave back a buffer with `bytes` of records.
  void completed(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
  }

  // The size of the next buffer: a power of two from kSmallest to `largest` (a power of two).
  // `outstanding`: how many CUPTI has, or has just given back. `seen`: one for each launching
  // thread, 0 at first, because CUPTI fills a buffer for each thread.
  std::size_t next(std::uint64_t now_ns, std::size_t largest, std::size_t outstanding,
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
    if (outstanding > kManyOutstanding) return largest;
    return std::bit_floor(std::clamp(wanted_, std::min(kSmallest, largest), largest));
  }

 private:
  std::mutex mutex_;
  std::uint64_t since_ns_ = 0;  // below: guarded by mutex_
  std::uint64_t second_ = 1;
  std::size_t bytes_ = 0, threads_ = 0, wanted_ = 0;
};

}  // namespace lanescope::record_cupti

// How much of a buffer CUPTI is told to fill. CUPTI gives back full buffers, and those whose work
// is all done; a program that always has work under way keeps the others, so what a kill takes is
// what fits into one. Small where records come slowly, large where they come fast.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lanescope::record_cupti {

// Of one launching thread, which CUPTI fills one buffer at a time for.
class BufferSizing {
 public:
  static constexpr std::size_t kSmallest = std::size_t{32} << 10;          // about 160 kernels
  static constexpr std::uint64_t kFast = 50'000'000, kSlow = 200'000'000;  // ns to fill one

  // The size of the buffer that is asked for now: a power of two times kSmallest, at most
  // `largest`.
  std::size_t next(std::uint64_t now_ns, std::size_t largest) {
    if (asked_ns_ == 0) {
      bytes_ = kSmallest;
    } else {
      const std::uint64_t took = now_ns - asked_ns_;
      if (took < kFast) bytes_ *= 2;
      if (took > kSlow) bytes_ /= 2;
    }
    asked_ns_ = now_ns;
    bytes_ = std::clamp(bytes_, std::min(kSmallest, largest), largest);
    return bytes_;
  }

 private:
  std::uint64_t asked_ns_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace lanescope::record_cupti

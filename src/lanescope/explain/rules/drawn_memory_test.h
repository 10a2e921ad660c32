// Draws the records of torch's allocator, for the rules about GPU memory.
#pragma once
#include <algorithm>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

inline constexpr std::int64_t kMB = 1 << 20, kGB = 1 << 30;

// Each change records how much is allocated and reserved after it. Times in us, sizes in bytes.
class AllocatorSketch {
 public:
  explicit AllocatorSketch(std::int64_t allocated, std::int64_t reserved)
      : allocated_(allocated), reserved_(reserved) {}
  AllocatorSketch& step(int number, std::int64_t at_us, std::int64_t us) {
    sketch_.annotation("ProfilerStep#" + std::to_string(number), at_us * 1000, us * 1000);
    return *this;
  }
  AllocatorSketch& op(const char* name, std::int64_t at_us, std::int64_t us) {
    sketch_.op(name, at_us * 1000, us * 1000);
    return *this;
  }
  // Positive: allocates at `address`; negative: frees it.
  AllocatorSketch& change(std::int64_t at_us, std::int64_t bytes, std::int64_t address) {
    allocated_ += bytes;
    reserved_ = std::max(reserved_, allocated_);
    sketch_.memory_at(at_us * 1000, bytes,
                      {.address = address, .allocated = allocated_, .reserved = reserved_});
    return *this;
  }
  AllocatorSketch& reserve(std::int64_t bytes) {
    reserved_ += bytes;
    return *this;
  }
  AllocatorSketch& device_has(std::int64_t bytes) {
    sketch_.metadata("deviceProperties", R"([{"id": 0, "name": "GPU", "totalGlobalMem": )" +
                                             std::to_string(bytes) + "}]");
    return *this;
  }
  testing::Sketch& sketch() { return sketch_; }
  Trace trace() { return sketch_.trace(); }

 private:
  testing::Sketch sketch_;
  std::int64_t allocated_, reserved_;
};

}  // namespace lanescope::explain

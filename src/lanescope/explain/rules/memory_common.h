// What the rules about memory share.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// The accelerator with the highest peak; without records of one the CPU; null: there are none.
const analysis::MemoryDevice* main_memory(const Facts& facts);
// By how many bytes it grows in a step (median), if steps keep what they allocate (memory-growth). 0: it does not grow. Nothing: the
// recording does not show it.
std::optional<std::int64_t> growth_of_a_step(const Facts& facts);
const char* memory_name(const analysis::MemoryDevice& device);  // "GPU memory", "CPU memory"
// How much memory the device has, from the file's deviceProperties; 0: unknown.
std::int64_t device_memory_bytes(const Facts& facts, std::int64_t device);
// The most of the main accelerator's memory that the allocator held at a time, and all that the device has. 0: unknown.
struct MemoryUse {
  std::int64_t most_bytes = 0, device_bytes = 0;
  bool is_known() const { return most_bytes > 0 && device_bytes > 0; }
};
MemoryUse use_of_memory(const Facts& facts);
// The four largest as evidence: bytes, blocks, who allocated them.
void add_owners(const Facts& facts, const std::vector<analysis::MemoryShare>& shares,
                Finding& finding);

}  // namespace lanescope::explain::rules

// What a DataLoader without workers does while the loop waits for a batch.
#pragma once
#include <cstdint>
#include <optional>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// GPU work that the loader's calls of the steady steps launched: samples that a data set moves to the GPU, or makes there.
struct LoaderGpuWork {
  std::uint64_t batches = 0;  // calls of the loader
  std::uint64_t copies = 0;   // to the GPU
  std::uint64_t kernels = 0;
  SliceId first = kNone<SliceId>;  // the first copy, or else the first kernel
};
// `range`: one of these calls. O(slices).
LoaderGpuWork gpu_work_of_loader(const Facts& facts, SliceId range);

// The Python function that has at least half of these waits, by its own time; nothing: none, or stacks are not recorded.
std::optional<HostShare> function_of_loader(const Facts& facts, SliceId range,
                                            std::int64_t wait_ns);
// True: torch.tensor(...), which reads Python lists number by number.
bool is_tensor_of_list(const HostShare& share);

}  // namespace lanescope::explain::rules

// Which operators ask for the copies that kernels make inside the GPU: torch copies a tensor where an operator wants another
// layout or type of it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/explain/kernel_facts.h"

namespace lanescope::explain::rules {

// One kernel that aten::copy_ launched.
struct SourcedCopy {
  const KernelCall* kernel = nullptr;
  // The innermost operator around it that does more than copy; kNone: the program copies.
  SliceId asker = kNone<SliceId>;
  // What the program or autograd called: the asker, what it lies in, or the copy itself.
  SliceId outermost = kNone<SliceId>;
  bool is_cast = false;    // to another type
  bool is_layout = false;  // aten::contiguous, aten::clone or aten::reshape asked for it
};

// The copies of the steady steps, by start. Needs a main device. Made once for these Facts. O(kernels x depth).
const std::vector<SourcedCopy>& sourced_copies(const Facts& facts);

// The time of copies by what the program or autograd called, most first: "aten::conv2d", "NativeGroupNormBackward0".
struct CopySource {
  std::string_view name;
  std::int64_t time_ns = 0;  // added up
};
std::vector<CopySource> copy_sources(const Facts& facts);

}  // namespace lanescope::explain::rules

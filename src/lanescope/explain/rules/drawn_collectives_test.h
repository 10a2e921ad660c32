// What the tests of rules about communication draw.
#pragma once
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

inline constexpr std::string_view kNccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";

inline testing::ProgramSketch::Work all_reduce(std::int64_t us, std::int64_t elements,
                                               std::int64_t stream = 7) {
  return {.name = kNccl,
          .us = us,
          .stream = stream,
          .collective = elements < 0 ? "" : "allreduce",
          .elements = elements};
}

}  // namespace lanescope::explain

// How the steady steps launch their work, so that no rule advises what the program already does.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

enum class LaunchMode : std::uint8_t {
  kEager,
  kCompiled,  // some of it by code of torch.compile
  kReplayed,  // some of it by replaying a CUDA graph
};

LaunchMode launch_mode_of(const Facts& facts);

}  // namespace lanescope::explain::rules

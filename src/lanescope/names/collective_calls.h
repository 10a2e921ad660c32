// Recognises CPU events that call collectives.
#pragma once
#include <string_view>

namespace lanescope::names {

// torch.distributed's operators ("c10d::allreduce_", "record_param_comms") and the ranges of the
// libraries under them ("nccl:all_reduce", "gloo:all_reduce"). Not their kernels.
inline bool is_collective_call(std::string_view name) {
  return name.starts_with("c10d::") || name == "record_param_comms" || name.starts_with("nccl:") ||
         name.starts_with("gloo:");
}

}  // namespace lanescope::names

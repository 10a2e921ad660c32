// Names of CUDA's API calls by CUPTI's numbers (cbids), for machines without CUPTI.
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope::codec {

// "cudaLaunchKernel" for 211, as torch.profiler shows it: without the version, but with "_ptsz"
// and "_ptds" (per-thread default stream). Empty: no call of CUDA 13.0 has that number. Valid for
// ever; any thread.
std::string_view cuda_runtime_call_name(std::uint32_t number);
std::string_view cuda_driver_call_name(std::uint32_t number);

}  // namespace lanescope::codec

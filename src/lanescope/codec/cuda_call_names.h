// Names of CUDA's API calls by CUPTI's numbers (cbids), for readers that have no CUPTI.
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope::codec {

// "cudaLaunchKernel" for 211, as torch.profiler shows it: versions are cut off, "_ptsz" and "_ptds"
// (the default stream of each thread) stay. Empty: no call of CUDA 13.0 has that number. Valid for
// ever; any thread.
std::string_view cuda_runtime_call_name(std::uint32_t number);
std::string_view cuda_driver_call_name(std::uint32_t number);

}  // namespace lanescope::codec

// What GPU recording finds on this machine, for people who ask why it does not work.
#pragma once
#include <string>

namespace lanescope::record_cupti {

// The JSON of lanescope_cupti_describe(). Initialises CUDA.
std::string describe_gpu_recording();

}  // namespace lanescope::record_cupti

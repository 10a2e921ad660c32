// The default API calls of the CUDA runtime and driver: those that launch, copy, set, wait,
// allocate, load or capture. Each other call (cudaGetDevice, cudaEventQuery, ...) costs a record
// and explains nothing; --all-api records them all.
#pragma once
#include <cupti.h>

#include "lanescope/record_cupti/activity_decoder.h"

namespace lanescope::record_cupti {

ApiFilter default_api_calls();

}  // namespace lanescope::record_cupti

// The calls of the CUDA runtime and driver that matter: they launch, copy, set, wait, allocate,
// load or capture. Everything else (cudaGetDevice, cudaEventQuery, ...) costs a record each and
// explains nothing; --all-api records it.
#pragma once
#include <cupti.h>

#include "lanescope/record_cupti/activity_decoder.h"

namespace lanescope::record_cupti {

ApiFilter calls_that_matter();

}  // namespace lanescope::record_cupti

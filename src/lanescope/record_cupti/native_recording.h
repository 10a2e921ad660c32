// Records a program that is neither Python nor knows of lanescope: started by the CUDA driver
// (CUDA_INJECTION64_PATH) in a process that `lanescope record` prepared.
#pragma once

namespace lanescope::record_cupti {

// Reads the LANESCOPE_RECORD_* settings of the environment; without them it does nothing. False:
// nothing was started.
bool start_native_recording();

}  // namespace lanescope::record_cupti

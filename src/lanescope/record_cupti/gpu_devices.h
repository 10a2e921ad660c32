// The GPUs of this process as JSON, under the names that torch.profiler's deviceProperties has,
// plus an object "lanescope" with what those lack.
#pragma once
#include <string>

#include "lanescope/record_cupti/cupti_library.h"

namespace lanescope::record_cupti {

// "[...]"; "[]" when CUDA is not initialised (it is not initialised here).
std::string devices_json(const CudaDriver& driver);

// Waits until all work of this process's primary contexts, and of the calling thread's context, is
// done. Breaks the captures of streams into graphs that go on meanwhile.
void synchronize_devices(const CudaDriver& driver);

// Text as a JSON string.
std::string json_text(const std::string& text);

}  // namespace lanescope::record_cupti

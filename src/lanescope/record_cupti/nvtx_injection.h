// Records NVTX ranges of the program and its libraries: push/pop and start/end, marks, domains,
// registered strings. Costs one load when nothing is recorded.
#pragma once
#include <cstdint>

namespace lanescope::record_cupti {

// Puts our functions into the program's table of NVTX functions. False: this NVTX offers no such table.
bool take_nvtx(const void* (*export_table)(std::uint32_t));

}  // namespace lanescope::record_cupti

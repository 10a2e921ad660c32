#include "lanescope/record_cupti/native_recording.h"

namespace lanescope::record_cupti {

bool start_native_recording() { return false; }

}  // namespace lanescope::record_cupti

// Frames of Python that a rule has advice for. Other rules ask for them, so that no call is reported twice.
#pragma once
#include <string_view>

namespace lanescope::explain::rules {

// library-call knows what to do instead of this function of a library: json.dumps, logging.info.
bool is_known_library_frame(std::string_view frame);

// It saves: torch.save, which saving-in-step reports, and the save() of other libraries, such as PIL's.
bool is_saving_frame(std::string_view frame);

}  // namespace lanescope::explain::rules

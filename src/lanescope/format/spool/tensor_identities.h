// The argument of a recording's events that says which tensors an operator takes.
#pragma once
#include <string_view>

namespace lanescope::format {

// A list of numbers a tensor (docs/decisions/tensor_identities.md). Only prof._memory_profile()
// reads it, in the process that recorded. So JSON files do not have it. Its name is our own, so
// that no argument of another program is lost.
inline constexpr std::string_view kTensorIdentities = "lanescope tensors";

}  // namespace lanescope::format

// Knows which words are names of ATen operators.
#pragma once
#include <string_view>

namespace lanescope::names::kernels {

// True for "native_layer_norm", "_to_copy", "add". Binary search. Does not know overloads and in-place forms.
bool is_aten_operator(std::string_view name);

}  // namespace lanescope::names::kernels

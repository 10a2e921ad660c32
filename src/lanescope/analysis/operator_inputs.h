// From an operator's recorded inputs: shapes as torch prints them, and the floating-point
// operations as torch counts them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lanescope::analysis {

// "Input Dims" as torch's table prints them: "[[4, 8], [], []]". A list of tensors is shown as [],
// and so are text that is not JSON and a missing argument.
std::string torch_shapes_text(std::string_view input_dims_json);

// The texts of one operator's arguments; empty: missing in the file.
struct OperatorInputs {
  std::string_view name;                   // "aten::mm"
  std::string_view dims, types, concrete;  // JSON of "Input Dims", "Input type", "Concrete Inputs"
};

// Floating-point operations, after docs/definitions/key_averages.md#flops: aten::conv2d, mm, addmm,
// bmm, baddbmm, mul and add as torch counts them; 0 for everything else and whenever an input is
// missing or would make the formula divide by zero. Wraps around modulo 2^64 like torch's own
// unsigned arithmetic.
std::uint64_t count_flops(const OperatorInputs& inputs);

}  // namespace lanescope::analysis

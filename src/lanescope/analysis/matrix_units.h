// Finds from its name whether a kernel multiplies on the matrix units (tensor cores, MFMA).
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope::analysis {

enum class MatrixUnits : std::uint8_t { kUnknown, kUsed, kNotUsed };

// By the words in docs/definitions/kernels.md#matrix-units; kUnknown: the name has none of them.
// Linear in the first 64 KiB; any thread.
MatrixUnits matrix_units(std::string_view kernel_name);

}  // namespace lanescope::analysis

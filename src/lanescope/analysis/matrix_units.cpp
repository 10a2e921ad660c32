#include "lanescope/analysis/matrix_units.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>

namespace lanescope::analysis {

MatrixUnits matrix_units(std::string_view kernel_name) {
  std::string name(kernel_name.substr(0, std::size_t{64} * 1024));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto has = [&](const auto& words) {
    return std::any_of(std::begin(words), std::end(words),
                       [&](std::string_view word) { return name.find(word) != std::string::npos; });
  };
  // Searched first: xmma kernels without matrix instructions say so at the end of their name.
  static constexpr std::string_view kOrdinary[] = {"_ffma_", "simt", "opclasssimt"};
  if (has(kOrdinary)) return MatrixUnits::kNotUsed;
  static constexpr std::string_view kMatrix[] = {
      "h884",     "s884",   "h1688",    "s1688",    "i8816",  "16816",       "hmma", "imma",
      "tensorop", "xmma",   "wgmma",    "gmma",     "nvjet",  "tf32",        "mfma", "wmma",
      "tcgen05",  "utcmma", "_mi16x16", "_mi32x32", "_mi4x4", "cutlass3x_sm"};
  if (has(kMatrix)) return MatrixUnits::kUsed;
  static constexpr std::string_view kPlain[] = {"sgemm",
                                                "dgemm",
                                                "gemv",
                                                "gemmk1",
                                                "gemmsn",
                                                "scudnn",
                                                "implicit_convolve",
                                                "dgrad_engine",
                                                "wgrad_alg0",
                                                "dgrad2d_alg1",
                                                "conv2d_grouped_direct",
                                                "conv_depthwise"};
  return has(kPlain) ? MatrixUnits::kNotUsed : MatrixUnits::kUnknown;
}

}  // namespace lanescope::analysis

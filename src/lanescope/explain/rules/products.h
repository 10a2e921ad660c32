// Which operators are matrix products.
#pragma once
#include <algorithm>
#include <array>
#include <string_view>

namespace lanescope::explain::rules {

// The operators that compute: linear and matmul call these.
inline bool is_computed_product(std::string_view op) {
  static constexpr std::array<std::string_view, 6> kProducts = {
      "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mv", "aten::_scaled_mm"};
  return std::find(kProducts.begin(), kProducts.end(), op) != kProducts.end();
}

// These and the operators that a program calls for them.
inline bool is_product(std::string_view op) {
  return is_computed_product(op) || op == "aten::linear" || op == "aten::matmul";
}

}  // namespace lanescope::explain::rules

#include "lanescope/explain/rules/operator_advice_rows.h"

#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/operator_rows_layers.h"
#include "lanescope/explain/rules/operator_rows_lookups.h"
#include "lanescope/explain/rules/operator_rows_matrices.h"

namespace lanescope::explain::rules {

std::span<const OperatorAdvice> operator_advice_rows() {
  static const std::vector<OperatorAdvice> sorted = [] {
    std::vector<OperatorAdvice> all;
    for (const auto rows : {matrix_operator_rows(), lookup_operator_rows(), layer_operator_rows()})
      all.insert(all.end(), rows.begin(), rows.end());
    sort_rows(all.begin(), all.end(),
              [](const OperatorAdvice& a, const OperatorAdvice& b) { return a.op < b.op; });
    return all;
  }();
  return sorted;
}

}  // namespace lanescope::explain::rules

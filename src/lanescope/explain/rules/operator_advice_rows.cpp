#include "lanescope/explain/rules/operator_advice_rows.h"

#include <algorithm>
#include <iterator>

// The conditions that rows name.
#include "lanescope/explain/rules/layer_neighbours.h"
#include "lanescope/explain/rules/many_tables.h"
#include "lanescope/explain/rules/operator_fits.h"
#include "lanescope/explain/rules/operator_neighbours.h"

namespace lanescope::explain::rules {

namespace {

constexpr OperatorAdvice kOperatorRows[] = {
#include "lanescope/explain/rules/operator_rows.inc"
};
static_assert(std::is_sorted(std::begin(kOperatorRows), std::end(kOperatorRows),
                             [](const OperatorAdvice& a, const OperatorAdvice& b) {
                               return a.op < b.op;
                             }),
              "operators.rows is sorted by operator");

}  // namespace

std::span<const OperatorAdvice> operator_advice_rows() { return kOperatorRows; }

}  // namespace lanescope::explain::rules

// How many elements an operator's result has, from its recorded inputs. For rules that ask which operators may have made a tensor.
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

#include "lanescope/model/trace.h"

namespace lanescope::explain::rules {

// Of the operators that models use most: products, convolutions, norms, attention, elementwise operators, reductions, lookups,
// cat, factories and views (of chunk, split and unbind: of one part). Nothing: another operator, or its inputs are not recorded.
std::optional<double> result_elements(const Trace& trace, SliceId op);

// True: it may make whole numbers, as argmax, sort, casts and operators on whole numbers do.
bool may_make_whole_numbers(const Trace& trace, SliceId op);

// The arguments that hold data. The others of a layer are its weights: only the first of aten::linear.
struct DataArguments {
  std::size_t first = 0, last = 0;
};
DataArguments data_arguments(std::string_view op);

}  // namespace lanescope::explain::rules

// Sizes of what operators make, and of what they keep of a tensor, from their recorded inputs. For rules that follow
// a tensor from operator to operator.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "lanescope/analysis/tensor_arguments.h"

namespace lanescope::explain::rules {

// How an operator's result depends on its inputs.
enum class MakerKind : std::uint8_t {
  kOther,
  kProduct,      // of matrices
  kCompare,      // elementwise, to true or false
  kElementwise,  // with broadcasting
  kRepeat,       // copies of its input
  kOneHot,
  kDistance,  // of each row to each: cdist
  kOuter,     // and kron
};
MakerKind maker_kind(std::string_view op);

// The size of the result of an operator of these kinds; nothing: another operator, or not recorded.
std::optional<analysis::Sizes> made_size(std::string_view op,
                                         const analysis::TensorArguments& inputs);

// Elements of a tensor in memory: those of a dimension that expand() repeats count once.
double stored_elements(const analysis::Tensor& tensor);

// True: each element of the result depends on one element of each input: relu, add, casts.
bool works_on_each_element(std::string_view op);
// True: the result is as large as the first input: those, and softmax, sort, cumsum.
bool keeps_size(std::string_view op);
// True: each element of the result is a number times an element of the input: neg, mul by a number, casts.
bool only_scales(std::string_view op, const analysis::TensorArguments& inputs);

// How an operator reduces a tensor to fewer elements.
enum class TakerKind : std::uint8_t {
  kNone,
  kAdds,     // sum, mean
  kReduces,  // max, any, norm, logsumexp
  kRanks,    // topk
  kSelects,  // slice, select, gather, index_select
  kProduct,
};
struct Taken {
  TakerKind kind = TakerKind::kNone;
  double elements = 0;  // of the result
};
// How the operator reduces the tensor that is argument `index`. Nothing: it does not, or its inputs are not recorded.
std::optional<Taken> taken_of(std::string_view op, const analysis::TensorArguments& inputs,
                              std::size_t index);

}  // namespace lanescope::explain::rules

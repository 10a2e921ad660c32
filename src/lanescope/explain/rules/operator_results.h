// The kind and size of an operator's result, from its inputs. For results that depend on constants
// only (constant_results.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/base/json_value.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain::rules {

enum class ResultKind : std::uint8_t {
  kOther,
  kSeries,       // makes elements that differ, out of numbers
  kFill,         // makes equal elements, out of numbers
  kFillLike,     // the same, of a tensor's shape
  kShape,        // turns equal elements into a pattern, such as the upper triangle
  kElementwise,  // and copies
  kView,
  kJoin,
  kOuter,
  kRepeat,
};
// An operator in place counts as the one that is not: aten::mul_ as aten::mul.
ResultKind result_kind(std::string_view op);

// The tensors that a call takes.
struct TakenTensors {
  std::vector<analysis::Sizes> tensors;
  bool is_list = false;      // of tensors: cat, stack
  bool has_counter = false;  // a whole number of no dimension
  JsonValue concrete;        // arguments that are no tensors, as texts

  std::optional<analysis::Sizes> list(std::size_t index) const;
  std::optional<std::int64_t> number(std::size_t index) const;
};
// Nothing: not recorded, or of a form that is not known.
std::optional<TakenTensors> taken_tensors(const Trace& trace, SliceId op);

// Nothing: not known. O(operators inside).
std::optional<analysis::Sizes> result_size(const Trace& trace, SliceId op, ResultKind kind,
                                           const TakenTensors& inputs);

}  // namespace lanescope::explain::rules

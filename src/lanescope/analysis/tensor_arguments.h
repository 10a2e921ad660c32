// One operator's recorded inputs as tensors: what the models of its work read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/operator_work.h"
#include "lanescope/base/json_value.h"

namespace lanescope::analysis {

using Sizes = std::vector<std::int64_t>;

// From a list of whole numbers from 0 on; nothing: the value is no such list.
std::optional<Sizes> sizes_of(const JsonValue& value);
// A double: the product of damaged sizes may be larger than any integer.
double element_count(const Sizes& sizes);
// The shape that two shapes broadcast to by torch's rules; nothing: they do not fit.
std::optional<Sizes> broadcast(const Sizes& left, const Sizes& right);
// "[256, 1]"
std::string shape_text(const Sizes& sizes);

struct TypeRow {
  std::string_view torch, name;
  std::int64_t size_bytes;
  bool is_floating;
};
// Null: not a type of numbers.
const TypeRow* find_type(std::string_view torch);
// A type as programs write it: "bfloat16" for "c10::BFloat16". Other names keep what follows "c10::".
std::string python_type_name(std::string_view torch);

// One tensor argument.
struct Tensor {
  Sizes dims;
  std::optional<Sizes> strides;  // as many as dims
  const TypeRow* type = nullptr;

  std::size_t rank() const { return dims.size(); }
  std::int64_t dim(std::size_t from_end) const { return dims[dims.size() - 1 - from_end]; }
  double elements() const;
  // Elements that differ: a dimension of stride 0 is one element, repeated, and overlapping windows share theirs.
  double stored_bytes() const;
  double dense_bytes() const { return elements() * static_cast<double>(type->size_bytes); }
  // The distance between rows of the last two dimensions, as a matrix.
  std::int64_t leading() const;
};

// Parses the texts once, and not even that where the same thread just met equal ones. What is missing or damaged gives nothing.
class TensorArguments {
 public:
  explicit TensorArguments(const OperatorCall& call);

  // Argument `index`, when it is a tensor of numbers. The pointer is good as long as these arguments; null: it is no such tensor.
  const Tensor* tensor(std::size_t index) const&;
  std::optional<Tensor> tensor(std::size_t index) &&;
  std::optional<JsonValue> value(std::size_t index) const;
  // "0." and "0.5", which torch writes and JSON does not allow.
  std::optional<double> number(std::size_t index) const;
  // Written as Python's True and False.
  std::optional<bool> flag(std::size_t index) const;
  // "[True, False, True]".
  std::vector<bool> flags(std::size_t index) const;
  std::optional<Sizes> list(std::size_t index, std::size_t length) const;
  // "[4., 2.5]", which torch writes and JSON does not allow.
  std::vector<double> numbers(std::size_t index) const;

 private:
  struct Texts;
  static std::shared_ptr<const Texts> parse(const OperatorCall& call);
  static std::shared_ptr<const Texts> find_recent(const OperatorCall& call);

  std::shared_ptr<const Texts> texts_;
};

}  // namespace lanescope::analysis

#include "lanescope/analysis/operator_inputs.h"

#include <optional>
#include <vector>

#include "lanescope/base/json_value.h"

namespace lanescope::analysis {
namespace {

using InputSizes = std::vector<std::int64_t>;

std::optional<InputSizes> integers(const JsonValue& value) {
  if (!value.is_array()) return std::nullopt;
  InputSizes sizes;
  for (const JsonValue& item : value.items) {
    if (!item.integer) return std::nullopt;
    sizes.push_back(*item.integer);
  }
  return sizes;
}

// The parsed arguments of one call.
class Inputs {
 public:
  explicit Inputs(const OperatorInputs& inputs)
      : dims_(parse(inputs.dims)), types_(parse(inputs.types)), concrete_(parse(inputs.concrete)) {}

  std::size_t size() const { return dims_.items.size(); }

  // The shape of input `index`, when that is a tensor.
  std::optional<InputSizes> tensor(std::size_t index) const {
    if (index >= size()) return std::nullopt;
    if (index < types_.items.size()) {
      const std::string& type = types_.items[index].text;
      if (type.empty() || type == "Scalar" || type == "ScalarList" || type == "TensorList" ||
          type == "GenericList")
        return std::nullopt;
    }
    return integers(dims_.items[index]);
  }

  // The value of input `index`, which the file keeps as text: "[1, 1]" or "1".
  std::optional<InputSizes> list(std::size_t index) const {
    if (index >= concrete_.items.size()) return std::nullopt;
    const auto value = parse_json(concrete_.items[index].text);
    if (!value) return std::nullopt;
    if (value->integer) return InputSizes{*value->integer};
    return integers(*value);
  }

 private:
  static JsonValue parse(std::string_view text) { return parse_json(text).value_or(JsonValue{}); }
  JsonValue dims_, types_, concrete_;
};

std::uint64_t product(const InputSizes& sizes) {
  std::uint64_t result = 1;
  for (const std::int64_t size : sizes) result *= static_cast<std::uint64_t>(size);
  return result;
}

// 2 * M * K * N from [.., M, K] and [.., K, N]; with `batch`, the first dimension of
// both counts once.
std::uint64_t matmul_flops(const Inputs& inputs, std::size_t least, std::size_t first, bool batch) {
  if (inputs.size() < least) return 0;
  const auto left = inputs.tensor(first), right = inputs.tensor(first + 1);
  if (!left || !right || left->empty() || left->back() == 0) return 0;
  if (batch && left->front() == 0) return 0;
  std::uint64_t flops = product(*left) / static_cast<std::uint64_t>(left->back());
  if (batch) flops /= static_cast<std::uint64_t>(left->front());
  return flops * product(*right) * 2;
}

std::uint64_t elementwise_flops(const Inputs& inputs) {
  const auto shape = inputs.tensor(0);
  return shape ? product(*shape) : 0;
}

std::uint64_t conv2d_flops(const Inputs& inputs) {
  const auto input = inputs.tensor(0), weight = inputs.tensor(1);
  auto stride = inputs.list(3), padding = inputs.list(4), dilation = inputs.list(5);
  const auto groups = inputs.list(6);
  if (!input || !weight || !stride || !padding || !dilation || !groups) return 0;
  if (input->size() != 4 || weight->size() != 4 || groups->size() != 1 || groups->front() == 0)
    return 0;
  for (auto* list : {&*stride, &*padding, &*dilation}) {
    if (list->size() == 1) list->push_back(list->front());
    if (list->size() != 2) return 0;
  }
  std::uint64_t flops = 2;
  for (std::size_t i = 0; i < 2; ++i) {
    if ((*stride)[i] == 0) return 0;
    // Unsigned, so that a hostile shape wraps around and never overflows.
    const auto u = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    const std::uint64_t reach = u((*input)[2 + i]) + 2 * u((*padding)[i]) -
                                u((*dilation)[i]) * (u((*weight)[2 + i]) - 1) - 1;
    flops *= reach / u((*stride)[i]) + 1;
    flops *= u((*weight)[2 + i]);
  }
  flops *= static_cast<std::uint64_t>((*input)[0]) * static_cast<std::uint64_t>((*input)[1]);
  flops *= static_cast<std::uint64_t>((*weight)[0]);
  return flops / static_cast<std::uint64_t>(groups->front());
}

}  // namespace

std::string torch_shapes_text(std::string_view input_dims_json) {
  const auto value = parse_json(input_dims_json);
  if (!value || !value->is_array()) return "[]";
  std::string text = "[";
  for (const JsonValue& item : value->items) {
    if (text.size() > 1) text += ", ";
    text += '[';
    if (const auto sizes = integers(item)) {
      for (std::size_t i = 0; i < sizes->size(); ++i)
        text += (i ? ", " : "") + std::to_string((*sizes)[i]);
    }
    text += ']';
  }
  return text + ']';
}

std::uint64_t count_flops(const OperatorInputs& call) {
  if (call.dims.empty() || !call.name.starts_with("aten::")) return 0;
  const std::string_view op = call.name.substr(6);
  if (op == "mm") return matmul_flops(Inputs(call), 2, 0, false);
  if (op == "addmm") return matmul_flops(Inputs(call), 3, 1, false);
  if (op == "bmm") return matmul_flops(Inputs(call), 2, 0, true);
  if (op == "baddbmm") return matmul_flops(Inputs(call), 3, 1, true);
  if (op == "mul" || op == "add") return elementwise_flops(Inputs(call));
  if (op == "conv2d") return conv2d_flops(Inputs(call));
  return 0;
}

}  // namespace lanescope::analysis

#include "lanescope/explain/rules/result_elements.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/operator_results.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::Tensor;
using analysis::TensorArguments;

namespace {

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool is_norm_layer(std::string_view op) {
  static constexpr std::array<std::string_view, 6> kNorms = {
      "aten::layer_norm", "aten::rms_norm",      "aten::group_norm",
      "aten::batch_norm", "aten::instance_norm", "aten::native_layer_norm"};
  return is_one_of(kNorms, op);
}

bool is_convolution_layer(std::string_view op) {
  return op == "aten::conv1d" || op == "aten::conv2d" || op == "aten::conv3d";
}

bool keeps_elements(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kSame = {
      "aten::to", "aten::clone", "aten::contiguous", "aten::reshape", "aten::_to_copy"};
  return is_norm_layer(op) || keeps_size(op) || is_one_of(kSame, op);
}

// [N, C, sizes...] with a filter [filters, C, ...].
std::optional<double> convolved_elements(const TensorArguments& inputs) {
  const auto from = inputs.tensor(0), filter = inputs.tensor(1);
  if (!from || !filter || from->rank() < 3 || filter->rank() != from->rank()) return std::nullopt;
  const std::size_t places = from->rank() - 2;
  const auto stride = inputs.list(3, places), padding = inputs.list(4, places),
             dilation = inputs.list(5, places);
  if (!stride || !padding || !dilation) return std::nullopt;
  double elements = static_cast<double>(from->dims[0]) * static_cast<double>(filter->dims[0]);
  for (std::size_t k = 0; k < places; ++k) {
    if ((*stride)[k] <= 0) return std::nullopt;
    const double room =
        static_cast<double>(from->dims[k + 2]) + 2 * static_cast<double>((*padding)[k]) -
        static_cast<double>((*dilation)[k]) * static_cast<double>(filter->dims[k + 2] - 1) - 1;
    if (room < 0 || room > 1e15) return std::nullopt;  // damaged sizes
    elements *= static_cast<double>(static_cast<std::int64_t>(room) / (*stride)[k] + 1);
  }
  return elements;
}

// One part of chunk, split and unbind. The last one may be smaller.
std::optional<double> part_elements(std::string_view op, const TensorArguments& inputs,
                                    const Tensor& whole) {
  const auto integer = [&](std::size_t index) {
    const auto value = inputs.value(index);
    return value ? value->integer : std::nullopt;
  };
  const auto size_at = [&](std::optional<std::int64_t> dim) -> double {
    const auto rank = static_cast<std::int64_t>(whole.rank());
    std::int64_t at = dim.value_or(0);
    if (at < 0) at += rank;
    return at < 0 || at >= rank ? 0 : static_cast<double>(whole.dims[static_cast<std::size_t>(at)]);
  };
  if (op == "aten::chunk" && integer(1).value_or(0) > 0)
    return whole.elements() / static_cast<double>(*integer(1));
  const double size = size_at(integer(op == "aten::unbind" ? 1 : 2));
  if (size <= 0) return std::nullopt;
  if (op == "aten::unbind") return whole.elements() / size;
  if (op == "aten::split" && integer(1).value_or(0) > 0)
    return whole.elements() / size * static_cast<double>(*integer(1));
  return std::nullopt;
}

std::optional<double> joined_elements(const Trace& trace, SliceId op, ResultKind kind) {
  const auto inputs = taken_tensors(trace, op);
  const auto size = inputs ? result_size(trace, op, kind, *inputs) : std::nullopt;
  return size ? std::optional(analysis::element_count(*size)) : std::nullopt;
}

}  // namespace

std::optional<double> result_elements(const Trace& trace, SliceId op) {
  const std::string_view name = trace.name(op);
  const TensorArguments inputs = operator_inputs(trace, op);
  const auto first = inputs.tensor(0);
  if (!first) {
    const ResultKind kind = result_kind(name);
    return kind == ResultKind::kJoin || kind == ResultKind::kSeries || kind == ResultKind::kFill
               ? joined_elements(trace, op, kind)
               : std::nullopt;
  }
  if (name == "aten::embedding") {
    const auto rows = inputs.tensor(1);
    if (!rows || first->rank() != 2) return std::nullopt;
    return rows->elements() * static_cast<double>(first->dims[1]);
  }
  if (name == "aten::scaled_dot_product_attention") {
    const auto values = inputs.tensor(2);
    if (!values || values->rank() == 0 || first->rank() == 0 || first->dims.back() <= 0)
      return std::nullopt;
    return first->elements() / static_cast<double>(first->dims.back()) *
           static_cast<double>(values->dims.back());
  }
  if (is_convolution_layer(name)) return convolved_elements(inputs);
  if (name == "aten::chunk" || name == "aten::split" || name == "aten::unbind")
    return part_elements(name, inputs, *first);
  if (name.ends_with('_')) return first->elements();
  if (const auto made = made_size(name, inputs)) return analysis::element_count(*made);
  if (const auto taken = taken_of(name, inputs, 0)) return taken->elements;
  if (name == "aten::expand_as" || name == "aten::view_as") {
    const auto other = inputs.tensor(1);
    return other ? std::optional(other->elements()) : std::nullopt;
  }
  if (name == "aten::expand" || name == "aten::as_strided" || name == "aten::select" ||
      name == "aten::slice")
    return std::nullopt;
  if (keeps_elements(name) || is_view(name)) return first->elements();
  return std::nullopt;
}

bool may_make_whole_numbers(const Trace& trace, SliceId op) {
  static constexpr std::array<std::string_view, 18> kMakers = {
      "aten::argmax",   "aten::argmin",      "aten::argsort",   "aten::sort", "aten::topk",
      "aten::max",      "aten::min",         "aten::median",    "aten::mode", "aten::kthvalue",
      "aten::nonzero",  "aten::multinomial", "aten::bucketize", "aten::to",   "aten::searchsorted",
      "aten::_to_copy", "aten::zeros_like",  "aten::empty_like"};
  const std::string_view name = trace.name(op);
  const auto first = operator_inputs(trace, op).tensor(0);
  return !name.starts_with("aten::") || !first || !first->type->is_floating ||
         is_one_of(kMakers, name);
}

DataArguments data_arguments(std::string_view op) {
  if (op == "aten::embedding") return {1, 1};
  if (op == "aten::linear" || is_norm_layer(op) || is_convolution_layer(op)) return {0, 0};
  return {0, 7};
}

}  // namespace lanescope::explain::rules

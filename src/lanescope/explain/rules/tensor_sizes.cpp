#include "lanescope/explain/rules/tensor_sizes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>

#include "lanescope/explain/rules/operator_results.h"

namespace lanescope::explain::rules {
namespace {

using analysis::Sizes;
using analysis::Tensor;
using analysis::TensorArguments;

template <std::size_t count>
bool is_named_in(const std::array<std::string_view, count>& names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

// "exp" of "aten::exp_"; empty: no operator of PyTorch.
std::string_view plain_name(std::string_view op) {
  if (!op.starts_with("aten::")) return {};
  op.remove_prefix(6);
  if (op.ends_with('_') && op.size() > 1) op.remove_suffix(1);
  return op;
}

// [.., m, k] x [.., k, n]; a vector on the right gives no last dimension.
std::optional<Sizes> product_size(const Tensor& a, const Tensor& b, bool is_linear) {
  if (a.rank() < 2 || b.rank() < 1 || (is_linear && b.rank() != 2)) return std::nullopt;
  if (is_linear || b.rank() == 2) {
    if (a.dims.back() != b.dims[is_linear ? 1 : 0]) return std::nullopt;
    Sizes size = a.dims;
    size.back() = b.dims[is_linear ? 0 : 1];
    return size;
  }
  if (b.rank() == 1) {
    if (a.dims.back() != b.dims[0]) return std::nullopt;
    return Sizes(a.dims.begin(), a.dims.end() - 1);
  }
  if (a.dims.back() != b.dims[b.rank() - 2]) return std::nullopt;
  auto size = analysis::broadcast(Sizes(a.dims.begin(), a.dims.end() - 2),
                                  Sizes(b.dims.begin(), b.dims.end() - 2));
  if (!size) return std::nullopt;
  size->push_back(a.dims[a.rank() - 2]);
  size->push_back(b.dims.back());
  return size;
}

std::optional<Sizes> broadcast_size(const TensorArguments& inputs) {
  constexpr std::size_t kMostOperands = 3;
  std::optional<Sizes> size;
  for (std::size_t k = 0; k < kMostOperands; ++k) {
    const auto tensor = inputs.tensor(k);
    if (!tensor) continue;
    size = size ? analysis::broadcast(*size, tensor->dims) : std::optional(tensor->dims);
    if (!size) return std::nullopt;
  }
  return size;
}

std::optional<Sizes> repeat_size(const TensorArguments& inputs) {
  const auto from = inputs.tensor(0);
  for (std::size_t rank = from ? from->rank() : 0; from && rank <= from->rank() + 2; ++rank) {
    auto size = inputs.list(1, rank);
    if (!size) continue;
    for (std::size_t k = 0; k < from->rank(); ++k)
      if (__builtin_mul_overflow((*size)[rank - from->rank() + k], from->dims[k],
                                 &(*size)[rank - from->rank() + k]))
        return std::nullopt;
    return size;
  }
  return std::nullopt;
}

std::optional<std::size_t> dimension_at(const Tensor& tensor, double at) {
  const auto rank = static_cast<double>(tensor.rank());
  if (at < 0) at += rank;
  if (at < 0 || at >= rank) return std::nullopt;
  return static_cast<std::size_t>(at);
}

std::optional<Sizes> one_hot_size(const TensorArguments& inputs) {
  const auto index = inputs.tensor(0);
  const auto classes = inputs.value(1);
  if (!index || !classes || !classes->integer || *classes->integer <= 0) return std::nullopt;
  Sizes size = index->dims;
  size.push_back(*classes->integer);
  return size;
}

// Each element of a with all of b, dimension by dimension.
std::optional<Sizes> kron_size(const Tensor& a, const Tensor& b) {
  if (a.rank() != b.rank()) return std::nullopt;
  Sizes size = a.dims;
  for (std::size_t k = 0; k < size.size(); ++k)
    if (__builtin_mul_overflow(size[k], b.dims[k], &size[k])) return std::nullopt;
  return size;
}

// What is left of `tensor` when the dimensions of argument `index` become one; none are given: all.
std::optional<double> without_dimensions(const TensorArguments& inputs, std::size_t index,
                                         const Tensor& tensor) {
  std::vector<double> over = inputs.numbers(index);
  if (over.empty())
    if (const auto value = inputs.value(index); value && value->integer)
      over.push_back(static_cast<double>(*value->integer));
  if (over.empty()) return 1;
  double left = tensor.elements();
  for (const double each : over) {
    const auto at = dimension_at(tensor, each);
    if (!at) return std::nullopt;
    left /= static_cast<double>(std::max<std::int64_t>(1, tensor.dims[*at]));
  }
  return left;
}

std::optional<Taken> taken_by_slice(const TensorArguments& inputs, const Tensor& tensor) {
  const auto integer = [&](std::size_t index, std::int64_t otherwise) {
    const auto value = inputs.value(index);
    return value && value->integer ? *value->integer : otherwise;
  };
  const auto at = dimension_at(tensor, static_cast<double>(integer(1, 0)));
  if (!at || tensor.dims[*at] <= 0) return std::nullopt;
  const std::int64_t size = tensor.dims[*at];
  const auto wrapped = [&](std::int64_t place) {
    return std::clamp<std::int64_t>(place < 0 ? place + size : place, 0, size);
  };
  const std::int64_t start = wrapped(integer(2, 0)), end = wrapped(integer(3, size));
  const std::int64_t step = std::max<std::int64_t>(1, integer(4, 1));
  const std::int64_t rows = end <= start ? 0 : (end - start + step - 1) / step;
  return Taken{TakerKind::kSelects,
               tensor.elements() * static_cast<double>(rows) / static_cast<double>(size)};
}

std::optional<Taken> taken_by_topk(const TensorArguments& inputs, const Tensor& tensor) {
  const auto most = inputs.value(1), dim = inputs.value(2);
  const auto at =
      dimension_at(tensor, dim && dim->integer ? static_cast<double>(*dim->integer) : -1.0);
  if (!most || !most->integer || !at || tensor.dims[*at] <= 0) return std::nullopt;
  return Taken{TakerKind::kRanks, tensor.elements() / static_cast<double>(tensor.dims[*at]) *
                                      static_cast<double>(*most->integer)};
}

std::optional<Taken> taken_by_index(std::string_view name, const TensorArguments& inputs,
                                    const Tensor& tensor) {
  const auto index = inputs.tensor(2);
  const auto dim = inputs.value(1);
  if (!index || !dim || !dim->integer) return std::nullopt;
  if (name == "gather") return Taken{TakerKind::kSelects, index->elements()};
  const auto at = dimension_at(tensor, static_cast<double>(*dim->integer));
  if (!at || tensor.dims[*at] <= 0) return std::nullopt;
  return Taken{TakerKind::kSelects,
               tensor.elements() / static_cast<double>(tensor.dims[*at]) * index->elements()};
}

}  // namespace

MakerKind maker_kind(std::string_view op) {
  static const std::unordered_map<std::string_view, MakerKind> kKinds = {
      {"linear", MakerKind::kProduct}, {"matmul", MakerKind::kProduct},
      {"mm", MakerKind::kProduct},     {"addmm", MakerKind::kProduct},
      {"bmm", MakerKind::kProduct},    {"baddbmm", MakerKind::kProduct},
      {"eq", MakerKind::kCompare},     {"_scaled_mm", MakerKind::kProduct},
      {"ne", MakerKind::kCompare},     {"lt", MakerKind::kCompare},
      {"le", MakerKind::kCompare},     {"gt", MakerKind::kCompare},
      {"ge", MakerKind::kCompare},     {"repeat", MakerKind::kRepeat},
      {"cdist", MakerKind::kDistance}, {"outer", MakerKind::kOuter},
      {"kron", MakerKind::kOuter},     {"one_hot", MakerKind::kOneHot}};
  if (const auto kind = kKinds.find(plain_name(op)); kind != kKinds.end()) return kind->second;
  return result_kind(op) == ResultKind::kElementwise ? MakerKind::kElementwise : MakerKind::kOther;
}

std::optional<Sizes> made_size(std::string_view op, const TensorArguments& inputs) {
  const MakerKind kind = maker_kind(op);
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  switch (kind) {
    case MakerKind::kProduct: {
      const std::size_t first = op == "aten::addmm" || op == "aten::baddbmm" ? 1 : 0;
      const auto left = inputs.tensor(first), right = inputs.tensor(first + 1);
      return left && right ? product_size(*left, *right, op == "aten::linear") : std::nullopt;
    }
    case MakerKind::kCompare:
    case MakerKind::kElementwise:
      return broadcast_size(inputs);
    case MakerKind::kRepeat:
      return repeat_size(inputs);
    case MakerKind::kDistance: {
      if (!a || !b || a->rank() < 2 || b->rank() < 2) return std::nullopt;
      auto size = analysis::broadcast(Sizes(a->dims.begin(), a->dims.end() - 2),
                                      Sizes(b->dims.begin(), b->dims.end() - 2));
      if (!size) return std::nullopt;
      size->push_back(a->dims[a->rank() - 2]);
      size->push_back(b->dims[b->rank() - 2]);
      return size;
    }
    case MakerKind::kOneHot:
      return one_hot_size(inputs);
    case MakerKind::kOuter:
      if (a && b && op == "aten::kron") return kron_size(*a, *b);
      if (!a || !b || a->rank() != 1 || b->rank() != 1) return std::nullopt;
      return Sizes{a->dims[0], b->dims[0]};
    case MakerKind::kOther:
      break;
  }
  return std::nullopt;
}

double stored_elements(const Tensor& tensor) {
  return tensor.stored_bytes() / static_cast<double>(tensor.type->size_bytes);
}

bool works_on_each_element(std::string_view op) {
  static constexpr std::array<std::string_view, 30> kEach = {
      "_to_copy", "bernoulli", "celu",       "clamp_max",  "clamp_min",   "detach",
      "dropout",  "elu",       "erf",        "expm1",      "gelu",        "isfinite",
      "isinf",    "isnan",     "leaky_relu", "log10",      "log1p",       "log2",
      "relu",     "round",     "sigmoid",    "sign",       "silu",        "softplus",
      "square",   "tan",       "tanh",       "nan_to_num", "logical_xor", "type_as"};
  const MakerKind kind = maker_kind(op);
  return kind == MakerKind::kElementwise || kind == MakerKind::kCompare ||
         is_named_in(kEach, plain_name(op));
}

bool keeps_size(std::string_view op) {
  static constexpr std::array<std::string_view, 10> kAlong = {
      "_log_softmax", "_softmax",    "argsort", "cumprod", "cumsum",
      "flip",         "log_softmax", "roll",    "softmax", "sort"};
  return works_on_each_element(op) || is_named_in(kAlong, plain_name(op));
}

bool only_scales(std::string_view op, const TensorArguments& inputs) {
  static constexpr std::array<std::string_view, 8> kScaling = {
      "_to_copy", "clone", "contiguous", "detach", "div", "mul", "neg", "to"};
  if (!is_named_in(kScaling, plain_name(op))) return false;
  const auto other = inputs.tensor(1);
  return !other || other->elements() <= 1;
}

std::optional<Taken> taken_of(std::string_view op, const TensorArguments& inputs,
                              std::size_t index) {
  static constexpr std::array<std::string_view, 14> kReducing = {
      "all", "amax",   "amin", "any",    "argmax", "argmin", "count_nonzero",
      "max", "median", "min",  "nansum", "prod",   "std",    "var"};
  const std::string_view name = plain_name(op);
  const auto tensor = inputs.tensor(index);
  if (!tensor) return std::nullopt;
  if (maker_kind(op) == MakerKind::kProduct) {
    const auto size = made_size(op, inputs);
    return size ? std::optional(Taken{TakerKind::kProduct, analysis::element_count(*size)})
                : std::nullopt;
  }
  if (index != 0) return std::nullopt;
  const bool adds = name == "sum" || name == "mean";
  const bool is_norm = name == "norm" || name == "linalg_vector_norm";
  if (adds || is_norm || name == "logsumexp" || is_named_in(kReducing, name)) {
    if (inputs.tensor(1)) return std::nullopt;  // max of two tensors
    const auto left = without_dimensions(inputs, is_norm ? 2 : 1, *tensor);
    if (!left) return std::nullopt;
    return Taken{adds ? TakerKind::kAdds : TakerKind::kReduces, *left};
  }
  if (name == "topk") return taken_by_topk(inputs, *tensor);
  if (name == "gather" || name == "index_select") return taken_by_index(name, inputs, *tensor);
  if (name == "slice") return taken_by_slice(inputs, *tensor);
  if (name == "select") {
    const auto dim = inputs.value(1);
    const auto at = dim && dim->integer ? dimension_at(*tensor, static_cast<double>(*dim->integer))
                                        : std::nullopt;
    if (!at || tensor->dims[*at] <= 0) return std::nullopt;
    return Taken{TakerKind::kSelects, tensor->elements() / static_cast<double>(tensor->dims[*at])};
  }
  return std::nullopt;
}

}  // namespace lanescope::explain::rules

// The model of each operator is a line in a table or a short function, from shapes to
// operations and bytes.
#include "lanescope/analysis/operator_work.h"

#include <algorithm>

#include "lanescope/analysis/indexed_work.h"
#include "lanescope/analysis/tensor_arguments.h"

namespace lanescope::analysis {
namespace {

using MaybeWork = std::optional<OperatorWork>;

// --- GEMM

double product_of(const Sizes& sizes, std::size_t end) {
  double product = 1;
  for (std::size_t i = 0; i < end; ++i) product *= static_cast<double>(sizes[i]);
  return product;
}

// A [.., m, k] and B [.., k, n]; `transposed`: B is stored [n, k], as aten::linear's weight.
MaybeWork gemm(const TensorArguments& inputs, std::size_t first, bool transposed,
               std::int64_t out_bytes = 0) {
  const auto a = inputs.tensor(first), b = inputs.tensor(first + 1);
  if (!a || !b || a->rank() < 1 || b->rank() < 1 || a->rank() + b->rank() < 3) return std::nullopt;
  if (a->type->name.starts_with('c')) return std::nullopt;  // complex
  GemmShape shape;
  shape.k = a->dim(0);
  const std::int64_t b_k = b->rank() == 1 || transposed ? b->dim(0) : b->dim(1);
  if (b_k != shape.k) return std::nullopt;
  shape.n = b->rank() == 1 ? 1 : transposed ? b->dim(1) : b->dim(0);
  // Two-dimensional B: all dimensions before k in A are rows. Else matrices are
  // multiplied in pairs.
  double batch = 1, rows = 1;
  if (b->rank() <= 2) {
    rows = product_of(a->dims, a->rank() - 1);
  } else {
    rows = a->rank() == 1 ? 1 : static_cast<double>(a->dim(1));
    batch = product_of(b->dims, b->rank() - 2);
    if (a->rank() > 2) batch = std::max(batch, product_of(a->dims, a->rank() - 2));
  }
  if (batch * rows > 1e15) return std::nullopt;  // no such tensor
  shape.batch = static_cast<std::int64_t>(batch);
  shape.m = static_cast<std::int64_t>(rows);
  shape.leading = {a->leading(), b->leading(), shape.n};
  OperatorWork work;
  work.kind = OperatorKind::kGemm;
  work.type = a->type->name;
  const double out = batch * rows * static_cast<double>(shape.n);
  work.flops = 2 * out * static_cast<double>(shape.k);
  work.bytes = a->stored_bytes() + b->stored_bytes() +
               out * static_cast<double>(out_bytes ? out_bytes : a->type->size_bytes);
  if (first == 1)
    if (const auto added = inputs.tensor(0)) work.bytes += added->stored_bytes();
  work.gemm = shape;
  return work;
}

// --- Convolution

struct ConvolutionArguments {
  std::size_t input, weight, stride, padding, dilation;
  std::optional<std::size_t> transposed;
};

MaybeWork convolution(const TensorArguments& inputs, const ConvolutionArguments& at) {
  const auto input = inputs.tensor(at.input), weight = inputs.tensor(at.weight);
  if (!input || !weight || input->rank() < 3 || weight->rank() != input->rank())
    return std::nullopt;
  const std::size_t space = input->rank() - 2;
  const bool transposed = at.transposed && inputs.flag(*at.transposed).value_or(false);
  OperatorWork work;
  work.kind = OperatorKind::kConvolution;
  work.type = input->type->name;
  const double per_place =
      weight->elements() / std::max<double>(1, static_cast<double>(weight->dims[0]));
  const auto stride = inputs.list(at.stride, space), padding = inputs.list(at.padding, space),
             dilation = inputs.list(at.dilation, space);
  if (!stride || !padding || !dilation) return std::nullopt;
  double out = static_cast<double>(input->dims[0]);
  if (transposed) {
    // The output's size needs more arguments; the input and the operations do not.
    work.flops = 2 * input->elements() * per_place;
    work.bytes = input->stored_bytes() + weight->stored_bytes();
    return work;
  }
  out *= static_cast<double>(weight->dims[0]);
  for (std::size_t i = 0; i < space; ++i) {
    if ((*stride)[i] < 1 || (*padding)[i] > 1'000'000 || (*dilation)[i] > 1'000'000 ||
        input->dims[2 + i] > 1'000'000'000 || weight->dims[2 + i] > 1'000'000)
      return std::nullopt;
    const std::int64_t reach =
        input->dims[2 + i] + 2 * (*padding)[i] - (*dilation)[i] * (weight->dims[2 + i] - 1) - 1;
    if (reach < 0) return std::nullopt;
    out *= static_cast<double>(reach / (*stride)[i] + 1);
  }
  work.flops = 2 * out * per_place;
  work.bytes = input->stored_bytes() + weight->stored_bytes() +
               out * static_cast<double>(input->type->size_bytes);
  return work;
}

// Each requested gradient, of the input and of the weight, costs as much as the forward pass.
MaybeWork convolution_backward(const TensorArguments& inputs) {
  const auto grad = inputs.tensor(0), input = inputs.tensor(1), weight = inputs.tensor(2);
  if (!grad || !input || !weight || weight->rank() < 3 || grad->rank() != weight->rank())
    return std::nullopt;
  const bool transposed = inputs.flag(7).value_or(false);
  const double per_place =
      weight->elements() / std::max<double>(1, static_cast<double>(weight->dims[0]));
  const double once = 2 * (transposed ? input->elements() : grad->elements()) * per_place;
  auto asked = inputs.flags(10);  // input, weight, bias; the bias's sum is another operator
  if (asked.size() < 2) asked = {true, true};
  OperatorWork work;
  work.kind = OperatorKind::kConvolution;
  work.type = grad->type->name;
  work.is_convolution_backward = true;
  work.flops = (asked[0] + asked[1]) * once;
  work.bytes = grad->stored_bytes();
  if (asked[0]) work.bytes += weight->stored_bytes() + input->dense_bytes();
  if (asked[1]) work.bytes += input->stored_bytes() + weight->dense_bytes();
  return work;
}

// --- Attention

// Pairs of query and key that are multiplied: all, or those that a causal mask leaves.
double attention_pairs(std::int64_t queries, std::int64_t keys, bool causal) {
  const double q = static_cast<double>(queries), k = static_cast<double>(keys);
  if (!causal) return q * k;
  const double growing = std::min(q, k);  // rows of 1, 2, ... keys, then rows of all keys
  return growing * (growing + 1) / 2 + (q - growing) * k;
}

struct AttentionArguments {
  std::size_t query, is_causal;
  std::optional<std::size_t> mask;  // of numbers, added to the products; read once
};

MaybeWork attention(const TensorArguments& inputs, const AttentionArguments& at, bool backward) {
  const std::size_t first = at.query;
  const auto q = inputs.tensor(first), k = inputs.tensor(first + 1), v = inputs.tensor(first + 2);
  if (!q || !k || !v || q->rank() != 4 || k->rank() != 4 || v->rank() != 4) return std::nullopt;
  const bool causal = inputs.flag(at.is_causal).value_or(false);
  const double heads = static_cast<double>(q->dims[0]) * static_cast<double>(q->dims[1]);
  const double pairs = heads * attention_pairs(q->dims[2], k->dims[2], causal);
  const double d = static_cast<double>(q->dims[3]), d_v = static_cast<double>(v->dims[3]);
  const double out_bytes =
      heads * static_cast<double>(q->dims[2]) * d_v * static_cast<double>(q->type->size_bytes);
  OperatorWork work;
  work.kind = OperatorKind::kAttention;
  work.type = q->type->name;
  work.is_attention_backward = backward;
  double read = q->stored_bytes() + k->stored_bytes() + v->stored_bytes();
  if (const auto mask = at.mask ? inputs.tensor(*at.mask) : nullptr) read += mask->stored_bytes();
  // Forward: Q K and P V. Backward: Q K again, dO V, and the gradients of V, Q and K.
  work.flops = backward ? 2 * pairs * (3 * d + 2 * d_v) : 2 * pairs * (d + d_v);
  work.bytes = backward
                   ? read + 2 * out_bytes + q->dense_bytes() + k->dense_bytes() + v->dense_bytes()
                   : read + out_bytes;
  return work;
}

// --- Everything that passes over memory

// torch's broadcasting: the larger of each pair of sizes, aligned at the end.
struct PassRow {
  std::string_view name;
  OperatorKind kind;
  std::uint8_t inputs;     // it reads this many tensors, the first ones
  bool is_test = false;    // gives booleans
  std::uint8_t again = 1;  // outputs with the shape of the inputs
};
constexpr auto kE = OperatorKind::kElementwise;
constexpr auto kR = OperatorKind::kReduction;
constexpr auto kN = OperatorKind::kNormalisation;
constexpr auto kS = OperatorKind::kSoftmax;
// In-place forms (a trailing _) have the same rows.
constexpr PassRow kPasses[] = {
    {"abs", kE, 1},
    {"neg", kE, 1},
    {"exp", kE, 1},
    {"log", kE, 1},
    {"sqrt", kE, 1},
    {"rsqrt", kE, 1},
    {"reciprocal", kE, 1},
    {"sin", kE, 1},
    {"cos", kE, 1},
    {"tanh", kE, 1},
    {"sigmoid", kE, 1},
    {"relu", kE, 1},
    {"gelu", kE, 1},
    {"silu", kE, 1},
    {"leaky_relu", kE, 1},
    {"elu", kE, 1},
    {"hardtanh", kE, 1},
    {"hardswish", kE, 1},
    {"hardsigmoid", kE, 1},
    {"softplus", kE, 1},
    {"mish", kE, 1},
    {"clamp", kE, 1},
    {"clamp_min", kE, 1},
    {"clamp_max", kE, 1},
    {"floor", kE, 1},
    {"ceil", kE, 1},
    {"round", kE, 1},
    {"erf", kE, 1},
    {"log1p", kE, 1},
    {"expm1", kE, 1},
    {"sign", kE, 1},
    {"square", kE, 1},
    {"isnan", kE, 1, true},
    {"isinf", kE, 1, true},
    {"logical_not", kE, 1, true},
    {"bitwise_not", kE, 1},
    {"masked_fill", kE, 2},
    {"add", kE, 2},
    {"sub", kE, 2},
    {"rsub", kE, 2},
    {"mul", kE, 2},
    {"div", kE, 2},
    {"pow", kE, 2},
    {"maximum", kE, 2},
    {"minimum", kE, 2},
    {"remainder", kE, 2},
    {"fmod", kE, 2},
    {"atan2", kE, 2},
    {"bitwise_and", kE, 2},
    {"bitwise_or", kE, 2},
    {"eq", kE, 2, true},
    {"ne", kE, 2, true},
    {"lt", kE, 2, true},
    {"le", kE, 2, true},
    {"gt", kE, 2, true},
    {"ge", kE, 2, true},
    {"logical_and", kE, 2, true},
    {"logical_or", kE, 2, true},
    {"threshold_backward", kE, 2},
    {"gelu_backward", kE, 2},
    {"silu_backward", kE, 2},
    {"tanh_backward", kE, 2},
    {"sigmoid_backward", kE, 2},
    {"hardtanh_backward", kE, 2},
    {"leaky_relu_backward", kE, 2},
    {"addcmul", kE, 3},
    {"addcdiv", kE, 3},
    {"where", kE, 3},
    {"lerp", kE, 2},
    {"sum", kR, 1, false, 0},
    {"mean", kR, 1, false, 0},
    {"prod", kR, 1, false, 0},
    {"amax", kR, 1, false, 0},
    {"amin", kR, 1, false, 0},
    {"max", kR, 1, false, 0},
    {"min", kR, 1, false, 0},
    {"argmax", kR, 1, false, 0},
    {"argmin", kR, 1, false, 0},
    {"norm", kR, 1, false, 0},
    {"linalg_vector_norm", kR, 1, false, 0},
    {"var", kR, 1, false, 0},
    {"std", kR, 1, false, 0},
    {"var_mean", kR, 1, false, 0},
    {"any", kR, 1, false, 0},
    {"all", kR, 1, false, 0},
    {"native_layer_norm", kN, 1},
    {"native_group_norm", kN, 1},
    {"_fused_rms_norm", kN, 1},
    {"native_batch_norm", kN, 1},
    {"cudnn_batch_norm", kN, 1},
    {"miopen_batch_norm", kN, 1},
    {"native_layer_norm_backward", kN, 2},
    {"native_group_norm_backward", kN, 2},
    {"_fused_rms_norm_backward", kN, 2},
    {"native_batch_norm_backward", kN, 2},
    {"cudnn_batch_norm_backward", kN, 2},
    {"miopen_batch_norm_backward", kN, 2},
    {"_softmax", kS, 1},
    {"_log_softmax", kS, 1},
    {"_softmax_backward_data", kS, 2},
    {"_log_softmax_backward_data", kS, 2},
};

MaybeWork pass_over_memory(const TensorArguments& inputs, const PassRow& row) {
  OperatorWork work;
  work.kind = row.kind;
  Sizes shape;
  const TypeRow* type = nullptr;
  bool type_has_dims = false;
  for (std::size_t i = 0; i < row.inputs; ++i) {
    const auto tensor = inputs.tensor(i);
    if (!tensor) {
      if (i == 0 && row.inputs == 1) return std::nullopt;
      continue;  // a number, which costs nothing
    }
    work.bytes += tensor->stored_bytes();
    const auto both = broadcast(shape, tensor->dims);
    if (!both) return std::nullopt;
    shape = *both;
    // A tensor without dimensions does not decide the type; floating types come before integers.
    const bool decides =
        !type ||
        (tensor->rank() > 0 && (tensor->type->is_floating > type->is_floating ||
                                (tensor->type->is_floating == type->is_floating &&
                                 (!type_has_dims || tensor->type->size_bytes > type->size_bytes))));
    if (decides) {
      type = tensor->type;
      type_has_dims = tensor->rank() > 0;
    }
  }
  if (!type) return std::nullopt;
  const double elements = element_count(shape);
  work.type = type->name;
  work.bytes += row.again * elements * static_cast<double>(row.is_test ? 1 : type->size_bytes);
  if (row.kind == kE || row.kind == kR) work.flops = elements;
  return work;
}

// aten::copy_ [to, from].
MaybeWork copy(const TensorArguments& inputs) {
  const auto to = inputs.tensor(0), from = inputs.tensor(1);
  if (!to || !from) return std::nullopt;
  return OperatorWork{
      OperatorKind::kCopy, 0, to->stored_bytes() + from->stored_bytes(), to->type->name, {}};
}

MaybeWork fill(const TensorArguments& inputs) {
  const auto to = inputs.tensor(0);
  if (!to) return std::nullopt;
  return OperatorWork{OperatorKind::kCopy, 0, to->stored_bytes(), to->type->name, {}};
}

}  // namespace

const char* operator_kind_name(OperatorKind kind) {
  static constexpr const char* kNames[] = {"GEMM",          "convolution", "attention",
                                           "normalisation", "softmax",     "elementwise",
                                           "reduction",     "copy",        "indexing"};
  return kNames[static_cast<std::size_t>(kind)];
}

ElementType element_type(std::string_view torch_type) {
  const TypeRow* row = find_type(torch_type);
  return row ? ElementType{row->name, row->size_bytes} : ElementType{};
}

MaybeWork compute_operator_work(const OperatorCall& call) {
  if (call.dims.empty() || call.types.empty() || !call.name.starts_with("aten::"))
    return std::nullopt;
  const std::string_view op = call.name.substr(6);
  // By name first, because parsing costs more.
  if (op == "mm" || op == "bmm" || op == "mv" || op == "dot" || op == "matmul")
    return gemm(TensorArguments(call), 0, false);
  if (op == "_int_mm") return gemm(TensorArguments(call), 0, false, 4);
  if (op == "_scaled_mm")
    return gemm(TensorArguments(call), 0, false, 2);  // bf16 comes out, as a rule
  if (op == "linear") return gemm(TensorArguments(call), 0, true);
  if (op == "addmm" || op == "addmm_" || op == "baddbmm" || op == "baddbmm_" ||
      op == "_addmm_activation" || op == "addmv" || op == "addmv_")
    return gemm(TensorArguments(call), 1, false);
  if (op == "convolution") return convolution(TensorArguments(call), {0, 1, 3, 4, 5, 6});
  if (op == "cudnn_convolution") return convolution(TensorArguments(call), {0, 1, 3, 2, 4, {}});
  if (op == "cudnn_convolution_relu")
    return convolution(TensorArguments(call), {0, 1, 3, 4, 5, {}});
  if (op == "miopen_convolution") return convolution(TensorArguments(call), {0, 1, 4, 3, 5, {}});
  if (op == "convolution_backward") return convolution_backward(TensorArguments(call));
  if (op == "_scaled_dot_product_flash_attention")
    return attention(TensorArguments(call), {0, 4, {}}, false);
  if (op == "_scaled_dot_product_efficient_attention" ||
      op == "_scaled_dot_product_cudnn_attention")
    return attention(TensorArguments(call), {0, 6, 3}, false);
  if (op == "_scaled_dot_product_fused_attention_overrideable")
    return attention(TensorArguments(call), {0, 5, 3}, false);
  if (op == "_scaled_dot_product_flash_attention_backward")
    return attention(TensorArguments(call), {1, 11, {}}, true);
  if (op == "_scaled_dot_product_efficient_attention_backward")
    return attention(TensorArguments(call), {1, 11, 4}, true);
  if (op == "_scaled_dot_product_cudnn_attention_backward")
    return attention(TensorArguments(call), {1, 14, 8}, true);
  if (op == "copy_") return copy(TensorArguments(call));
  if (op == "fill_" || op == "zero_") return fill(TensorArguments(call));
  if (has_indexed_work(op)) return compute_indexed_work(op, TensorArguments(call));
  std::string_view plain = op;
  if (plain.ends_with('_')) plain.remove_suffix(1);
  const auto* row = std::find_if(std::begin(kPasses), std::end(kPasses),
                                 [&](const PassRow& each) { return each.name == plain; });
  return row == std::end(kPasses) ? std::nullopt : pass_over_memory(TensorArguments(call), *row);
}

}  // namespace lanescope::analysis

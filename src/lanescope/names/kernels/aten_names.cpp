// Kernels of torch's own CUDA code, at::native and its unnamed namespaces.
//
// Most are one of a few loops with a functor as template argument, under wrappers:
//   at::native::vectorized_elementwise_kernel<4,
//       at::native::CUDAFunctor_add<float>, std::array<...>>
//   at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<
//       at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const...>>
// The reader goes down through the wrappers to the functor. A lambda gets the name of the function
// that contains it. Types are read where the loop takes tensors of the functor's types. Loops that
// convert on the way (gpu_kernel_impl, LoadWithCast) say nothing of types.
#include <span>
#include <utility>

#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

constexpr int kDeepestWrapper = 12;

struct Functor {
  std::string name;
  std::string_view type, result_type;
};

// Which template argument of a wrapper holds the functor; -1: the last one.
std::optional<int> wrapped_argument(std::string_view base) {
  if (base.starts_with("gpu_kernel_impl") || base == "apply" ||
      base == "opmath_gpu_kernel_with_scalars")
    return 0;
  if (base == "ReduceOp") return 1;
  if (base == "BinaryFunctor" || base == "AUnaryFunctor" || base == "BUnaryFunctor" ||
      base == "func_wrapper_t" || base == "opmath_symmetric_gpu_kernel_with_scalars")
    return -1;
  return std::nullopt;
}

// "{lambda(c10::BFloat16, float)#1}": the type of the innermost lambda's first parameter. A
// condition (bool) before other parameters is not the computed type.
std::string_view lambda_type(std::span<const std::string_view> scopes) {
  for (std::size_t i = scopes.size(); i-- > 0;) {
    std::string_view part = scopes[i];
    if (!part.starts_with("{lambda(")) continue;
    part.remove_prefix(8);
    const auto parameters = split_arguments(part.substr(0, part.rfind(")#")));
    if (parameters.empty()) return {};
    const auto first = element_type_of_cxx(parameters[0]);
    return first == "bool" && parameters.size() > 1 ? element_type_of_cxx(parameters[1]) : first;
  }
  return {};
}

std::optional<Functor> find_functor(std::string_view text) {
  Functor functor;
  for (int depth = 0; depth < kDeepestWrapper; ++depth) {
    const auto scopes = split_scopes(text);
    // Namespaces have no brackets: the first part that has some is the function or class.
    std::string_view part = scopes.back();
    std::size_t at = scopes.size() - 1;
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      if (scopes[i].starts_with("(anonymous namespace)") || scopes[i].starts_with("{")) continue;
      if (scopes[i].find_first_of("<(") == std::string_view::npos) continue;
      part = scopes[i];
      at = i;
      break;
    }
    std::string_view base = without_brackets(part);
    auto arguments = split_arguments(template_inside(part));
    // "launcher<1>::apply<functor, ...>".
    if (base == "type_specialized_broadcast_kernel_launcher" && at + 1 < scopes.size()) {
      base = without_brackets(scopes[at + 1]);
      arguments = split_arguments(template_inside(scopes[at + 1]));
    }
    const auto wrapped = wrapped_argument(base);
    if (wrapped && !arguments.empty()) {
      const std::size_t index =
          *wrapped < 0 ? arguments.size() - 1 : static_cast<std::size_t>(*wrapped);
      if (functor.type.empty() && *wrapped < 0 && arguments.size() >= 2) {
        functor.type = element_type_of_cxx(arguments[0]);
        if (arguments.size() >= 4) functor.result_type = element_type_of_cxx(arguments[2]);
      }
      if (index >= arguments.size() || arguments[index].empty()) return std::nullopt;
      text = arguments[index];
      continue;
    }
    if (base.empty()) return std::nullopt;
    functor.name = function_words(base);
    if (functor.type.empty()) functor.type = lambda_type(std::span(scopes).subspan(at));
    if (functor.type.empty()) functor.type = first_element_type(arguments);
    return functor;
  }
  return std::nullopt;
}

bool converts_types(std::string_view text) {
  return contains(text, "LoadWithCast") || contains(text, "gpu_kernel_impl<") ||
         contains(text, "StoreWithCast");
}

bool read_elementwise(const ParsedText& name, KernelName& out) {
  const std::string_view base = name.cxx.base;
  const auto& arguments = name.cxx.arguments;
  std::size_t index = 0;
  if (base == "vectorized_elementwise_kernel" ||
      base == "vectorized_templated_elementwise_kernel") {
    index = 1;
    if (!arguments.empty()) out.vector_width = parse_number(arguments[0]);
  } else if (base == "elementwise_kernel" || base == "elementwise_kernel_manual_unroll" ||
             base == "_scatter_gather_elementwise_kernel" || base == "index_elementwise_kernel") {
    index = 2;
  } else if (base == "unrolled_elementwise_kernel_for_multi_outputs" ||
             base == "elementwise_kernel_with_index") {
    index = 1;
  } else if (base != "unrolled_elementwise_kernel" && base != "modern_elementwise_kernel") {
    return false;
  }
  out.kind = "elementwise";
  out.variant = "elementwise";
  if (base == "_scatter_gather_elementwise_kernel" || base == "index_elementwise_kernel") {
    out.kind = "indexing";
    out.operation = base == "index_elementwise_kernel" ? "index" : "scatter/gather";
    out.variant = "indexing";
    if (base == "_scatter_gather_elementwise_kernel") return true;
  }
  const auto functor =
      index < arguments.size() ? find_functor(arguments[index]) : std::optional<Functor>();
  if (!functor) {
    if (out.operation.empty()) out.operation = "elementwise";
    return true;
  }
  if (out.operation.empty() || !functor->name.starts_with("gpu index"))
    out.operation = functor->name;
  if (!converts_types(name.text.substr(0, 4096)) && out.kind == "elementwise") {
    out.input_type = functor->type;
    if (functor->result_type != functor->type) out.output_type = functor->result_type;
  }
  if (out.operation == "fill") {
    out.output_type = out.input_type;  // it only writes
    out.input_type.clear();
  }
  if (out.operation.starts_with("copy")) out.kind = "copy";
  // Copies that convert, with the target in the name and the source in the lambda.
  for (const auto& [words, target] : {std::pair{"bfloat16 copy", "bf16"},
                                      {"float16 copy", "f16"},
                                      {"bfloat16tofloat32 copy", "f32"}}) {
    if (out.operation != words) continue;
    out.kind = out.operation = "copy";
    out.output_type = target;
  }
  return true;
}

bool read_reduction(const ParsedText& name, KernelName& out) {
  if (name.cxx.base != "reduce_kernel" || name.cxx.arguments.size() < 3) return false;
  out.kind = "reduction";
  out.variant = "reduction";
  out.operation = "reduce";
  if (const auto functor = find_functor(name.cxx.arguments[2])) out.operation = functor->name;
  // ReduceOp<input, operation, index, output, ...>.
  const auto arguments =
      split_arguments(template_inside(split_scopes(name.cxx.arguments[2]).back()));
  if (arguments.size() >= 4) {
    out.input_type = element_type_of_cxx(arguments[0]);
    out.output_type = element_type_of_cxx(arguments[3]);
    if (out.output_type == out.input_type) out.output_type.clear();
  }
  return true;
}

// multi_tensor_apply_kernel<TensorListMetadata<2>, functor, ...>: many tensors in one launch.
bool read_multi_tensor(const ParsedText& name, KernelName& out) {
  if (name.cxx.base != "multi_tensor_apply_kernel") return false;
  out.library = name.cxx.scope.starts_with("at::") ? "ATen" : "Apex";
  out.kind = "optimizer";
  out.operation = "multi-tensor apply";
  out.variant = "multi-tensor";
  if (name.cxx.arguments.size() < 2) return true;
  const std::string_view functor = split_scopes(name.cxx.arguments[1]).back();
  out.operation = function_words(without_brackets(functor));
  const auto inner = split_arguments(template_inside(functor));
  // BinaryOpListAlphaFunctor and similar: the operation is the argument after the functor.
  if (contains(without_brackets(functor), "OpScalar") ||
      contains(without_brackets(functor), "OpList") ||
      contains(without_brackets(functor), "PointwiseOp") ||
      contains(without_brackets(functor), "UnaryOp")) {
    out.kind = "elementwise";
    if (name.cxx.arguments.size() > 2) {
      const auto word =
          function_words(without_brackets(split_scopes(name.cxx.arguments[2]).back()));
      if (!word.empty())
        out.operation = word == "plus"         ? "add"
                        : word == "multiplies" ? "mul"
                        : word == "divides"    ? "div"
                        : word == "minus"      ? "sub"
                                               : word;
    }
  }
  // Three operands: a + value * b * c, a + value * b / c.
  if (contains(without_brackets(functor), "PointwiseOp")) {
    if (out.operation == "mul") out.operation = "addcmul";
    if (out.operation == "div") out.operation = "addcdiv";
  }
  if (out.operation == "fused adam" || out.operation == "adam") out.operation = "Adam";
  if (out.operation == "fused sgd" || out.operation == "sgd") out.operation = "SGD";
  // CopyFunctor names both ends of a copy that converts.
  if (!without_brackets(functor).starts_with("CopyFunctor"))
    out.input_type = first_element_type(inner);
  return true;
}

struct AtenRow {
  std::string_view start;  // of the function's name; the first matching row counts
  const char *kind, *operation;
  bool type_first = false;  // the first element type among the template arguments is the input's
};
constexpr AtenRow kAtenRows[] = {
    {"softmax_warp_forward", "softmax", "softmax", true},
    {"softmax_warp_backward", "softmax", "softmax backward", false},
    {"cunn_SoftMaxForward", "softmax", "softmax", false},
    {"cunn_SoftMaxBackward", "softmax", "softmax backward", false},
    {"cunn_SpatialSoftMaxForward", "softmax", "softmax", false},
    {"cunn_SpatialSoftMaxBackward", "softmax", "softmax backward", false},
    {"cunn_ClassNLLCriterion_updateOutput", "loss", "NLL loss", true},
    {"cunn_ClassNLLCriterion_updateGradInput", "loss", "NLL loss backward", true},
    {"nll_loss_forward", "loss", "NLL loss", true},
    {"nll_loss_backward", "loss", "NLL loss backward", true},
    {"nll_loss2d_forward", "loss", "NLL loss", true},
    {"nll_loss2d_backward", "loss", "NLL loss backward", true},
    {"vectorized_layer_norm_kernel", "normalization", "layer norm", true},
    {"LayerNormForwardCUDAKernel", "normalization", "layer norm", true},
    {"layer_norm_grad_input_kernel", "normalization", "layer norm backward, input", true},
    {"GammaBetaBackward", "normalization", "layer norm backward, weight and bias", true},
    {"cuComputePartGradGammaBeta", "normalization", "layer norm backward, weight and bias", true},
    {"cuComputeGradGammaBeta", "normalization", "layer norm backward, weight and bias", true},
    {"cuComputeGradInput", "normalization", "layer norm backward, input", true},
    {"RowwiseMomentsCUDAKernel", "normalization", "row moments", true},
    {"ComputeInternalGradientsCUDAKernel", "normalization", "group norm backward, sums", true},
    {"ComputeFusedParamsCUDAKernel", "normalization", "group norm, scale and shift", true},
    {"ComputeBackwardFusedParamsCUDAKernel", "normalization",
     "group norm backward, scale and shift", true},
    {"batch_norm_collect_statistics", "normalization", "batch norm statistics", true},
    {"batch_norm_transform_input", "normalization", "batch norm, apply", true},
    {"batch_norm_backward_reduce", "normalization", "batch norm backward, sums", true},
    {"batch_norm_backward_elemt", "normalization", "batch norm backward, apply", true},
    {"batch_norm_backward", "normalization", "batch norm backward", true},
    {"batch_norm_elementwise", "normalization", "batch norm, apply", false},
    {"batch_norm", "normalization", "batch norm", false},
    {"max_pool_forward", "pooling", "max pool", true},
    {"max_pool_backward", "pooling", "max pool backward", true},
    {"avg_pool2d_out", "pooling", "average pool", true},
    {"avg_pool2d_backward", "pooling", "average pool backward", true},
    {"adaptive_average_pool", "pooling", "adaptive average pool", true},
    {"adaptive_average_gradinput", "pooling", "adaptive average pool backward", true},
    {"atomic_adaptive_average_gradinput", "pooling", "adaptive average pool backward", true},
    {"adaptivemaxpool", "pooling", "adaptive max pool", true},
    {"upsample_nearest", "resampling", "upsample nearest", true},
    {"upsample_bilinear", "resampling", "upsample bilinear", true},
    {"upsample_bicubic", "resampling", "upsample bicubic", true},
    {"CatArrayBatchedCopy", "copy", "concatenate", true},
    {"indexSelect", "indexing", "index select", true},
    {"index_select", "indexing", "index select", false},
    {"indexFuncLargeIndex", "indexing", "index add", true},
    {"indexFuncSmallIndex", "indexing", "index add", true},
    {"indexing_backward_kernel", "indexing", "index backward", true},
    {"index_put", "indexing", "index put", false},
    {"vectorized_gather_kernel", "indexing", "gather", false},
    {"embedding_backward", "embedding", "embedding backward", false},
    {"embedding_dense_backward", "embedding", "embedding backward", false},
    {"EmbeddingBag", "embedding", "embedding bag", false},
    {"compute_grad_weight", "embedding", "embedding backward, weight", true},
    {"krn_partial", "embedding", "embedding backward, segments", false},
    {"sum_and_scatter", "embedding", "embedding backward, scatter", true},
    {"fused_dropout_kernel", "random", "dropout", true},
    {"masked_scale_kernel", "random", "dropout backward", false},
    {"distribution_elementwise_grid_stride_kernel", "random", "random numbers", true},
    {"distribution", "random", "random numbers", false},
    {"tensor_kernel_scan", "scan", "cumulative scan", true},
    {"bitonicSort", "sort", "sort", true},
    {"radixSortKVInPlace", "sort", "sort", true},
    {"sort_postprocess", "sort", "sort, postprocess", false},
    {"fill_index_and_segment", "sort", "sort, indices", false},
    {"fill_reverse_indices", "sort", "sort, indices", false},
    {"sbtopk::gatherTopK", "sort", "top-k", true},
    {"gatherTopK", "sort", "top-k", true},
    {"radixFindKthValues", "sort", "top-k", true},
    {"computeBlockwise", "sort", "top-k", false},
    {"searchsorted", "sort", "search sorted", true},
    {"triu_tril_kernel", "copy", "triu/tril", true},
    {"im2col_kernel", "convolution", "im2col", true},
    {"col2im", "convolution", "col2im", true},
    {"conv_depthwise", "convolution", "depthwise convolution", true},
    {"dot_kernel", "gemm", "dot product", true},
    {"arange", "elementwise", "arange", false},
    {"ctc_loss", "loss", "CTC loss", false},
    {"multi_margin", "loss", "multi margin loss", false},
    {"lpnorm_cleanup", "reduction", "norm, cleanup", false},
    {"amp_", "optimizer", "gradient scaler", false},
    {"prelu", "elementwise", "prelu", false},
    {"roll_cuda", "copy", "roll", true},
    {"spin_kernel", "other", "spin", false},
};

}  // namespace

bool read_aten_name(const ParsedText& name, KernelName& out) {
  const std::string_view scope = name.cxx.scope, base = name.cxx.base;
  const bool inside = scope == "at" || scope.starts_with("at::");
  // Some of torch's kernels are in an unnamed namespace or in none.
  const bool anonymous = scope.empty() || scope == "(anonymous namespace)";
  if (!inside && !anonymous) return false;
  if (read_multi_tensor(name, out)) return true;
  out.library = "ATen";
  const bool with_index = base == "elementwise_kernel_with_index" &&
                          name.cxx.arguments.size() > 1 &&
                          name.cxx.arguments[1].starts_with("at::");
  if ((inside || with_index) && (read_elementwise(name, out) || read_reduction(name, out)))
    return true;
  for (const auto& [start, kind, operation, type_first] : kAtenRows) {
    if (!base.starts_with(start)) continue;
    // Outside of at::, only names that no other project has.
    if (!inside && !start.starts_with("softmax_warp") && !start.starts_with("cunn_") &&
        start != "indexing_backward_kernel")
      continue;
    out.kind = kind;
    out.operation = operation;
    // OpaqueType<4>: four bytes of whatever type.
    if (type_first && !name.cxx.arguments.empty() && !contains(name.cxx.arguments[0], "OpaqueType"))
      out.input_type = first_element_type(name.cxx.arguments);
    return true;
  }
  if (!inside || base.empty()) return false;
  out.operation = function_words(base);
  return true;
}

}  // namespace lanescope::names::kernels

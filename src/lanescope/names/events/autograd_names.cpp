// Rows of the backward pass. Sources: the names that torch's generator of gradient functions gives
// its nodes (the operator in CamelCase, "Backward", a number for the overload; torchgen's
// derivatives.yaml of torch 2.13 lists the operators), and torch/csrc/autograd's own nodes.
#include <algorithm>

#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

// Operators with a gradient formula.
// clang-format off
constexpr std::string_view kDifferentiable[] = {
    "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d",
    "_adaptive_avg_pool3d_backward", "_batch_norm_no_update", "_batch_norm_with_update",
    "_cdist_backward", "_cdist_forward", "_coalesce", "_conj", "_conv_depthwise2d", "_ctc_loss",
    "_cudnn_attention_forward", "_cudnn_ctc_loss", "_cudnn_rnn", "_cudnn_rnn_backward",
    "_efficient_attention_forward", "_efficientzerotensor", "_embedding_bag",
    "_embedding_bag_backward", "_embedding_bag_dense_backward", "_euclidean_dist",
    "_fake_quantize_learnable_per_channel_affine", "_fake_quantize_learnable_per_tensor_affine",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "_fft_c2c", "_fft_c2r", "_fft_r2c",
    "_flash_attention_forward", "_foreach_abs", "_foreach_acos", "_foreach_add", "_foreach_addcdiv",
    "_foreach_addcmul", "_foreach_asin", "_foreach_atan", "_foreach_ceil", "_foreach_clamp_max",
    "_foreach_clamp_min", "_foreach_clone", "_foreach_cos", "_foreach_cosh", "_foreach_div",
    "_foreach_erf", "_foreach_erfc", "_foreach_exp", "_foreach_expm1", "_foreach_floor",
    "_foreach_frac", "_foreach_lerp", "_foreach_lgamma", "_foreach_log", "_foreach_log10",
    "_foreach_log1p", "_foreach_log2", "_foreach_max", "_foreach_maximum", "_foreach_minimum",
    "_foreach_mm", "_foreach_mul", "_foreach_neg", "_foreach_norm", "_foreach_pow",
    "_foreach_reciprocal", "_foreach_round", "_foreach_rsqrt", "_foreach_sigmoid", "_foreach_sign",
    "_foreach_sin", "_foreach_sinh", "_foreach_sqrt", "_foreach_sub", "_foreach_tan",
    "_foreach_tanh", "_foreach_trunc", "_fused_dropout", "_fused_moving_avg_obs_fq_helper",
    "_fused_rms_norm", "_grid_sampler_2d_cpu_fallback", "_grid_sampler_2d_cpu_fallback_backward",
    "_grouped_mm", "_index_put_impl", "_is_all_true", "_is_any_true", "_lazy_clone", "_linalg_det",
    "_linalg_eigh", "_linalg_slogdet", "_linalg_solve_ex", "_linalg_svd", "_log_softmax",
    "_log_softmax_backward_data", "_lstm_mps", "_masked_softmax", "_mkldnn_reshape",
    "_mps_convolution", "_mps_convolution_transpose", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "_neg_view", "_nested_from_padded",
    "_nested_from_padded_tensor", "_nested_get_values", "_nested_tensor_from_mask",
    "_nested_tensor_from_tensor_list", "_nested_view_from_jagged",
    "_new_zeros_with_same_feature_meta", "_nnpack_spatial_convolution", "_pack_padded_sequence",
    "_pdist_backward", "_pdist_forward", "_pin_memory", "_prelu_kernel", "_prelu_kernel_backward",
    "_reshape_alias", "_reshape_copy", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable", "_slow_conv2d_backward",
    "_slow_conv2d_forward", "_softmax", "_softmax_backward_data", "_sparse_addmm",
    "_sparse_coo_tensor_with_dims_and_tensors", "_sparse_log_softmax", "_sparse_mm_reduce_impl",
    "_sparse_softmax", "_sparse_sparse_matmul", "_sparse_sum", "_standard_gamma",
    "_standard_gamma_grad", "_test_autograd_multiple_dispatch",
    "_test_autograd_multiple_dispatch_view", "_test_warn_in_autograd", "_thnn_fused_gru_cell",
    "_thnn_fused_lstm_cell", "_to_copy", "_to_dense", "_to_sparse", "_to_sparse_bsc",
    "_to_sparse_bsr", "_to_sparse_csc", "_to_sparse_csr", "_trilinear", "_unique", "_unique2",
    "_unsafe_index", "_unsafe_index_put", "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate", "_unsafe_view", "_upsample_bicubic2d_aa",
    "_upsample_bicubic2d_aa_backward", "_upsample_bilinear2d_aa",
    "_upsample_bilinear2d_aa_backward", "_upsample_lanczos2d_aa", "_upsample_lanczos2d_aa_backward",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d",
    "_upsample_nearest_exact2d_backward", "_upsample_nearest_exact3d",
    "_upsample_nearest_exact3d_backward", "_weight_norm_interface", "abs", "acos", "acosh",
    "adaptive_max_pool2d", "adaptive_max_pool2d_backward", "adaptive_max_pool3d",
    "adaptive_max_pool3d_backward", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr",
    "affine_grid_generator", "alias", "all", "amax", "amin", "aminmax", "angle", "any",
    "as_strided", "as_strided_scatter", "asin", "asinh", "atan", "atan2", "atanh", "avg_pool2d",
    "avg_pool2d_backward", "avg_pool3d", "avg_pool3d_backward", "baddbmm", "batch_norm_backward",
    "bernoulli", "binary_cross_entropy", "binary_cross_entropy_backward",
    "binary_cross_entropy_with_logits", "block_diag", "bmm", "cat", "cauchy", "ccol_indices",
    "ceil", "celu", "channel_shuffle", "cholesky", "cholesky_inverse", "cholesky_solve", "chunk",
    "clamp", "clamp_max", "clamp_min", "clone", "col2im", "col_indices", "complex", "conj_physical",
    "constant_pad_nd", "conv_depthwise3d", "conv_tbc", "convolution", "convolution_backward",
    "convolution_backward_overrideable", "convolution_overrideable", "copysign", "cos", "cosh",
    "count_nonzero", "crow_indices", "cudnn_affine_grid_generator", "cudnn_batch_norm",
    "cudnn_batch_norm_backward", "cudnn_convolution", "cudnn_convolution_transpose",
    "cudnn_grid_sampler", "cudnn_grid_sampler_backward", "cummax", "cummin", "cumprod", "cumsum",
    "deg2rad", "diag_embed", "diagonal", "diagonal_backward", "diagonal_scatter", "digamma", "dist",
    "div", "dot", "elu", "elu_backward", "embedding", "embedding_dense_backward",
    "embedding_renorm", "eq", "erf", "erfc", "erfinv", "exp", "exp2", "expand", "expm1",
    "exponential", "fake_quantize_per_channel_affine_cachemask",
    "fake_quantize_per_tensor_affine_cachemask", "fill", "flip", "floor", "fmax", "fmin", "fmod",
    "frac", "fractional_max_pool2d", "fractional_max_pool2d_backward", "fractional_max_pool3d",
    "fractional_max_pool3d_backward", "frexp", "gather", "ge", "gelu", "gelu_backward", "geometric",
    "geqrf", "glu", "glu_backward", "grid_sampler_2d", "grid_sampler_2d_backward",
    "grid_sampler_3d", "grid_sampler_3d_backward", "gt", "hardshrink", "hardshrink_backward",
    "hardsigmoid", "hardswish", "hardswish_backward", "hardtanh", "hardtanh_backward",
    "hash_tensor", "histc", "huber_loss", "huber_loss_backward", "hypot", "i0", "igamma", "igammac",
    "im2col", "index", "index_add", "index_copy", "index_fill", "index_put", "index_reduce",
    "index_select", "indices", "isnan", "kthvalue", "ldexp", "le", "leaky_relu",
    "leaky_relu_backward", "lerp", "lgamma", "lift", "lift_fresh", "linalg_cholesky_ex",
    "linalg_cross", "linalg_eig", "linalg_householder_product", "linalg_inv_ex", "linalg_lstsq",
    "linalg_lu", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_matrix_exp", "linalg_pinv",
    "linalg_qr", "linalg_solve_triangular", "linalg_vector_norm", "linear", "linear_backward",
    "log", "log10", "log1p", "log2", "log_normal", "log_sigmoid_backward", "log_sigmoid_forward",
    "logaddexp", "logaddexp2", "logcumsumexp", "logit", "logsumexp", "lstm_mps_backward", "lt",
    "lu_unpack", "masked_fill", "masked_scatter", "masked_scatter_backward", "masked_select",
    "matmul", "max", "max_pool2d", "max_pool2d_backward", "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward", "max_pool3d_with_indices",
    "max_pool3d_with_indices_backward", "max_unpool2d", "max_unpool3d", "maximum", "mean", "median",
    "min", "minimum", "miopen_batch_norm", "miopen_batch_norm_backward", "miopen_convolution",
    "miopen_convolution_transpose", "miopen_ctc_loss", "miopen_depthwise_convolution", "miopen_rnn",
    "miopen_rnn_backward", "mish", "mkldnn_adaptive_avg_pool2d", "mkldnn_convolution",
    "mkldnn_linear", "mkldnn_max_pool2d", "mkldnn_max_pool3d", "mkldnn_rnn_layer",
    "mkldnn_rnn_layer_backward", "mm", "mode", "mps_convolution_backward", "mse_loss",
    "mse_loss_backward", "mul", "multi_margin_loss", "multilabel_margin_loss_forward",
    "multinomial", "mv", "mvlgamma", "nan_to_num", "nanmedian", "nansum", "narrow_copy",
    "native_batch_norm", "native_batch_norm_backward", "native_dropout", "native_dropout_backward",
    "native_group_norm", "native_layer_norm", "native_layer_norm_backward", "ne", "neg",
    "nextafter", "nll_loss2d_backward", "nll_loss2d_forward", "nll_loss_backward",
    "nll_loss_forward", "nonzero", "norm", "normal", "one_hot", "ormqr", "permute", "pixel_shuffle",
    "pixel_unshuffle", "poisson", "polar", "polygamma", "pow", "prod", "put", "rad2deg", "random",
    "reciprocal", "reflection_pad1d", "reflection_pad1d_backward", "reflection_pad2d",
    "reflection_pad2d_backward", "reflection_pad3d", "reflection_pad3d_backward", "relu",
    "remainder", "renorm", "repeat", "replication_pad1d", "replication_pad1d_backward",
    "replication_pad2d", "replication_pad2d_backward", "replication_pad3d",
    "replication_pad3d_backward", "roll", "rot90", "round", "row_indices", "rrelu_with_noise",
    "rrelu_with_noise_backward", "rrelu_with_noise_functional", "rsqrt", "rsub", "scatter",
    "scatter_add", "scatter_reduce", "segment_reduce", "select", "select_backward",
    "select_scatter", "sgn", "sigmoid", "sigmoid_backward", "sign", "silu", "sin", "sinc", "sinh",
    "slice", "slice_backward", "slice_inverse", "slice_scatter", "slow_conv3d_forward",
    "slow_conv_dilated2d", "slow_conv_dilated3d", "slow_conv_transpose2d", "slow_conv_transpose3d",
    "smooth_l1_loss", "smooth_l1_loss_backward", "soft_margin_loss", "soft_margin_loss_backward",
    "softplus", "softplus_backward", "softshrink", "softshrink_backward", "sort",
    "sparse_compressed_tensor", "sparse_mask", "sparse_sampled_addmm", "special_airy_ai",
    "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1",
    "special_chebyshev_polynomial_t", "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w", "special_entr",
    "special_erfcx", "special_hermite_polynomial_h", "special_hermite_polynomial_he", "special_i0e",
    "special_i1", "special_i1e", "special_laguerre_polynomial_l", "special_legendre_polynomial_p",
    "special_log_ndtr", "special_modified_bessel_i0", "special_modified_bessel_i1",
    "special_modified_bessel_k0", "special_modified_bessel_k1", "special_ndtri",
    "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
    "special_shifted_chebyshev_polynomial_t", "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v", "special_shifted_chebyshev_polynomial_w",
    "special_spherical_bessel_j0", "special_xlog1py", "special_zeta", "split", "split_with_sizes",
    "sqrt", "squeeze", "stack", "std", "std_mean", "sub", "sum", "t", "take", "tan", "tanh",
    "tanh_backward", "threshold", "threshold_backward", "to_mkldnn", "to_padded_tensor", "topk",
    "trace", "transpose", "triangular_solve", "tril", "triu", "trunc", "unbind", "unfold",
    "unfold_backward", "uniform", "unique_consecutive", "unique_dim", "unique_dim_consecutive",
    "unsafe_split", "unsafe_split_with_sizes", "unsqueeze", "upsample_bicubic2d",
    "upsample_bicubic2d_backward", "upsample_bilinear2d", "upsample_bilinear2d_backward",
    "upsample_linear1d", "upsample_linear1d_backward", "upsample_nearest1d",
    "upsample_nearest1d_backward", "upsample_nearest2d", "upsample_nearest2d_backward",
    "upsample_nearest3d", "upsample_nearest3d_backward", "upsample_trilinear3d",
    "upsample_trilinear3d_backward", "values", "var", "var_mean", "vdot", "view", "view_as_complex",
    "view_as_real", "where", "xlogy", "zero",
};
// clang-format on

constexpr std::string_view kGradientNote =
    "With GPU tensors it runs on a thread of autograd's own. The forward call of the same sequence "
    "number is what it belongs to; arrows named fwdbwd join them.";

constexpr Row kNodes[] = {
    {"torch::autograd::AccumulateGrad", "gradient stored in .grad",
     "The end of the backward pass for one parameter: its gradient is stored in .grad, or added to "
     "what is there.",
     "no", "none when .grad was empty (at times a copy), else an addition",
     "One a parameter and step. Additions inside it say that gradients of several passes are "
     "summed up, or that .grad is not set to None.",
     "zero-grad-fills"},
    {"torch::autograd::CopySlices", "backward of a write into a view",
     "The gradient of an operation in place on a view, such as x[0] += 1."},
    {"torch::autograd::CopyBackwards", "backward of a copy",
     "The gradient of aten::copy_: the gradient is copied back, to the other device or type."},
    {"torch::autograd::GraphRoot", "start of the backward pass",
     "Where the backward pass begins: it hands out the gradient of the loss itself.", "no", "none"},
    {"CompiledFunctionBackward", "backward pass of compiled code",
     "The backward pass of a function that torch.compile (or AOTAutograd alone) compiled: its "
     "graph runs below it.",
     "", "none itself: that of the compiled graph below it"},
    {"CompiledFunction", "forward pass of compiled code",
     "The forward pass of a function that torch.compile (or AOTAutograd alone) compiled, made one "
     "step for autograd: its graph runs below it.",
     "", "none itself: that of the compiled graph below it"},
    {"CheckpointFunction", "a part of the model under a checkpoint",
     "torch.utils.checkpoint runs a part of the model without keeping what its backward pass will "
     "need.",
     "", "all that happens inside it", "The backward pass runs this part once more.", "recompute"},
    {"CheckpointFunctionBackward", "backward of a checkpoint",
     "The backward pass of torch.utils.checkpoint: the forward pass of that part runs once more "
     "first.",
     "", "", "The forward operators inside it are the price of the memory that was saved.",
     "recompute"},
    {"torch::jit::(anonymous namespace)::DifferentiableGraphBackward",
     "backward of TorchScript code",
     "The backward pass of a piece of code that TorchScript compiled."},
};

// "MaxPool2DWithIndices" and "max_pool2d_with_indices" are one word.
bool same_word(std::string_view camel, std::string_view snake) {
  std::size_t i = 0;
  for (const char c : snake) {
    if (c == '_') continue;
    if (i == camel.size()) return false;
    const char lower =
        camel[i] >= 'A' && camel[i] <= 'Z' ? static_cast<char>(camel[i] + 32) : camel[i];
    if (lower != c) return false;
    ++i;
  }
  return i == camel.size();
}

std::string_view operator_of(std::string_view camel) {
  for (const std::string_view name : kDifferentiable) {
    if (same_word(camel, name)) return name;
    // NllLossBackward0 is the gradient of nll_loss_forward.
    for (const std::string_view end : {"_forward"})
      if (name.ends_with(end) && same_word(camel, name.substr(0, name.size() - end.size())))
        return name;
  }
  return {};
}

// "AddmmBackward0", "MulBackwardAutogradNestedTensor1", "MyFunctionBackward".
bool read_node(std::string_view name, bool is_node, EventName& out) {
  if (const Row* row = find_row(kNodes, name)) {
    fill(name.find("Accumulate") != name.npos || name.find("GraphRoot") != name.npos
             ? EventKind::kAutogradEngine
             : EventKind::kBackward,
         *row, out);
    return true;
  }
  if (const auto rest = after(name, "torch::autograd::CppNode<");
      rest && rest->ends_with('>') && rest->size() > 1) {
    const std::string_view function = rest->substr(0, rest->size() - 1);
    out.kind = EventKind::kBackward;
    out.text = std::string("backward of ").append(shortened(function, 60));
    out.what = "The backward pass of a torch::autograd::Function that a C++ library wrote.";
    out.details.emplace_back("function", std::string(function));
    return true;
  }
  const std::size_t at = name.rfind("Backward");
  if (at == name.npos || at == 0 || !is_identifier(name)) return false;
  const std::string_view base = name.substr(0, at);
  std::string_view suffix = name.substr(at + 8);
  for (const std::string_view key : {"AutogradCUDA", "AutogradNestedTensor"})
    if (const auto rest = after(suffix, key)) suffix = *rest;
  if (suffix.ends_with("_copy")) suffix.remove_suffix(5);
  const bool numbered = is_digits(suffix);
  if (!numbered && !suffix.empty()) return false;
  if (base[0] < 'A' || (base[0] > 'Z' && !is_node)) return false;
  const std::string_view op = operator_of(base);
  // Without a number, it may be a class of the program: class Swish(torch.autograd.Function).
  if (op.empty() && !numbered && !is_node) return false;
  out.kind = EventKind::kBackward;
  out.note = kGradientNote;
  if (!op.empty() && numbered) {
    const std::string_view in_short = operator_in_short(op);
    out.text = std::string("backward of ").append(in_short.empty() ? op : in_short);
    out.what = std::string("Computes the gradients of aten::")
                   .append(op)
                   .append("'s inputs from the gradient of its result.");
    out.details.emplace_back("operator", std::string("aten::").append(op));
    return true;
  }
  out.text = std::string("backward of ").append(shortened(base, 60));
  if (numbered) {
    out.what = std::string("The backward pass of an operator that calls itself ")
                   .append(shortened(base, 80))
                   .append(" here: it computes the gradients of its inputs.");
  } else {
    out.what = std::string("The backward pass of the torch.autograd.Function ")
                   .append(shortened(base, 80));
    // class Gather(torch.autograd.Function) has the name of aten::gather's old node.
    if (!op.empty())
      out.what.append(" or, in traces of old versions of torch, of aten::").append(op);
    out.what += ": it computes the gradients of its inputs.";
  }
  out.details.emplace_back("function", std::string(base));
  return true;
}

}  // namespace

bool read_function_backward(std::string_view name, EventName& out) {
  return name.ends_with("Backward") && read_node(name, true, out);
}

bool read_autograd_name(std::string_view name, EventName& out) {
  if (const auto node = after(name, "autograd::engine::evaluate_function: ")) {
    if (node->empty()) return false;
    EventName inner;
    const bool known = read_node(*node, true, inner);
    out.kind = EventKind::kAutogradEngine;
    out.text = std::string("backward pass runs ").append(known ? inner.text : shortened(*node, 60));
    out.what = std::string(
        "The backward pass takes its next step: the row inside it with the rest of this name.");
    out.gpu_work = "none itself, but for sums of gradients that meet: that of the row inside it";
    out.note = "Its own time, without the row inside, is the engine's bookkeeping.";
    out.details = std::move(inner.details);
    out.details.emplace_back("node", std::string(*node));
    return true;
  }
  return read_node(name, false, out);
}

}  // namespace lanescope::names::events

// The documented Python function of an operator: sorted lists of names from torch 2.13. If
// two are possible, the one that calls the operator: aten::unfold belongs to Tensor.unfold,
// not to functional.unfold.
#include <algorithm>

#include "lanescope/names/events/operator_rows.h"

namespace lanescope::names::events {
namespace {

// clang-format off
constexpr std::string_view kInTorch[] = {
    "abs", "absolute", "acos", "acosh", "adaptive_avg_pool1d", "add", "addbmm", "addcdiv",
    "addcmul", "addmm", "addmv", "addr", "adjoint", "all", "allclose", "amax", "amin", "aminmax",
    "angle", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "argmax", "argmin", "argsort", "argwhere", "as_strided", "as_strided_scatter",
    "asin", "asinh", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d",
    "avg_pool1d", "baddbmm", "bartlett_window", "bernoulli", "bilinear", "bincount", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "blackman_window", "block_diag", "bmm", "broadcast_tensors", "broadcast_to", "bucketize",
    "can_cast", "cartesian_prod", "cat", "cdist", "ceil", "chain_matmul", "channel_shuffle",
    "cholesky", "cholesky_inverse", "cholesky_solve", "chunk", "clamp", "clip", "clone",
    "column_stack", "combinations", "complex", "concat", "concatenate", "conj", "conj_physical",
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "copysign", "corrcoef", "cos", "cosh", "cosine_similarity", "count_nonzero",
    "cov", "cross", "cummax", "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "deg2rad",
    "dequantize", "det", "diag", "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "diff",
    "digamma", "dist", "div", "divide", "dot", "dsplit", "dstack", "einsum", "empty", "empty_like",
    "empty_permuted", "empty_strided", "eq", "equal", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "eye", "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "fix",
    "flatten", "flip", "fliplr", "flipud", "float_power", "floor", "floor_divide", "fmax", "fmin",
    "fmod", "frac", "frexp", "from_file", "full", "full_like", "gather", "gcd", "ge", "geqrf",
    "ger", "gradient", "greater", "greater_equal", "gt", "hamming_window", "hann_window",
    "hardshrink", "hash_tensor", "heaviside", "histc", "histogram", "histogramdd", "hsplit",
    "hspmm", "hstack", "hypot", "i0", "igamma", "igammac", "imag", "index_add", "index_copy",
    "index_reduce", "index_select", "inner", "inverse", "is_complex", "is_conj",
    "is_floating_point", "is_inference", "is_nonzero", "isclose", "isfinite", "isin", "isinf",
    "isnan", "isneginf", "isposinf", "isreal", "istft", "kaiser_window", "kron", "kthvalue", "lcm",
    "ldexp", "le", "lerp", "less", "less_equal", "lgamma", "linspace", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "logcumsumexp", "logdet", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logit", "logspace", "logsumexp", "lt", "lu_solve", "lu_unpack",
    "masked_select", "matmul", "matrix_exp", "matrix_power", "max", "maximum", "mean", "median",
    "meshgrid", "min", "minimum", "mm", "mode", "moveaxis", "movedim", "msort", "mul",
    "multinomial", "multiply", "mv", "mvlgamma", "nan_to_num", "nanmean", "nanmedian",
    "nanquantile", "nansum", "narrow", "native_channel_shuffle", "ne", "neg", "negative",
    "nextafter", "nonzero", "nonzero_static", "norm", "normal", "not_equal", "numel", "ones",
    "ones_like", "orgqr", "ormqr", "outer", "pairwise_distance", "pdist", "permute", "pinverse",
    "pixel_shuffle", "pixel_unshuffle", "poisson", "polar", "polygamma", "positive", "pow", "prelu",
    "prod", "promote_types", "qr", "quantile", "quantize_per_channel", "quantize_per_tensor",
    "quantize_per_tensor_dynamic", "quantized_batch_norm", "quantized_max_pool1d",
    "quantized_max_pool2d", "rad2deg", "rand", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "randperm", "range", "ravel", "real", "reciprocal", "remainder", "renorm",
    "repeat_interleave", "reshape", "resolve_conj", "resolve_neg", "result_type", "roll", "rot90",
    "round", "rsqrt", "scatter", "scatter_add", "scatter_reduce", "searchsorted", "segment_reduce",
    "select", "select_scatter", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh",
    "slice_scatter", "slogdet", "smm", "softmax", "sort", "sparse_bsc_tensor", "sparse_bsr_tensor",
    "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor",
    "split", "sqrt", "square", "squeeze", "sspaddmm", "stack", "std", "std_mean", "stft", "sub",
    "subtract", "sum", "svd", "swapaxes", "swapdims", "t", "take", "take_along_dim", "tan", "tanh",
    "tensor_split", "tensordot", "tile", "topk", "trace", "transpose", "trapezoid", "trapz",
    "triangular_solve", "tril", "tril_indices", "triu", "triu_indices", "true_divide", "trunc",
    "unbind", "unflatten", "unique_consecutive", "unsafe_chunk", "unsafe_split", "unsqueeze",
    "vander", "var", "var_mean", "vdot", "view_as_complex", "view_as_real", "vsplit", "vstack",
    "where", "xlogy", "zeros", "zeros_like",
};
constexpr std::string_view kInFunctional[] = {
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "alpha_dropout", "avg_pool2d", "avg_pool3d", "batch_norm",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_",
    "cosine_embedding_loss", "ctc_loss", "dropout", "elu", "elu_", "embedding", "embedding_bag",
    "feature_alpha_dropout", "fractional_max_pool2d", "fractional_max_pool3d", "gelu", "glu",
    "group_norm", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "hinge_embedding_loss",
    "huber_loss", "instance_norm", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_",
    "linear", "log_softmax", "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices",
    "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices",
    "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "nll_loss", "one_hot", "pad", "poisson_nll_loss", "relu", "relu6",
    "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softplus", "softshrink", "threshold", "threshold_",
    "triplet_margin_loss",
};
constexpr std::string_view kInTensor[] = {
    "abs_", "absolute_", "acos_", "acosh_", "add_", "addbmm_", "addcdiv_", "addcmul_", "addmm_",
    "addmv_", "addr_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan2_", "arctan_",
    "arctanh_", "as_strided_", "asin_", "asinh_", "atan2_", "atan_", "atanh_", "baddbmm_",
    "bernoulli_", "bitwise_and_", "bitwise_left_shift_", "bitwise_not_", "bitwise_or_",
    "bitwise_right_shift_", "bitwise_xor_", "cauchy_", "ceil_", "chalf", "clamp_", "clip_",
    "coalesce", "col_indices", "conj_physical_", "contiguous", "copy_", "copysign_", "cos_",
    "cosh_", "crow_indices", "cumprod_", "cumsum_", "deg2rad_", "dense_dim", "detach", "detach_",
    "digamma_", "dim", "div_", "divide_", "eq_", "erf_", "erfc_", "erfinv_", "exp2_", "exp_",
    "expand", "expand_as", "expm1_", "exponential_", "fill_", "fill_diagonal_", "fix_",
    "float_power_", "floor_", "floor_divide_", "fmod_", "frac_", "gcd_", "ge_", "geometric_",
    "get_device", "greater_", "greater_equal_", "gt_", "heaviside_", "hypot_", "i0_", "igamma_",
    "igammac_", "index_add_", "index_copy_", "index_fill", "index_fill_", "index_put",
    "index_put_", "index_reduce_", "indices", "int_repr", "is_coalesced", "is_contiguous",
    "is_leaf", "is_neg", "is_pinned", "is_set_to", "is_signed", "item", "lcm_", "ldexp_", "le_",
    "lerp_", "less_", "less_equal_", "lgamma_", "log10_", "log1p_", "log2_", "log_", "log_normal_",
    "logical_and_", "logical_not_", "logical_or_", "logical_xor_", "logit_", "lt_", "mH", "mT",
    "masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_", "mul_", "multiply_",
    "mvlgamma_", "nan_to_num_", "ne_", "neg_", "negative_", "new_empty", "new_empty_strided",
    "new_full", "new_ones", "new_zeros", "nextafter_", "normal_", "not_equal_", "pin_memory",
    "polygamma_", "pow_", "put", "put_", "q_per_channel_axis", "q_per_channel_scales",
    "q_per_channel_zero_points", "q_scale", "q_zero_point", "qscheme", "rad2deg_", "random_",
    "reciprocal_", "record_stream", "remainder_", "renorm_", "repeat", "requires_grad_",
    "reshape_as", "resize_", "resize_as_", "retain_grad", "retains_grad", "round_", "rsqrt_",
    "scatter_", "scatter_add_", "scatter_reduce_", "set_", "sgn_", "sigmoid_", "sign_", "sin_",
    "sinc_", "sinh_", "size", "sparse_dim", "sparse_mask", "sparse_resize_",
    "sparse_resize_and_clear_", "sqrt_", "square_", "squeeze_", "storage_offset", "stride", "sub_",
    "subtract_", "sum_to_size", "swapaxes_", "swapdims_", "t_", "tan_", "tanh_", "to", "to_dense",
    "to_mkldnn", "to_padded_tensor", "to_sparse", "to_sparse_bsc", "to_sparse_bsr", "to_sparse_csc",
    "to_sparse_csr", "transpose_", "tril_", "triu_", "true_divide_", "trunc_", "type_as",
    "unfold", "uniform_", "unsqueeze_", "values", "view", "view_as", "xlogy_", "zero_",
};
constexpr std::string_view kInLinalg[] = {
    "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve",
    "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm",
    "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve",
    "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander",
    "vecdot", "vector_norm",
};
constexpr std::string_view kInFft[] = {
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
    "rfftfreq", "rfftn",
};
constexpr std::string_view kInSpecial[] = {
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
    "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr",
    "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln",
    "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
    "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy",
    "zeta",
};
// clang-format on

static_assert(std::ranges::is_sorted(kInTorch) && std::ranges::is_sorted(kInFunctional) &&
              std::ranges::is_sorted(kInTensor) && std::ranges::is_sorted(kInLinalg) &&
              std::ranges::is_sorted(kInFft) && std::ranges::is_sorted(kInSpecial));

template <typename List>
bool contains(const List& sorted, std::string_view name) {
  return std::binary_search(std::begin(sorted), std::end(sorted), name);
}

}  // namespace

PythonFunction documented_function(std::string_view name) {
  if (contains(kInTorch, name)) return {"torch.", name};
  if (contains(kInFunctional, name)) return {"torch.nn.functional.", name};
  if (contains(kInTensor, name)) return {"torch.Tensor.", name};
  const auto below = [name](std::string_view prefix, const auto& list) {
    return name.starts_with(prefix) && contains(list, name.substr(prefix.size()));
  };
  if (below("linalg_", kInLinalg)) return {"torch.linalg.", name.substr(7)};
  if (below("fft_", kInFft)) return {"torch.fft.", name.substr(4)};
  if (below("special_", kInSpecial)) return {"torch.special.", name.substr(8)};
  return {};
}

}  // namespace lanescope::names::events

// Convolutions and their helpers: cuDNN's C++ kernels, MIOpen's assembly, CK's templates.
#include <span>

#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

struct ConvolutionRow {
  std::string_view start;
  const char *kind, *operation, *variant;
};

// cuDNN's functions; older versions put them in no namespace.
constexpr ConvolutionRow kCudnn[] = {
    {"dgrad_engine", "convolution", "convolution dgrad", ""},
    {"dgrad_alg1_engine", "convolution", "convolution dgrad", ""},
    {"dgrad2d_", "convolution", "convolution dgrad", ""},
    {"wgrad_alg0_engine", "convolution", "convolution wgrad", ""},
    {"wgrad_alg1_engine", "convolution", "convolution wgrad", ""},
    {"wgrad2d_", "convolution", "convolution wgrad", ""},
    {"reduce_wgrad_nchw_helper", "convolution", "convolution wgrad, sum", ""},
    {"implicit_convolve_sgemm", "convolution", "convolution fprop", "implicit GEMM"},
    {"explicit_convolve_sgemm", "convolution", "convolution fprop", "explicit GEMM"},
    {"precomputed_convolve_sgemm", "convolution", "convolution fprop", "precomputed GEMM"},
    {"winogradForwardData", "convolution", "convolution, data transform", "winograd"},
    {"winogradForwardFilter", "convolution", "convolution, filter transform", "winograd"},
    {"winogradForwardOutput", "convolution", "convolution, output transform", "winograd"},
    {"winogradWgradData", "convolution", "convolution wgrad, data transform", "winograd"},
    {"winogradWgradDelta", "convolution", "convolution wgrad, delta transform", "winograd"},
    {"winogradWgradOutput", "convolution", "convolution wgrad, output transform", "winograd"},
    {"generateWinogradTilesKernel", "convolution", "convolution, filter transform", "winograd"},
    {"im2col4d_kernel", "convolution", "im2col", ""},
    {"conv2d_grouped_direct_kernel", "convolution", "grouped convolution", "direct"},
    {"conv2d_c1_k1_", "convolution", "depthwise convolution", "direct"},
    {"computeOffsetsKernel", "convolution", "convolution, offsets", ""},
    {"computeWgradSplitKOffsetsKernel", "convolution", "convolution wgrad, offsets", ""},
    {"computeWgradBOffsetsKernel", "convolution", "convolution wgrad, offsets", ""},
    {"computeBOffsetsKernel", "convolution", "convolution, offsets", ""},
    {"fft2d_r2c", "fft", "FFT 2D real to complex", ""},
    {"fft2d_c2r", "fft", "FFT 2D complex to real", ""},
    {"fft1d_r2c", "fft", "FFT 1D real to complex", ""},
    {"fft1d_c2r", "fft", "FFT 1D complex to real", ""},
    {"pointwise_mult_and_sum_complex", "fft", "multiply and sum complex", ""},
    {"flip_filter", "convolution", "flip filter", ""},
    {"nchwToNhwcKernel", "copy", "layout NCHW to NHWC", ""},
    {"nhwcToNchwKernel", "copy", "layout NHWC to NCHW", ""},
    {"nchwToFoldedNhwcKernel", "copy", "layout NCHW to folded NHWC", ""},
    {"foldedNhwcToNchwKernel", "copy", "layout folded NHWC to NCHW", ""},
    {"nhwcAddPaddingKernel", "copy", "pad NHWC", ""},
    {"scalePackedTensor_kernel", "elementwise", "scale tensor", ""},
    {"scaleTensor", "elementwise", "scale tensor", ""},
    {"setTensor", "elementwise", "set tensor", ""},
    {"bn_fw_tr_", "normalization", "batch norm", ""},
    {"bn_fw_inf_", "normalization", "batch norm, inference", ""},
    {"bn_bw_", "normalization", "batch norm backward", ""},
    {"pooling_fw_", "pooling", "pool", ""},
    {"pooling_bw_", "pooling", "pool backward", ""},
    {"softmax_fw", "softmax", "softmax", ""},
    {"softmax_bw", "softmax", "softmax backward", ""},
    {"LSTM_elementWise", "rnn", "LSTM cell", ""},
    {"GRU_elementWise", "rnn", "GRU cell", ""},
    {"RNN_", "rnn", "RNN", ""},
    {"op_generic_tensor_kernel", "elementwise", "tensor operation", ""},
    {"op_tensor_kernel", "elementwise", "tensor operation", ""},
    {"add_tensor_kernel", "elementwise", "add tensor", ""},
    {"activation_fw", "elementwise", "activation", ""},
    {"activation_bw", "elementwise", "activation backward", ""},
};
// Without a namespace, only names that no other project has.
constexpr std::string_view kCudnnAlone[] = {"dgrad_engine",
                                            "dgrad_alg1_engine",
                                            "wgrad_alg0_engine",
                                            "wgrad_alg1_engine",
                                            "implicit_convolve_sgemm",
                                            "explicit_convolve_sgemm",
                                            "fft2d_r2c",
                                            "fft2d_c2r",
                                            "fft1d_r2c",
                                            "fft1d_c2r",
                                            "precomputed_convolve_sgemm",
                                            "pointwise_mult_and_sum_complex",
                                            "flip_filter",
                                            "nchwToNhwcKernel",
                                            "nhwcToNchwKernel",
                                            "nhwcAddPaddingKernel",
                                            "dgrad2d_",
                                            "wgrad2d_"};

bool cudnn(const ParsedText& name, KernelName& out) {
  const std::string_view scope = name.cxx.scope, base = name.cxx.base;
  const bool inside = scope.starts_with("cudnn") || scope.starts_with("cask_cudnn") ||
                      scope.starts_with("cask_plugin__5x_cudnn") ||
                      scope.starts_with("cask__5x_cudnn");
  if (!inside && !scope.empty()) return false;
  for (const auto& [start, kind, operation, variant] : kCudnn) {
    if (!base.starts_with(start)) continue;
    bool alone = false;
    for (const auto word : kCudnnAlone) alone = alone || word == start;
    if (!inside && !alone) continue;
    out.library = "cuDNN";
    out.kind = kind;
    out.operation = operation;
    out.variant = variant;
    out.input_type = first_element_type(name.cxx.arguments);
    return true;
  }
  if (!inside) return false;
  out.library = "cuDNN";
  out.operation = std::string(base.substr(0, 60));
  return true;
}

// cudnn_generated_fort_native_..., without the attention kernels.
bool cudnn_generated(const ParsedText& name, KernelName& out) {
  if (!name.plain.starts_with("cudnn_generated")) return false;
  out.library = "cuDNN";
  out.operation = "generated kernel";
  return true;
}

// igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x64x32_wt32x32x8_...: MIOpen's implicit GEMM in assembly.
// wrw: the gradient of the weights.
bool miopen_igemm(const ParsedText& name, KernelName& out) {
  if (!name.plain.starts_with("igemm_")) return false;
  const auto words = split_words(name.plain);
  if (words.size() < 6 || !words[2].starts_with("gtc")) return false;
  out.library = "MIOpen";
  out.kind = "convolution";
  out.variant = "implicit GEMM";
  out.operation = words[1] == "fwd"   ? "convolution fprop"
                  : words[1] == "bwd" ? "convolution dgrad"
                  : words[1] == "wrw" ? "convolution wgrad"
                                      : "convolution";
  for (const auto word : words) {
    if (out.input_type.empty()) out.input_type = element_type_of_word(word);
    if (word.starts_with("bt") && !out.tile) {
      const auto sizes = parse_sizes(word.substr(2));
      if (sizes.size() == 3) out.tile = KernelTile{sizes[0], sizes[1], sizes[2]};
    }
    if (word == "gkgs") out.split_k = true;
  }
  return true;
}

constexpr ConvolutionRow kMiopen[] = {
    {"MIOpenBatchNormFwd", "normalization", "batch norm", ""},
    {"MIOpenBatchNormBwd", "normalization", "batch norm backward", ""},
    {"MIOpenBatchNormActivFwd", "normalization", "batch norm + activation", ""},
    {"miopenSp3AsmConv", "convolution", "convolution", "winograd"},
    {"miopenGcnAsmConv", "convolution", "convolution", "assembly"},
    {"MIOpenConvUni", "convolution", "convolution", "direct"},
    {"mloPooling", "pooling", "pool", ""},
    {"MIOpenSoftmax", "softmax", "softmax", ""},
    {"SubTensorOpWithScalar", "elementwise", "tensor with scalar", ""},
    {"SubTensorOpWithCastTensor", "elementwise", "tensor with cast", ""},
    {"SubTensorOpWithSubTensor", "copy", "copy tensor", ""},
    {"Op1dTensor", "elementwise", "tensor operation", ""},
    {"Op2dTensor", "elementwise", "tensor operation", ""},
    {"Op3dTensor", "elementwise", "tensor operation", ""},
    {"Op4dTensor", "elementwise", "tensor operation", ""},
    {"OpTensor", "elementwise", "tensor operation", ""},
    {"batched_transpose_", "copy", "batched transpose", ""},
    {"gridwise_", "convolution", "convolution", "CK"},
    {"naive_conv", "convolution", "convolution", "naive"},
    {"Im2d2Col", "convolution", "im2col", ""},
    {"Im2Col", "convolution", "im2col", ""},
};

bool miopen(const ParsedText& name, KernelName& out) {
  if (miopen_igemm(name, out)) return true;
  if (!name.cxx.scope.empty()) return false;
  for (const auto& [start, kind, operation, variant] : kMiopen) {
    if (!name.cxx.base.starts_with(start)) continue;
    out.library = "MIOpen";
    out.kind = kind;
    out.operation = operation;
    out.variant = variant;
    for (const auto word : split_words(name.plain.substr(0, 200)))
      if (const auto type = element_type_of_word(word); !type.empty()) out.input_type = type;
    return true;
  }
  return false;
}

// ck::tensor_operation::device::kernel_grouped_conv_fwd_xdl_cshuffle_v3<...>, ck_tile::kentry<1,
// ck_tile::Rmsnorm2dFwd<...>>.
bool composable_convolution(const ParsedText& name, KernelName& out) {
  const std::string_view scope = name.cxx.scope;
  if (!scope.starts_with("ck::") && scope != "ck" && !scope.starts_with("ck_tile")) return false;
  out.library = "CK";
  std::string_view what = name.cxx.base;
  if (what == "kentry" && name.cxx.arguments.size() > 1)
    what = split_scopes(name.cxx.arguments[1]).back();
  what = without_brackets(what);
  const std::string small = lower(what.substr(0, 200));
  if (contains(small, "conv")) {
    out.kind = "convolution";
    out.operation = contains(small, "bwd_weight") ? "convolution wgrad"
                    : contains(small, "bwd_data") ? "convolution dgrad"
                    : contains(small, "fwd")      ? "convolution fprop"
                                                  : "convolution";
    if (contains(small, "grouped")) out.operation.insert(0, "grouped ");
  } else if (contains(small, "gemm")) {
    out.kind = "gemm";
    out.operation = contains(small, "grouped")   ? "grouped GEMM"
                    : contains(small, "batched") ? "batched GEMM"
                                                 : "GEMM";
  } else if (contains(small, "rmsnorm")) {
    out.kind = "normalization";
    out.operation = "RMS norm";
  } else if (contains(small, "layernorm")) {
    out.kind = "normalization";
    out.operation = "layer norm";
  } else {
    out.operation = std::string(what.substr(0, 60));
  }
  return true;
}

}  // namespace

bool read_convolution_name(const ParsedText& name, KernelName& out) {
  return cudnn(name, out) || cudnn_generated(name, out) || miopen(name, out) ||
         composable_convolution(name, out);
}

}  // namespace lanescope::names::kernels

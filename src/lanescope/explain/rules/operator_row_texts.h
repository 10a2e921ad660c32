// Where the advice of the table of operators is documented.
#pragma once

namespace lanescope::explain::rules {

inline constexpr char kIndexing[] = "https://docs.pytorch.org/docs/stable/tensor_view.html";
inline constexpr char kLinalg[] = "https://docs.pytorch.org/docs/stable/linalg.html";
inline constexpr char kCdist[] = "https://docs.pytorch.org/docs/stable/generated/torch.cdist.html";
inline constexpr char kInverse[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv.html";
inline constexpr char kPseudoinverse[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.linalg.pinv.html";
inline constexpr char kTorch[] = "https://docs.pytorch.org/docs/stable/torch.html";
inline constexpr char kParametrize[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.cached.html";
inline constexpr char kEmbedding[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html";
inline constexpr char kLstm[] = "https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html";
inline constexpr char kIndexAdd[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html";
inline constexpr char kAttention[] =
    "https://docs.pytorch.org/docs/stable/generated/"
    "torch.nn.functional.scaled_dot_product_attention.html";
inline constexpr char kCufft[] =
    "https://docs.nvidia.com/cuda/cufft/index.html#accuracy-and-performance";
inline constexpr char kTrace[] = "https://docs.pytorch.org/docs/stable/generated/torch.trace.html";
inline constexpr char kKron[] = "https://docs.pytorch.org/docs/stable/generated/torch.kron.html";
inline constexpr char kBincount[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.bincount.html";
inline constexpr char kPinned[] = "https://docs.pytorch.org/docs/stable/data.html#memory-pinning";
inline constexpr char kDeterministic[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html";
inline constexpr char kSparse[] = "https://docs.pytorch.org/docs/stable/sparse.html";
inline constexpr char kConv2d[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html";
inline constexpr char kCosine[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cosine_similarity.html";
inline constexpr char kBackends[] = "https://docs.pytorch.org/docs/stable/backends.html";
inline constexpr char kOptimizers[] = "https://docs.pytorch.org/docs/stable/optim.html";
inline constexpr char kFlatten[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.RNNBase.html";
inline constexpr char kCompile[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.compile.html";
inline constexpr char kFold[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.fuse_conv_bn_eval.html";
inline constexpr char kGroupNorm[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.GroupNorm.html";
inline constexpr char kLayerNorm[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html";
inline constexpr char kLinear[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear.html";
inline constexpr char kConv1d[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv1d.html";
inline constexpr char kBilinearPage[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.Bilinear.html";
inline constexpr char kCrossEntropy[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html";
inline constexpr char kMatmul[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.linalg.multi_dot.html";
inline constexpr char kRepeats[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html";
inline constexpr char kAffineGrid[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.affine_grid.html";
inline constexpr char kEmbeddingBag[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.EmbeddingBag.html";
inline constexpr char kFft[] = "https://docs.pytorch.org/docs/stable/generated/torch.fft.rfft.html";
inline constexpr char kEinsumPage[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.einsum.html";
inline constexpr char kIndexSelect[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.index_select.html";
inline constexpr char kLogSumExp[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.logsumexp.html";
inline constexpr char kArgmax[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.argmax.html";

// Texts of rows in more than one file.
inline constexpr char kAcrossRows[] =
    "reads along a dimension whose elements lie far apart in memory";
inline constexpr char kThatDimensionLast[] =
    "Make the tensor with that dimension last; if it never changes: once, before";
inline constexpr char kThatDimensionLastMore[] =
    "each element is in another cache line or sector; store the tensor with the dimension last "
    "that the operator goes along, or choose the other dimension where the model allows it";

}  // namespace lanescope::explain::rules

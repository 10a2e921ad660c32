// The least work for an operator's recorded inputs, which a roofline compares with its time.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lanescope::analysis {

enum class OperatorKind : std::uint8_t {
  kGemm,
  kConvolution,
  kAttention,
  kNormalisation,
  kSoftmax,
  kElementwise,
  kReduction,
  kCopy,
  kIndexing,  // gathers, scatters and resampling: where the data lies decides their speed
};
const char* operator_kind_name(OperatorKind kind);  // "GEMM", "convolution", ...

// The texts of one call's arguments, JSON as in the file; empty: missing.
struct OperatorCall {
  std::string_view name;  // "aten::mm"
  std::string_view dims, types, strides, concrete;
};

// C[m, n] = A[m, k] B[k, n], `batch` times.
struct GemmShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  // How many elements apart neighbouring rows (or columns) of A, B and C are; 0: the elements of a
  // row are not neighbours, so the library must copy. C counts as dense, as torch allocates it.
  std::array<std::int64_t, 3> leading{};
  bool operator==(const GemmShape&) const = default;
};

// Defined in docs/definitions/kernels.md#roofline. A multiply-add is two operations; bytes count
// every input and output once, and repeated elements of an expanded tensor once.
struct OperatorWork {
  OperatorKind kind = OperatorKind::kElementwise;
  double flops = 0, bytes = 0;
  std::string_view type;  // of the first tensor that is computed with: "f32", "bf16", "f8e4m3", ...
  std::optional<GemmShape> gemm;
  bool is_convolution_backward = false, is_attention_backward = false;
};

// Nothing: the operator has no model, or its inputs are missing, negative or wrong for the
// operator. Front ends (aten::conv2d, scaled_dot_product_attention) have no model; the operators
// inside them have one. Linear in the texts; any thread.
std::optional<OperatorWork> compute_operator_work(const OperatorCall& call);

// Short name and size of a type that torch writes ("float", "c10::BFloat16"). Size 0: not a
// tensor of numbers.
struct ElementType {
  std::string_view name;
  std::int64_t size_bytes = 0;
};
ElementType element_type(std::string_view torch_type);

}  // namespace lanescope::analysis

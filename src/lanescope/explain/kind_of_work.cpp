#include "lanescope/explain/kind_of_work.h"

#include <map>

#include "lanescope/names/kernel_name.h"

namespace lanescope::explain {

std::string kind_of_work(const Trace& trace, SliceId work) {
  if (trace.kind(work) != CategoryKind::kKernel) return "copies and fills";
  const names::KernelName kernel_name = names::parse_kernel_name(trace.name(work));
  static const std::map<std::string, std::string> kWords = {
      {"gemm", "matrix products"},     {"convolution", "convolutions"},
      {"attention", "attention"},      {"normalization", "normalization"},
      {"fused", "fused kernels"},      {"reduction", "reductions"},
      {"indexing", "indexing"},        {"optimizer", "optimizer"},
      {"collective", "communication"}, {"fft", "FFT"},
      {"copy", kCastsAndCopies},       {"memset", "copies and fills"}};
  if (kernel_name.kind == "elementwise")
    return kernel_name.operation == "copy" ? kCastsAndCopies : "elementwise";
  const auto words = kWords.find(kernel_name.kind);
  return words == kWords.end() ? "" : words->second;
}

}  // namespace lanescope::explain

#include "lanescope/explain/kind_of_work.h"

#include <map>

#include "lanescope/explain/rules/parsed_kernel_names.h"

namespace lanescope::explain {

std::string kind_of_work(const Facts& facts, SliceId work) {
  if (facts.trace->kind(work) != CategoryKind::kKernel) return "copies and fills";
  const names::KernelName& name = rules::KernelNames(facts).of(work);
  static const std::map<std::string, std::string> kWords = {
      {"gemm", "matrix products"},     {"convolution", "convolutions"},
      {"attention", "attention"},      {"normalization", "normalization"},
      {"fused", "fused kernels"},      {"reduction", "reductions"},
      {"indexing", "indexing"},        {"optimizer", "optimizer"},
      {"collective", "communication"}, {"fft", "FFT"},
      {"copy", kCastsAndCopies},       {"memset", "copies and fills"}};
  if (name.kind == "elementwise") return name.operation == "copy" ? kCastsAndCopies : "elementwise";
  const auto words = kWords.find(name.kind);
  return words == kWords.end() ? "" : words->second;
}

}  // namespace lanescope::explain

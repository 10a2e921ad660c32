// Kernels that talk to other devices. NCCL and RCCL:
//   ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...)   operation, reduction, type, algorithm, protocol
//   ncclKernel_AllReduce_RING_LL_Sum_float(...)     before NCCL 2.19
//   ncclDevKernel_SendRecv(...), ncclDevKernel_Generic(...)
// Source: src/device/generate.py of NCCL. One kernel can serve several operations: the name says
// which one it was built for, which is not always what it did.
#include <algorithm>
#include <utility>

#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool read_nccl(std::string_view plain, KernelName& out) {
  std::string_view rest = plain;
  for (const std::string_view prefix : {"ncclDevKernelDebug_", "ncclDevKernel_", "ncclKernel_"}) {
    if (!rest.starts_with(prefix)) continue;
    rest.remove_prefix(prefix.size());
    break;
  }
  if (rest.size() == plain.size()) return false;
  out.library = "NCCL";
  out.kind = "collective";
  const auto words = split_words(rest);
  out.operation = words[0] == "Generic" ? "generic" : std::string(words[0]);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (one_of(word, {"RING", "TREE", "NVLS", "PAT", "COLLNET"})) {
      out.algorithm = lower(word);
      while (i + 1 < words.size() && one_of(words[i + 1], {"TREE", "DIRECT", "CHAIN"}))
        out.algorithm.append(" ").append(lower(words[++i]));
    } else if (one_of(word, {"LL", "LL128", "SIMPLE"})) {
      out.protocol = word == "SIMPLE" ? "simple" : std::string(word);
    } else if (one_of(word, {"Sum", "Prod", "Min", "Max", "MinMax", "PreMulSum", "SumPostDiv"})) {
      out.reduction = lower(word);
    } else if (const auto type = element_type_of_word(word); !type.empty()) {
      out.input_type = type;
    }
  }
  // Kernels that only move data have a type in their name, but it means bytes.
  if (one_of(out.operation, {"SendRecv", "AllGather", "Broadcast"})) {
    out.reduction.clear();
    out.input_type.clear();
  }
  return true;
}

struct CollectiveRow {
  std::string_view part;  // in the function's name
  const char* operation;
};
constexpr CollectiveRow kCollectives[] = {
    {"all_reduce", "AllReduce"},
    {"allreduce", "AllReduce"},
    {"cross_device_reduce", "AllReduce"},
    {"reduce_scatter", "ReduceScatter"},
    {"reducescatter", "ReduceScatter"},
    {"all_gather", "AllGather"},
    {"allgather", "AllGather"},
    {"all_to_all", "AllToAll"},
    {"alltoall", "AllToAll"},
};

}  // namespace

bool read_collective_name(const ParsedText& name, KernelName& out) {
  if (read_nccl(name.plain, out)) return true;
  const std::string_view base = name.cxx.base, scope = name.cxx.scope;
  if (base.starts_with("triton_")) return false;
  if (scope.starts_with("deep_ep") || contains(scope, "::ep::internode") ||
      contains(scope, "::ep::intranode")) {
    out.library = "DeepEP";
    out.kind = "collective";
    out.operation = std::string(base);
    return true;
  }
  const std::string small = lower(base.substr(0, 200));
  for (const auto& [part, operation] : kCollectives) {
    const std::size_t at = small.find(part);
    if (at == small.npos) continue;
    out.kind = "collective";
    out.operation = operation;
    if (contains(small, "fusion") || contains(small, "fused")) out.variant = "fused";
    for (const std::string_view how : {"multimem", "one_shot", "two_shot", "1stage", "2stage"})
      if (contains(small, how)) out.algorithm = how;
    out.library =
        scope.starts_with("vllm")                                 ? "vLLM"
        : scope.starts_with("aiter")                              ? "AITER"
        : scope.starts_with("sglang") || scope.starts_with("sgl") ? "SGLang"
        : scope.starts_with("flashinfer")                         ? "FlashInfer"
        : scope.starts_with("tensorrt_llm")                       ? "TensorRT-LLM"
        : out.algorithm == "multimem" || out.algorithm == "one_shot" || out.algorithm == "two_shot"
            ? (contains(base, "_kernel") ? "torch symmetric memory" : "")
            : "";
    std::replace(out.algorithm.begin(), out.algorithm.end(), '_', '-');
    out.input_type = first_element_type(name.cxx.arguments);
    return true;
  }
  return false;
}

}  // namespace lanescope::names::kernels

// Projects whose kernels are known by their namespace or by a unique function name. A row gives the
// project and the operation. Types are read if the first element type among the template arguments
// is the input's.
#include <algorithm>
#include <span>

#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

struct Library {
  std::string_view scope, name;  // the start of the namespace
};
constexpr Library kLibraries[] = {
    {"vllm", "vLLM"},
    {"sgl_hip", "SGLang"},
    {"sgl_kernel", "SGLang"},
    {"sglang", "SGLang"},
    {"sgl", "SGLang"},
    {"flashinfer", "FlashInfer"},
    {"deep_gemm", "DeepGEMM"},
    {"aiter", "AITER"},
    {"fbgemm_gpu", "FBGEMM"},
    {"transformer_engine", "TransformerEngine"},
    {"tensorrt_llm", "TensorRT-LLM"},
    {"moe::dev", "TensorRT-LLM"},
    {"rocprim", "rocPRIM"},
    {"hipcub", "hipCUB"},
    {"thrust", "Thrust"},
    {"cub", "CUB"},
    {"at_cuda_detail::cub", "CUB"},
    {"cublasLt", "cuBLASLt"},
    {"cublas", "cuBLAS"},
    {"cusparse", "cuSPARSE"},
    {"cusolver", "cuSOLVER"},
    {"cutlass", "CUTLASS"},
    {"apex", "Apex"},
    {"xformers", "xFormers"},
    {"c10d", "torch distributed"},
    {"torch", "torch"},
    {"caffe2", "Caffe2"},
    {"mamba", "Mamba"},
    {"bitsandbytes", "bitsandbytes"},
    {"marlin", "Marlin"},
    {"machete", "Machete"},
    {"quip", "QuIP"},
};

struct LibraryRow {
  std::string_view part;  // of the function's name, in small letters, "_" between words
  const char *kind, *operation;
};
// Function names in any project above. The first matching row counts.
constexpr LibraryRow kLibraryOperations[] = {
    {"fused_add_rms_norm", "normalization", "add + RMS norm"},
    {"add_rmsnorm_quant", "normalization", "add + RMS norm + quantize"},
    {"fusedaddrmsnorm", "normalization", "add + RMS norm"},
    {"rms_norm", "normalization", "RMS norm"},
    {"rmsnorm", "normalization", "RMS norm"},
    {"layer_norm", "normalization", "layer norm"},
    {"layernorm", "normalization", "layer norm"},
    {"ln_fwd", "normalization", "layer norm"},
    {"ln_bwd", "normalization", "layer norm backward"},
    {"rotary_embedding", "embedding", "rotary embedding"},
    {"batchqkapplyrotary", "embedding", "rotary embedding"},
    {"rotary", "embedding", "rotary embedding"},
    {"silu_and_mul", "elementwise", "SiLU and multiply"},
    {"gelu_and_mul", "elementwise", "GELU and multiply"},
    {"act_and_mul", "elementwise", "activation and multiply"},
    {"reshape_and_cache", "cache", "write KV cache"},
    {"store_kvcache", "cache", "write KV cache"},
    {"store_kv_cache", "cache", "write KV cache"},
    {"set_kv_buffer", "cache", "write KV cache"},
    {"append_paged_kv", "cache", "write KV cache"},
    {"concat_and_cache", "cache", "write KV cache"},
    {"copy_blocks", "cache", "copy KV blocks"},
    {"swap_blocks", "cache", "swap KV blocks"},
    {"moe_align_block_size", "routing", "MoE align block size"},
    {"moe_sum", "routing", "MoE sum"},
    {"topk_softmax", "routing", "MoE top-k softmax"},
    {"topkgating", "routing", "MoE top-k gating"},
    {"moe_topk", "routing", "MoE top-k"},
    {"count_and_sort_expert_tokens", "routing", "MoE sort tokens"},
    {"fused_moe", "gemm", "MoE GEMM"},
    {"routingindices", "routing", "MoE routing"},
    {"finalizekernel", "routing", "MoE finalize"},
    {"per_token_group_quant", "elementwise", "quantize per token group"},
    {"scaled_fp8_quant", "elementwise", "quantize to fp8"},
    {"quantize", "elementwise", "quantize"},
    {"multi_tensor_apply", "optimizer", "multi-tensor apply"},
    {"multi_tensor", "optimizer", "multi-tensor"},
    {"radixsort", "sort", "radix sort"},
    {"radix_sort", "sort", "radix sort"},
    {"mergesort", "sort", "merge sort"},
    {"merge_sort", "sort", "merge sort"},
    {"segmentedsort", "sort", "segmented sort"},
    {"reducebykey", "reduction", "reduce by key"},
    {"segmentedreduce", "reduction", "segmented reduce"},
    {"devicereduce", "reduction", "reduce"},
    {"scanbykey", "scan", "scan by key"},
    {"devicescan", "scan", "scan"},
    {"devicecompactinit", "indexing", "select, start"},
    {"deviceselect", "indexing", "select"},
    {"partition", "indexing", "partition"},
    {"uniquebykey", "indexing", "unique by key"},
    {"runlengthencode", "indexing", "run-length encode"},
    {"histogram", "reduction", "histogram"},
    {"splitkreduce", "gemm", "split-K sum"},
    {"sampling", "random", "sampling"},
    {"split_embedding_backward", "embedding", "embedding backward"},
    {"split_embedding_codegen_grad", "embedding", "embedding backward, weights of indices"},
    {"split_embedding_codegen_forward", "embedding", "embedding"},
    {"permute_pooled_embs", "embedding", "permute pooled embeddings"},
    {"linearize_index", "indexing", "linearize indices"},
    {"bounds_check_indices", "indexing", "check bounds of indices"},
    {"masked_multihead_attention", "attention", "attention forward, masked multihead"},
};

// Functions in no namespace, or an unnamed one, that belong to one project.
struct Alone {
  std::string_view start, library;
  const char *kind, *operation;
};
constexpr Alone kAlone[] = {
    {"splitKreduce_kernel", "cuBLAS", "gemm", "split-K sum"},
    {"gemmk1_kernel", "cuBLAS", "gemm", "GEMM, k = 1"},
    {"gemmSN_", "cuBLAS", "gemm", "GEMM, small n"},
    {"sgemm_largek", "cuBLAS", "gemm", "GEMM, large k"},
    {"gemm_kernel2x2", "cuBLAS", "gemm", "GEMM"},
    {"magma_sgemmEx_kernel", "", "gemm", "GEMM"},
    {"dot_kernel", "cuBLAS", "gemm", "dot product"},
    {"reduce_1Block_kernel", "cuBLAS", "reduction", "dot product, sum"},
    {"scal_kernel", "cuBLAS", "elementwise", "scale"},
    {"axpy_kernel", "cuBLAS", "elementwise", "axpy"},
    {"transpose_readWrite_alignment_kernel", "cuBLAS", "copy", "transpose"},
    {"split_embedding_backward", "FBGEMM", "embedding", "embedding backward"},
    {"split_embedding_codegen_grad", "FBGEMM", "embedding",
     "embedding backward, weights of indices"},
    {"split_embedding_codegen_forward", "FBGEMM", "embedding", "embedding"},
    {"permute_pooled_embs", "FBGEMM", "embedding", "permute pooled embeddings"},
    {"linearize_index_kernel", "FBGEMM", "indexing", "linearize indices"},
    {"bounds_check_indices_kernel", "FBGEMM", "indexing", "check bounds of indices"},
    {"recat_copy_async_kernel", "FBGEMM", "copy", "copy for all-to-all"},
    {"_finalize_matmul", "triton_kernels", "gemm", "GEMM, scatter result"},
    {"paged_attention", "vLLM", "attention", "paged attention"},
    {"fused_moe_kernel", "vLLM", "gemm", "MoE GEMM"},
    {"moe_align_block_size_kernel", "", "routing", "MoE align block size"},
    {"count_and_sort_expert_tokens", "", "routing", "MoE sort tokens"},
    {"rotary_embedding_kernel", "", "embedding", "rotary embedding"},
    {"reshape_and_cache", "vLLM", "cache", "write KV cache"},
    {"store_kvcache", "", "cache", "write KV cache"},
    {"rms_norm_kernel", "", "normalization", "RMS norm"},
    {"fused_add_rms_norm_kernel", "", "normalization", "add + RMS norm"},
    {"act_and_mul_kernel", "", "elementwise", "activation and multiply"},
    {"silu_and_mul_kernel", "", "elementwise", "SiLU and multiply"},
    {"create_flashinfer_kv_indices_triton", "SGLang", "cache", "indices of the KV cache"},
    {"cuApplyLayerNorm", "Apex", "normalization", "layer norm"},
    {"cuApplyRMSNorm", "Apex", "normalization", "RMS norm"},
    {"selective_scan_fwd", "Mamba", "scan", "selective scan"},
    {"selective_scan_bwd", "Mamba", "scan", "selective scan backward"},
    {"causal_conv1d_fwd", "causal-conv1d", "convolution", "causal convolution 1D"},
    {"causal_conv1d_bwd", "causal-conv1d", "convolution", "causal convolution 1D backward"},
    {"Marlin", "Marlin", "gemm", "GEMM, quantized weights"},
    {"embedding_kernel", "", "embedding", "embedding"},
};

bool starts_scope(std::string_view scope, std::string_view with) {
  return scope.starts_with(with) && (scope.size() == with.size() || scope[with.size()] == ':');
}

// act_and_mul_kernel<T, &silu_kernel<T>>: the template argument may name the activation.
void name_activation(const ParsedText& name, KernelName& out) {
  if (out.operation != "activation and multiply") return;
  for (const auto argument : name.cxx.arguments) {
    if (contains(argument, "silu")) out.operation = "SiLU and multiply";
    if (contains(argument, "gelu")) out.operation = "GELU and multiply";
  }
}

// cublasLt::epilogue::impl::globalKernel and the same without the first namespace.
bool cublas_epilogue(const ParsedText& name, KernelName& out) {
  if (!contains(name.cxx.scope, "epilogue::impl") || name.cxx.base != "globalKernel") return false;
  out.library = "cuBLASLt";
  out.kind = "gemm";
  out.operation = "GEMM epilogue";
  return true;
}

// void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, ...>
bool cublas_gemv(const ParsedText& name, KernelName& out) {
  if (!name.cxx.base.starts_with("gemv") ||
      (!name.cxx.scope.empty() && !name.cxx.scope.starts_with("cublas")))
    return false;
  out.library = "cuBLAS";
  out.kind = "gemm";
  out.operation = "GEMV";
  for (const auto argument : name.cxx.arguments) {  // the first integers are index types
    const auto type = element_type_of_cxx(argument);
    if (type.empty() || type == "i32" || type == "i64" || type == "bool") continue;
    out.input_type = type;
    break;
  }
  return true;
}

// internal::gemvx::kernel<int, int, float, ...>.
bool cublas_gemvx(const ParsedText& name, KernelName& out) {
  if (!name.cxx.scope.ends_with("gemvx")) return false;
  out.library = "cuBLAS";
  out.kind = "gemm";
  out.operation = "GEMV";
  return true;
}

bool any_argument_has(const ParsedText& name, std::string_view part) {
  return std::any_of(name.cxx.arguments.begin(), name.cxx.arguments.end(),
                     [part](std::string_view argument) { return contains(argument, part); });
}

// void vector_fft<4116u, EPT<14u>, 1u, 0u, (padding_t)14, (twiddle_t)0, ..., float, ...>; Bluestein's
// algorithm is for sizes with large prime factors.
bool cufft(const ParsedText& name, KernelName& out) {
  if (!name.cxx.scope.empty()) return false;
  const std::string_view base = name.cxx.base;
  if (any_argument_has(name, "twiddle_t") && contains(base, "_fft"))
    out.operation = contains(base, "bluestein") ? "FFT, Bluestein" : "FFT";
  else if ((base == "postprocess_kernel" || base == "preprocess_kernel") &&
           any_argument_has(name, "loadstore_modifier_t"))
    out.operation = base == "postprocess_kernel" ? "FFT, postprocess" : "FFT, preprocess";
  else if (base == "kernel_wrapper" && any_argument_has(name, "packR2C"))
    out.operation = "FFT, pack real to complex";
  else
    return false;
  out.library = "cuFFT";
  out.kind = "fft";
  for (const auto argument : name.cxx.arguments)  // others are index types
    if (argument == "float" || argument == "double" || argument == "__half")
      out.input_type = element_type_of_cxx(argument);
  return true;
}

// FlashInfer's kernels in CuTe's Python: the module's path, run together, then the arguments.
bool flashinfer_cute(const ParsedText& name, KernelName& out) {
  if (!name.plain.starts_with("kernel_cutlass_kernel_flashinfer")) return false;
  out.library = "FlashInfer";
  const std::string small = lower(name.plain.substr(0, 120));
  out.operation = "CuTe kernel";
  if (contains(small, "rmsnorm")) {
    out.kind = "normalization";
    out.operation = contains(small, "fused_add_rmsnorm") ? "add + RMS norm" : "RMS norm";
  } else if (contains(small, "gemm")) {
    out.kind = "gemm";
    out.operation = "GEMM";
  }
  return true;
}

}  // namespace

bool read_library_name(const ParsedText& name, KernelName& out) {
  if (cublas_epilogue(name, out) || cublas_gemv(name, out) || cublas_gemvx(name, out) ||
      cufft(name, out) || flashinfer_cute(name, out))
    return true;
  const std::string_view scope = name.cxx.scope;
  const std::string_view base = name.cxx.base;
  const std::string small = lower(base.substr(0, 200));
  for (const auto& [start, library] : kLibraries) {
    if (!starts_scope(scope, start)) continue;
    out.library = library;
    for (const auto& [part, kind, operation] : kLibraryOperations) {
      if (!contains(small, part)) continue;
      out.kind = kind;
      out.operation = operation;
      break;
    }
    // rocPRIM starts everything through one function; the algorithm is in its first argument.
    if (out.operation.empty() && base == "trampoline_kernel" && !name.cxx.arguments.empty()) {
      const std::string_view config = name.cxx.arguments[0].substr(0, 200);
      for (const std::string_view what :
           {"scan", "reduce", "radix_sort", "partition", "merge_sort"})
        if (contains(config, what)) {
          out.operation = std::string(what);
          break;
        }
    }
    name_activation(name, out);
    if (out.operation.empty()) out.operation = function_words(base);
    out.input_type = out.library == "vLLM" || out.library == "SGLang"
                         ? first_element_type(name.cxx.arguments)
                         : std::string_view();
    return true;
  }
  const bool nowhere = scope.empty() || scope == "(anonymous namespace)";
  if (!nowhere) return false;
  if (name.cxx.base.empty()) return false;
  for (const auto& [start, library, kind, operation] : kAlone) {
    if (!base.starts_with(start)) continue;
    out.library = library;
    out.kind = kind;
    out.operation = operation;
    return true;
  }
  return false;
}

}  // namespace lanescope::names::kernels

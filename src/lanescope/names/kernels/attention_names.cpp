// Fused attention, by project.
#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

bool is_backward(std::string_view text) {
  return contains(text, "bwd") || contains(text, "backward") || contains(text, "bprop") ||
         contains(text, "Backward") || contains(text, "Bwd");
}

// FlashAttention 2: flash_fwd_kernel<Flash_fwd_kernel_traits<head dimension, rows of Q, rows of K,
// warps, ..., element type>, ...>. The block is Q rows by K rows.
void read_flash_traits(const ParsedText& name, KernelName& out) {
  if (name.cxx.arguments.empty()) return;
  const auto traits = split_arguments(template_inside(name.cxx.arguments[0].substr(
      std::min(name.cxx.arguments[0].find('<'), name.cxx.arguments[0].size()))));
  if (!contains(name.cxx.arguments[0], "kernel_traits") || traits.size() < 5) return;
  const auto rows = parse_number(traits[1]), columns = parse_number(traits[2]),
             warps = parse_number(traits[3]), head = parse_number(traits[0]);
  if (head) out.variant = concat({"head dim ", std::to_string(*head)});
  if (rows && columns) out.tile = KernelTile{*rows, *columns, std::nullopt};
  if (warps) out.warps = std::to_string(*warps);
  out.input_type = first_element_type(std::span(traits).subspan(4));
}

bool flash(const ParsedText& name, KernelName& out) {
  const std::string_view base = name.cxx.base, scope = name.cxx.scope;
  const bool named = base.starts_with("flash_fwd") || base.starts_with("flash_bwd");
  const bool inside = scope.starts_with("flash::") || scope == "flash" || scope == "pytorch_flash";
  const bool version3 = (base == "device_kernel" || base.starts_with("Kernel")) &&
                        !name.cxx.arguments.empty() &&
                        (name.cxx.arguments[0].starts_with("flash::") ||
                         contains(name.cxx.arguments[0].substr(0, 200), "<flash::"));
  if (!named && !inside && !version3) return false;
  const std::string_view what = version3 ? name.cxx.arguments[0] : base;
  out.library = "FlashAttention";
  out.operation =
      is_backward(what) || contains(what, "Bwd") ? "attention backward" : "attention forward";
  if (named) read_flash_traits(name, out);
  if (contains(base, "splitkv"))
    out.operation += contains(base, "combine") ? " split-KV combine" : " split-KV";
  if (contains(base, "dot_do_o")) out.operation += " dot(dO, O)";
  if (contains(base, "convert_dq")) out.operation += " convert dQ";
  if (contains(base, "convert_dkv")) out.operation += " convert dK, dV";
  return true;
}

// cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_...
bool cudnn_sdpa(const ParsedText& name, KernelName& out) {
  if (!name.plain.starts_with("cudnn_generated") || !contains(name.plain, "sdpa")) return false;
  out.library = "cuDNN";
  out.operation = is_backward(name.plain) ? "attention backward" : "attention forward";
  const auto words = split_words(name.plain);
  for (const auto word : words) {
    if (const auto a = architecture_of_word(word); !a.empty()) out.architecture = a;
    if (word.starts_with("cga") && parse_sizes(word.substr(3)).size() == 3)
      out.cluster = word.substr(3);
  }
  return true;
}

// TensorRT-LLM's generated kernels, in FlashInfer too:
// fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKv...
bool generated_fmha(const ParsedText& name, KernelName& out) {
  if (!name.plain.starts_with("fmhaSm")) return false;
  out.library = "TensorRT-LLM";
  out.operation = "attention forward";
  const std::string_view digits = name.plain.substr(6, name.plain.find("Kernel") - 6);
  if (digits.size() <= 4) out.architecture = concat({"sm", digits});
  if (contains(name.plain, "QkvBfloat16")) out.input_type = "bf16";
  if (contains(name.plain, "QkvFp16")) out.input_type = "f16";
  if (contains(name.plain, "QkvE4m3")) out.input_type = "f8e4m3";
  if (contains(name.plain, "OBfloat16")) out.output_type = "bf16";
  if (contains(name.plain, "OFp16")) out.output_type = "f16";
  if (contains(name.plain, "OE4m3")) out.output_type = "f8e4m3";
  if (contains(name.plain, "PagedKv")) out.variant = "paged KV";
  return true;
}

// xformers' and torch's memory-efficient kernels: fmha_cutlassF_bf16_aligned_64x64_rf_sm80(...).
bool memory_efficient(const ParsedText& name, KernelName& out) {
  const std::string_view plain = name.plain;
  if (!plain.starts_with("fmha_cutlass") && !contains(name.text.substr(0, 400), "AttentionKernel<"))
    return false;
  if (!plain.starts_with("fmha_cutlass") && !contains(name.cxx.base, "attention_kernel"))
    return false;
  out.library = "CUTLASS";
  out.operation = plain.starts_with("fmha_cutlassB") || is_backward(name.cxx.base) ||
                          contains(name.text.substr(0, 400), "AttentionBackwardKernel")
                      ? "attention backward"
                      : "attention forward";
  out.variant = "memory-efficient";
  if (!plain.starts_with("fmha_cutlass")) return true;
  for (const auto word : split_words(plain)) {
    if (const auto type = element_type_of_word(word); !type.empty()) out.input_type = type;
    if (const auto a = architecture_of_word(word); !a.empty()) out.architecture = a;
    const auto sizes = parse_sizes(word);
    if (sizes.size() == 2) out.tile = KernelTile{sizes[0], sizes[1], std::nullopt};
  }
  return true;
}

bool composable_attention(const ParsedText& name, KernelName& out) {
  if (!name.cxx.scope.starts_with("ck_tile") || !contains(name.cxx.base, "kentry")) return false;
  const std::string_view inside = name.text.substr(0, 600);
  if (!contains(inside, "Fmha")) return false;
  out.library = "CK";
  out.operation = contains(inside, "FmhaBwd") ? "attention backward" : "attention forward";
  if (contains(inside, "BatchPrefill")) out.variant = "batch prefill";
  if (contains(inside, "SplitKV")) out.variant = "split-KV";
  // FmhaBatchPrefillPipelineProblem<Q type, K type, V type, ...> and its like.
  const std::size_t problem = inside.find("PipelineProblem<");
  if (problem != inside.npos) {
    const std::string_view rest = name.text.substr(problem + 16);
    out.input_type = element_type_of_cxx(rest.substr(0, rest.find_first_of(",>")));
  }
  return true;
}

struct AttentionRow {
  std::string_view part, library;
  const char* operation;
};
// Function names of one kernel in one project, or in several (then without a library).
constexpr AttentionRow kAttentionRows[] = {
    {"paged_attention_v1_kernel", "vLLM", "paged attention"},
    {"paged_attention_v2_kernel", "vLLM", "paged attention"},
    {"paged_attention_v2_reduce_kernel", "vLLM", "paged attention reduce"},
    {"paged_attention_ll4mi_QKV", "vLLM", "paged attention"},
    {"paged_attention_ll4mi_reduce", "vLLM", "paged attention reduce"},
    {"kernel_unified_attention", "vLLM", "attention forward, unified"},
    {"kernel_paged_attention_2d", "vLLM", "paged attention"},
    {"BatchPrefillWithPagedKVCache", "FlashInfer", "attention forward, batch prefill, paged KV"},
    {"BatchPrefillWithRaggedKVCache", "FlashInfer", "attention forward, batch prefill, ragged KV"},
    {"SinglePrefillWithKVCache", "FlashInfer", "attention forward, single prefill"},
    {"BatchDecodeWithPagedKVCache", "FlashInfer", "attention forward, batch decode, paged KV"},
    {"SingleDecodeWithKVCache", "FlashInfer", "attention forward, single decode"},
    {"PersistentVariableLengthMergeStates", "FlashInfer", "attention merge states"},
    {"_fwd_grouped_kernel_stage1", "", "attention forward, decode stage 1"},
    {"_fwd_kernel_stage1", "", "attention forward, decode stage 1"},
    {"_fwd_kernel_stage2", "", "attention forward, decode stage 2"},
    {"merge_attn_states", "", "attention merge states"},
    {"flash_mla", "FlashMLA", "attention forward, latent"},
    {"sage_fwd", "SageAttention", "attention forward"},
    {"sage_quant", "SageAttention", "quantize for attention"},
    {"fmha_v2", "TensorRT", "attention forward"},
    {"attn_fwd", "", "attention forward"},
    {"attn_bwd", "", "attention backward"},
    {"_attn_fwd", "", "attention forward"},
};

}  // namespace

bool read_attention_name(const ParsedText& name, KernelName& out) {
  out.kind = "attention";
  if (flash(name, out) || cudnn_sdpa(name, out) || generated_fmha(name, out) ||
      memory_efficient(name, out) || composable_attention(name, out))
    return true;
  for (const auto& [part, library, operation] : kAttentionRows) {
    if (!name.cxx.base.substr(0, 300).starts_with(part)) continue;
    out.library = name.cxx.scope.starts_with("vllm")         ? std::string_view("vLLM")
                  : name.cxx.scope.starts_with("flashinfer") ? std::string_view("FlashInfer")
                                                             : library;
    out.operation = operation;
    return true;
  }
  if (name.cxx.scope.starts_with("flashinfer") &&
      (contains(name.cxx.base, "Prefill") || contains(name.cxx.base, "Decode"))) {
    out.library = "FlashInfer";
    out.operation = "attention forward";
    return true;
  }
  return false;
}

}  // namespace lanescope::names::kernels

// Matrix kernels of NVIDIA's libraries whose names are words joined by "_":
//   ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn   cuBLAS
//   volta_sgemm_64x64_nt, cudnn_volta_scudnn_128x64_relu_xregs_large_nn_v1
//   cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8
//   cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_1x1x1_0_tnn_align8_...
// Source of the order of words: procedural_name() and extended_name() of CUTLASS's kernel
// generator, which cuBLAS and cuDNN follow: [C type, if not the accumulator's] accumulator letter,
// instruction shape, operation [A type, if not the accumulator's] tile k-step x stages layout.
#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

using Words = std::vector<std::string_view>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "s16816gemm": accumulator letter, instruction shape, operation.
struct Core {
  std::string_view accumulate_type, operation, intermediate_type;
  bool tensor_op = false;
};

std::optional<Core> parse_core(std::string_view word) {
  Core core;
  for (const std::string_view operation : {"gemm", "fprop", "dgrad", "wgrad", "cudnn"}) {
    const std::size_t at = word.find(operation);
    if (at == word.npos) continue;
    std::string_view front = word.substr(0, at);
    if (front.starts_with("gc") || front.starts_with("gz")) front.remove_prefix(1);  // Gaussian
    core.operation = operation;
    if (front.empty()) return core;
    core.accumulate_type = element_type_of_blas(front[0]);
    if (core.accumulate_type.empty()) return std::nullopt;
    front.remove_prefix(1);
    std::size_t digits = 0;
    while (digits < front.size() && (is_digit(front[digits]) || front[digits] == 'x')) ++digits;
    core.tensor_op = digits > 0;
    core.intermediate_type = element_type_of_word(front.substr(digits));
    return core;
  }
  return std::nullopt;
}

bool is_layout(std::string_view word) {
  if (word.size() != 2 && word.size() != 3) return false;
  return word.find_first_not_of("ntNT") == word.npos;
}

void name_operation(const Core& core, const Words& words, KernelName& out) {
  if (core.operation == "gemm") {
    out.kind = "gemm";
    out.operation = "GEMM";
    return;
  }
  out.kind = "convolution";
  std::string_view direction = core.operation;
  for (const std::string_view word : words) {
    if (word == "wgrad" || word == "dgrad" || word == "fprop") direction = word;
    if (word == "winograd") out.variant = "winograd";
  }
  out.operation = "convolution";
  if (direction != "cudnn") out.operation.append(" ").append(direction);
}

// Tile, k-step and stages: "128x256" ... "stages_64x3", "64x64_64x6", "128x128x64_1x1x1_0".
std::size_t read_sizes(const Words& words, std::size_t at, bool version3, KernelName& out) {
  const auto sizes = parse_sizes(words[at]);
  if (sizes.size() < 2 || out.tile) return at;
  out.tile = KernelTile{sizes[0], sizes[1], std::nullopt};
  if (sizes.size() == 3) out.tile->k = sizes[2];
  if (at + 1 >= words.size()) return at;
  const auto next = parse_sizes(words[at + 1]);
  if (version3 && next.size() == 3) {
    out.cluster = words[at + 1];
    const auto stages = at + 2 < words.size() ? parse_number(words[at + 2]) : std::nullopt;
    if (stages && *stages > 0) out.stages = stages;  // 0: chosen by the library
    return at + 1;
  }
  if (!version3 && next.size() == 2) {
    out.tile->k = next[0];
    out.stages = next[1];
    return at + 1;
  }
  return at;
}

void read_epilogue(std::string_view word, KernelName& out) {
  if (word == "relu" || word == "gelu" || word == "bias" || word == "silu")
    out.epilogue.emplace_back(word);
  if (word == "splitK" || word == "splitk") out.split_k = true;
}

void read_words(const Words& words, std::size_t core_at, bool version3, KernelName& out) {
  for (std::size_t i = core_at + 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "stages" && i + 1 < words.size() && out.tile) {
      const auto sizes = parse_sizes(words[i + 1]);
      if (sizes.size() == 2) {
        out.tile->k = sizes[0];
        out.stages = sizes[1];
        ++i;
      }
      continue;
    }
    read_epilogue(word, out);
    if (out.tile && is_layout(word)) out.layout = word;
    i = read_sizes(words, i, version3, out);
  }
}

void read_types(const Words& words, std::size_t core_at, const Core& core, KernelName& out) {
  out.accumulate_type = core.accumulate_type;
  out.output_type = core.accumulate_type;
  out.input_type = core.accumulate_type;
  if (core_at > 0)
    if (const auto type = element_type_of_word(words[core_at - 1]); !type.empty())
      out.output_type = type;
  for (std::size_t i = core_at + 1; i < words.size() && parse_sizes(words[i]).size() < 2; ++i) {
    if (const auto type = element_type_of_word(words[i]); !type.empty()) {
      out.input_type = type;
      break;
    }
    // In convolutions of cuDNN's CUTLASS, the type of the tensor cores comes after the variant.
  }
  // An integer accumulator says nothing about the inputs.
  if (core.accumulate_type == "i32" && out.input_type == "i32") out.input_type.clear();
}

// core_A_B_accumulator_C_D_tile.
void read_types_version3(const Words& words, std::size_t core_at, KernelName& out) {
  std::vector<std::string_view> types;
  for (std::size_t i = core_at + 1; i < words.size() && types.size() < 5; ++i) {
    const auto type = element_type_of_word(words[i]);
    if (type.empty() && words[i] != "void") break;
    types.push_back(type);
  }
  if (types.size() != 5) return;
  out.input_type = types[0];
  if (types[1] != types[0]) out.input_type.append("*").append(types[1]);
  out.accumulate_type = types[2];
  out.output_type = types[4];
}

bool read_plain(std::string_view plain, KernelName& out) {
  const Words words = split_words(plain);
  const bool cutlass = plain.starts_with("cutlass");
  std::size_t core_at = words.size();
  std::string_view architecture;
  bool by_cudnn = false;
  std::optional<Core> core;
  for (std::size_t i = 0; i < words.size() && i < 6; ++i) {
    if (words[i] == "cudnn") by_cudnn = true;
    if (architecture.empty()) architecture = architecture_of_word(words[i]);
    if (words[i] == "cudnn" || (cutlass && i == 0)) continue;
    core = parse_core(words[i]);
    if (core) {
      core_at = i;
      break;
    }
  }
  if (!core || (architecture.empty() && !cutlass)) return false;
  if (core->accumulate_type.empty() && !cutlass) return false;
  out.architecture = architecture;
  if (cutlass && words.size() > 1)
    if (const auto number = parse_number(words[1]))
      out.architecture = concat({"sm", std::to_string(*number)});
  const bool version3 = plain.starts_with("cutlass3x");
  if (version3 && core->tensor_op) {
    read_types_version3(words, core_at, out);
  } else if (!core->accumulate_type.empty()) {
    read_types(words, core_at, *core, out);
  }
  name_operation(*core, words, out);
  read_words(words, core_at, version3, out);
  // Without tensor-core words, a tf32 after the operation is the multiplied type.
  if (cutlass) {
    out.library = "CUTLASS";
  } else {
    out.library =
        by_cudnn || core->operation == "cudnn" || out.kind == "convolution" ? "cuDNN" : "cuBLAS";
  }
  return true;
}

}  // namespace

bool read_cuda_gemm_name(const ParsedText& name, KernelName& out) {
  const bool wrapped = contains(name.cxx.scope, "cutlass") && !name.cxx.arguments.empty() &&
                       (name.cxx.base.starts_with("Kernel") || name.cxx.base == "device_kernel");
  if (!wrapped) return name.cxx.scope.empty() && read_plain(name.plain, out);
  const std::string_view inner = name.cxx.arguments[0];
  // cuDNN has CUTLASS with other names: cutlass_cudnn_infer, cutlass__5x_cudnn.
  const std::string library = contains(name.cxx.scope, "cudnn") ? "cuDNN CUTLASS" : "CUTLASS";
  if (inner.starts_with("cutlass") && inner.find_first_of("<:") == inner.npos) {
    if (!read_plain(inner, out)) return false;
    out.library = library;
    return true;
  }
  // A C++ type instead of a generated name: only the operation is known.
  if (contains(inner, "fmha") || contains(inner, "attention") || contains(inner, "Attention"))
    return false;
  out.library = library;
  if (contains(inner, "ImplicitGemmConvolution")) {
    out.kind = "convolution";
    out.operation = "convolution";
    out.variant = "implicit GEMM";
  } else if (contains(inner, "gemm::") || contains(inner, "Gemm")) {
    out.kind = "gemm";
    out.operation = "GEMM";
    if (contains(inner, "GemmGrouped")) out.operation = "grouped GEMM";
  }
  return true;
}

bool read_nvjet_name(const ParsedText& name, KernelName& out) {
  if (!name.plain.starts_with("nvjet_")) return false;
  // nvjet_[smNN_]<letters>_<tile>_<k-step x stages>_<...>: NVIDIA publishes no key. The two sizes
  // are read because k * stages * (m + n) elements are the shared memory in traces. The letters and
  // the third pair of numbers are not read.
  out.library = "cuBLASLt nvjet";
  out.kind = "gemm";
  out.operation = "GEMM";
  const Words words = split_words(name.plain);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (i == 1) out.architecture = architecture_of_word(word);
    const auto sizes = parse_sizes(word);
    if (sizes.size() == 2 && !out.tile) {
      out.tile = KernelTile{sizes[0], sizes[1], std::nullopt};
    } else if (sizes.size() == 2 && !out.stages) {
      out.tile->k = sizes[0];
      out.stages = sizes[1];
    }
    read_epilogue(word, out);
    if (out.tile && word.size() == 3 && is_layout(word)) out.layout = word;
  }
  return true;
}

}  // namespace lanescope::names::kernels

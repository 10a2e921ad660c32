// Matrix kernels of inference libraries with the shape in their name:
//   _matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu   triton_kernels: layouts and types of
//     Y, X and W, then block m, n, k and split-K (its make_matmul_repr)
//   bmm_Bfloat16_E4m3E4m3_Fp32_t128x8x256u2_s6_...         TensorRT-LLM's generated kernels:
//     C, then A and B, then the accumulator, tile, stages
//   void deep_gemm::fp8_gemm_kernel<...>
#include <algorithm>

#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

// "bf16xbf16xmxfp4" -> "bf16", "bf16", "mxfp4": types can contain an "x".
std::vector<std::string_view> split_types(std::string_view text) {
  std::vector<std::string_view> types;
  while (!text.empty() && types.size() < 4) {
    std::size_t length = 0;
    for (std::size_t end = 1; end <= text.size() && end <= 12; ++end)
      if ((end == text.size() || text[end] == 'x') &&
          !element_type_of_word(text.substr(0, end)).empty())
        length = end;
    if (length == 0) return {};
    types.push_back(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return types;
}

bool read_matmul_ogs(const ParsedText& name, KernelName& out) {
  const std::size_t at = name.plain.find("matmul_ogs_");
  if (at == name.plain.npos || at > 3) return false;
  out.library = "triton_kernels";
  out.kind = "gemm";
  out.operation = "GEMM";
  const auto words = split_words(name.plain.substr(at + 11));
  if (words.size() < 3) return true;
  if (words[0].size() == 3 && words[0].find_first_not_of("NT") == words[0].npos)
    out.layout = words[0];
  const auto types = split_types(words[1]);
  if (types.size() == 3) {
    const auto y = element_type_of_word(types[0]), x = element_type_of_word(types[1]),
               w = element_type_of_word(types[2]);
    if (!y.empty() && !x.empty() && !w.empty()) {
      out.output_type = y;
      out.input_type = x == w ? std::string(x) : concat({x, "*", w});
    }
  }
  if (const auto sizes = parse_sizes(words[2]); sizes.size() == 4) {
    out.tile = KernelTile{sizes[0], sizes[1], sizes[2]};
    out.split_k = sizes[3] > 1;
    if (out.split_k) out.split_k_count = sizes[3];
  }
  for (std::size_t i = 3; i < words.size(); ++i)
    if (words[i] == "swiglu") out.epilogue.emplace_back(words[i]);
  return true;
}

// "Bfloat16", "Fp32", "MxE2m1": the generator's spelling of types.
std::string generated_type(std::string_view word) {
  if (word == "Bfloat16") return "bf16";
  if (word == "Fp16") return "f16";
  if (word == "Fp32") return "f32";
  if (word == "E4m3") return "f8e4m3";
  if (word == "E2m1") return "f4e2m1";
  if (word == "MxE4m3") return "mxf8e4m3";
  if (word == "MxE2m1") return "mxf4e2m1";
  return {};
}

// "MxE2m1MxE4m3" -> A and B.
std::string generated_pair(std::string_view word) {
  for (std::size_t cut = 1; cut < word.size() && cut < 12; ++cut) {
    const std::string a = generated_type(word.substr(0, cut)), b = generated_type(word.substr(cut));
    if (!a.empty() && !b.empty()) return a == b ? a : concat({a, "*", b});
  }
  return generated_type(word);
}

bool read_generated(const ParsedText& name, KernelName& out) {
  const bool batched = name.plain.starts_with("bmm_");
  if (!batched && !name.plain.starts_with("gemm_") && !name.plain.starts_with("Gemm_"))
    return false;
  const auto words = split_words(name.plain);
  if (words.size() < 5) return false;
  const std::string output = generated_type(words[1]), input = generated_pair(words[2]),
                    accumulate = generated_type(words[3]);
  if (output.empty() || input.empty() || accumulate.empty()) return false;
  out.library = "TensorRT-LLM";
  out.kind = "gemm";
  out.operation = batched ? "batched GEMM" : "GEMM";
  out.output_type = output;
  out.input_type = input;
  out.accumulate_type = accumulate;
  for (std::size_t i = 4; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!out.tile && word.starts_with("t")) {
      const auto sizes = parse_sizes(word.substr(1, word.find('u') - 1));  // "u2" is not read
      if (sizes.size() == 3) out.tile = KernelTile{sizes[0], sizes[1], sizes[2]};
    }
    if (word.starts_with("s"))
      if (const auto stages = parse_number(word.substr(1))) out.stages = stages;
    if (word.starts_with("cga") && parse_sizes(word.substr(3)).size() == 3)
      out.cluster = word.substr(3);
    if (word == "swiGlu" || word == "geGlu") out.epilogue.push_back(lower(word));
    if (word.starts_with("splitK")) {
      out.split_k = true;
      out.split_k_count = parse_number(word.substr(6));
    }
    if (!architecture_of_word(word).empty()) out.architecture = word;
  }
  return true;
}

}  // namespace

bool read_block_gemm_name(const ParsedText& name, KernelName& out) {
  if (read_matmul_ogs(name, out) || read_generated(name, out)) return true;
  if (name.cxx.scope.starts_with("deep_gemm") && contains(name.cxx.base, "gemm")) {
    out.library = "DeepGEMM";
    out.kind = "gemm";
    out.operation = "GEMM";
    if (name.cxx.base.starts_with("fp8_") || contains(name.cxx.base, "_fp8_"))
      out.input_type = "f8e4m3";
    for (const auto word : split_words(name.cxx.base))
      if (const auto architecture = architecture_of_word(word); !architecture.empty())
        out.architecture = architecture;
    return true;
  }
  return false;
}

}  // namespace lanescope::names::kernels

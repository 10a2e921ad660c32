// Kernels of NVIDIA's XMMA generator, in cuBLAS, cuDNN and TensorRT:
//   sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_..._cublas
//   sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_...
// The meaning of the type groups is not published. We read only what all interpretations agree
// on: the first type of the first group is the input's (tf32 anywhere in the first two groups:
// the tensor cores take tf32), and the second type of the second group the accumulator's. The
// output's type is known only if the second type of the first group is equal to the first type
// of the second.
#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

// "bf16f32" -> "bf16", "f32".
std::vector<std::string_view> parse_type_group(std::string_view word) {
  std::vector<std::string_view> types;
  while (!word.empty() && types.size() < 3) {
    std::size_t length = 0;
    for (std::size_t n = 2; n <= 4 && n <= word.size(); ++n)
      if (!element_type_of_word(word.substr(0, n)).empty()) length = n;
    if (length == 0) return {};
    types.push_back(element_type_of_word(word.substr(0, length)));
    word.remove_prefix(length);
  }
  return word.empty() ? types : std::vector<std::string_view>{};
}

void read_types(const std::vector<std::string_view>& first,
                const std::vector<std::string_view>& second, KernelName& out) {
  out.input_type = first[0];
  if (first[0] == "tf32" || second[0] == "tf32") out.input_type = "tf32";
  out.accumulate_type = second[1];
  if (first[1] == second[0] && first[1] != "tf32") out.output_type = first[1];
}

std::string_view text_after(std::string_view word, std::string_view prefix) {
  return word.starts_with(prefix) ? word.substr(prefix.size()) : std::string_view();
}

}  // namespace

bool read_xmma_name(const ParsedText& name, KernelName& out) {
  const auto words = split_words(name.plain);
  if (words.size() < 4 || words[1] != "xmma" || architecture_of_word(words[0]).empty())
    return false;
  out.architecture = words[0];
  const std::string_view what = words[2];
  if (what == "gemm") {
    out.kind = "gemm";
    out.operation = "GEMM";
  } else if (what == "fprop" || what == "dgrad" || what == "wgrad") {
    out.kind = "convolution";
    out.operation = concat({"convolution ", what});
    if (contains(name.plain, "implicit_gemm")) out.variant = "implicit GEMM";
  } else {
    return false;
  }
  out.library = contains(name.plain, "cublas")  ? "cuBLAS"
                : contains(name.plain, "cudnn") ? "cuDNN"
                : contains(name.plain, "trt")   ? "TensorRT"
                                                : "XMMA";
  bool typed = false;
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!typed && i + 1 < words.size()) {
      const auto first = parse_type_group(word), second = parse_type_group(words[i + 1]);
      if (first.size() == 2 && second.size() == 2) {
        read_types(first, second, out);
        typed = true;
        // After the third group come the layouts of A and B, then of C.
        if (out.kind == "gemm" && i + 3 < words.size() && words[i + 3].size() == 2 &&
            words[i + 3].find_first_not_of("nt") == std::string_view::npos)
          out.layout = words[i + 3];
        i += 2;
        continue;
      }
    }
    if (const auto tile = parse_sizes(text_after(word, "tilesize")); tile.size() == 3)
      out.tile = KernelTile{tile[0], tile[1], tile[2]};
    if (const auto stages = parse_number(text_after(word, "stage"))) out.stages = stages;
    if (!parse_sizes(text_after(word, "warpsize")).empty())
      out.warps = text_after(word, "warpsize");
    if (!parse_sizes(text_after(word, "cgasize")).empty())
      out.cluster = text_after(word, "cgasize");
    if (word == "bias" || word == "relu" || word == "gelu") out.epilogue.emplace_back(word);
    if (word == "splitK") out.split_k = true;
  }
  return true;
}

}  // namespace lanescope::names::kernels

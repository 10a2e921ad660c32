// Tensile (rocBLAS) and TensileLite (hipBLASLt):
//   Cijk_Ailk_Bjlk_BBS_BH_Bias_..._MT128x256x32_MI16x16x1_..._ISA942_...
// Source: ProblemType.__str__ of Tensile: the index letters of C, A and B; then the type of A and
// B, and where it differs of C and of alpha and beta ("BBS"); then flags (B: beta is used, H: high
// precision accumulate), "Bias". After them, solution parameters: MT is the macro tile and its step
// along the sum, ISA the architecture.
#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

std::string_view type_of_letter(char letter) {
  switch (letter) {
    case 'S':
      return "f32";
    case 'D':
      return "f64";
    case 'H':
      return "f16";
    case 'B':
      return "bf16";
    case 'C':
      return "c64";
    case 'Z':
      return "c128";
    case 'I':
      return "i32";
    case 'X':
      return "tf32";
    default:
      return {};
  }
}

// The first index is contiguous in memory: A stored i by l is not transposed.
char transposition(std::string_view indices, char dense) {
  return indices.empty() ? '?' : indices[0] == dense ? 'n' : 't';
}

// Types and flags of the problem, words 3 and 4.
void read_types(std::string_view types, std::string_view next, KernelName& out) {
  const bool flags_follow = next.starts_with("B") || next == "H";
  if (types.size() == 3 && flags_follow && !type_of_letter(types[0]).empty() &&
      !type_of_letter(types[1]).empty() && !type_of_letter(types[2]).empty()) {
    out.input_type = type_of_letter(types[0]);
    out.output_type = type_of_letter(types[1]);
    out.accumulate_type = type_of_letter(types[2]);
  } else if (types.size() == 1 || (types.size() == 2 && types[1] == 'B')) {
    out.input_type = type_of_letter(types[0]);
    if (types.size() == 2) out.output_type = out.input_type;
  }
}

}  // namespace

bool read_tensile_name(const ParsedText& name, KernelName& out) {
  if (!name.plain.starts_with("Cijk_")) return false;
  const auto words = split_words(name.plain);
  if (words.size() < 4 || !words[1].starts_with("A") || !words[2].starts_with("B")) return false;
  out.kind = "gemm";
  out.operation = "GEMM";
  // hipBLASLt's kernels take the user's arguments; rocBLAS's do not have the word.
  out.library = contains(name.plain, "UserArgs") ? "hipBLASLt" : "Tensile";
  const char a = transposition(words[1].substr(1), 'i'), b = transposition(words[2].substr(1), 'l');
  out.layout = std::string{a, b};
  read_types(words[3], words.size() > 4 ? words[4] : std::string_view(), out);
  for (std::size_t i = 4; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word.starts_with("MT") && !out.tile) {
      const auto sizes = parse_sizes(word.substr(2));
      if (sizes.size() == 3) out.tile = KernelTile{sizes[0], sizes[1], sizes[2]};
    }
    if (word.starts_with("ISA") && word.size() >= 6 && word.size() <= 7)
      out.architecture = concat({"gfx", lower(word.substr(3))});
    if (word.starts_with("GSU") && out.tile) {
      if (const auto count = parse_number(word.substr(3)); count && *count > 1) {
        out.split_k = true;
        out.split_k_count = count;
      }
    }
  }
  return true;
}

}  // namespace lanescope::names::kernels

// Kernels that torch.compile's Inductor wrote: triton_<category>_fused_<operators>_<number>.
// Source: get_fused_kernel_name() and the kernel categories of torch/_inductor. Inductor sorts the
// operators by name, so their order is not the order of computation. It joins them with "_", which
// operators also have in their names: at each place the longest known operator wins, and unknown
// words between known operators stay together as one.
#include "lanescope/names/kernels/aten_operators.h"
#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

constexpr std::size_t kLongestOperator = 60;
constexpr std::size_t kMostOperators = 64;

const char* category_name(std::string_view word) {
  if (word == "poi") return "pointwise";
  if (word == "red") return "reduction";
  if (word == "per") return "persistent reduction";
  if (word == "tem") return "template";
  if (word == "for") return "foreach";
  if (word == "spl") return "split scan";
  return nullptr;
}

// The longest operator that `text` starts with, whole words; 0: none.
std::size_t longest_operator(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t end = 1; end <= std::min(text.size(), kLongestOperator); ++end)
    if ((end == text.size() || text[end] == '_') && is_aten_operator(text.substr(0, end)))
      longest = end;
  return longest;
}

std::vector<std::string> cut_operators(std::string_view text) {
  std::vector<std::string> operators;
  std::string unknown;
  const auto flush = [&] {
    if (!unknown.empty()) operators.push_back(std::move(unknown));
    unknown.clear();
  };
  while (!text.empty() && operators.size() < kMostOperators) {
    std::size_t length = longest_operator(text);
    if (length > 0) {
      flush();
      operators.emplace_back(text.substr(0, length));
    } else {
      // An unknown word, with the "_" that it may begin with.
      length = std::min(text.find('_', text[0] == '_' ? 1 : 0), text.size());
      if (!unknown.empty()) unknown += '_';
      unknown += text.substr(0, length);
    }
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  flush();
  return operators;
}

}  // namespace

bool read_triton_name(const ParsedText& name, KernelName& out) {
  std::string_view rest = name.plain;
  if (!rest.starts_with("triton_")) return false;
  rest.remove_prefix(7);
  const char* category = category_name(rest.substr(0, rest.find('_')));
  if (!category || rest.size() < 4 || rest[3] != '_') {
    if (!name.plain.starts_with("triton_mm") && name.plain != "triton_") return false;
    out.library = "Triton";
    out.operation = std::string(name.plain.substr(0, 40));
    return true;
  }
  rest.remove_prefix(4);
  out.library = "Triton";
  out.kind = "fused";
  out.variant = category;
  if (!rest.starts_with("fused")) return true;
  rest.remove_prefix(5);
  if (rest.starts_with("_")) rest.remove_prefix(1);
  // The number at the end makes names unique in a program.
  const std::size_t last = rest.rfind('_');
  const std::string_view tail = last == rest.npos ? rest : rest.substr(last + 1);
  if (!tail.empty() && tail.find_first_not_of("0123456789") == tail.npos)
    rest = last == rest.npos ? std::string_view() : rest.substr(0, last);
  out.fused = cut_operators(rest);
  out.operation = "fused";
  for (const auto& op : out.fused)
    if (out.variant == "template" &&
        (op == "mm" || op == "addmm" || op == "bmm" || op == "baddbmm"))
      out.kind = "gemm";
  return true;
}

}  // namespace lanescope::names::kernels

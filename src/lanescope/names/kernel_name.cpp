// Demangles the name and cuts it at its brackets once. Then asks the families, the most specific
// names first; the first that knows the name fills in the fields. The short text is made from the
// fields, so it never says more than they do.
#include "lanescope/names/kernel_name.h"

#include <algorithm>
#include <cctype>

#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/mangled_name.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names {
namespace {

namespace kn = kernels;

constexpr std::size_t kMaxKernelNameBytes = 64 * 1024;
constexpr std::size_t kMostFusedText = 48;  // bytes of operator names in the text

constexpr bool (*kKernelFamilies[])(const kn::ParsedText&, KernelName&) = {
    kn::read_copy_name,       kn::read_collective_name,  kn::read_triton_name,
    kn::read_nvjet_name,      kn::read_xmma_name,        kn::read_cuda_gemm_name,
    kn::read_block_gemm_name, kn::read_tensile_name,     kn::read_attention_name,
    kn::read_aten_name,       kn::read_convolution_name, kn::read_library_name,
};

std::string sizes_text(const KernelTile& tile) {
  return kn::concat({std::to_string(tile.m), "x", std::to_string(tile.n), tile.k ? "x" : "",
                     tile.k ? std::to_string(*tile.k) : std::string()});
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

// "add+mean+mul+5 more".
std::string fused_text(const std::vector<std::string>& operators) {
  std::string text;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (i > 0 && text.size() + operators[i].size() > kMostFusedText)
      return text.append("+").append(std::to_string(operators.size() - i)).append(" more");
    if (i > 0) text += "+";
    text += operators[i];
  }
  return text;
}

std::string type_text(const KernelName& name) {
  const std::string& input = name.input_type;
  if (input.empty() || name.output_type.empty() || input == name.output_type)
    return input.empty() ? name.output_type : input;
  return kn::concat({input, "->", name.output_type});
}

// The text in the brackets: library, variant, architecture.
std::string origin_text(const KernelName& name) {
  std::string text = name.library == "driver" ? std::string() : name.library;
  const auto add = [&text](std::string_view word, const char* separator) {
    if (word.empty()) return;
    if (!text.empty()) text += separator;
    text += word;
  };
  add(name.variant, name.library == "ATen" ? " " : ", ");
  if (name.vector_width && *name.vector_width > 1)
    add(std::string("vectorized x").append(std::to_string(*name.vector_width)), ", ");
  std::string architecture = name.architecture;
  if (!architecture.empty() && !std::isdigit(static_cast<unsigned char>(architecture.back())) &&
      !architecture.starts_with("sm") && !architecture.starts_with("gfx"))
    architecture[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(architecture[0])));
  add(architecture, ", ");
  return text;
}

std::string short_text(const KernelName& name) {
  std::string text =
      name.fused.empty() ? name.operation : std::string("fused ").append(fused_text(name.fused));
  const bool matrix = name.kind == "gemm" || name.kind == "convolution" ||
                      name.kind == "attention" || name.kind == "collective";
  const auto add = [&text](const std::string& word) {
    if (!word.empty()) text.append(" ").append(word);
  };
  if (matrix) {
    add(name.algorithm);
    add(name.protocol);
    add(name.reduction);
    add(type_text(name));
    if (name.tile) add(sizes_text(*name.tile));
    add(name.layout);
    if (!name.epilogue.empty()) add(std::string("+").append(joined(name.epilogue, "+")));
    if (name.split_k)
      add(name.split_k_count ? std::string("split-K ").append(std::to_string(*name.split_k_count))
                             : "split-K");
  } else if (const std::string type = type_text(name); !type.empty()) {
    text.append(", ").append(type);
  }
  const std::string origin = origin_text(name);
  return origin.empty() ? text : text.append(" (").append(origin).append(")");
}

// At most kLongestText bytes, without cutting UTF-8 sequences.
std::string cut(std::string text) {
  if (text.size() <= kLongestText) return text;
  std::size_t end = kLongestText - 3;
  while (end > kLongestText - 7 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text.append("...");
}

// For an unknown name: the rest without brackets, parameters and namespaces.
std::string stripped(const kn::ParsedText& name) {
  std::string_view base = name.cxx.base;
  if (base.empty()) base = name.plain;
  if (base.find_first_not_of(' ') == base.npos) base = name.text;
  return cut(std::string(base.substr(0, kLongestText + 8)));
}

}  // namespace

namespace {

// read(text) of the name, cut at its brackets.
template <typename Read>
auto read_text_of(std::string_view raw, Read read) {
  raw = raw.substr(0, kMaxKernelNameBytes);
  if (raw.ends_with(".kd")) raw.remove_suffix(3);  // ROCm's kernel descriptor of the same name
  kn::ParsedText name;
  const auto demangled = raw.starts_with("_Z") ? kn::demangled_function(raw) : std::nullopt;
  name.text = demangled ? std::string_view(*demangled) : raw;
  name.cxx = kn::cut_cxx_name(name.text);
  name.plain = name.cxx.qualified.substr(0, name.cxx.qualified.find_first_of("<("));
  return read(name);
}

}  // namespace

KernelName parse_kernel_name(std::string_view raw) {
  return read_text_of(raw, [](const kn::ParsedText& name) {
    KernelName out;
    for (const auto family : kKernelFamilies) {
      if (family(name, out)) break;
      out = KernelName();
    }
    out.text = out.known() ? cut(short_text(out)) : stripped(name);
    return out;
  });
}

bool is_collective_kernel(std::string_view raw) {
  return read_text_of(raw, [](const kn::ParsedText& name) {
    KernelName copy, collective;  // in the order of kKernelFamilies
    return !kn::read_copy_name(name, copy) && kn::read_collective_name(name, collective);
  });
}

std::string readable_kernel_name(std::string_view name) {
  KernelName parsed = parse_kernel_name(name);
  return parsed.known() ? std::move(parsed.text) : std::string(name);
}

}  // namespace lanescope::names

#include "lanescope/names/kernels/tokens.h"

#include <algorithm>
#include <utility>

namespace lanescope::names::kernels {
namespace {

constexpr std::size_t kMostWords = 128;

using Pair = std::pair<std::string_view, std::string_view>;

std::string_view find(std::span<const Pair> table, std::string_view word) {
  for (const auto& [name, meaning] : table)
    if (name == word) return meaning;
  return {};
}

constexpr Pair kCxxTypes[] = {
    {"float", "f32"},
    {"double", "f64"},
    {"BFloat16", "bf16"},
    {"bfloat16", "bf16"},
    {"bfloat16_t", "bf16"},
    {"__nv_bfloat16", "bf16"},
    {"nv_bfloat16", "bf16"},
    {"__hip_bfloat16", "bf16"},
    {"hip_bfloat16", "bf16"},
    {"__bf16", "bf16"},
    {"Half", "f16"},
    {"half", "f16"},
    {"__half", "f16"},
    {"half_t", "f16"},
    {"_Float16", "f16"},
    {"tfloat32_t", "tf32"},
    {"Float8_e4m3fn", "f8e4m3"},
    {"Float8_e4m3fnuz", "f8e4m3fnuz"},
    {"Float8_e5m2", "f8e5m2"},
    {"Float8_e5m2fnuz", "f8e5m2fnuz"},
    {"__nv_fp8_e4m3", "f8e4m3"},
    {"__nv_fp8_e5m2", "f8e5m2"},
    {"float_e4m3_t", "f8e4m3"},
    {"float_e5m2_t", "f8e5m2"},
    {"bool", "bool"},
    {"signed char", "i8"},
    {"unsigned char", "u8"},
    {"short", "i16"},
    {"unsigned short", "u16"},
    {"int", "i32"},
    {"unsigned int", "u32"},
    {"long", "i64"},
    {"long long", "i64"},
    {"unsigned long", "u64"},
    {"unsigned long long", "u64"},
    {"complex<float>", "c64"},
    {"complex<double>", "c128"},
    {"complex<c10::Half>", "c32"},
};

constexpr Pair kWordTypes[] = {
    {"bf16", "bf16"},    {"f16", "f16"},       {"fp16", "f16"},      {"f32", "f32"},
    {"fp32", "f32"},     {"float", "f32"},     {"half", "f16"},      {"f64", "f64"},
    {"fp64", "f64"},     {"double", "f64"},    {"tf32", "tf32"},     {"e4m3", "f8e4m3"},
    {"e5m2", "f8e5m2"},  {"f8e4m3", "f8e4m3"}, {"f8e5m2", "f8e5m2"}, {"fp8e4nv", "f8e4m3"},
    {"fp8e5", "f8e5m2"}, {"e2m1", "f4e2m1"},   {"mxfp4", "mxfp4"},   {"i8", "i8"},
    {"int8", "i8"},      {"s8", "i8"},         {"u8", "u8"},         {"uint8", "u8"},
    {"i32", "i32"},      {"int32", "i32"},     {"s32", "i32"},       {"u32", "u32"},
    {"uint32", "u32"},   {"i64", "i64"},       {"int64", "i64"},     {"u64", "u64"},
    {"uint64", "u64"},   {"bfloat16", "bf16"}, {"float16", "f16"},   {"float32", "f32"},
};

constexpr std::string_view kArchitectures[] = {"kepler", "maxwell", "pascal", "volta",
                                               "turing", "ampere",  "hopper", "blackwell"};

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (words.size() + 1 < kMostWords) {
    const std::size_t end = text.find(separator);
    words.push_back(text.substr(0, end));
    if (end == text.npos) return words;
    text.remove_prefix(end + 1);
  }
  words.push_back(text);
  return words;
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
  if (!all_digits(text) || text.size() > 6) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text) value = value * 10 + static_cast<std::uint32_t>(c - '0');
  return value;
}

std::vector<std::uint32_t> parse_sizes(std::string_view text) {
  std::vector<std::uint32_t> sizes;
  if (text.size() > 40) return {};
  for (const std::string_view part : split_words(text, 'x')) {
    const auto size = parse_number(part);
    if (!size) return {};
    sizes.push_back(*size);
  }
  return sizes;
}

std::string_view element_type_of_cxx(std::string_view type) {
  for (bool again = true; again;) {
    again = false;
    while (!type.empty() && (type.back() == '*' || type.back() == '&' || type.back() == ' '))
      type.remove_suffix(1);
    if (type.ends_with(" const")) {
      type.remove_suffix(6);
      again = true;
    }
    if (type.starts_with("const ")) type.remove_prefix(6);
  }
  if (type.size() > 80) return {};
  // Namespaces in front; those inside "complex<c10::Half>" belong to the type.
  const std::size_t bracket = std::min(type.find('<'), type.size());
  if (const std::size_t scope = type.substr(0, bracket).rfind("::"); scope != type.npos)
    type.remove_prefix(scope + 2);
  return find(kCxxTypes, type);
}

std::string_view element_type_of_word(std::string_view word) { return find(kWordTypes, word); }

std::string_view element_type_of_blas(char letter) {
  switch (letter) {
    case 's':
      return "f32";
    case 'd':
      return "f64";
    case 'h':
      return "f16";
    case 'c':
      return "c64";
    case 'z':
      return "c128";
    case 'i':
      return "i32";
    default:
      return {};
  }
}

std::string_view first_element_type(std::span<const std::string_view> arguments) {
  for (const std::string_view argument : arguments)
    if (const auto type = element_type_of_cxx(argument); !type.empty()) return type;
  return {};
}

std::string_view architecture_of_word(std::string_view word) {
  if (std::find(std::begin(kArchitectures), std::end(kArchitectures), word) !=
      std::end(kArchitectures))
    return word;
  if (word.starts_with("sm") && word.size() >= 4 && word.size() <= 6) {
    std::string_view digits = word.substr(2);
    if (digits.back() == 'a' || digits.back() == 'f') digits.remove_suffix(1);
    if (all_digits(digits)) return word;
  }
  if (word.starts_with("gfx") && word.size() >= 6 && word.size() <= 7) return word;
  return {};
}

std::string function_words(std::string_view name) {
  const auto drop_front = [&name](std::string_view prefix) {
    if (name.size() > prefix.size() && name.starts_with(prefix)) name.remove_prefix(prefix.size());
  };
  const auto drop_back = [&name](std::string_view suffix) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) name.remove_suffix(suffix.size());
  };
  for (const std::string_view prefix :
       {"CUDAFunctorOnSelf_", "CUDAFunctorOnOther_", "CUDAFunctor_", "launch_", "_cuda_", "_"})
    drop_front(prefix);
  for (int i = 0; i < 3; ++i)
    for (const std::string_view suffix :
         {"_internal_kernel", "_kernel_cuda", "_cuda_kernel", "_kernel_impl", "_kernel_cuda_impl",
          "_kernel", "_cuda", "_impl", "_functor", "_cuda_out", "CUDAKernelImpl",
          "KernelImplInternal", "KernelImpl", "CUDAKernel", "ScalarFunctor", "MathFunctor",
          "Functor", "Ops"})
      drop_back(suffix);
  std::string words;
  for (std::size_t i = 0; i < name.size() && i < 60; ++i) {
    const bool upper = name[i] >= 'A' && name[i] <= 'Z';
    if (upper && i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z') words += ' ';
    words += upper ? static_cast<char>(name[i] - 'A' + 'a') : name[i] == '_' ? ' ' : name[i];
  }
  if (words == "direct copy") return "copy";
  if (words == "compare eq") return "compare equal";
  return words;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string concat(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text.append(part);
  return text;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace lanescope::names::kernels

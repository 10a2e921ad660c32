// The words in kernel names: numbers, tiles, element types.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::names::kernels {

// "a_b__c" -> "a", "b", "", "c"; at most 128.
std::vector<std::string_view> split_words(std::string_view text, char separator = '_');

// Decimal digits only, up to 999,999.
std::optional<std::uint32_t> parse_number(std::string_view text);

// "128x256x64" -> 128, 256, 64. Empty unless every part is a number.
std::vector<std::uint32_t> parse_sizes(std::string_view text);

// A C++ type as demanglers write it: "c10::BFloat16 const*" -> "bf16". Empty: not an element type.
std::string_view element_type_of_cxx(std::string_view type);

// A word of a kernel's name: "bf16", "fp16", "e4m3", "int8", "tf32", ... Empty: not a type.
std::string_view element_type_of_word(std::string_view word);

// The letter of BLAS routine names: s d c z h, and i for 32-bit integers. Empty: none of them.
std::string_view element_type_of_blas(char letter);

// The first template argument that is an element type. Empty: there is none.
std::string_view first_element_type(std::span<const std::string_view> arguments);

// "volta", "ampere", "sm80", "gfx942", ... Empty: the word names no architecture.
std::string_view architecture_of_word(std::string_view word);

// What a function's or functor's name says, in words: "tanh_backward_kernel_cuda" -> "tanh
// backward", "CUDAFunctor_add" -> "add", "MulFunctor" -> "mul". Reads at most 60 bytes.
std::string function_words(std::string_view name);

std::string lower(std::string_view text);
std::string concat(std::initializer_list<std::string_view> parts);
bool contains(std::string_view text, std::string_view part);

}  // namespace lanescope::names::kernels

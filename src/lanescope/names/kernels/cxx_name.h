// Cuts a demangled name of a C++ function at its brackets.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace lanescope::names::kernels {

// Views into the text that was cut.
struct CxxName {
  std::string_view qualified;  // without return type and parameters: "at::native::copy<4, float>"
  std::string_view scope;      // "at::native::(anonymous namespace)"; empty: none
  std::string_view base;       // "copy"
  std::vector<std::string_view> arguments;  // "4", "float": of the last component; at most 64
};

// Linear. A part ends at a bracket that does not match.
CxxName cut_cxx_name(std::string_view text);

// "a, b<c, d>" -> "a", "b<c, d>"; at most 64, blanks around them removed.
std::vector<std::string_view> split_arguments(std::string_view inside);

// "at::native::f(int)::{lambda()#1}" -> "at", "native", "f(int)", "{lambda()#1}"; at most 64.
std::vector<std::string_view> split_scopes(std::string_view qualified);

// "f<4>(int)" -> "f"; "operator()" stays whole.
std::string_view without_brackets(std::string_view component);

// The text between the first "<" and its ">"; empty: no template arguments.
std::string_view template_inside(std::string_view component);

}  // namespace lanescope::names::kernels

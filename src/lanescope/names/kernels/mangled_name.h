// Turns mangled C++ names (Itanium ABI: gcc, clang, nvcc and hipcc) into readable ones. Why not the
// demangler of the C++ library: it refuses names over about 1,000 characters and newer codes such as
// DF16b, and a hostile name of 300 bytes can make it write gigabytes. This one reads only the
// function's name and template arguments, and its memory is limited.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace lanescope::names::kernels {

// "_ZN2at4copyIfLi4EEEvPT_" -> "at::copy<float, 4>"; parameters are left out. If a part cannot be
// read, the name ends before it: "at::copy". Nothing readable: nullopt. Limits: 256 KiB of
// written text, and a nesting depth of 96.
std::optional<std::string> demangled_function(std::string_view mangled);

}  // namespace lanescope::names::kernels

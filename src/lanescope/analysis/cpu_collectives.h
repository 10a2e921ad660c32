// Collectives that run on threads of the CPU.
#pragma once
#include <string_view>

namespace lanescope::analysis {

// "Gloo" or "MPI", of a range such as "gloo:all_reduce"; nullptr: the name is of neither.
constexpr const char* cpu_collective_library(std::string_view name) {
  if (name.starts_with("gloo:")) return "Gloo";
  return name.starts_with("mpi:") ? "MPI" : nullptr;
}

}  // namespace lanescope::analysis

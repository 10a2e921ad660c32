// The table of calls of the CUDA runtime, HIP and the CUDA driver: what each call does, in words. cuda_call_names.cpp looks up a
// name. The rows are in the files cuda_calls_*.cpp, one file per subject.
#pragma once
#include <span>
#include <string_view>

namespace lanescope::names::events::cuda_calls {

// The APIs that have the call. Their names begin with "cuda", "hip" or "cu".
inline constexpr unsigned kCuda = 1, kHip = 2, kDriver = 4;

struct Row {
  std::string_view stem;  // the name without its prefix: "LaunchKernel"
  unsigned prefixes;      // kCuda | kHip | kDriver
  std::string_view text, what;
  std::string_view cpu_waits = {}, gpu_work = {}, note = {}, rule = {};
};

// Texts that many rows share.
inline constexpr std::string_view kNo = "no", kNone = "none";

std::span<const Row> work_calls();    // launches, graphs, waits, events, copies
std::span<const Row> memory_calls();  // allocations, frees, addresses
std::span<const Row> state_calls();   // streams, devices, contexts, code, errors

}  // namespace lanescope::names::events::cuda_calls

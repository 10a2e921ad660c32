// What kind of work most of an owner's time is, in words and numbers.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/owners.h"

namespace lanescope::explain {

enum class Mechanism : std::uint8_t {
  kGpuWork,
  kCommunication,
  kCopying,
  kLaunching,   // the GPU waits while the CPU launches work that is shorter than the launching
  kStartUp,     // the first use of libraries and kernels
  kAllocating,  // calls that allocate or free GPU memory
  kCpuWork,     // operators that compute on the CPU
  kCode,        // the thread is outside of operators and calls
  kData,        // the DataLoader
  kUnknown,     // delays that the trace does not explain
};
const char* mechanism_name(Mechanism mechanism);  // "gpu_work", "communication", ...
// What most of the owner's part of the critical path is. The CPU's launching and operators count as GPU work if their GPU work takes
// nine tenths of the owner's time or more.
Mechanism mechanism_of(const Owner& owner);
// The CPU's own time: launching, operators or code.
constexpr bool is_cpu_time(Mechanism mechanism) {
  return mechanism == Mechanism::kLaunching || mechanism == Mechanism::kCpuWork ||
         mechanism == Mechanism::kCode;
}

// For an owner whose elementwise kernels reach less than a fifth of the memory's
// bandwidth: a large input of its longest call uses one of so many elements, as a column of a matrix does. 0: not so.
std::int64_t elements_for_each_used(const Facts& facts, const Owner& owner);

// "launching: 64 kernels; the CPU takes 9.2 us for each, the GPU 2.1 us"
Sentence mechanism_text(const Facts& facts, const Owner& owner);

}  // namespace lanescope::explain

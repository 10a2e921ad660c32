// Owners in words: who it is, what kind of time it holds, and what would tell more.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain {

// What most of an owner's time is.
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
  kUnknown,     // the trace does not tell
};
const char* mechanism_name(Mechanism mechanism);  // "gpu_work", "communication", ...
Mechanism mechanism_of(const Owner& owner);

// "64 x aten::mm, in range forward"
Sentence owner_text(const Facts& facts, const Owner& owner);
// "launching: 64 kernels of 2.1 us, 9.2 us of the CPU for each"
Sentence mechanism_text(const Facts& facts, const Owner& owner);
// Both: "64 x aten::mm, in range forward: launching: ..."
Sentence owner_sentence(const Facts& facts, const Owner& owner);
// What is known of the owner's operator, or of one right inside it; null: nothing.
const rules::OperatorAdvice* known_operator(const Facts& facts, const Owner& owner);
// Does its evidence suggest a change of the program, not only what to record?
bool has_remedy(const Facts& facts, const Owner& owner);
// What its evidence suggests: the table's advice for its operator, one call for the rounds of a
// loop, or what to record. Empty: nothing.
Sentence advice_text(const Facts& facts, const Owner& owner);
// What to record to learn more of this owner; empty: nothing that the recorder can add.
std::string record_more(const Facts& facts, const Owner& owner);

}  // namespace lanescope::explain

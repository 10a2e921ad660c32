// Calls of the GPU's runtime that take long because they are the first of their kind: the context on
// the GPU is made, a library sets itself up. docs/rules/library-setup.md
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct StartUpCall {
  enum class Kind : std::uint8_t {
    kContext,   // before the first GPU work
    kLibrary,   // inside an operator that runs for the first time
    kOperator,  // the operator itself: its own code on the CPU takes long before it launches
  } kind = Kind::kContext;
  SliceId call{};
  SliceId op = kNone<SliceId>;  // kLibrary: the innermost operator around it
};

// The calls of one operator of the program, if the first ones took long: its library plans, loads or tunes in them.
struct FirstCallsOfOperator {
  std::string_view name;      // the outermost operator
  std::vector<SliceId> slow;  // kOperator, in order of time
  std::uint64_t calls = 0;    // of the innermost operator in all of the recording
  std::int64_t slow_ns = 0;   // of all of `slow` together
  std::int64_t usual_ns = 0;  // the median of the other calls; 0: there are none
  std::uint64_t again = 0;    // how many of `slow` came after a call that was not slow
};

struct StartUpCalls {
  std::vector<StartUpCall> calls;               // in order of time
  std::vector<analysis::Window> windows;        // of the calls; disjoint, in order
  std::vector<FirstCallsOfOperator> operators;  // the longest first
  // Operators that take long again in each steady step, for example because a library plans for
  // each new size. No start-up: in none of the fields above.
  std::vector<FirstCallsOfOperator> repeated;
  std::int64_t context_ns = 0;  // of the calls before the first GPU work
  std::int64_t total_ns() const;
  bool contains(SliceId call) const;  // O(calls)
};

// The rule that reports these calls.
inline constexpr char kStartUpCallsRule[] = "library-setup";

// The start-up calls of the whole recording, found once for these Facts. Needs a main device. O(n).
const StartUpCalls& start_up_calls(const Facts& facts);

// Their calls, and those that loaded code at the first use of kernels (code_loading.h). Made once for these Facts.
const std::vector<SliceId>& first_use_calls(const Facts& facts);

// The time of the steady steps in which the device was idle during the slow calls of `repeated`.
std::int64_t idle_in_repeated_calls(const Facts& facts);

// The time of the steady steps in which the device was idle during first_use_calls().
std::int64_t idle_in_first_uses(const Facts& facts);

}  // namespace lanescope::explain::rules

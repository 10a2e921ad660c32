// Code under torch.compile that runs as if it were not compiled: Dynamo looks for its compiled code in each call and finds none.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

struct UncompiledCode {
  std::uint64_t lookups = 0;   // without a compiled region after them, in the steady steps
  std::uint64_t compiled = 0;  // with one
  std::int64_t lookups_ns = 0;
  SliceId longest = kNone<SliceId>;
  explicit operator bool() const { return lookups > 0; }
};

// Lookups are counted from one per step on: Dynamo stops compiling a function for good after the recompile limit. Empty where
// anything was compiled in the steady steps. O(slices).
const UncompiledCode& find_uncompiled_code(const Facts& facts);

inline constexpr char kUncompiledAction[] =
    "It is under torch.compile and runs uncompiled: keep numbers that change out of it "
    "(TORCH_LOGS=recompiles)";

// Replaces the advice to torch.compile something that already is under torch.compile.
void leave_out_compiling(const Facts& facts, const UncompiledCode& code, Finding& finding);

}  // namespace lanescope::explain::rules

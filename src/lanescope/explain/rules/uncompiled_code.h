// Code under torch.compile that runs as if it were not compiled: Dynamo looks for its compiled code in each call and finds none.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

struct UncompiledCode {
  std::uint64_t lookups = 0;   // lookups of the steady steps that no compiled region follows
  std::uint64_t compiled = 0;  // compiled regions of the steady steps
  std::int64_t lookups_ns = 0;
  SliceId longest = kNone<SliceId>;
  explicit operator bool() const { return lookups > 0; }
};

// Empty: there is less than one such lookup per step, or something was compiled in the steady steps. One lookup per step is
// enough, because after the recompile limit Dynamo never compiles the function again. O(slices).
const UncompiledCode& find_uncompiled_code(const Facts& facts);

inline constexpr char kUncompiledAction[] =
    "It is under torch.compile and runs uncompiled: keep numbers that change out of it "
    "(TORCH_LOGS=recompiles)";

// "Use F.rms_norm, or torch.compile the module" becomes "Use F.rms_norm". False: compiling is not the last of two choices, and
// nothing changes.
bool cut_choice_of_compiling(Sentence& action);

// Replaces the advice to torch.compile something that already is under torch.compile.
void leave_out_compiling(const Facts& facts, const UncompiledCode& code, Finding& finding);

}  // namespace lanescope::explain::rules

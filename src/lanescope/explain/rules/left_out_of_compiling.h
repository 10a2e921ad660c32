// Functions that torch.compiler.disable keeps out of compiled code.
#pragma once
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// Goes outwards from the operator to the first function of the program that compiled code calls through Dynamo's wrapper.
// Returns its frame; kNone: there is none, or frames are not recorded. O(slices of the thread).
SliceId left_out_function(const Facts& facts, SliceId op);

// Replaces the advice to compile such a function, which would change nothing. `example`: an operator that the advice is about.
// False: there is no such function.
bool advise_on_left_out(const Facts& facts, SliceId example, Finding& finding);

// In a function that torch.compile compiled with a backend that generates no kernels at all, as aot_eager and eager do, or in its backward
// pass. `op`: any event of the CPU. O(slices around it, and work of the device).
bool is_compiled_to_operators(const Facts& facts, SliceId op);
inline constexpr char kUseInductor[] =
    "It is compiled without generated kernels: use backend=\"inductor\"";

}  // namespace lanescope::explain::rules

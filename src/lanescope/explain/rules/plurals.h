// "1 step", "2 steps": nouns that agree with the number before them.
#pragma once
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// say(), with "[step|steps]" in the pattern for the form that agrees with the last count before it
// ("{} [call|calls]"): the first behind 1, the second behind any other. Where the trace marks no
// steps, steady steps are one recording: "[step|steps]" becomes "recording".
Sentence say_counted(const Facts& facts, std::string pattern, std::vector<Value> values);

}  // namespace lanescope::explain::rules

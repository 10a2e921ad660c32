// What the program calls between two pieces of compiled code: often what broke the graph.
#pragma once
#include <string>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/rules/compiling.h"

namespace lanescope::explain::rules {

// The last operator that ran uncompiled between the thread's previous compiled code and this region. Of nested operators, the
// outermost: aten::item, not what it calls. kNone: there is none, or no compiled code came before in the step.
SliceId eager_before(const Facts& facts, const CompiledFacts& compiled,
                     const analysis::CompiledCall& call);

// The operator that ran right before at least half of the regions. Counts only regions that follow compiled code of their step.
struct BreakCause {
  std::string op;                    // empty: none ran before half of them
  SliceId example = kNone<SliceId>;  // the first call
  std::uint64_t breaks = 0;          // regions that it ran before, in the steady steps
};
// `only_nested`: looks only at regions inside another region, and counts all of these.
BreakCause break_cause(const Facts& facts, const CompiledFacts& compiled, bool only_nested);

// True: Dynamo does not trace this operator by default.
bool is_known_break(const std::string& op);
// What to do about an operator that breaks a graph; a row of a table, or general advice.
Sentence advice_on_break(const std::string& op);

}  // namespace lanescope::explain::rules

// What happened once and is large beside what "Do first" advises, for the first screen.
// docs/definitions/explain.md#first-screen
#pragma once
#include <vector>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::explain {

// "Once: the GPU was idle for 186 ms in step 5. Record more steps ...". `first`: what is advised. Empty pattern: nothing happened once that
// took longer than all measured steps together (so more than any advice would save in them), its rule has no such sentence
// (Finding::once), or one of `first` is about what happened once. Of several, the one with the most time; if others have nine tenths of
// that, the rule with the lowest order.
Sentence happened_once(const Facts& facts, const Explanation& explanation,
                       const std::vector<Suggestion>& first);

}  // namespace lanescope::explain

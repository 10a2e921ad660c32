// Where in the user's code a finding lies.
#pragma once
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain {

// "in forward (model.py:62)". Empty: unknown, or half of the finding's work is elsewhere. A finding about all launches, or all work of a
// step, lies where most of the step's work is launched.
Sentence place_of_finding(const Facts& facts, const Finding& finding, bool is_of_all_launches);

}  // namespace lanescope::explain

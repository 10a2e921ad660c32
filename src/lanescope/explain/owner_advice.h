// What to do about an owner: a change of the program, or what to record to learn more.
#pragma once
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rules/operator_advice.h"

namespace lanescope::explain {

// The owner is calls of one operator, alone or as rounds of a loop.
bool is_one_operator(const Owner& owner);
// What is known of the owner's operator, or of one right inside it; null: nothing.
const rules::OperatorAdvice* known_operator(const Facts& facts, const Owner& owner);
// True: its evidence suggests a change of the program, not only what to record.
bool has_remedy(const Facts& facts, const Owner& owner);
// What its evidence suggests: the table's advice for its operator, one call for the rounds of a
// loop, or what to record. Empty: nothing.
Sentence advice_text(const Facts& facts, const Owner& owner);
// True: it is one operator of known shapes, whose kernels reach at least three fifths of what the GPU can
// do, so mostly less work helps.
bool uses_gpu_well(const Owner& owner);
// What to record to learn more of this owner; empty: nothing that the recorder can add.
std::string record_more(const Facts& facts, const Owner& owner);

}  // namespace lanescope::explain

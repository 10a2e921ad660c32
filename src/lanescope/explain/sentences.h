// Sentences that agree with the trace and with their numbers: the one place that decides between "a
// step takes" and "the recording takes", and between "1 call" and "2 calls".
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain {

// say(), with words in brackets in the pattern:
//   "{} [call|calls]"  the first form after the count 1, the second after any other. It agrees with
//                      the last count before it, also when other values come between
//   "{} [per step]"    "{} per step"; where the trace marks no steps: "{}"
//   "[a step takes]"   or "the recording takes"; also [a step then takes] or "the same work then takes", [a step took] and [a step's]
//   "[in {} steps]"    "per step", and the count right before it is divided by the steps; "in {} steps" if it is below ten
//                      per step and does not divide; or "in the recording", without the value. "once per step" of one time
//   "[if batch| words]"  the words where the program works on a batch (rules::works_on_batch), else nothing
//   "[if a batch spares launches| words]"  the same, but not where most launches are for parameters, or of loops over parts
//                      of a tensor: a larger batch makes as many of those
//   "[limit CPU|CPU-bound:]", "[no limit|No single limit:]", "[limit|Idle:]"  first in the pattern: the words, and Sentence::limit says which they are
// Other brackets stay.
Sentence say(const Facts& facts, std::string_view pattern,
             std::initializer_list<Value> values = {});
Sentence say(const Facts& facts, std::string_view pattern, std::vector<Value> values);
// The same for words without values, such as a line of Finding::try_next.
std::string words_for(const Facts& facts, std::string_view pattern);

// "step", or "recording" where the trace marks no steps.
const char* step_noun(const Facts& facts);

}  // namespace lanescope::explain

// What `lanescope explain` shows instead of "Do first" if there is no finding to act on.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/explain/time_takers.h"

namespace lanescope::report {

// "No known fault". Of other devices than GPUs little is known, and the headline may name what bounds the step: "What takes the time".
const char* nothing_title(const explain::Facts& facts);

struct NothingToDo {
  std::string remark;                      // that there is none, or that the trace is too small
  std::vector<explain::TimeTaker> takers;  // where the time goes instead
  std::string next;                        // "To go further: ..."; empty: no advice
};
NothingToDo nothing_to_do(const explain::Facts& facts, const explain::Explanation& explanation);
// The same as lines. Empty: there is no wall.
std::vector<std::string> nothing_to_do_lines(const explain::Facts& facts,
                                             const explain::Explanation& explanation,
                                             bool markdown = false);

// The largest of the first `shown` owners for which a change is known; null: there is none, or the
// trace holds too little for advice.
const explain::Owner* owner_with_remedy(const explain::Facts& facts, std::size_t shown);
// True: the largest owner has more than half of the time, uses the GPU well, and none of these
// suggestions gains a tenth of the step: what is left is less work.
bool is_left_with_less_work(const explain::Facts& facts,
                            const std::vector<explain::Suggestion>& suggestions);

}  // namespace lanescope::report

// The words of `lanescope explain` that its text and its page share: values, causes, headings,
// places.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/model/trace.h"

namespace lanescope::report {

// A value of a sentence with its unit. Names of the trace become one line of at most 70 code
// points, kernels their short form; control characters are replaced.
std::string value_text(const explain::Value& value);

const char* idle_cause_text(analysis::IdleCause cause);
const char* host_part_text(analysis::HostPart part);

// "Wall of a step on device 0".
std::string wall_title_text(const explain::Facts& facts);

// The heading above the findings of a kind.
std::string finding_group_title(const explain::Finding& finding);
// "step", "steps", "copies": what the samples of a finding are, without their number.
std::string sample_noun_text(const explain::Finding& finding);

// Which steps numbers per step come from, in words.
std::string steady_steps_text(const explain::Facts& facts);
// Does the headline say this first of all, so that it need not be said again?
bool is_headline(const explain::Explanation& explanation, const explain::Finding& finding);

// The rules that were asked, those that found something before the others.
std::vector<explain::RuleRun> runs_found_first(const explain::Explanation& explanation);
// Which finding is the rule's, counted from 1.
std::optional<std::size_t> finding_number(const explain::Explanation& explanation,
                                          const explain::RuleRun& run);
// What came of a rule that was asked: "see 2 below", "no issue, or below the threshold", what is
// missing.
std::string rule_answer_text(const explain::Explanation& explanation, const explain::RuleRun& run);

// Numbers of slow steps, given as indices into facts.steady; five at most.
std::string slow_steps_text(const explain::Facts& facts, const std::vector<std::size_t>& slow);

// "stream 7", "thread 1241".
std::string track_place(const Track& track);

}  // namespace lanescope::report

// Texts that `lanescope explain` uses in its screen, its full text and its page: values, causes,
// headings, places.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/model/trace.h"

namespace lanescope::report {

// A value of a sentence with its unit. Names become one line of at most 70 code points, kernels get
// their short form, control characters are replaced.
std::string value_text(const explain::Value& value);

// The sentence in order: each text between its values, and each value.
void visit_sentence(const explain::Sentence& sentence,
                    const std::function<void(std::string_view)>& on_text,
                    const std::function<void(const explain::Value&)>& on_value);
// The sentence with its values as `text_of` writes them. `markdown`: escapes text from the trace.
std::string fill_sentence(const explain::Sentence& sentence, bool markdown,
                          std::string (*text_of)(const explain::Value& value));

const char* idle_cause_text(analysis::IdleCause cause);
const char* host_part_text(analysis::HostPart part);

// "Wall of a step on device 0".
std::string wall_title_text(const explain::Facts& facts);

// The heading above the findings of a kind.
std::string finding_group_title(const explain::Finding& finding);
// The samples of a finding, singular or plural, without the number: "step", "steps", "copies".
std::string sample_noun_text(const explain::Finding& finding);

// Which steps the numbers per step come from, in words.
std::string steady_steps_text(const explain::Facts& facts);

// How many of them: "4 steady steps", "1 step"; of an unmarked trace "the recording".
std::string step_count_text(const explain::Facts& facts);

// "Step 5 took ... and is left out." with its newline; empty: no step is so long.
std::string long_step_line(const explain::Facts& facts);

// True: the headline begins with this finding's verdict, so it need not be repeated.
bool is_headline(const explain::Explanation& explanation, const explain::Finding& finding);

// True: the finding's rule declares this property. False also for a finding of no rule.
bool declares(const explain::Finding& finding, bool explain::Rule::*property);

// The rules that ran: first those that found something, then the others.
std::vector<explain::RuleRun> runs_found_first(const explain::Explanation& explanation);
// The number of the rule's finding, from 1.
std::optional<std::size_t> finding_number(const explain::Explanation& explanation,
                                          const explain::RuleRun& run);
// The answer of a rule: "see 2 below", "no issue, or below the threshold", or what is missing.
std::string rule_answer_text(const explain::Explanation& explanation, const explain::RuleRun& run);

// The numbers of slow steps, at most five. `slow`: indices into facts.selection.steady.
std::string slow_steps_text(const explain::Facts& facts, const std::vector<std::size_t>& slow);

// "stream 7", "thread 1241".
std::string track_place(const Track& track);

}  // namespace lanescope::report

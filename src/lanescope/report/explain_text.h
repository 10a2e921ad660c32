// `lanescope explain` as text, as Markdown and as JSON.
#pragma once
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::report {

// The sentence with exact numbers. Names are shortened, control characters replaced. `markdown`:
// escapes text from the trace.
std::string sentence_text(const explain::Sentence& sentence, bool markdown = false);

struct ExplanationTextOptions {
  bool markdown = false;  // with # headings
  // Lists every rule without an issue by id; else long lists are only counted.
  bool every_rule = false;
};

// Everything: headline, the wall of a step as bars, what to do first, findings with evidence, and
// what was not checked. Times of evidence count from the start of the trace's window.
std::string explanation_text(const explain::Facts& facts, const explain::Explanation& explanation,
                             ExplanationTextOptions options = {});

// docs/formats/json_output.md, command "explain": all devices, all steps, nanoseconds.
std::string explanation_json(const explain::Facts& facts, const explain::Explanation& explanation);

// One line per rule: id and question.
std::string rule_list_text();
std::string rule_list_json();

// The JSON key of an idle cause: "host_late", ...
const char* idle_cause_key(analysis::IdleCause cause);
// The JSON key of a part of the CPU's time: "backward_ns", ...
const char* host_part_key(analysis::HostPart part);

}  // namespace lanescope::report

// `lanescope explain` as text, as Markdown and as JSON.
#pragma once
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::report {

// The sentence with its numbers written out; names shortened and with control characters replaced.
// `markdown`: words of the trace escaped.
std::string sentence_text(const explain::Sentence& sentence, bool markdown = false);

struct ExplanationTextOptions {
  bool markdown = false;  // with # headings
  bool every_rule =
      false;  // name each rule that had nothing to say; else more than a few are counted
};

// Headline, the wall of a step as bars, what to do first, findings with evidence, and what was not
// checked: all that explain_screen.h leaves out. Times of
// evidence count from the start of the trace's window.
std::string explanation_text(const explain::Facts& facts, const explain::Explanation& explanation,
                             ExplanationTextOptions options = {});

// docs/formats/json_output.md, command "explain": all devices, all steps, nanoseconds.
std::string explanation_json(const explain::Facts& facts, const explain::Explanation& explanation);

// One line a rule: id and question.
std::string rule_list_text();
std::string rule_list_json();

// The key of an idle cause in JSON: "host_late", ...
const char* idle_cause_key(analysis::IdleCause cause);
// "backward_ns": the key of a part of the CPU's time in JSON.
const char* host_part_key(analysis::HostPart part);

}  // namespace lanescope::report

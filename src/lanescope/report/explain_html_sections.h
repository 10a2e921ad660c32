// The parts of the page of explain_html.h, each a <section> or nothing.
#pragma once
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/model/trace.h"

namespace lanescope::report {

// A sentence with its numbers in <b> and names of the trace in <code>.
std::string sentence_html(const explain::Sentence& sentence);

// Bars, columns and the exact nanoseconds; without GPU work the parts of the CPU's time.
std::string wall_section_html(const explain::Facts& facts);
// Every finding with its evidence and pictures.
std::string findings_section_html(const explain::Facts& facts,
                                  const explain::Explanation& explanation);
// Every rule that was asked by name, and what came of it.
std::string answers_section_html(const explain::Explanation& explanation);
// What was looked at and is not so, and what was not checked and why.
std::string asked_section_html(const explain::Explanation& explanation);
// Time per operator name over the whole trace, first rows by self GPU time, without a GPU by self
// CPU time.
std::string key_averages_section_html(const Trace& trace);
// How to read the page.
std::string legend_section_html();
// Swatches of the parts of a wall.
std::string wall_key_html();

// The style sheet and the script, and the hashes of both as the Content-Security-Policy takes them.
extern const char kPageStyle[];
extern const char kPageScript[];
extern const char kPageStyleHash[];
extern const char kPageScriptHash[];

}  // namespace lanescope::report

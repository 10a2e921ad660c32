// The parts of the page of explain_html.h, each a <section> or nothing.
#pragma once
#include <functional>
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/model/trace.h"
#include "lanescope/report/svg_writer.h"

namespace lanescope::report {

// A sentence with its numbers in <b> and names of the trace in <code>.
std::string sentence_html(const explain::Sentence& sentence);

// Bars, columns and the exact nanoseconds; without GPU work the parts of the CPU's time.
std::string wall_section_html(const explain::Facts& facts);
// What to do first, each with a link to its finding; without links in a frame. Where there is
// nothing to do, where the time goes. Empty: there is no wall.
std::string do_first_section_html(const explain::Facts& facts,
                                  const explain::Explanation& explanation, bool has_links);
// Every finding; its arithmetic, evidence and pictures unfold on demand.
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
// A picture for wide screens and the same for narrow ones; the style sheet shows one of them.
// `draw` gets an id for the element and the width.
std::string picture_html(
    const std::string& id,
    const std::function<std::string(const std::string& id, PictureWidth width)>& draw);
// Swatches of the parts of a wall.
std::string wall_key_html();

// The style sheet and the script, and the hashes of both as the Content-Security-Policy takes them.
extern const char kPageStyle[];
extern const char kPageScript[];
extern const char kPageStyleHash[];
extern const char kPageScriptHash[];

}  // namespace lanescope::report

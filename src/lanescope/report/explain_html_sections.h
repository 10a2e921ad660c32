// The parts of the page of explain_html.h. Each is a <section>, or empty if it has nothing to show.
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

// The parts of the wall as bars, columns and exact nanoseconds. Without GPU work: the parts of the CPU's time.
std::string wall_section_html(const explain::Facts& facts);
// What to do first. With `has_links`, each item links to its finding. If there is nothing to do:
// where the time goes. Empty: there is no wall.
std::string do_first_section_html(const explain::Facts& facts,
                                  const explain::Explanation& explanation, bool has_links);
// Every finding; its arithmetic, evidence and pictures unfold on demand.
std::string findings_section_html(const explain::Facts& facts,
                                  const explain::Explanation& explanation);
// If the user chose rules by id or by a question: each of these rules with its answer.
std::string asked_rules_section_html(const explain::Explanation& explanation);
// If not: the rules without an issue, and the rules that were not checked, with the reason.
std::string other_rules_section_html(const explain::Explanation& explanation);
// Time per operator name over the whole trace: the rows with most self GPU time. Without
// a GPU: the rows with most self CPU time.
std::string key_averages_section_html(const Trace& trace);
// How to read the page.
std::string legend_section_html();
// The same picture twice, for wide and for narrow screens; the style sheet shows one of the two.
// `draw` gets the id of the element and the width.
std::string picture_html(
    const std::string& id,
    const std::function<std::string(const std::string& id, PictureWidth width)>& draw);
// The colours of the parts of a wall.
std::string wall_legend_html();

// The style sheet and the script, and their hashes as a Content-Security-Policy writes them.
extern const char kPageStyle[];
extern const char kPageScript[];
extern const char kPageStyleHash[];
extern const char kPageScriptHash[];

}  // namespace lanescope::report

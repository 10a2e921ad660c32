// The first screen of `lanescope explain`: the verdict, the wall, what to do first, how many more
// findings there are. docs/definitions/explain.md#first-screen
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::report {

// Damage and losses that affect the numbers, one line each.
std::vector<std::string> damage_lines(const explain::Explanation& explanation,
                                      bool markdown = false);

// "5 more findings, 3 notes on the recording"; empty: all are shown. `first`: what "Do first"
// shows.
std::string rest_text(const explain::Explanation& explanation,
                      const std::vector<explain::Suggestion>& first);

// "Do first"; where none of these suggestions may gain 5 % of a step, the title says so.
std::string do_first_title(const explain::Facts& facts, const explain::Explanation& explanation,
                           const std::vector<explain::Suggestion>& first);

// "predicted 2.90 ms (at most 3.20 ms)", "up to 15.7 us (8 %)", "up to about 3.64 ms (75 %)",
// "up to 3.64 ms +- 3.07 ms (75 %)", "13.1 ms to 36.8 ms"; empty: no time is at stake.
std::string gain_text(const explain::Suggestion& suggestion);
// "Fixes 1 and 3 together: predicted 4.10 ms."; empty: fewer than two are predicted.
std::string together_text(const explain::Explanation& explanation,
                          const std::vector<explain::Suggestion>& first);

// What to do, and where in the user's code.
std::string action_text(const explain::Suggestion& suggestion, bool markdown = false);

struct ScreenOptions {
  std::size_t width = 100;     // of a line, in columns; limited to 80..100
  bool colour = false;         // bold headline and headings
  std::string full_hint = {};  // how to see the rest: "lanescope explain --full trace.json"
};

// Usually 24 lines or fewer; long names and many losses make more. Without `colour`, plain text.
std::string explanation_screen(const explain::Facts& facts, const explain::Explanation& explanation,
                               const ScreenOptions& options = {});

}  // namespace lanescope::report

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

// Numbers for a first look: three digits and a unit ("16.7 ms", "941 us"); whole percent ("<1 %").
std::string rounded_time(std::int64_t ns);
std::string rounded_percent(double ratio);
// The sentence with its numbers rounded in this way. `markdown`: escapes text from the trace.
std::string rounded_sentence(const explain::Sentence& sentence, bool markdown = false);

// The wall of a step in at most four parts, largest first; if there are more, the fourth is
// "everything else". They add up to the wall, except for rounding.
struct WallLine {
  std::string label;
  std::int64_t per_step_ns = 0;
  double ratio = 0;  // of the wall
};
std::vector<WallLine> wall_lines(const explain::Facts& facts);

// "step (mean of 17-21)", "step 3", "recording": what the wall is of.
std::string wall_subject(const explain::Facts& facts);

// Damage and losses that affect the numbers, one line each.
std::vector<std::string> damage_lines(const explain::Explanation& explanation,
                                      bool markdown = false);

// "5 more findings, 3 notes on the recording"; empty: all are shown. `first`: what "Do first"
// shows.
std::string rest_text(const explain::Explanation& explanation,
                      const std::vector<explain::Suggestion>& first);

// "predicted 2.90 ms (at most 3.20 ms)", "up to 15.7 us (8 %)"; empty: no time is at stake.
std::string gain_text(const explain::Suggestion& suggestion);
// "Fixes 1 and 3 together: predicted 4.10 ms."; empty: fewer than two are predicted.
std::string together_text(const explain::Explanation& explanation,
                          const std::vector<explain::Suggestion>& first);
// What gains are of: the step without the profiler; empty: none is predicted.
std::string base_text(const explain::Facts& facts, const explain::Explanation& explanation);

// What to do, and where in the user's code.
std::string action_text(const explain::Suggestion& suggestion, bool markdown = false);

// "Most of the GPU's time: GEMM bf16 25 %; mul, bf16 11 %.": if the GPU computes for half of a step
// or more; else empty.
std::string largest_kernels_text(const explain::Facts& facts);

// Shown instead of "Do first" if there is no finding to act on.
struct NothingToDo {
  std::string remark;                      // that there is none, or that the trace is too small
  std::vector<explain::TimeTaker> takers;  // where the time goes instead
  std::string next;                        // "To go further: ..."; empty: no advice
};
inline constexpr char kNothingTitle[] = "No known fault";
NothingToDo nothing_to_do(const explain::Facts& facts, const explain::Explanation& explanation);
// The same as lines. Empty: there is no wall.
std::vector<std::string> nothing_to_do_lines(const explain::Facts& facts,
                                             const explain::Explanation& explanation,
                                             bool markdown = false);

struct ScreenOptions {
  std::size_t width = 100;     // of a line, in columns; limited to 80..100
  bool colour = false;         // bold headline and headings
  std::string full_hint = {};  // how to see the rest: "lanescope explain --full trace.json"
};

// Usually 24 lines or fewer; long names and many losses make more. Without `colour`, plain text.
std::string explanation_screen(const explain::Facts& facts, const explain::Explanation& explanation,
                               const ScreenOptions& options = {});

}  // namespace lanescope::report

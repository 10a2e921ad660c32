// How to read the page, for readers who see a timeline for the first time.
#include <fmt/format.h>

#include "lanescope/report/explain_html_sections.h"

namespace lanescope::report {
namespace {

std::string swatch(const char* css_class) {
  return fmt::format(
      "<svg width=\"26\" height=\"14\" aria-hidden=\"true\"><rect x=\"1\" y=\"1\" width=\"24\" "
      "height=\"12\" class=\"{}\"/></svg>",
      css_class);
}

void entry(std::string& html, const char* css_class, const char* term, const char* meaning) {
  html += fmt::format("<dt>{} {}</dt><dd>{}</dd>\n", swatch(css_class), term, meaning);
}

}  // namespace

std::string legend_section_html() {
  std::string html =
      "<section id=\"legend\" class=\"legend\">\n<h2>How to read this page</h2>\n"
      "<p>A program that uses a GPU runs in two places. On the CPU, operators call the "
      "driver to <b>launch</b> work; on the GPU, that work waits in a <b>stream</b> until the "
      "work before it is done. The CPU usually does not wait: it launches ahead. When it cannot "
      "launch fast enough, or waits for a result, the GPU runs out of work and is idle.</p>\n"
      "<p>A picture is a timeline: time runs from left to right, and the 0 of its axis is the "
      "moment that the caption names. Each row is a place, each bar something that went on there "
      "from its left end to its right end. On the CPU, a bar below another one was called by it. "
      "An empty stretch is a gap: nothing was recorded there.</p>\n<dl>\n";
  entry(html, "k-op", "operator", "a torch operator on the CPU, aten::mm for example");
  entry(html, "k-range", "range",
        "a named stretch of the program: a step, record_function, an optimizer");
  entry(html, "k-python", "Python call", "a frame of the program's own code");
  entry(html, "k-call", "GPU call",
        "the CPU asks the driver (CUDA, HIP): launch, copy, wait, allocate");
  entry(html, "k-compute", "compute", "a kernel that calculates, on the GPU");
  entry(html, "k-comm", "communication", "a kernel that exchanges data with other GPUs");
  entry(html, "k-copy", "copy", "memory is copied or set, on the GPU");
  entry(html, "k-wait", "GPU idle",
        "no stream of the GPU ran anything; the text says why, as far as the trace can tell. In "
        "the bars of a step: idle because the CPU had not launched");
  entry(html, "k-idle", "idle for other reasons",
        "in the bars of a step: idle although work was launched, or for an unknown reason");
  entry(html, "k-op evidence", "evidence",
        "the event that the finding is about: heavy outline, and a dashed band through all rows");
  html +=
      "<dt>arrow</dt><dd>from the end of a launch call to the start of what it launched. A long "
      "arrow to the right: the work waited for other work, the GPU was busy. A short one after "
      "a gap: the GPU waited for the CPU</dd>\n"
      "<dt>small triangle</dt><dd>the bar continues outside of the picture</dd>\n"
      "<dt>low bar</dt><dd>several events too short to be drawn apart; its height is the share of "
      "the time that they take</dd>\n"
      "<dt>at stake</dt><dd>how much shorter a step could become at most if the cause were gone. "
      "Findings overlap: never add these numbers up</dd>\n"
      "<dt>confidence</dt><dd>&#9679;&#9679;&#9679; from many samples, &#9679;&#9675;&#9675; from "
      "one or two: record more steps before acting on it</dd>\n"
      "<dt>steady steps</dt><dd>all but the first, which also pays for start-up, and but a step "
      "that took longer than all others together</dd>\n</dl>\n"
      "</section>\n";
  return html;
}

}  // namespace lanescope::report

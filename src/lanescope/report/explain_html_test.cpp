#include "lanescope/report/explain_html.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "lanescope/analysis/thinning.h"
#include "lanescope/report/explain_html_sections.h"
#include "lanescope/report/html_escape.h"
#include "lanescope/report/svg_time_axis.h"
#include "lanescope/report/svg_wall_bars.h"
#include "lanescope/report/svg_writer.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/thinning_text.h"
#include "lanescope/testing/program_sketch.h"
#include "lanescope/testing/sanitizers.h"

namespace lanescope::report {
namespace {

using explain::WallTimes;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramSketch;
using testing::Sketch;

std::string page_of(const Trace& trace, const PageOptions& options = {}) {
  const auto facts = explain::gather_facts(trace);
  EXPECT_TRUE(facts);
  const auto explanation = explain::run_rules(*facts);
  EXPECT_TRUE(explanation);
  return explanation_html(*facts, *explanation, options);
}

std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(HtmlEscapeTest, NoTextOpensATagOrEndsAnAttribute) {
  EXPECT_EQ(html_escaped("<a b=\"c\" d='e'>&amp;"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;");
  EXPECT_EQ(html_escaped("gr\xC3\xBCn \xF0\x9F\x98\x80"), "gr\xC3\xBCn \xF0\x9F\x98\x80");
}

TEST(HtmlEscapeTest, ControlsDirectionsAndBrokenBytesAreShown) {
  using namespace std::string_view_literals;
  EXPECT_EQ(html_escaped("a\x1b[31m\0b"sv), "a\\u001b[31m\\u0000b");
  EXPECT_EQ(html_escaped("\xE2\x80\xAE"), "\\u202e");          // right-to-left override
  EXPECT_EQ(html_escaped("\xFF\xC3"), "\\xff\\xc3");           // no UTF-8, cut UTF-8
  EXPECT_EQ(html_escaped("\xC0\xBC"), "\\xc0\\xbc");           // '<' the long way
  EXPECT_EQ(html_escaped("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // half a surrogate pair
  EXPECT_EQ(html_escaped("\xEF\xBF\xBF"), "\\uffff");          // not a character in XML
}

TEST(HtmlEscapeTest, NamesAreCutBeforeTheyAreEscaped) {
  EXPECT_EQ(html_shortened("<<<<<<<<", 5), "&lt;&lt;...");
  EXPECT_LT(html_shortened(std::string(10'000'000, '<'), 60).size(), 400u);
}

TEST(TimeAxisTest, TicksAreRoundAndShareAUnit) {
  std::vector<std::string> labels;
  for (const TimeTick& tick : time_ticks(27'000, 8)) labels.push_back(tick.label);
  EXPECT_THAT(labels, ::testing::ElementsAre("0", "5 us", "10 us", "15 us", "20 us", "25 us"));
  labels.clear();
  for (const TimeTick& tick : time_ticks(1'600'000, 8)) labels.push_back(tick.label);
  EXPECT_THAT(labels, ::testing::ElementsAre("0", "0.2 ms", "0.4 ms", "0.6 ms", "0.8 ms", "1.0 ms",
                                             "1.2 ms", "1.4 ms", "1.6 ms"));
  EXPECT_EQ(time_ticks(0, 8).size(), 1u);
  EXPECT_LE(time_ticks(INT64_MAX, 8).size(), 10u);
}

WallTimes wall_of(std::int64_t compute_ns, std::int64_t host_late_ns) {
  WallTimes times;
  times.partition.compute_ns = compute_ns;
  times.partition.idle_ns = host_late_ns;
  times.partition.wall_ns = compute_ns + host_late_ns;
  times.idle[static_cast<std::size_t>(analysis::IdleCause::kHostLate)] = host_late_ns;
  return times;
}

TEST(WallBarsTest, PartsAddUpToTheWall) {
  WallTimes times = wall_of(70, 20);
  times.partition.idle_ns += 10;  // between queued work: idle for another reason
  times.partition.wall_ns += 10;
  times.idle[static_cast<std::size_t>(analysis::IdleCause::kBetweenQueued)] = 10;
  EXPECT_THAT(wall_parts(times, true), ::testing::ElementsAre(70, 0, 0, 20, 10));
}

TEST(WallBarsTest, TheFirstLaunchIsAStepsAffairOnlyInMarkedSteps) {
  WallTimes times = wall_of(50, 0);
  times.partition.idle_ns = times.partition.wall_ns = 8;
  times.idle[static_cast<std::size_t>(analysis::IdleCause::kBeforeFirstWork)] = 8;
  EXPECT_EQ(wall_parts(times, true)[3], 8);
  EXPECT_EQ(wall_parts(times, false)[3], 0);
  EXPECT_EQ(wall_parts(times, false)[4], 8);
}

TEST(WallBarsTest, ManyStepsShareColumnsAndKeepTheirLongest) {
  std::vector<WallTimes> walls(1002, wall_of(30, 10));
  walls[0] = wall_of(900, 100);
  walls[500] = wall_of(30, 70);
  const auto columns = step_columns(walls, true);
  ASSERT_LE(columns.size(), kMostStepColumns);
  EXPECT_EQ(columns.front().count, 1u);
  EXPECT_EQ(columns.front().mean_ns, 1000);
  EXPECT_EQ(columns.back().count, 1u);
  std::size_t steps = 0;
  bool seen = false;
  for (const StepColumn& column : columns) {
    EXPECT_EQ(column.first, steps);
    steps += column.count;
    seen = seen || column.longest_ns == 100;
  }
  EXPECT_EQ(steps, walls.size());
  EXPECT_TRUE(seen);
}

// Four steps of ten launches: the CPU takes 10 us per launch, the GPU works 1 of them.
TEST(ExplainHtmlTest, HoldsVerdictNumbersPicturesAndLegend) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) program.launch({.us = 1});
    program.end();
  }
  const std::string page = page_of(program.trace(), {.trace_name = "run.json"});
  EXPECT_THAT(page, HasSubstr("<h1>CPU-bound: of the <b>100.000us</b> a step takes"));
  EXPECT_THAT(page, HasSubstr("mean of 3 steady steps"));
  EXPECT_THAT(page, HasSubstr("<td class=\"n\">100,000 ns</td><td class=\"n\">100.00%</td>"));
  EXPECT_THAT(page, HasSubstr("<title>run.json, explained</title>"));
  EXPECT_THAT(page, HasSubstr("evidence: aten::mm"));
  EXPECT_THAT(page, HasSubstr("Timeline around the evidence"));
  EXPECT_THAT(page, HasSubstr("How to read this page"));
  EXPECT_THAT(page, HasSubstr("<code>lone-gap</code>"));
  EXPECT_EQ(count_of(page, "<svg"), count_of(page, "</svg>"));
  EXPECT_EQ(count_of(page, "<section"), count_of(page, "</section>"));
}

TEST(ExplainHtmlTest, WithNothingToDoThePageSaysWhereTheTimeGoes) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    for (int k = 0; k < 3; ++k) program.launch({.name = "my_kernel", .us = 300});
    program.end();
  }
  const std::string page = page_of(program.trace());
  EXPECT_THAT(page, HasSubstr("<section id=\"first\">\n<h2>No known fault</h2>"));
  EXPECT_THAT(page,
              HasSubstr("3 x aten::mm: GPU work: 3 kernels, mostly my_kernel of 300 us</li>"));
}

// Verdict, picture, what to do, evidence on demand.
TEST(ExplainHtmlTest, WhatToDoComesAfterThePictureAndBeforeTheEvidence) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) program.launch({.us = 1});
    program.end();
  }
  const Trace trace = program.trace();
  const std::string page = page_of(trace);
  const std::size_t wall = page.find("<section id=\"wall\">"),
                    first = page.find("<h2>Do first</h2>");
  ASSERT_NE(first, std::string::npos);
  EXPECT_LT(wall, first);
  EXPECT_LT(first, page.find("<section id=\"findings\">"));
  EXPECT_THAT(page, HasSubstr("<a href=\"#first\">What to do</a>"));
  EXPECT_THAT(page, HasSubstr("<b>up to "));
  EXPECT_THAT(page, HasSubstr("<summary>The arithmetic and the evidence</summary>"));
  EXPECT_THAT(page_of(trace, {.has_links = false}), HasSubstr("<h2>Do first</h2>"));
}

TEST(ExplainHtmlTest, LoadsNothing) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) program.step().launch({.us = 50}).wait().end();
  const std::string page = page_of(program.trace());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* loader : {"src=", "@import", "<link", "url(http", "<img", "<iframe", "fetch("})
    EXPECT_THAT(page, Not(HasSubstr(loader)));
  EXPECT_EQ(count_of(page, "<script>"), 1u);
  EXPECT_EQ(count_of(page, " style="), 0u);
}

TEST(ExplainHtmlTest, NamesOfATraceStayText) {
  const std::string evil = "</script><img src=x onerror=alert(1)>\"'--><svg onload=alert(2)>";
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin(evil);
    for (int k = 0; k < 10; ++k) program.launch({.name = evil, .us = 1, .op = evil});
    program.end().wait(evil).end();
  }
  const std::string page = page_of(program.trace(), {.trace_name = evil});
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<svg onload")));
  EXPECT_EQ(count_of(page, "</script>"), 1u);
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
}

// A name of a megabyte in every place: cut everywhere.
TEST(ExplainHtmlTest, LongNamesAreCut) {
  const std::string long_name(1'000'000, 'x');
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin(long_name);
    for (int k = 0; k < 10; ++k) program.launch({.name = long_name, .us = 1, .op = long_name});
    program.end().wait(long_name).end();
  }
  EXPECT_LT(page_of(program.trace(), {.trace_name = long_name}).size(), 300'000u);
}

TEST(ExplainHtmlTest, ManyStepsMakeASmallPage) {
  constexpr int kSteps = testing::kSanitizers ? 10'000 : 100'000;
  ProgramSketch program;
  for (int i = 0; i < kSteps; ++i) program.step().launch({.us = 2}).launch({.us = 3}).end();
  const std::string page = page_of(program.trace());
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_THAT(page, HasSubstr(format_count(kSteps) + " steps in order of time"));
  EXPECT_THAT(page, HasSubstr(format_count(kSteps - 40) + " are left out"));
}

// The texts of narrow pictures that begin before or end after their picture of 340 units.
std::vector<std::string> texts_outside(const std::string& page) {
  std::vector<std::string> outside;
  static const std::regex kText(
      "<text x=\"([-0-9.]+)\"[^>]*?(?:text-anchor=\"(middle|end)\")?>([^<]*)</text>");
  for (std::size_t at = page.find("viewBox=\"0 0 340.0 "); at != page.npos;
       at = page.find("viewBox=\"0 0 340.0 ", at + 1)) {
    const std::string svg = page.substr(at, page.find("</svg>", at) - at);
    for (std::sregex_iterator each(svg.begin(), svg.end(), kText), end; each != end; ++each) {
      const double width = SvgWriter::width_of((*each)[3].str());
      const double share = (*each)[2] == "middle" ? 0.5 : (*each)[2] == "end" ? 1 : 0;
      const double from = std::stod((*each)[1]) - width * share;
      if (from < -2 || from + width > 342) outside.push_back((*each)[3]);
    }
  }
  return outside;
}

TEST(ExplainHtmlTest, EveryPictureIsThereForNarrowScreensTooAndFits) {
  ProgramSketch program;
  for (int i = 0; i < 40; ++i) {
    program.step().begin("a range with a name that is longer than a phone is wide, by far");
    for (int k = 0; k < 10; ++k) program.launch({.name = "a_kernel_with_a_long_name", .us = 1 + k});
    program.end().wait("aten::an_operator_with_a_long_name").end();
  }
  const std::string page = page_of(program.trace());
  EXPECT_GE(count_of(page, "class=\"picture wide\""), 3u);  // bars, columns, evidence
  EXPECT_EQ(count_of(page, "class=\"picture wide\""), count_of(page, "class=\"picture narrow\""));
  EXPECT_EQ(count_of(page, "viewBox=\"0 0 860.0 "), count_of(page, "viewBox=\"0 0 340.0 "));
  EXPECT_THAT(texts_outside(page), ::testing::IsEmpty());
  EXPECT_THAT(kPageStyle, Not(HasSubstr("min-width:700px")));
}

// Without steps the page is about the recording, and names the part of the file that it shows.
TEST(ExplainHtmlTest, WhatTheRecordingIsStandsBesideWhatWasRecorded) {
  Sketch host;
  host.slice("Trace", "PyTorch Profiler (0)", 0, 200'000).op("aten::mm", 50'000, 117'000);
  const std::string page = page_of(host.trace());
  EXPECT_THAT(page, HasSubstr("200.000us recorded"));
  EXPECT_THAT(page, HasSubstr("; &quot;the recording&quot; below is the 117.000us of it from the "
                              "first operator to the end of the last.</p>"));
  ProgramSketch steps;
  for (int i = 0; i < 4; ++i) steps.step().launch({.us = 50}).wait().end();
  EXPECT_THAT(page_of(steps.trace()), Not(HasSubstr("the recording&quot; below")));
}

TEST(ExplainHtmlTest, WithoutAGpuNoLaneOfItsCallsIsDrawn) {
  Sketch host;
  for (int i = 0; i < 20; ++i) {
    host.annotation("ProfilerStep#" + std::to_string(i), i * 1'000'000, 900'000);
    host.op("aten::mm", i * 1'000'000 + 100, 800'000);
  }
  const std::string page = page_of(host.trace());
  EXPECT_THAT(page, HasSubstr("Timeline around the evidence"));
  EXPECT_THAT(page, Not(HasSubstr("its GPU calls")));
  EXPECT_THAT(page, Not(HasSubstr("no event here")));
}

TEST(ExplainHtmlTest, WhatABudgetLeftOutStandsOnThePage) {
  Sketch host;
  host.op("aten::mm", 0, 1'000).metadata("record_shapes", "1");
  host.metadata("lanescope_thinned", R"([{"from_ns": 200, "to_ns": null, "level": 1}])");
  const Trace trace = host.trace();
  const auto thinning = analysis::find_thinning(trace);
  ASSERT_TRUE(thinning);
  EXPECT_THAT(
      page_of(trace),
      HasSubstr("Recorded with a budget: " + html_escaped(thinning_text(*thinning)) + ".</p>"));
}

TEST(ExplainHtmlTest, TracesWithoutGpuWorkOrEventsHaveAPage) {
  Sketch host;
  host.op("aten::mm", 0, 1'000);
  EXPECT_THAT(page_of(host.trace()), HasSubstr("no GPU work"));
  EXPECT_THAT(page_of(Trace()), HasSubstr("How to read this page"));
}

TEST(ExplainHtmlTest, APageInAFrameHasNoLinks) {
  Sketch host;
  host.op("aten::mm", 0, 1'000);
  const Trace trace = host.trace();
  EXPECT_THAT(page_of(trace), HasSubstr("href=\"#legend\""));
  EXPECT_THAT(page_of(trace, {.has_links = false}), Not(HasSubstr("href=")));
}

// XML parsers refuse these inside elements.
TEST(ExplainHtmlTest, TheScriptNeedsNoEscapes) {
  EXPECT_EQ(std::string(kPageScript).find_first_of("<&"), std::string::npos);
  EXPECT_EQ(std::string(kPageStyle).find_first_of("<&"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::report

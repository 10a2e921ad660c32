#include "lanescope/report/explain_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "lanescope/explain/predicted_gains.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/report/nothing_to_do.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/screen_wall.h"
#include "lanescope/report/text_format.h"
#include "lanescope/testing/program_sketch.h"
#include "lanescope/testing/sanitizers.h"

namespace lanescope::report {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramSketch;
using testing::Sketch;
using ::testing::StartsWith;

std::string screen_of(const Trace& trace, const ScreenOptions& options = {}) {
  auto facts = explain::gather_facts(trace);
  EXPECT_TRUE(facts);
  const auto explanation = explain::run_rules(*facts);
  EXPECT_TRUE(explanation);
  return explanation_screen(*facts, *explanation, options);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(RoundedTest, TimesHaveThreeDigits) {
  EXPECT_EQ(rounded_time(0), "0 us");
  EXPECT_EQ(rounded_time(1'234), "1.23 us");
  EXPECT_EQ(rounded_time(97'077), "97.1 us");
  EXPECT_EQ(rounded_time(999'499), "999 us");
  EXPECT_EQ(rounded_time(999'500), "1.00 ms");
  EXPECT_EQ(rounded_time(16'746'000), "16.7 ms");
  EXPECT_EQ(rounded_time(151'499'999), "151 ms");
  EXPECT_EQ(rounded_time(2'500'000'000), "2.50 s");
  EXPECT_EQ(rounded_time(12'345'000'000'000), "12345 s");
  EXPECT_EQ(rounded_time(-1'500), "-1.50 us");
}

TEST(RoundedTest, APieceOfASentenceIsTextOrANumberThatSomethingIsShownFor) {
  using explain::linked;
  const auto pieces = rounded_pieces(
      explain::say("of the {} a step takes, {} is {} in {}.",
                   {linked(explain::ns(78'900), explain::shows::kStep), explain::text("Gloo"),
                    linked(explain::ratio(1, 4), explain::shows::kIdle),
                    linked(explain::count(3), SliceId{7})}));
  ASSERT_EQ(pieces.size(), 7U);
  const auto expect = [&](std::size_t at, std::string_view text, std::string_view shows) {
    EXPECT_EQ(pieces[at].text, text);
    EXPECT_EQ(pieces[at].shows, shows);
    EXPECT_EQ(pieces[at].is_link(), at % 2 == 1);
  };
  expect(0, "of the ", "");
  expect(1, "78.9 us", "step");
  expect(2, " a step takes, Gloo is ", "");
  expect(3, "25 %", "idle");
  expect(4, " in ", "");
  expect(5, "3", "");
  EXPECT_EQ(pieces[5].slice, SliceId{7});
  expect(6, ".", "");
}

TEST(RoundedTest, APercentIsWholeAndNeverRoundsToNothingOrAll) {
  EXPECT_EQ(rounded_percent(0), "0 %");
  EXPECT_EQ(rounded_percent(0.0001), "<1 %");
  EXPECT_EQ(rounded_percent(0.498), "50 %");
  EXPECT_EQ(rounded_percent(0.9951), ">99 %");
  EXPECT_EQ(rounded_percent(1), "100 %");
}

TEST(WrappedTest, ANumberKeepsItsUnit) {
  EXPECT_EQ(wrapped("", "it takes 16.7 ms a step", 12), "it takes\n16.7 ms a\nstep\n");
  EXPECT_EQ(wrapped("", "it is much (76 %).", 14), "it is much\n(76 %).\n");
  EXPECT_EQ(wrapped("", "all 20 steps", 7), "all 20\nsteps\n");
}

// A launch costs the CPU 10 us and the GPU 1 us: 100 us per step, 10 of them computing.
Trace slow_cpu() {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) program.launch({.us = 1});
    program.end();
  }
  return program.trace();
}

TEST(ExplainScreenTest, VerdictWallActionAndTheRestInThisOrder) {
  const std::string text = screen_of(slow_cpu(), {.full_hint = "lanescope explain --full a.json"});
  EXPECT_THAT(text, StartsWith("CPU-bound: of the 100 us a step takes, the GPU works 10.0 us"));
  const std::size_t wall = text.find("step (mean of 2-4)             100 us\n");
  const std::size_t waits = text.find("  idle: waiting for the CPU   90.0 us   90 %  ####");
  const std::size_t first = text.find("\nDo first\n1. ");
  const std::size_t rest = text.find("lanescope explain --full a.json\n");
  ASSERT_NE(rest, std::string::npos) << text;
  EXPECT_LT(wall, waits) << text;
  EXPECT_LT(waits, first) << text;
  EXPECT_LT(first, rest);
  EXPECT_THAT(text, HasSubstr("up to "));
}

// Of 100, 100, 100 and 300 us the mean is 150, and the usual step takes 100. Of 100, 100, 100 and 110 us it is 102.5.
TEST(ExplainScreenTest, TheMedianIsToldWhereOneStepDecidesTheMean) {
  for (const std::int64_t last_us : {300, 110}) {
    ProgramSketch program;
    for (const std::int64_t kernel_us :
         {std::int64_t{100}, std::int64_t{100}, std::int64_t{100}, std::int64_t{100}, last_us})
      program.step().kernel("gemm", kernel_us).pass(1).end();
    EXPECT_THAT(
        screen_of(program.trace()),
        HasSubstr(last_us == 300 ? "step (mean of 2-5, median 100 us)" : "step (mean of 2-5) "));
  }
}

TEST(ExplainScreenTest, PartsOfTheWallAddUpAndAreFew) {
  const Trace trace = slow_cpu();
  const auto facts = explain::gather_facts(trace);
  std::int64_t sum = 0;
  const auto lines = wall_lines(*facts);
  EXPECT_LE(lines.size(), 4u);
  for (const WallLine& line : lines) sum += line.per_step_ns;
  EXPECT_EQ(sum, facts->per_step(facts->steady_wall_ns()));
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end() - 1, [](const auto& a, const auto& b) {
    return a.per_step_ns > b.per_step_ns;
  }));
}

// A reader of the page clicks a part to see its events: what is shown is not read from the label.
TEST(ExplainScreenTest, PartsOfTheWallSayWhatToShow) {
  const Trace trace = slow_cpu();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  std::map<std::string, WallLine> lines;
  for (const WallLine& line : wall_lines(*facts)) lines[line.label] = line;
  ASSERT_TRUE(lines.contains("GPU compute") && lines.contains("idle: waiting for the CPU"));
  EXPECT_STREQ(lines["GPU compute"].shows, explain::shows::kCompute);
  EXPECT_STREQ(lines["idle: waiting for the CPU"].shows, explain::shows::kIdle);
  std::int64_t of_causes = 0;
  for (const analysis::IdleCause cause : lines["idle: waiting for the CPU"].causes)
    of_causes += facts->wall.idle_by(cause);
  EXPECT_EQ(facts->per_step(of_causes), lines["idle: waiting for the CPU"].per_step_ns);
}

// 1 ms of GPU work a step; then Gloo's thread runs a collective of 800 us, while the program's has no event, and then 500 us of Python.
TEST(ExplainScreenTest, WaitsForGloosCollectivesAreAPartOfTheWall) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 1000}).wait();
    program.sketch().annotation("gloo:all_reduce", ProgramSketch::at(program.cpu_us()), 800'000,
                                {.tid = 101});
    program.pass(1300).end();
  }
  const Trace trace = program.trace();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  std::map<std::string, std::int64_t> lines;
  std::int64_t sum = 0;
  for (const WallLine& line : wall_lines(*facts)) sum += lines[line.label] = line.per_step_ns;
  // Less the microsecond in which the wait's operator ends.
  EXPECT_NEAR(static_cast<double>(lines["idle: Gloo's collectives"]), 800'000, 5'000);
  EXPECT_NEAR(static_cast<double>(lines["idle: waiting for the CPU"]), 510'000, 20'000);
  EXPECT_EQ(sum, facts->per_step(facts->steady_wall_ns()));
}

// One kernel of a millisecond a step, launched ahead: the GPU is the limit, and no rule has a cost.
TEST(ExplainScreenTest, WithNothingToDoItSaysWhereTheTimeGoes) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    for (int k = 0; k < 3; ++k) program.launch({.name = "my_kernel", .us = 300});
    program.end();
  }
  const std::string text = screen_of(program.trace());
  EXPECT_THAT(text, HasSubstr("\nNo known fault\n"));
  EXPECT_THAT(text, HasSubstr("No known fix would save 1 % of the step or more."));
  EXPECT_THAT(text, HasSubstr("3 x aten::mm: GPU work: 3 kernels, mostly my_kernel of 300 us"));
  EXPECT_THAT(text, Not(HasSubstr("Do first")));
}

// Three owners whose names take two lines or more each: with a damage warning and a long headline they do not all fit.
TEST(ExplainScreenTest, WithNothingToDoItFitsTheScreen) {
  const auto screen_with = [](int warnings) {
    ProgramSketch program;
    for (int i = 0; i < 6; ++i) {
      program.step();
      for (const char* part : {"first", "second", "third"}) {
        const std::string range = std::string("the ") + part +
                                  " range of the program, which has a name of more than one line "
                                  "because somebody wrote down all that it does";
        program.begin(range);
        for (int k = 0; k < 3; ++k)
          program.launch({.name = "my_kernel", .us = 300, .op = "aten::conv2d"});
        program.end();
      }
      program.end();
    }
    if (warnings > 0) program.sketch().builder().stats().count(ImportIssue::kDroppedRecords, 12);
    const Trace trace = program.trace();
    const auto facts = explain::gather_facts(trace);
    EXPECT_TRUE(facts);
    auto explanation = explain::run_rules(*facts);
    EXPECT_TRUE(explanation);
    // A long headline takes the room of the owners.
    for (int i = 0; i < warnings; ++i)
      explanation->headline.pattern +=
          " A sentence of the headline that takes a line of the screen, or nearly.";
    return explanation_screen(*facts, *explanation,
                              {.width = 80, .full_hint = "lanescope explain --full trace.json"});
  };
  const std::string few = screen_with(0), many = screen_with(6);
  EXPECT_THAT(few, HasSubstr("No known fault"));
  EXPECT_THAT(few, HasSubstr("the third range"));
  EXPECT_THAT(many, HasSubstr("No known fault"));
  EXPECT_LT(std::count(many.begin(), many.end(), '\n'), 25);
  EXPECT_THAT(many, Not(HasSubstr("the third range")));
}

// 137.4 G operations at 989.5 T/s are 139 us: in 180 us the product reaches 77 % of that, in 260 us 53 %, and nobody knows why.
TEST(ExplainScreenTest, OnlyWorkNearTheGpusLimitIsCalledHealthy) {
  const auto text_with = [](std::int64_t kernel_us) {
    ProgramSketch program;
    program.sketch().metadata(
        "deviceProperties",
        R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132}])");
    program.steps(6, [&](ProgramSketch& p) {
      for (int k = 0; k < 4; ++k)
        p.op("aten::mm",
             {.input_dims = "[[4096, 4096], [4096, 4096]]",
              .input_types = R"(["c10::BFloat16", "c10::BFloat16"])"},
             "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", kernel_us);
    });
    return screen_of(program.trace());
  };
  EXPECT_THAT(text_with(180),
              HasSubstr("Healthy, as far as known: no fix would save 1 % of the step or more."));
  EXPECT_THAT(text_with(260), Not(HasSubstr("Healthy")));
}

// add and relu of 50 us each, below the threshold of unfused-chain: one of them is 50 us of 1.3 ms. Alone, add is no chain.
TEST(ExplainScreenTest, WithNothingToDoItKnowsWhatChainsWouldSave) {
  const std::string add =
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
      "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
  const auto text_with = [&](const char* second) {
    ProgramSketch program;
    for (int i = 0; i < 6; ++i) {
      program.step();
      for (int k = 0; k < 4; ++k) program.launch({.name = "my_kernel", .us = 300});
      program.op("aten::add", {}, add, 50, testing::grid(1024, 128));
      program.op(second, {}, add, 50, testing::grid(1024, 128));
      program.end();
    }
    return screen_of(program.trace());
  };
  EXPECT_THAT(text_with("aten::relu"), HasSubstr("Only torch.compile would save 1 %"));
  EXPECT_THAT(text_with("aten::relu"), HasSubstr("most 50.0 us (4 %)."));
  EXPECT_THAT(text_with("aten::add"), HasSubstr("No known fix would save 1 %"));
}

// Three of four milliseconds a step in one kernel: it has its readable name, not its place alone.
TEST(ExplainScreenTest, WhenTheGpuIsTheLimitItsLargestKernelsAreNamed) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    program.launch({.name = "my_kernel", .us = 3'000});
    program.launch({.name = "other_kernel", .us = 1'000});
    program.end();
  }
  const Trace trace = program.trace();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  EXPECT_THAT(largest_kernels_text(*facts),
              StartsWith("Most of the GPU's time: my_kernel 75 %; other_kernel 25 %"));
}

// Eight kernels, none of which is much: what they do says more than the names of three.
TEST(ExplainScreenTest, WhereNoKernelIsMuchOfTheWorkItsKindsAreNamed) {
  const std::string add =
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
      "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    for (const char* tile : {"128x128", "128x64", "64x64", "256x64"})
      program.launch({.name = std::string("ampere_sgemm_") + tile + "_nn", .us = 600});
    program.launch({.name = add, .us = 500});
    for (int k = 0; k < 8; ++k)
      program.launch({.name = "my_kernel_" + std::to_string(k), .us = 100});
    program.end();
  }
  const Trace trace = program.trace();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  EXPECT_EQ(largest_kernels_text(*facts),
            "The GPU's time: matrix products 65 %, elementwise 14 %.");
}

// Half of the wall, all of the GPU's time.
TEST(ExplainScreenTest, SharesOfTheGpusTimeAreOfTheGpusTime) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i)
    program.step().launch({.name = "my_kernel", .us = 3'000}).wait().pass(2'000).end();
  const Trace trace = program.trace();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  EXPECT_THAT(largest_kernels_text(*facts), StartsWith("Most of the GPU's time: my_kernel 100 %"));
}

TEST(ExplainScreenTest, DamageStaysVisible) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) program.step().launch({.us = 50}).wait().end();
  program.sketch().builder().stats().count(ImportIssue::kTruncatedFile, 4711);
  const std::string text = screen_of(program.trace());
  EXPECT_THAT(text, HasSubstr("\nWarning: the end of the file is missing; the numbers are of"));
}

TEST(ExplainScreenTest, LostGpuWorkStaysVisible) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) program.step().launch({.us = 50}).wait().end();
  program.sketch().builder().stats().count(ImportIssue::kDroppedRecords, 12);
  EXPECT_THAT(screen_of(program.trace()), HasSubstr("\nWarning: The recorder dropped "));
}

TEST(ExplainScreenTest, ATraceOfTheCpuAloneHasAWallAndTheLargestEvents) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) program.step().cpu_op("aten::conv2d", 90).pass(10).end();
  const std::string text = screen_of(program.trace());
  EXPECT_THAT(text, StartsWith("The trace holds no GPU work."));
  EXPECT_THAT(text, HasSubstr("  other operators        90.0 us   90 %  ####"));
  EXPECT_THAT(text, HasSubstr("aten::conv2d: CPU time of one call"));
  EXPECT_THAT(text, HasSubstr("To learn more: "));
}

TEST(ExplainScreenTest, WithoutStepsItSpeaksOfTheRecording) {
  ProgramSketch program;
  for (int k = 0; k < 50; ++k) program.launch({.us = 1});
  const std::string text = screen_of(program.trace());
  EXPECT_THAT(text, HasSubstr("\nrecording  "));
  EXPECT_THAT(text, Not(HasSubstr("step")));
}

TEST(ExplainScreenTest, AnEmptyTraceIsOneSentence) {
  EXPECT_EQ(screen_of(Trace()),
            "The trace is empty: nothing was recorded between the profiler's start and stop.\n");
}

TEST(ExplainScreenTest, ColoursOnlyWhereAsked) {
  const Trace trace = slow_cpu();
  EXPECT_THAT(screen_of(trace), Not(HasSubstr("\x1b")));
  EXPECT_THAT(screen_of(trace, {.colour = true}), StartsWith("\x1b[1mCPU-bound"));
  EXPECT_THAT(screen_of(trace, {.colour = true}), HasSubstr("\x1b[1mDo first\x1b[0m\n"));
}

TEST(ExplainScreenTest, HostileNamesStayOneLine) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("evil\x1b]0;title\x07\nname");
    for (int k = 0; k < 10; ++k) program.launch({.us = 1});
    program.end().end();
  }
  const std::string text = screen_of(program.trace());
  EXPECT_THAT(text, HasSubstr("evil?]0;title??name)\n"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

explain::Finding cost_of(std::string verdict, double ratio) {
  explain::Finding finding;
  finding.verdict = explain::say(verdict);
  finding.action = explain::say(
      "Change the first thing that this finding is about, then the second one, and then look at "
      "the third");
  finding.at_stake_ns = static_cast<std::int64_t>(100'000 * ratio);
  finding.at_stake_ratio = ratio;
  finding.try_next = {"change it"};
  return finding;
}

// Three findings of three lines each and an owner of three: all three are worth telling if each gains a tenth, and then the owner
// has its name only. If two of them gain 3 %, what is known of the owner comes first.
TEST(ExplainScreenTest, FindingsThatGainMuchComeBeforeTheDetailsOfTheOwner) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 5; ++k) program.launch({.us = 1, .op = "aten::conv2d"}).wait();
    program.end();
  }
  const Trace trace = program.trace();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  auto explanation = explain::run_rules(*facts);
  ASSERT_TRUE(explanation);
  const auto screen_with = [&](double others) {
    explanation->findings = {cost_of("The first finding of three", 0.1),
                             cost_of("The second finding of three", others),
                             cost_of("The third finding of three", others)};
    // Different actions: one action is told once.
    for (std::size_t i = 0; i < 3; ++i)
      explanation->findings[i].action.pattern += std::string(i + 1, '.');
    return explanation_screen(*facts, *explanation, {.width = 80, .full_hint = "lanescope"});
  };
  const std::string much = screen_with(0.09), little = screen_with(0.03);
  EXPECT_THAT(much, HasSubstr("The second finding of three"));
  EXPECT_THAT(much, HasSubstr("The third finding of three"));
  EXPECT_THAT(much, HasSubstr("a loop of 5 rounds"));
  EXPECT_THAT(much, Not(HasSubstr("launching:")));
  EXPECT_THAT(little, HasSubstr("launching:"));
  EXPECT_THAT(little, Not(HasSubstr("The third finding of three")));
  EXPECT_LE(lines_of(much).size(), 24U);
  EXPECT_LE(lines_of(little).size(), 24U);
}

// One number, one place: where the headline gives the step without the profiler, the line below the wall does not.
TEST(ExplainScreenTest, TheStepWithoutTheProfilerIsGivenOnce) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 50; ++i) p.launch({.us = 2});
  });
  const Trace trace = program.trace();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  auto explanation = explain::run_rules_and_gains(*facts);
  ASSERT_TRUE(explanation);
  EXPECT_THAT(base_text(*facts, *explanation),
              StartsWith("Without the profiler a step takes about"));
  explanation->headline_has_base = true;
  const std::string text = base_text(*facts, *explanation);
  EXPECT_THAT(text, HasSubstr("Gains refer to a step without"));
  EXPECT_EQ(text.find_first_of("0123456789"), std::string::npos) << text;
}

TEST(ExplainScreenTest, TheTitleSaysWhereThereIsLittleToGain) {
  const Trace trace = slow_cpu();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  explain::Explanation explanation;
  explanation.findings = {cost_of("A cost", 0.04)};
  const auto title = [&](double ratio, std::int64_t at_most_ns = 0) {
    explain::Suggestion suggestion;
    suggestion.gain_ns = static_cast<std::int64_t>(100'000 * ratio);
    suggestion.gain_ratio = ratio;
    suggestion.at_most_ns = at_most_ns;
    return do_first_title(*facts, explanation, {suggestion});
  };
  EXPECT_EQ(title(0.04), "Do first (each saves less than 5 % of a step)");
  EXPECT_EQ(title(0.06), "Do first");
  EXPECT_EQ(title(0.04, 6'000), "Do first");  // predicted 4 us, at most 6 of 100
  explanation.findings[0].kind = explain::FindingKind::kEnds;
  EXPECT_EQ(title(0.04), "Do first");
}

TEST(ExplainScreenTest, AnUpperLimitHasTheErrorOfTheStep) {
  explain::Suggestion suggestion;
  suggestion.gain_ns = 3'640'000;
  suggestion.gain_ratio = 0.75;
  EXPECT_EQ(gain_text(suggestion), "up to 3.64 ms (75 %)");
  // Of a step of 4.85 ms +- 2 ms: 2.14 of 2.85 ms is 75 %, 5.14 of 6.85 ms is 75 %.
  suggestion.error_ns = 1'500'000;
  suggestion.step_error_ns = 2'000'000;
  EXPECT_EQ(gain_text(suggestion), "up to about 3.64 ms (75 %)");
  // 0.57 of 2.85 ms is 20 %, 6.71 of 6.85 ms is 98 %: the limit has its error. Time and share are those of 4.85 ms.
  suggestion.error_ns = 3'070'000;
  EXPECT_EQ(gain_text(suggestion), "up to 3.64 ms +- 3.07 ms (75 %)");
}

// Replays gain 13.1 to 45.5, and no more than 36.8 can be gained.
TEST(ExplainScreenTest, AGainThatReplaysBoundOnBothSidesIsARange) {
  explain::Suggestion suggestion;
  suggestion.gain_ns = 29'300'000;
  suggestion.error_ns = 16'200'000;
  suggestion.at_most_ns = 36'800'000;
  suggestion.is_range = true;
  EXPECT_EQ(gain_text(suggestion), "13.1 ms to 36.8 ms");
  suggestion.at_most_ns = 60'000'000;
  EXPECT_EQ(gain_text(suggestion), "13.1 ms to 45.5 ms");
}

// Every trace of the repository, at both widths.
// With sanitizers every fourth trace; all of them took 83 s. The release build reads all.
TEST(ExplainScreenTest, FitsAScreenOf24Lines) {
  std::size_t seen = 0;
  std::size_t traces = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "data")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".json.gz") && !(name.starts_with("trace") && name.ends_with(".json")))
      continue;
    if (testing::kSanitizers && seen++ % 4 != 0) continue;
    const auto trace = format::read_trace(entry.path());
    if (!trace) continue;
    ++traces;
    const auto facts = explain::gather_facts(*trace);
    ASSERT_TRUE(facts) << entry.path();
    const auto explanation = explain::run_rules(*facts);
    ASSERT_TRUE(explanation) << entry.path();
    for (const std::size_t width : {80u, 100u}) {
      const auto lines = lines_of(
          explanation_screen(*facts, *explanation,
                             {.width = width, .full_hint = "lanescope explain --full trace.json"}));
      EXPECT_LE(lines.size(), 24u) << entry.path() << " at " << width;
      for (const std::string& line : lines)
        EXPECT_LE(text_length(line), width) << entry.path() << ": " << line;
    }
  }
  EXPECT_GE(traces, 20u);
}

std::string screen_of_file(const char* path) {
  const auto trace = format::read_trace(fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "data" / path);
  EXPECT_TRUE(trace);
  if (!trace) return {};
  const auto facts = explain::gather_facts(*trace);
  EXPECT_TRUE(facts);
  auto explanation = explain::run_rules(*facts);
  EXPECT_TRUE(explanation);
  explain::predict_gains(*facts, *explanation);
  return explanation_screen(*facts, *explanation,
                            {.width = 100, .full_hint = "lanescope explain --full trace.json"});
}

// The third finding names a cause: it has a place beside the largest owner. In the other trace it says only between which
// calls the GPU waits, so all that is known of the largest owner stays.
TEST(ExplainScreenTest, DetailsOfTheLargestOwnerMakeRoomForACause) {
  const std::string with_cause = screen_of_file("h200/cnn_train_mistakes.json.gz");
  EXPECT_THAT(with_cause, HasSubstr("3. Each tensor is asked for NaN or infinity by itself"));
  EXPECT_THAT(with_cause, HasSubstr("_SingleProcessDataLoaderIter.__next__"));
  const std::string without = screen_of_file("faults/cpu_built_tensor.bad.lanescope.json.gz");
  EXPECT_THAT(without, Not(HasSubstr("3. ")));
  EXPECT_THAT(without, HasSubstr("%  aten::to: copying"));
}

// The details of the owner would fill the line.
TEST(ExplainScreenTest, WhatFixesGainTogetherKeepsItsLine) {
  EXPECT_THAT(screen_of_file("h200/cnn_train_mistakes.json.gz"), HasSubstr("together"));
}

// The headline counts the copies and the time in which the CPU makes them; the lines show both.
TEST(ExplainScreenTest, TheLinesOfACopyBoundStepShowWhatTheHeadlineCounts) {
  testing::ProgramSketch program;
  program.steps(4, [](testing::ProgramSketch& p) {
    testing::ProgramSketch::Work copy =
        testing::ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 400, "aten::to");
    copy.call_us = 300;
    p.launch(copy).wait().launch({.us = 20}).wait();
  });
  const Trace trace = program.trace();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto explanation = explain::run_rules(*facts, {});
  ASSERT_TRUE(explanation);
  ASSERT_TRUE(explanation->headline.pattern.starts_with("Copy-bound"));
  std::int64_t copies_ns = 0, all_ns = 0;
  for (const WallLine& line : wall_lines(*facts)) {
    if (line.label == "copies, no compute" || line.label == "idle: CPU makes a copy")
      copies_ns += line.per_step_ns;
    all_ns += line.per_step_ns;
  }
  EXPECT_EQ(copies_ns, explanation->headline.values.at(1).integer);
  EXPECT_EQ(all_ns, facts->per_step(facts->steady_wall_ns()));
}

}  // namespace
}  // namespace lanescope::report

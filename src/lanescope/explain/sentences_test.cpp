// Words agree with numbers and with the trace, in the builder and in what rules say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Facts facts_with_steps(bool marked) {
  Facts facts;
  facts.steps.marked = marked;
  return facts;
}

TEST(SentencesTest, ANounAgreesWithTheLastCountBeforeIt) {
  const Facts facts = facts_with_steps(true);
  constexpr char kPattern[] = "{} [wait|waits] in {} [step|steps], {}: {} [copy|copies]";
  EXPECT_EQ(say(facts, kPattern, {count(1), count(2), ns(7), count(0)}).pattern,
            "{} wait in {} steps, {}: {} copies");
  EXPECT_EQ(say(facts, kPattern, {count(3), count(1), ns(7), count(1)}).pattern,
            "{} waits in {} step, {}: {} copy");
  // Between a count and its noun there are other values: a time is no count.
  EXPECT_EQ(say(facts, "{} of {} took {} [call|calls]", {count(1), count(1), ns(5)}).pattern,
            "{} of {} took {} call");
}

// "2,757 waits in 1 recording" is no sentence: the recording has no number.
TEST(SentencesTest, WithoutMarkedStepsTheRecordingIsNotCounted) {
  constexpr char kPattern[] = "{} [wait|waits] [in {} steps], {} [per step] ({} of [a step's] {})";
  const std::vector<Value> values = {count(2757), count(1), ns(7), ratio(7, 70), ns(70)};
  EXPECT_EQ(say(facts_with_steps(true), kPattern, values).pattern,
            "{} waits in {} step, {} per step ({} of a step's {})");
  const Sentence recording = say(facts_with_steps(false), kPattern, values);
  EXPECT_EQ(recording.pattern, "{} waits in the recording, {} ({} of the recording's {})");
  ASSERT_EQ(recording.values.size(), 4u);
  EXPECT_EQ(recording.values[0].integer, 2757);
  EXPECT_EQ(recording.values[1].integer, 7);
}

TEST(SentencesTest, TheSubjectIsAStepOrTheRecording) {
  for (const auto& [pattern, of_step, of_recording] :
       {std::tuple("Of the {} [a step takes]", "Of the {} a step takes",
                   "Of the {} the recording takes"),
        std::tuple("of the {} [a step took]", "of the {} a step took",
                   "of the {} the recording took"),
        std::tuple("[a step then takes] {}", "a step then takes {}",
                   "the same work then takes {}")}) {
    EXPECT_EQ(say(facts_with_steps(true), pattern, {ns(1)}).pattern, of_step);
    EXPECT_EQ(say(facts_with_steps(false), pattern, {ns(1)}).pattern, of_recording);
  }
}

// A simulation has no batch, and a larger batch leaves an optimizer as many launches.
TEST(SentencesTest, WordsAboutABatchAreSaidOnlyOfProgramsThatHaveOne) {
  const auto said = [](std::string_view op, std::string_view range) {
    testing::ProgramSketch program;
    program.steps(3, [&](testing::ProgramSketch& p) {
      p.begin(range);
      for (int k = 0; k < 9; ++k) p.launch({.us = 2, .op = op});
      p.end();
    });
    const Trace trace = program.trace();
    const auto facts = gather_facts(trace);
    return words_for(
        *facts, "compile([if batch|model, ]mode)[if a batch spares launches|, or a batch], {}");
  };
  EXPECT_EQ(said("aten::linear", "forward"), "compile(model, mode), or a batch, {}");
  EXPECT_EQ(said("aten::linear", "Optimizer.step#Adam.step"), "compile(model, mode), {}");
  EXPECT_EQ(said("aten::roll", "forward"), "compile(mode), {}");
}

// "384 times in 4 steps" makes the reader divide.
TEST(SentencesTest, ACountOfAllStepsIsToldOfOne) {
  const Facts facts = facts_with_steps(true);
  constexpr char kPattern[] = "{} waits, {} [time|times] [in {} steps], {}";
  const auto told = [&](std::uint64_t total, std::uint64_t steps) {
    const Sentence sentence = say(facts, kPattern, {name("x"), count(total), count(steps), ns(7)});
    EXPECT_EQ(sentence.values.back().integer, 7);
    return sentence;
  };
  const Sentence many = told(384, 4);
  EXPECT_EQ(many.pattern, "{} waits, {} times per step, {}");
  EXPECT_EQ(many.values.at(1).integer, 96);
  EXPECT_EQ(told(7, 7).pattern, "{} waits, once per step, {}");
  EXPECT_EQ(told(387, 4).pattern, "{} waits, about {} times per step, {}");  // 96.75
  EXPECT_EQ(told(387, 4).values.at(1).integer, 97);
  // A few that do not divide stay what was counted, and so do those of a single step.
  EXPECT_EQ(told(14, 4).pattern, "{} waits, {} times in {} steps, {}");
  EXPECT_EQ(told(3, 4).pattern, "{} waits, {} times in {} steps, {}");
  EXPECT_EQ(told(5, 1).pattern, "{} waits, {} times in {} step, {}");
  // Bytes before the steps are no count, and the count before them stays with them.
  EXPECT_EQ(say(facts, "{} copies, {} [in {} steps]", {count(8), bytes(64), count(4)}).pattern,
            "{} copies, {} in {} steps");
}

TEST(SentencesTest, FewerValuesThanPlacesAreNoError) {
  EXPECT_EQ(say(facts_with_steps(false), "{} [in {} steps]").pattern, "{} in the recording");
  EXPECT_EQ(say(facts_with_steps(true), "{} [in {} steps]").pattern, "{} in {} steps");
}

// Only at the beginning, and only words that the rule marked: the replay puts others there.
TEST(SentencesTest, WordsOfALimitCanBeReplaced) {
  const Facts facts = facts_with_steps(true);
  Sentence cpu = say(facts, "[limit CPU|CPU-bound:] of the {} [a step takes], {}", {ns(7), ns(3)});
  EXPECT_EQ(cpu.pattern, "CPU-bound: of the {} a step takes, {}");
  EXPECT_EQ(cpu.limit, LimitWords::kCpuBound);
  append(cpu, say(" CPU-bound: {}", {ns(1)}));
  replace_limit(cpu, say("GPU-bound, {} +- {}. With it,", {ns(5), ns(2)}));
  EXPECT_EQ(cpu.pattern, "GPU-bound, {} +- {}. With it, of the {} a step takes, {} CPU-bound: {}");
  std::vector<std::int64_t> values;
  for (const Value& value : cpu.values) values.push_back(value.integer);
  EXPECT_THAT(values, ElementsAre(5, 2, 7, 3, 1));
  replace_limit(cpu, say("once more"));
  EXPECT_TRUE(cpu.pattern.starts_with("GPU-bound, {}"));
  EXPECT_EQ(say(facts, "[limit|Idle:] of the {}", {ns(7)}).limit, LimitWords::kOther);
  Sentence unmarked = say(facts, "CPU-bound: of the {}", {ns(7)});
  replace_limit(unmarked, say("GPU-bound"));
  EXPECT_EQ(unmarked.pattern, "CPU-bound: of the {}");
}

TEST(SentencesTest, OtherBracketsStay) {
  const Facts facts = facts_with_steps(true);
  for (const char* pattern : {"[{} x {}] by [{}]", "a | b", "[open", "{}[]", "{", "[if batch|open"})
    EXPECT_EQ(say(facts, pattern, {count(1), count(1), count(1)}).pattern, pattern);
}

// One wait, in the one step that is left when the first is start-up.
TEST(SentencesTest, ARuleSaysOneWaitInOneStep) {
  testing::ProgramSketch program;
  for (int i = 0; i < 2; ++i)
    program.step().launch({.us = 40}).wait().pass(100).launch({.us = 40}).end();
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 1);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 1);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("{} wait in {} step,"));
}

TEST(SentencesTest, ARuleDoesNotCountTheRecording) {
  testing::ProgramSketch program;
  program.launch({.us = 40}).wait().pass(100).launch({.us = 40});
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("{} wait in the recording, after which"));
  EXPECT_THAT(finding->verdict.pattern, ::testing::Not(HasSubstr("per step")));
}

TEST(SumTest, LeavesOutWhatIsZeroUnlessEverythingIs) {
  const Sentence sum = rules::sum_of({{"late", 0}, {"latency", 5}, {"ends", 7}});
  EXPECT_EQ(sum.pattern, "latency {} + ends {}");
  ASSERT_EQ(sum.values.size(), 2u);
  EXPECT_EQ(sum.values[0].integer, 5);
  EXPECT_EQ(sum.values[1].integer, 7);
  EXPECT_EQ(rules::sum_of({{"late", 0}, {"latency", 0}}).pattern, "late {}");
}

// The address of an object differs in each run, and says nothing.
TEST(SentencesTest, ANameHasNoAddresses) {
  EXPECT_EQ(name("<built-in method get of _queue.SimpleQueue object at 0x7f3dda44a6b0>").text,
            "<built-in method get of _queue.SimpleQueue object>");
  EXPECT_EQ(name("f at 0xa1 and g at 0xB2").text, "f and g");
  EXPECT_EQ(name("look at 0").text, "look at 0");
  EXPECT_EQ(name("cat at 0x").text, "cat");
}

}  // namespace
}  // namespace lanescope::explain

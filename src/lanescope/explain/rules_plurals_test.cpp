// Nouns agree with their numbers, in a helper and in what rules say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/plurals.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain {
namespace {

using rules::say_counted;
using ::testing::HasSubstr;

Facts facts_with_steps(bool marked) {
  Facts facts;
  facts.steps.marked = marked;
  return facts;
}

TEST(PluralsTest, ANounAgreesWithTheLastCountBeforeIt) {
  const Facts facts = facts_with_steps(true);
  constexpr char kPattern[] = "{} [wait|waits] in {} [step|steps], {}: {} [copy|copies]";
  EXPECT_EQ(say_counted(facts, kPattern, {count(1), count(2), ns(7), count(0)}).pattern,
            "{} wait in {} steps, {}: {} copies");
  EXPECT_EQ(say_counted(facts, kPattern, {count(3), count(1), ns(7), count(1)}).pattern,
            "{} waits in {} step, {}: {} copy");
  // Between a count and its noun stand other values: a time is no count.
  EXPECT_EQ(
      say_counted(facts, "{} of {} took {} [call|calls]", {count(1), count(1), ns(5)}).pattern,
      "{} of {} took {} call");
}

TEST(PluralsTest, WithoutMarkedStepsTheyAreOneRecording) {
  EXPECT_EQ(
      say_counted(facts_with_steps(false), "{} in {} [step|steps]", {count(2), count(1)}).pattern,
      "{} in {} recording");
}

TEST(PluralsTest, OtherBracketsStay) {
  const Facts facts = facts_with_steps(true);
  for (const char* pattern : {"[{} x {}] by [{}]", "a | b", "[open", "{}[]", "{"})
    EXPECT_EQ(say_counted(facts, pattern, {count(1), count(1), count(1)}).pattern, pattern);
}

// One wait, in the one step that is left when the first is start-up.
TEST(PluralsTest, ARuleSaysOneWaitInOneStep) {
  testing::ProgramSketch program;
  for (int i = 0; i < 2; ++i)
    program.step().launch({.us = 40}).wait().pass(100).launch({.us = 40}).end();
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 1);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 1);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("{} wait in {} step,"));
}

TEST(SumTest, LeavesOutWhatIsZeroUnlessEverythingIs) {
  const Sentence sum = rules::sum_of({{"late", 0}, {"latency", 5}, {"ends", 7}});
  EXPECT_EQ(sum.pattern, "latency {} + ends {}");
  ASSERT_EQ(sum.values.size(), 2u);
  EXPECT_EQ(sum.values[0].integer, 5);
  EXPECT_EQ(sum.values[1].integer, 7);
  EXPECT_EQ(rules::sum_of({{"late", 0}, {"latency", 0}}).pattern, "late {}");
}

}  // namespace
}  // namespace lanescope::explain

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;
using ::testing::StartsWith;

// Three steps of 1 ms; Gloo reduces for 600 us of each on a thread of its own, while the step's
// thread is inside an operator or not.
Trace gloo(bool works_meanwhile) {
  Sketch sketch;
  for (int step = 0; step < 3; ++step) {
    const std::int64_t at = us(1'000) * step;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, us(1'000));
    sketch.op("aten::mm", at + us(50), us(100));
    if (works_meanwhile) sketch.op("aten::addmm", at + us(200), us(600));
    sketch.annotation("gloo:all_reduce", at + us(200), us(600), {.tid = 200});
  }
  return sketch.trace();
}

TEST(CpuCollectives, AStepThatOnlyWaitsForThemIsCommunicationBound) {
  const Trace trace = gloo(false);
  const auto finding = find_by_rule(trace, "cpu-collectives");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, StartsWith("Communication-bound"));
  EXPECT_EQ(finding->verdict.values.at(2).integer, us(600));
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto explanation = run_rules(*facts);
  EXPECT_THAT(explanation->headline.pattern,
              StartsWith("The trace holds no GPU work. Communication-bound"));
  EXPECT_EQ(finding->at_stake_ns, us(600));
  const auto first = do_first(*facts, *explanation);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(explanation->findings[first[0].finding].rule, "cpu-collectives");
}

TEST(CpuCollectives, CollectivesBesideOperatorsAreQuiet) {
  EXPECT_FALSE(find_by_rule(gloo(true), "cpu-collectives"));
}

// Ten sums a step, 60 us each: of 4 KB they become one; of 4 MB, or of unknown size, they do not.
TEST(CpuCollectives, ManySmallOnesBecomeOne) {
  const auto action = [](const char* dims) {
    Sketch sketch;
    for (int step = 0; step < 3; ++step) {
      const std::int64_t at = us(1'000) * step;
      sketch.annotation("ProfilerStep#" + std::to_string(step), at, us(1'000));
      sketch.op("aten::mm", at + us(50), us(100));
      for (int i = 0; i < 10; ++i)
        sketch.annotation("gloo:all_reduce", at + us(200 + 60 * i), us(60),
                          {.tid = 200, .input_dims = dims, .input_types = R"(["float"])"});
    }
    const auto finding = find_by_rule(sketch.trace(), "cpu-collectives");
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("[[32, 32]]"), StartsWith("Join"));
  EXPECT_THAT(action("[[1024, 1024]]"), StartsWith("Find the rank"));
  EXPECT_THAT(action(""), StartsWith("If its"));
}

// A stage of a pipeline: 600 us of each step in two receives and a send.
TEST(CpuCollectives, SendsAndReceivesAreCalledThat) {
  const auto find = [](const char* name) {
    Sketch sketch;
    for (int step = 0; step < 3; ++step) {
      const std::int64_t at = us(1'000) * step;
      sketch.annotation("ProfilerStep#" + std::to_string(step), at, us(1'000));
      sketch.op("aten::mm", at + us(50), us(100));
      sketch.annotation(name, at + us(200), us(250));
      sketch.annotation(name, at + us(450), us(250));
      sketch.annotation("gloo:all_reduce", at + us(800), us(100));
    }
    return find_by_rule(sketch.trace(), "cpu-collectives");
  };
  const auto sent = find("gloo:recv");
  ASSERT_TRUE(sent);
  EXPECT_NE(sent->verdict.pattern.find("sends and receives"), std::string::npos);
  EXPECT_THAT(sent->action.pattern, StartsWith("Give less work"));
  const auto reduced = find("gloo:reduce");
  ASSERT_TRUE(reduced);
  EXPECT_EQ(reduced->verdict.pattern.find("sends"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain

#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_memory_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

// Steps of 1 ms: each allocates and frees 8 MB, and keeps `kept` bytes of aten::stack.
AllocatorSketch with_kept(int steps, std::int64_t kept, bool freed_by_next = false) {
  AllocatorSketch program(kGB, 2 * kGB);
  program.device_has(4 * kGB);
  for (int i = 0; i < steps; ++i) {
    const std::int64_t at = i * 1000;
    program.step(i, at, 1000).op("aten::mm", at + 100, 100).op("aten::stack", at + 300, 100);
    program.change(at + 150, 8 * kMB, 1);
    if (freed_by_next && i > 0) program.change(at + 200, -kept, 1000 + i - 1);
    if (kept > 0) program.change(at + 350, kept, 1000 + i);
    program.change(at + 800, -8 * kMB, 1);
  }
  return program;
}

// Eight steps keep 2 MB each; 2 GB less 16 MB that nobody allocated were reserved of 4 GB: the
// device has 2 GB more, enough for 1024 steps.
TEST(MemoryGrowthTest, SpeaksOfWhatEachStepKeeps) {
  const auto finding = find_by_rule(with_kept(8, 2 * kMB).trace(), "memory-growth");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kEnds);
  EXPECT_EQ(finding->verdict.values[0].text, "GPU memory");
  EXPECT_EQ(finding->verdict.values[1].integer, 2 * kMB);
  EXPECT_EQ(finding->verdict.values[2].integer, 7);
  EXPECT_EQ(finding->arithmetic.at(1).values.at(1).integer, 1024);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(2).text, "aten::stack");
}

TEST(MemoryGrowthTest, IsQuietAboutTemporariesLossValuesAndHandedOnTensors) {
  EXPECT_FALSE(find_by_rule(with_kept(8, 0).trace(), "memory-growth"));
  EXPECT_FALSE(find_by_rule(with_kept(8, 512).trace(), "memory-growth"));
  EXPECT_FALSE(find_by_rule(with_kept(8, 2 * kMB, true).trace(), "memory-growth"));
}

// A cache that every step replaces by one that is 1 MB larger: levels grow, but nothing is lost.
TEST(MemoryGrowthTest, IsQuietAboutABufferThatGrows) {
  AllocatorSketch program(kGB, 2 * kGB);
  for (int i = 0; i < 8; ++i) {
    const std::int64_t at = i * 1000;
    program.step(i, at, 1000).op("aten::cat", at + 100, 100);
    program.change(at + 150, (i + 2) * kMB, i + 1);
    if (i > 0) program.change(at + 180, -(i + 1) * kMB, i);
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "memory-growth"));
}

// A budget ended the records after five of eight steps: no growth until then says nothing about the
// rest, but growth until then is growth.
TEST(MemoryGrowthTest, IsNotCheckedWhenTheRecordsEndBeforeTheTrace) {
  const char* until = R"([{"from_ns": 5000000, "to_ns": null, "what": "allocations"}])";
  AllocatorSketch flat = with_kept(8, 0);
  flat.sketch().metadata("lanescope_thinned", until);
  EXPECT_EQ(state_of_rule(flat.trace(), "memory-growth"), RuleRun::State::kNotChecked);
  AllocatorSketch growing = with_kept(8, 2 * kMB);
  growing.sketch().metadata("lanescope_thinned", until);
  const auto finding = find_by_rule(growing.trace(), "memory-growth");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[2].integer, 4);
}

TEST(MemoryGrowthTest, IsNotCheckedWithoutRecordsOrSteps) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 100);
  EXPECT_EQ(state_of_rule(sketch.trace(), "memory-growth"), RuleRun::State::kNotChecked);
  EXPECT_EQ(state_of_rule(with_kept(2, 2 * kMB).trace(), "memory-growth"),
            RuleRun::State::kNotChecked);
}

// Of three steps two count: no proof, so the finding says how sure it is.
TEST(MemoryGrowthTest, IsUnsureOfThreeSteps) {
  const auto finding = find_by_rule(with_kept(3, 2 * kMB).trace(), "memory-growth");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kMemory);
  EXPECT_EQ(finding->confidence, Confidence::kLow);
  EXPECT_EQ(finding->brief.values.at(1).integer, 2 * kMB);
  EXPECT_EQ(finding->brief.values.at(2).integer, 2);
  EXPECT_NE(finding->action.pattern.find("Record six steps to be sure"), std::string::npos);
}

// Three steps: a buffer that the second one fills and keeps; one that each hands on to the next; steps that keep 2 and 3 MB.
TEST(MemoryGrowthTest, SaysNothingOfThreeStepsThatDoNotGrowAlike) {
  AllocatorSketch fills(kGB, 2 * kGB), uneven(kGB, 2 * kGB);
  for (int i = 0; i < 3; ++i) {
    const std::int64_t at = i * 1000;
    fills.step(i, at, 1000);
    uneven.step(i, at, 1000).change(at + 100, (i + 1) * kMB, 1 + i);
    if (i == 1) fills.change(at + 100, 8 * kMB, 1);
    fills.change(at + 200, 2 * kMB, 2).change(at + 300, -2 * kMB, 2);
  }
  for (const Trace& trace : {fills.trace(), uneven.trace(), with_kept(3, 2 * kMB, true).trace()})
    EXPECT_EQ(state_of_rule(trace, "memory-growth"), RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain

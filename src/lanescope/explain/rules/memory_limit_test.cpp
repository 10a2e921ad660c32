#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_memory_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

TEST(MemoryLimitTest, SpeaksAboveNineTenths) {
  AllocatorSketch program(3 * kGB, 3800 * kMB);
  program.device_has(4 * kGB).op("aten::mm", 0, 100).change(50, 100 * kMB, 1);
  const auto finding = find_by_rule(program.trace(), "memory-limit");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3800 * kMB);
  EXPECT_NEAR(finding->verdict.values[2].real, 3800.0 / 4096, 1e-9);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).integer, 3 * kGB);
}

// 3.8 GB were held before a step that needs 100 MB: an inference server looks like this.
TEST(MemoryLimitTest, AdvisesNoCheckpointingForWhatWasThereBefore) {
  AllocatorSketch before(3 * kGB, 3800 * kMB);
  before.device_has(4 * kGB).op("aten::mm", 0, 100).change(50, 100 * kMB, 1);
  const auto finding = find_by_rule(before.trace(), "memory-limit");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("takes its memory ahead"));
  EXPECT_EQ(finding->arithmetic.back().values.at(0).integer, 3800 * kMB);
  // 2 GB before it, and 1.8 GB of the recorded program.
  AllocatorSketch grown(2 * kGB, 2 * kGB);
  grown.device_has(4 * kGB).op("aten::mm", 0, 100).change(50, 1800 * kMB, 1);
  const auto own = find_by_rule(grown.trace(), "memory-limit");
  ASSERT_TRUE(own);
  EXPECT_THAT(own->action.pattern, ::testing::HasSubstr("Checkpoint activations"));
}

TEST(MemoryLimitTest, IsQuietBelowAndNotCheckedWithoutTheSize) {
  AllocatorSketch program(3 * kGB, 3600 * kMB);
  program.device_has(4 * kGB).change(50, 100 * kMB, 1);
  EXPECT_FALSE(find_by_rule(program.trace(), "memory-limit"));
  AllocatorSketch unknown(3 * kGB, 3800 * kMB);
  unknown.change(50, 100 * kMB, 1);
  EXPECT_EQ(state_of_rule(unknown.trace(), "memory-limit"), RuleRun::State::kNotChecked);
}

TEST(MemoryLimitTest, IsNotCheckedBelowWhenTheRecordsEndBeforeTheTrace) {
  AllocatorSketch program(3 * kGB, 3600 * kMB);
  program.device_has(4 * kGB).op("aten::mm", 0, 100).change(50, 100 * kMB, 1);
  program.sketch().metadata("lanescope_thinned",
                            R"([{"from_ns": 60000, "to_ns": null, "what": "allocations"}])");
  EXPECT_EQ(state_of_rule(program.trace(), "memory-limit"), RuleRun::State::kNotChecked);
}

TEST(MemoryLimitTest, SpeaksWhenMemoryRanOut) {
  Sketch sketch;
  TraceBuilder& builder = sketch.op("aten::mm", 0, 100).builder();
  builder.args().begin();
  builder.args().add_int(builder.intern("Bytes"), ArgKey::kMemoryBytes, 5 * kGB);
  const ArgsId args = builder.args().end();
  builder.add_instant(
      builder.thread_track({false, 100, kNone<StringId>}, {false, 100, kNone<StringId>}),
      builder.category("cpu_instant_event"), builder.intern("[OutOfMemory]"), 50, 't', args);
  const auto finding = find_by_rule(sketch.trace(), "memory-limit");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, 5 * kGB);
}

}  // namespace
}  // namespace lanescope::explain

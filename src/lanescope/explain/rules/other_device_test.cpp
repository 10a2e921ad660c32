#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Sketch;
using ::testing::StartsWith;

Scalar number(std::int64_t value) { return {false, value}; }

// Three steps of 1 ms on an NPU: it computes for 100 us and a collective runs for 700 us after that.
Trace npu() {
  Sketch sketch;
  TraceBuilder& builder = sketch.builder();
  builder.set_process_name(number(31), builder.intern("Ascend Hardware"));
  builder.set_process_name(number(32), builder.intern("HCCL"));
  const TrackId stream = builder.thread_track(number(31), number(2));
  const TrackId plane = builder.thread_track(number(32), number(0));
  for (int step = 0; step < 3; ++step) {
    const std::int64_t at = us(1'000) * step;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, us(1'000));
    sketch.op("aten::mm", at, us(50));
    const auto add = [&](TrackId track, const char* name, std::int64_t from, std::int64_t length) {
      builder.add_slice(track, builder.no_category(), builder.intern(name), at + us(from),
                        us(length), kNone<ArgsId>);
    };
    add(stream, "MatMulV2", 100, 100);
    add(stream, "EVENT_WAIT", 200, 700);
    add(plane, "hcom_allReduce__868_0_1", 200, 700);
  }
  return sketch.trace();
}

TEST(OtherDevice, AnNpuThatMostlyCommunicatesIsSaidToDoSo) {
  const Trace trace = npu();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  ASSERT_TRUE(facts->vendor);
  // The first step is left out.
  EXPECT_EQ(facts->vendor_wall.wall_ns, 2 * us(1'000));
  EXPECT_EQ(facts->vendor_wall.compute_ns, 2 * us(100));
  EXPECT_EQ(facts->vendor_wall.exposed_communication_ns, 2 * us(700));
  EXPECT_EQ(facts->vendor_wall.idle_ns(), 2 * us(200));
  const auto explanation = run_rules(*facts);
  ASSERT_TRUE(explanation);
  EXPECT_THAT(explanation->headline.pattern, StartsWith("Communication-bound on the"));
  for (const Finding& finding : explanation->findings) EXPECT_NE(finding.rule, "no-gpu-work");
}

TEST(OtherDevice, TheLongestCollectiveIsToBeComparedWithOtherRanks) {
  const Trace trace = npu();
  const auto finding = find_by_rule(trace, "other-device");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, StartsWith("compare {}, {} per step, with the same one"));
  ASSERT_EQ(finding->action.values.size(), 2u);
  EXPECT_EQ(finding->action.values[0].text, "hcom_allReduce__868_0_1");
  EXPECT_EQ(finding->action.values[1].integer, us(700));
}

TEST(OtherDevice, OperatorsOfItsTraceAreNotAdvisedAsIfTheyRanOnTheCpu) {
  const Trace trace = npu();
  const auto finding = find_by_rule(trace, "cpu-time");
  ASSERT_TRUE(finding);
  ASSERT_EQ(finding->try_next.size(), 1u);
  EXPECT_THAT(finding->try_next.front(), HasSubstr("may only have started work of the"));
}

TEST(OtherDevice, ATraceWithoutSuchRowsIsQuiet) {
  Sketch sketch;
  sketch.annotation("ProfilerStep#1", 0, us(1'000)).op("aten::mm", 0, us(500));
  EXPECT_FALSE(find_by_rule(sketch.trace(), "other-device"));
}

TEST(OtherDevice, ATraceOfAnotherProgramIsCalledThat) {
  Sketch sketch;
  sketch.slice("blink", "Layout", 0, us(10)).slice("v8", "GC", us(20), us(5));
  const Trace trace = sketch.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  EXPECT_THAT(run_rules(*facts)->headline.pattern, StartsWith("This is not a trace of PyTorch"));
  Sketch torch;
  torch.op("aten::mm", 0, us(10));
  const Trace own = torch.trace();
  const auto own_facts = gather_facts(own);
  ASSERT_TRUE(own_facts);
  EXPECT_THAT(run_rules(*own_facts)->headline.pattern, Not(HasSubstr("not a trace of PyTorch")));
}

}  // namespace
}  // namespace lanescope::explain

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// The GPU works for 100 us. Then two buffers are packed, sent in 10 us and copied back in 5 us each.
Trace with_buffers(const char* range, const char* before = "") {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.kernel("gemm", 100).begin(range).pass(1);
    if (*before) p.begin_op(before).kernel("k", 10).end();
    p.begin_op("aten::flatten_dense_tensors").kernel("cat", 10).end();
    p.begin_op("c10d::broadcast_").kernel("ncclDevKernel_Broadcast_RING_LL", 10).end();
    for (int i = 0; i < 2; ++i) p.begin_op("aten::copy_").kernel("copy", 5).end();
    p.begin_op("aten::linear").kernel("gemm", 60).end().pass(1).end();
  });
  return program.trace();
}

// 10 + 10 + 2 x 5 us of a GPU that is never idle meanwhile.
TEST(BroadcastBuffersTest, CountsWhatComesBeforeTheModel) {
  const auto finding =
      find_by_rule(with_buffers("DistributedDataParallel.forward"), "broadcast-buffers");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(30));
  EXPECT_EQ(finding->waiting_ns, 0);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("broadcast_buffers=False"));
}

TEST(BroadcastBuffersTest, IsQuietAboutOtherBroadcasts) {
  EXPECT_FALSE(find_by_rule(with_buffers("my broadcast"), "broadcast-buffers"));
  // Of the model itself: it comes after the model's first operator.
  EXPECT_FALSE(find_by_rule(with_buffers("DistributedDataParallel.forward", "aten::conv2d"),
                            "broadcast-buffers"));
}

}  // namespace
}  // namespace lanescope::explain

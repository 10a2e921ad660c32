#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

void collective(ProgramSketch& p, const char* dtype) {
  testing::Fields fields;
  fields.collective = "all_gather";
  fields.dtype = dtype;
  fields.elements = 1;
  p.begin_op("c10d::allgather_").begin_op("record_param_comms", fields);
  p.kernel("ncclDevKernel_AllGather_RING_LL", 20).end().end();
}

// Each step computes for 100 us, then sends `first`, reads a value if `reads`, and sends `second`.
Trace gathering(const char* first, bool reads, const char* second) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    collective(p, first);
    if (reads) p.begin_op("aten::item").copy(1, 8, "Memcpy DtoH (Device -> Pageable)").end();
    collective(p, second);
    p.begin_op("aten::mm").kernel("gemm", 100).end();
  });
  return program.trace();
}

// Twice 20 us of communication and 1 us of a copy, while the GPU is always busy.
TEST(GatheredObjectsTest, SeesSizesThatAreReadBeforeTheBytesAreSent) {
  const auto finding = find_by_rule(gathering("Long", true, "Byte"), "gathered-objects");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->verdict.pattern.find("once per step"), std::string::npos);
  EXPECT_EQ(finding->at_stake_ns, us(41));
}

TEST(GatheredObjectsTest, IsQuietAboutTensors) {
  EXPECT_FALSE(find_by_rule(gathering("Float", true, "Byte"), "gathered-objects"));
  EXPECT_FALSE(find_by_rule(gathering("Long", true, "Float"), "gathered-objects"));
  EXPECT_FALSE(find_by_rule(gathering("Long", false, "Byte"), "gathered-objects"));
}

}  // namespace
}  // namespace lanescope::explain

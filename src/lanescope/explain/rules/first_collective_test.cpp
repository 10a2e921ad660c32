#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

// `nested_us`: what the first call begins in itself.
Trace with_first(std::int64_t first_us, std::int64_t second_us, std::int64_t nested_us = 0) {
  Sketch sketch;
  if (nested_us != 0)
    sketch.slice("cpu_op", "record_param_comms", 1000, nested_us * 1000,
                 {.collective = "allreduce", .elements = 0});
  for (int i = 0; i < 8; ++i)
    sketch.slice("cpu_op", "record_param_comms", i * 100'000'000,
                 (i == 0   ? first_us
                  : i == 1 ? second_us
                           : 60) *
                     1000,
                 {.collective = "allreduce", .elements = 10});
  return sketch.trace();
}

TEST(FirstCollectiveTest, SpeaksWhenOnlyTheFirstCallIsLong) {
  const auto finding = find_by_rule(with_first(40'000, 60), "first-collective");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_EQ(finding->at_stake_ns, 39'940'000);
}

// As NCCL has it: the communicator is made by a coalesced call inside the first one.
TEST(FirstCollectiveTest, SpeaksThoughACallInsideTheFirstIsAsLong) {
  const auto finding = find_by_rule(with_first(40'000, 60, 39'000), "first-collective");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 39'940'000);
  EXPECT_EQ(finding->sample_count, 8u);
}

TEST(FirstCollectiveTest, IsQuietWhenAnotherIsLongTooOrItIsShort) {
  EXPECT_FALSE(find_by_rule(with_first(40'000, 20'000), "first-collective"));
  EXPECT_FALSE(find_by_rule(with_first(4'000, 60), "first-collective"));
}

}  // namespace
}  // namespace lanescope::explain

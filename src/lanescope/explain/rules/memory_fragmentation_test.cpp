#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_memory_test.h"

namespace lanescope::explain {
namespace {

// 1 GB is free in the pool, and a block of 512 MB still needs new memory.
AllocatorSketch with_pool(std::int64_t block, bool grows) {
  AllocatorSketch program(2 * kGB, 3 * kGB);
  program.change(10, kMB, 1);
  if (grows) program.reserve(block);
  program.change(20, block, 2);
  return program;
}

TEST(MemoryFragmentationTest, SpeaksWhenThePoolGrowsThoughItHasRoom) {
  const auto finding = find_by_rule(with_pool(512 * kMB, true).trace(), "memory-fragmentation");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 1);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).integer, 512 * kMB);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, kGB - kMB);
}

TEST(MemoryFragmentationTest, IsQuietWhenThePoolHadNoRoomOrDidNotGrow) {
  EXPECT_FALSE(find_by_rule(with_pool(512 * kMB, false).trace(), "memory-fragmentation"));
  EXPECT_FALSE(find_by_rule(with_pool(1100 * kMB, true).trace(), "memory-fragmentation"));
}

}  // namespace
}  // namespace lanescope::explain

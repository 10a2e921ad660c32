#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::ProgramSketch;

TEST(OccupancyQueryTest, ExplainsTheQueryBeforeALaunch) {
  const auto finding = find_in_steps("occupancy-query", [](ProgramSketch& p) {
    p.begin_op("aten::mm").call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags");
    p.kernel(kNvjet, 100).end().pass(50);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 1000);
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("leave them"));
}

TEST(OccupancyQueryTest, CountsEveryQuestionHowMuchFits) {
  const auto finding = find_in_steps("occupancy-query", [](ProgramSketch& p) {
    p.begin_op("aten::mm").call("cudaOccupancyAvailableDynamicSMemPerBlock");
    p.call("hipModuleOccupancyMaxPotentialBlockSize").kernel(kNvjet, 100).end().pass(50);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 6);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 6);
}

TEST(OccupancyQueryTest, SaysWhenTheQueriesThemselvesCost) {
  const auto finding = find_in_steps("occupancy-query", [](ProgramSketch& p) {
    p.begin_op("aten::mm").call("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    p.kernel(kNvjet, 100).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("more than 5 %"));
}

TEST(OccupancyQueryTest, IsQuietAboutQueriesThatLaunchNothing) {
  EXPECT_FALSE(find_in_steps("occupancy-query", [](ProgramSketch& p) {
    p.begin_op("my::probe").call("cudaOccupancyMaxActiveBlocksPerMultiprocessor").end();
    p.op("aten::mm", {}, kNvjet, 100);
  }));
}

}  // namespace
}  // namespace lanescope::explain

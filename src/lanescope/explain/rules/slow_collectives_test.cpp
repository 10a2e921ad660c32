#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

struct DrawnCollectives {
  std::int64_t mib = 64, us = 5000, ranks = 2;
  int calls = 2;                    // in each of four steps
  std::int64_t first_us = 0;        // of the first call of the second step; 0: as the others
  std::int64_t other_group_us = 0;  // of a call of as many bytes in another group; 0: none
  std::string gpu = "NVIDIA H200";
  int gpus = 8;
};

// Each step computes for 10 ms; then come the all-reduces, one after the other.
Trace draw_collectives(const DrawnCollectives& drawn) {
  Sketch sketch;
  std::string devices;
  for (int i = 0; i < drawn.gpus; ++i)
    devices += (i == 0 ? "" : ", ") + ("{\"id\": " + std::to_string(i)) + ", \"name\": \"" +
               drawn.gpu + "\"}";
  sketch.metadata("deviceProperties", "[" + devices + "]");
  std::int64_t at = 1000, id = 0;
  const auto run = [&](std::string_view name, std::int64_t time_us, testing::Fields fields) {
    fields.correlation = ++id;
    sketch.runtime("cudaLaunchKernel", us(at), 1000, {.correlation = id});
    sketch.kernel(name, us(at + 2), us(time_us), fields);
    at += time_us + 2;
  };
  for (int step = 0; step < 4; ++step) {
    const std::int64_t start = at;
    run("gemm", 10'000, {});
    testing::Fields fields{
        .collective = "allreduce", .elements = drawn.mib << 18, .group_size = drawn.ranks};
    for (int i = 0; i < drawn.calls; ++i)
      run("ncclDevKernel_AllReduce_Sum_f32_RING_LL",
          step == 1 && i == 0 && drawn.first_us > 0 ? drawn.first_us : drawn.us, fields);
    fields.group = "1";
    if (drawn.other_group_us > 0)
      run("ncclDevKernel_AllReduce_Sum_f32_RING_LL", drawn.other_group_us, fields);
    sketch.annotation("ProfilerStep#" + std::to_string(step), us(start), us(at - start));
  }
  return sketch.trace();
}

std::optional<Finding> found(const DrawnCollectives& drawn) {
  return find_by_rule(draw_collectives(drawn), "slow-collectives");
}

// 64 MiB among 2 ranks in 5 ms: 12.5 GiB/s, less than an eighth of NVLink's 450 GB/s.
TEST(SlowCollectivesTest, SpeaksOfCollectivesThatAreFarSlowerThanTheLinks) {
  const auto finding = found({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 2);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 64 << 20);
  EXPECT_EQ(finding->verdict.values.at(3).integer, us(5000));
  EXPECT_EQ(finding->verdict.values.at(4).integer, std::int64_t{25} << 29);  // 12.5 GiB
  EXPECT_EQ(finding->verdict.values.at(5).integer, 450'000'000'000);
  EXPECT_THAT(finding->arithmetic.back().pattern, ::testing::HasSubstr("cannot tell waiting"));
}

// All-reduce among eight ranks: each link carries 2 x 7 / 8 of the bytes.
TEST(SlowCollectivesTest, CountsTheBytesOfEachLink) {
  const auto finding = found({.ranks = 8});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(4).integer, (std::int64_t{25} << 29) * 14 / 8);
}

// 1 ms is 67 GB/s, and one fast call is enough: the others waited for another rank.
TEST(SlowCollectivesTest, IsQuietWhereTheLinksAreFastOrCallsWait) {
  EXPECT_FALSE(found({.us = 1000}));
  EXPECT_FALSE(found({.first_us = 1000}));
}

TEST(SlowCollectivesTest, IsQuietAboutSmallMessagesAndFewCalls) {
  EXPECT_FALSE(found({.mib = 7}));
  EXPECT_FALSE(found({.calls = 1}));  // three in the steady steps
}

// Ranks of several hosts, GPUs without NVLink, and unknown GPUs: no link is known.
TEST(SlowCollectivesTest, ComparesWithLinksOfOneHostOnly) {
  EXPECT_FALSE(found({.ranks = 16}));
  EXPECT_FALSE(found({.gpu = "NVIDIA H200 NVL"}));
  EXPECT_FALSE(found({.gpu = "NVIDIA L40S"}));
}

// Another group moves as much in a fifth of the time.
TEST(SlowCollectivesTest, ComparesGroups) {
  const auto finding = found({.other_group_us = 1000, .gpu = "NVIDIA L40S"});
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::HasSubstr("Those of group {}"));
  EXPECT_EQ(finding->verdict.values.at(5).text, "1");
  EXPECT_FALSE(found({.other_group_us = 2000, .gpu = "NVIDIA L40S"}));
}

TEST(SlowCollectivesTest, IsNotCheckedWithoutTheSizeOfTheGroup) {
  EXPECT_EQ(state_of_rule(draw_collectives({.ranks = 0}), "slow-collectives"),
            RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain

#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Two layers; step i joins a cache of 10 + i (or always 10) and one piece, 20 us each.
ProgramSketch with_cache(bool grows, bool shapes = true) {
  ProgramSketch program;
  for (int i = 0; i < 8; ++i) {
    program.step();
    const std::string dims =
        "[[[1, 8, " + std::to_string(grows ? 10 + i : 10) + ", 64], [1, 8, 1, 64]], []]";
    for (int layer = 0; layer < 2; ++layer)
      program.launch({.us = 50})
          .launch({.name = "CatArrayBatchedCopy",
                   .us = 20,
                   .op = "aten::cat",
                   .dims = shapes ? dims : ""});
    program.end();
  }
  return program;
}

TEST(GrowingCatTest, SpeaksOfABufferThatGrowsByItsPiece) {
  const auto finding = find_by_rule(with_cache(true).trace(), "growing-cat");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 16);
  EXPECT_EQ(finding->verdict.values[1].text, "[1, 8, *, 64]");
  EXPECT_EQ(finding->verdict.values[2].integer, 10);
  EXPECT_EQ(finding->verdict.values[3].integer, 17);
  EXPECT_EQ(finding->at_stake_ns, 40'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 7);
}

TEST(GrowingCatTest, IsQuietAboutFixedShapesAndNotCheckedWithoutAny) {
  EXPECT_FALSE(find_by_rule(with_cache(false).trace(), "growing-cat"));
  EXPECT_EQ(state_of_rule(with_cache(true, false).trace(), "growing-cat"),
            RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain

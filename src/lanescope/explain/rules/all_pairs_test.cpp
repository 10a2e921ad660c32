#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// `op` of these shapes, a cast of what it made, a sum, and other work.
void draw_pairs(ProgramSketch& p, std::string_view op, std::string_view left,
                std::string_view right, std::string_view made) {
  p.op(std::string(op), shapes("[" + std::string(left) + ", " + std::string(right) + "]", kFloat),
       "pairs_kernel", 60);
  p.op("aten::to", shapes("[" + std::string(made) + "]", R"(["float"])"), "copy_kernel", 30);
  p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
}

TEST(AllPairsTest, CountsWhatMakesAndWhatReadsThePairs) {
  const auto finding = find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::gt", "[2048, 1]", "[1, 2048]", "[2048, 2048]");
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 90'000);
  EXPECT_EQ(finding->brief.values.at(1).integer, 2048 * 2048);
  EXPECT_NE(finding->action.pattern.find("searchsorted"), std::string::npos);
}

TEST(AllPairsTest, KnowsDifferencesOfRows) {
  const auto finding = find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::sub", "[512, 1, 64]", "[1, 512, 64]", "[512, 512, 64]");
  });
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("torch.cdist"), std::string::npos);
}

testing::Fields reduces(std::string_view dims, const char* over) {
  return {.input_dims = "[" + std::string(dims) + ", [], [], []]",
          .input_types = R"(["float", "ScalarList", "Scalar", ""])",
          .concrete_inputs = R"(["", ")" + std::string(over) + R"(", "False", ""])"};
}

// Differences of points in a box, their squares, and what else reads the differences.
std::string action_for_differences(const char* reader, const char* over = "[-1]") {
  const auto finding = find_in_steps("all-pairs", [&](ProgramSketch& p) {
    p.op("aten::sub", shapes("[[512, 1, 64], [1, 512, 64]]", kFloat), "pairs_kernel", 60);
    p.op("aten::pow", shapes("[[512, 512, 64], []]", R"(["float", "Scalar"])"), "pow_kernel", 60);
    p.op("aten::sum", reduces("[512, 512, 64]", over), "sum_kernel", 30);
    if (reader)
      p.op(reader, shapes("[[512, 512, 64], []]", R"(["float", "double"])"), "kernel", 30);
  });
  return finding ? finding->action.pattern : std::string();
}

TEST(AllPairsTest, AdvisesCdistForDistancesAlone) {
  EXPECT_NE(action_for_differences(nullptr).find("torch.cdist"), std::string::npos);
  EXPECT_NE(action_for_differences(nullptr, "[2]").find("torch.cdist"), std::string::npos);
  // The differences are read again, or the sum is over one side.
  EXPECT_EQ(action_for_differences("aten::round").find("torch.cdist"), std::string::npos);
  EXPECT_EQ(action_for_differences(nullptr, "[1]").find("torch.cdist"), std::string::npos);
  EXPECT_NE(action_for_differences("aten::round").find("blocks"), std::string::npos);
}

struct DrawnLimit {
  const char* points = "3";
  const char* compared_with = "[]";  // a number
  const char* masked_types = R"(["bool", "float", "float"])";
};

// Forces between points: those of pairs beyond a limit are replaced by zero.
std::optional<Finding> find_limit(const DrawnLimit& drawn = {}) {
  const std::string points(drawn.points), all = "[1024, 1024, " + points + "]";
  return find_in_steps("all-pairs", [&](ProgramSketch& p) {
    p.op("aten::sub", shapes("[[1024, 1, " + points + "], [1, 1024, " + points + "]]", kFloat),
         "pairs_kernel", 60);
    p.op("aten::pow", shapes("[" + all + ", []]", R"(["float", "Scalar"])"), "pow_kernel", 60);
    p.op("aten::sum", reduces(all, "[-1]"), "sum_kernel", 30);
    p.op(
        "aten::lt",
        shapes("[[1024, 1024], " + std::string(drawn.compared_with) + "]", R"(["float", "float"])"),
        "lt_kernel", 20);
    p.op("aten::where", shapes("[[1024, 1024], [1024, 1024], [1024, 1024]]", drawn.masked_types),
         "where_kernel", 20);
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
  });
}

// What works on one number for each pair counts, too.
TEST(AllPairsTest, KnowsPairsUnderALimit) {
  const auto finding = find_limit();
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("near pairs"), std::string::npos);
  EXPECT_NE(finding->brief.pattern.find("limit"), std::string::npos);
  EXPECT_EQ(finding->at_stake_ns, 190'000);
}

// Rows of another tensor are compared, nothing is masked, or the points have too many coordinates for cells.
TEST(AllPairsTest, SaysNothingOfALimitThatMasksNoPairs) {
  const DrawnLimit others[] = {{.compared_with = "[1024, 1024]"},
                               {.masked_types = R"(["float", "float", "float"])"},
                               {.points = "64"}};
  for (const DrawnLimit& each : others) {
    const auto finding = find_limit(each);
    ASSERT_TRUE(finding);
    EXPECT_NE(finding->action.pattern.find("torch.cdist"), std::string::npos);
    EXPECT_EQ(finding->at_stake_ns, 150'000);
  }
}

// Boxes of several pictures meet the targets of all; a comparison of their pictures masks what comes of it.
std::optional<Finding> find_masked(std::string_view compare, std::string_view masked_types) {
  return find_in_steps("all-pairs", [&](ProgramSketch& p) {
    draw_pairs(p, "aten::maximum", "[2048, 1, 2]", "[1, 1024, 2]", "[2048, 1024, 2]");
    p.op(std::string(compare), shapes("[[2048, 1], [1024]]", R"(["long int", "long int"])"),
         "compare_kernel", 20);
    p.op("aten::mul", shapes("[[2048, 1024], [2048, 1024]]", masked_types), "mul_kernel", 20);
  });
}

TEST(AllPairsTest, SaysThatOnlyPairsOfOneGroupAreKept) {
  const auto finding = find_masked("aten::eq", R"(["float", "bool"])");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->brief.pattern.find("of one group"), std::string::npos);
  EXPECT_NE(finding->action.pattern.find("one group"), std::string::npos);
  // Another comparison, and another tensor of that size.
  const auto larger = find_masked("aten::gt", R"(["float", "bool"])");
  ASSERT_TRUE(larger);
  EXPECT_EQ(larger->action.pattern.find("one group"), std::string::npos);
  const auto unmasked = find_masked("aten::eq", R"(["float", "float"])");
  ASSERT_TRUE(unmasked);
  EXPECT_EQ(unmasked->action.pattern.find("one group"), std::string::npos);
}

TEST(AllPairsTest, IsQuietAboutResultsAsLargeAsAnInputAndSmallTables) {
  // A bias.
  EXPECT_FALSE(find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::add", "[4096, 4096]", "[4096]", "[4096, 4096]");
  }));
  // A table of angles: 512 x 64.
  EXPECT_FALSE(find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::mul", "[512, 1]", "[64]", "[512, 64]");
  }));
  // A few columns, each for many rows: 8 times an input.
  EXPECT_FALSE(find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::mul", "[1000000, 1]", "[1, 8]", "[1000000, 8]");
  }));
}

TEST(AllPairsTest, LeavesProductsThatAreSummedToAnotherRule) {
  EXPECT_FALSE(find_in_steps("all-pairs", [](ProgramSketch& p) {
    p.op("aten::mul", shapes("[[512, 1, 64], [1, 512, 64]]", kFloat), "pairs_kernel", 60);
    p.op("aten::sum", shapes("[[512, 512, 64]]", R"(["float"])"), "sum_kernel", 60);
  }));
}

TEST(AllPairsTest, DoesNotCountOtherTensors) {
  const auto finding = find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::gt", "[2048, 1]", "[1, 2048]", "[2048, 2047]");
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 60'000);
}

// The larger of two values is no product.
TEST(AllPairsTest, AdvisesNoProductWhereThereIsNone) {
  const auto action = [](std::string_view op) {
    const auto finding = find_in_steps("all-pairs", [&](ProgramSketch& p) {
      draw_pairs(p, op, "[2048, 1]", "[1, 2048]", "[2048, 2048]");
    });
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_NE(action("aten::mul").find("matrix product"), std::string::npos);
  EXPECT_EQ(action("aten::maximum").find("product"), std::string::npos);
  EXPECT_NE(action("aten::maximum").find("within groups"), std::string::npos);
}

// Of the pairs the largest is kept: no sum of a side gives it.
TEST(AllPairsTest, AdvisesNoSumForAMaximum) {
  const auto action = [](std::string_view reduction) {
    const auto finding = find_in_steps("all-pairs", [&](ProgramSketch& p) {
      draw_pairs(p, "aten::add", "[2048, 1]", "[1, 2048]", "[2048, 2048]");
      p.op("aten::exp", shapes("[[2048, 2048]]", R"(["float"])"), "exp_kernel", 30);
      p.op(std::string(reduction), shapes("[[2048, 2048]]", R"(["float"])"), "reduce_kernel", 30);
    });
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_NE(action("aten::sum").find("Sum first"), std::string::npos);
  EXPECT_EQ(action("aten::amax").find("Sum first"), std::string::npos);
  EXPECT_NE(action("aten::amax").find("near pairs"), std::string::npos);
}

// A pause of 600 us. The CPU waits for the pairs before it, or the GPU works on them meanwhile.
std::optional<Finding> find_with_pause(std::int64_t pause_us, bool waits) {
  return find_in_steps("all-pairs", [&](ProgramSketch& p) {
    draw_pairs(p, "aten::maximum", "[2048, 1]", "[1, 2048]", "[2048, 2048]");
    if (waits) p.wait();
    p.pass(pause_us);
  });
}

TEST(AllPairsTest, IsNoCostWhereTheCpuIsTheLimit) {
  const auto short_pause = find_with_pause(10, true);
  ASSERT_TRUE(short_pause);
  EXPECT_EQ(short_pause->kind, FindingKind::kCost);
  const auto hidden = find_with_pause(800, false);
  ASSERT_TRUE(hidden);
  EXPECT_EQ(hidden->kind, FindingKind::kWhere);
}

// The GPU waits for most of the step, but the CPU waits for the pairs: 90 us of each step.
TEST(AllPairsTest, CountsTheTimeOnTheCriticalPath) {
  const auto found = find_with_pause(600, true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, FindingKind::kCost);
  EXPECT_LE(found->at_stake_ns, 90'000);
  EXPECT_GE(found->at_stake_ns, 85'000);
}

// Attention that reads a mask has work of its own, and nothing is counted or found.
TEST(AllPairsTest, KnowsMasksOfAttention) {
  const auto finding = find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::eq", "[2048, 1]", "[1, 2048]", "[2048, 2048]");
    p.op("aten::scaled_dot_product_attention",
         shapes("[[1, 8, 2048, 64], [1, 8, 2048, 64], [1, 8, 2048, 64], [2048, 2048]]",
                R"(["float", "float", "float", "float"])"),
         "attention_kernel", 200);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 90'000);  // without the attention
  EXPECT_NE(finding->brief.pattern.find("mask of attention"), std::string::npos);
  EXPECT_EQ(finding->action.pattern.find("searchsorted"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain

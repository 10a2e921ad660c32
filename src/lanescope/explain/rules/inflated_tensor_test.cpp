#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

constexpr char kTwo[] = R"(["float", "float"])";
constexpr char kReduce[] = R"(["float", "ScalarList", "Scalar", ""])";

testing::Fields over(std::string_view dims, std::string_view dim) {
  return inputs("[" + std::string(dims) + ", [], [], []]", kReduce, "",
                R"(["", ")" + std::string(dim) + R"(", "False", ""])");
}

struct DrawnCall {
  std::string_view op;
  testing::Fields fields;
  std::int64_t us = 100;
};

// A step of these calls, each with a kernel; then a product of 100 us.
std::optional<Finding> find_inflated(const std::vector<DrawnCall>& calls) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    for (const DrawnCall& each : calls) p.begin_op(each.op, each.fields).kernel("k", each.us).end();
    p.begin_op("aten::mm").kernel("gemm", 100).end();
  });
  return find_by_rule(program.trace(), "inflated-tensor");
}

// |a - b| of 1,024 rows of 32 each: 33,554,432 differences of 32,768 elements, of which the sum leaves 1,048,576.
std::vector<DrawnCall> distances(std::string_view left = "[1024, 1, 32]") {
  return {{"aten::sub", inputs("[" + std::string(left) + ", [1, 1024, 32]]", kTwo, "", "")},
          {"aten::abs", inputs("[[1024, 1024, 32]]", R"(["float"])", "", ""), 80},
          {"aten::sum", over("[1024, 1024, 32]", "[-1]"), 60}};
}

TEST(InflatedTensorTest, CountsTheWholeChain) {
  const auto finding = find_inflated(distances());
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(240));
  EXPECT_EQ(finding->brief.values[1].integer, 1024 * 1024 * 32);
  EXPECT_EQ(finding->brief.values[2].integer, 1024 * 32);
  EXPECT_EQ(finding->brief.values[4].integer, 1024 * 1024);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("torch.cdist"));
}

// A one-hot tensor of 2,097,152 elements in the same step, which costs 60 us: another cause, with another fix.
TEST(InflatedTensorTest, NamesTheGroupThatCostsMost) {
  auto calls = distances();
  const DrawnCall one_hot = {
      "aten::one_hot", inputs("[[2048], []]", R"(["long int", "Scalar"])", "", R"(["", "1024"])"),
      40};
  const DrawnCall sum = {"aten::sum", over("[2048, 1024]", "[0]"), 20};
  calls.insert(calls.begin(), {one_hot, sum});
  const auto finding = find_inflated(calls);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(240));
  EXPECT_EQ(finding->brief.values[1].integer, 1024 * 1024 * 32);
  const auto alone = find_inflated({one_hot, sum});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->at_stake_ns, us(60));
}

TEST(InflatedTensorTest, IsQuietWhereTheInputsAreAsLarge) {
  EXPECT_FALSE(find_inflated(distances("[1024, 1024, 32]")));
}

TEST(InflatedTensorTest, IsQuietWhereAllOfItIsUsed) {
  auto calls = distances();
  calls.pop_back();
  EXPECT_FALSE(find_inflated(calls));  // it leaves the step
  calls.push_back({"aten::conv2d", inputs("[[1024, 1024, 32]]", R"(["float"])", "", "")});
  EXPECT_FALSE(find_inflated(calls));  // taken in a way that is not known
  calls = distances();
  calls.push_back({"aten::exp", inputs("[[1024, 1024, 32]]", R"(["float"])", "", "")});
  EXPECT_FALSE(find_inflated(calls));  // what comes after the sum is used
}

// [4096, 64] x [64, 4096] makes 16.8 M elements.
std::optional<Finding> find_after_product(const std::vector<DrawnCall>& then) {
  std::vector<DrawnCall> calls = {
      {"aten::matmul", inputs("[[4096, 64], [64, 4096]]", kTwo, "", "")}};
  calls.insert(calls.end(), then.begin(), then.end());
  return find_inflated(calls);
}

TEST(InflatedTensorTest, AdvisesByWhatHappensToAProduct) {
  const auto scaled = inputs("[[4096, 4096], []]", R"(["float", "Scalar"])", "", "");
  const auto to_few = inputs("[[4096, 4096], [4096, 64]]", kTwo, "", "");
  const auto action = [](const std::optional<Finding>& finding) {
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action(find_after_product({{"aten::mul", scaled}, {"aten::matmul", to_few}})),
              ::testing::HasSubstr("A @ (B @ C)"));
  EXPECT_THAT(action(find_after_product({{"aten::softmax", scaled}, {"aten::matmul", to_few}})),
              ::testing::HasSubstr("scaled_dot_product_attention"));
  EXPECT_THAT(action(find_after_product({{"aten::sum", over("[4096, 4096]", "[-1]")}})),
              ::testing::HasSubstr("B.sum(-1)"));
  // Of the exponentials the sum cannot be taken first.
  EXPECT_THAT(action(find_after_product(
                  {{"aten::exp", scaled}, {"aten::sum", over("[4096, 4096]", "[-1]")}})),
              ::testing::HasSubstr("blocks of rows"));
  EXPECT_THAT(action(find_after_product(
                  {{"aten::slice", inputs("[[4096, 4096], [], [], [], []]",
                                          R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])",
                                          "", R"(["", "0", "0", "64", "1"])")}})),
              ::testing::HasSubstr("Select first"));
}

// exp takes 100 us; the product and one pass over it stay. topk alone is that pass.
TEST(InflatedTensorTest, LeavesOutAProductThatMustStay) {
  const auto finding =
      find_after_product({{"aten::exp", inputs("[[4096, 4096]]", R"(["float"])", "", "")},
                          {"aten::sum", over("[4096, 4096]", "[-1]")}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(100));
  EXPECT_FALSE(find_after_product(
      {{"aten::topk", inputs("[[4096, 4096], [], []]", R"(["float", "Scalar", "Scalar"])", "",
                             R"(["", "10", "-1"])")}}));
}

// [4096, 4096] as [4096, 64, 64]: the second product adds up along another dimension than the first made.
TEST(InflatedTensorTest, KnowsNoOtherOrderOfProductsInAnotherShape) {
  EXPECT_FALSE(find_after_product(
      {{"aten::view", inputs("[[4096, 4096], []]", R"(["float", "ScalarList"])", "", ""), 0},
       {"aten::bmm", inputs("[[4096, 64, 64], [4096, 64, 1]]", kTwo, "", "")}}));
  EXPECT_FALSE(
      find_after_product({{"aten::exp", inputs("[[4096, 4096]]", R"(["float"])", "", "")},
                          {"aten::matmul", inputs("[[4096, 4096], [4096, 64]]", kTwo, "", "")}}));
}

// A search replaces distances of which the smallest are kept, not those that are all added up.
TEST(InflatedTensorTest, AdvisesASearchWhereFewDistancesAreKept) {
  const auto action = [](const std::vector<DrawnCall>& takers) {
    std::vector<DrawnCall> calls = {
        {"aten::cdist",
         inputs("[[4096, 3], [4096, 3], [], []]", R"(["float", "float", "Scalar", ""])", "", "")}};
    calls.insert(calls.end(), takers.begin(), takers.end());
    const auto found = find_inflated(calls);
    EXPECT_TRUE(found);
    return found ? found->action.pattern : "";
  };
  EXPECT_THAT(action({{"aten::exp", inputs("[[4096, 4096]]", R"(["float"])", "", "")},
                      {"aten::matmul", inputs("[[4096, 4096], [4096, 4]]", kTwo, "", "")}}),
              ::testing::HasSubstr("each pair counts"));
  EXPECT_THAT(action({{"aten::exp", inputs("[[4096, 4096]]", R"(["float"])", "", "")},
                      {"aten::topk", inputs("[[4096, 4096], [], [], [], []]",
                                            R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])",
                                            "", R"(["", "8", "-1", "False", "True"])")}}),
              ::testing::HasSubstr("search an index"));
}

TEST(InflatedTensorTest, IsQuietAboutPartsOfASoftmax) {
  EXPECT_FALSE(find_after_product(
      {{"aten::log_softmax", inputs("[[4096, 4096], []]", R"(["float", "Scalar"])", "", "")},
       {"aten::gather",
        inputs("[[4096, 4096], [], [4096, 1], []]", R"(["float", "Scalar", "long int", "Scalar"])",
               "", R"(["", "1", "", "False"])")}}));
}

TEST(InflatedTensorTest, FollowsATensorThroughViews) {
  const auto compared = inputs("[[4096, 1], [1, 1024]]", R"(["long int", "long int"])", "", "");
  const auto found = find_inflated(
      {{"aten::eq", compared},
       {"aten::view", inputs("[[4096, 1024], []]", R"(["bool", "ScalarList"])", "", ""), 0},
       {"aten::any", inputs("[[4194304], [], []]", R"(["bool", "Scalar", "Scalar"])", "",
                            R"(["", "0", "False"])")}});
  ASSERT_TRUE(found);
  EXPECT_THAT(found->action.pattern, ::testing::HasSubstr("torch.isin"));
}

}  // namespace
}  // namespace lanescope::explain

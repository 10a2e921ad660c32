#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnGather {
  std::string_view between = "aten::contiguous";
  int points = 8000;  // of the table; 160,000 rows are gathered
  std::string_view weight = "[64, 128]";
  bool trains = false;
};

Fields typed(const std::string& dims, const std::string& types, const std::string& concrete) {
  return {.input_dims = dims, .input_types = types, .concrete_inputs = concrete};
}

// Rows of 64 numbers, gathered, 20 us; joined with rows of 64 that repeat() wrote, 30 us; multiplied, 200 us, and the node of it,
// 400 us. Then 100 us of other work.
std::optional<Finding> find_gathered(const DrawnGather& drawn) {
  const std::string table = "[" + std::to_string(drawn.points) + ", 64]";
  std::int64_t number = 0;
  return find_in_steps("product-after-gather", [&](ProgramSketch& p) {
    p.op("aten::relu", typed("[" + table + "]", R"(["float"])", R"([""])"), "relu", 5);
    p.op("aten::index", typed("[" + table + ", []]", R"(["float", ""])", R"(["", ""])"), "gather",
         20);
    p.op("aten::repeat",
         typed("[[" + std::to_string(drawn.points) + ", 1, 64], []]", R"(["float", "ScalarList"])",
               R"(["", "[1, 20, 1]"])"),
         "copy", 10);
    p.op("aten::cat",
         typed("[[[160000, 64], [160000, 64]], []]", R"(["TensorList", "Scalar"])", R"(["", "1"])"),
         "cat", 30);
    p.op(drawn.between, typed("[[160000, 128]]", R"(["float"])", R"([""])"), "k", 10);
    Fields product = typed("[[160000, 128], " + std::string(drawn.weight) + "]",
                           R"(["float", "float"])", R"(["", ""])");
    product.sequence = number++;
    p.op("aten::linear", product, kNvjet, 200);
    p.op("aten::mm", {}, "gemm", 100);
    if (!drawn.trains) return;
    p.begin_op("autograd::engine::evaluate_function: LinearBackward0",
               {.sequence = number - 1, .fwd_thread = 1});
    p.kernel("gemm", 400).end();
  });
}

// One of 20 rows stays: 200 us - 10. What repeats, joins and copies the rows goes: 10 + 30 + 10.
TEST(ProductAfterGatherTest, NamesAProductThatCouldGoBeforeTheLookup) {
  const auto finding = find_gathered({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(190 + 50));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::linear");
  EXPECT_EQ(finding->brief.values.at(1).integer, 160'000);
  EXPECT_EQ(finding->brief.values.at(2).integer, 8'000);
}

TEST(ProductAfterGatherTest, CountsTheBackwardPass) {
  const auto finding = find_gathered({.trains = true});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(570 + 50));
}

TEST(ProductAfterGatherTest, IsQuietIfTheOrderMattersOrTheTableIsLarge) {
  EXPECT_FALSE(find_gathered({.between = "aten::relu"}));
  EXPECT_FALSE(find_gathered({.between = "aten::mul"}));  // perhaps by a weight of each edge
  EXPECT_FALSE(find_gathered({.points = 80'000}));
  EXPECT_FALSE(find_gathered({.weight = "[512, 128]"}));  // lookups of 512 numbers instead of 64
}

}  // namespace
}  // namespace lanescope::explain

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnAdapters {
  int layers = 4;
  std::string rank = "16";
  std::string wide = "512";  // what the second product makes
  const char* last = "aten::add";
  const char* between = "aten::to";
  const char* factor = "[]";  // of the scaling
  bool trains = false;
};

// Four steps of layers of 300 us, each with an adapter: two products of 20 us, a scale of 10 us and a sum of 10 us.
std::optional<Finding> find_adapters(const DrawnAdapters& drawn) {
  const auto linear = [](ProgramSketch& p, const std::string& input, const std::string& weight,
                         std::int64_t us) {
    p.op("aten::linear",
         {.input_dims = "[" + input + ", " + weight + ", []]",
          .input_types = R"(["c10::BFloat16", "c10::BFloat16", ""])"},
         "gemm", us);
  };
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < drawn.layers; ++i) {
      linear(p, "[8, 256]", "[512, 256]", 300);
      p.op(drawn.between, {}, "elementwise", 10);
      linear(p, "[8, 256]", "[" + drawn.rank + ", 256]", 20);
      linear(p, "[8, " + drawn.rank + "]", "[" + drawn.wide + ", " + drawn.rank + "]", 20);
      p.op("aten::mul",
           {.input_dims = std::string("[[8, 512], ") + drawn.factor + "]",
            .input_types = R"(["c10::BFloat16", "double"])"},
           "elementwise", 10);
      p.op(drawn.last, {}, "elementwise", 10);
    }
    if (drawn.trains)
      p.begin_op("autograd::engine::evaluate_function: AddmmBackward0").pass(8).end();
  });
  return find_by_rule(program.trace(), "unmerged-adapter");
}

// 4 x (10 + 20 + 20 + 10 + 10) us in each step; five calls each, in three steady steps.
TEST(UnmergedAdapterTest, CountsAllButTheLayersOwnProduct) {
  const auto finding = find_adapters({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(280));
  EXPECT_EQ(finding->spared_calls.size(), 3u * 4 * 5);
  EXPECT_EQ(finding->brief.values.at(0).integer, 16);
}

TEST(UnmergedAdapterTest, IsQuietAboutOtherProducts) {
  EXPECT_FALSE(find_adapters({.layers = 3}));
  EXPECT_FALSE(find_adapters({.trains = true}));           // adapters that are trained stay apart
  EXPECT_FALSE(find_adapters({.rank = "64"}));             // no rank far below the layer's sizes
  EXPECT_FALSE(find_adapters({.wide = "256"}));            // a bottleneck of its own
  EXPECT_FALSE(find_adapters({.last = "aten::sigmoid"}));  // no sum
  EXPECT_FALSE(find_adapters({.between = "aten::relu"}));  // A takes other rows than W
  EXPECT_FALSE(find_adapters({.factor = "[8, 1]"}));       // a gate for each row
  EXPECT_FALSE(find_adapters({.rank = "4611686018427387904"}));
}

}  // namespace
}  // namespace lanescope::explain

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DropoutDrawing {
  int rounds = 8;
  bool is_on = true, is_one_model = true, is_first = false;
  std::string_view last = "aten::softmax";
};

void in_module(ProgramSketch& p, const std::string& module, std::string_view op,
               std::string_view dims, std::int64_t us) {
  const std::int64_t start = p.cpu_us();
  p.pass(1);
  p.op(op, shapes(dims, kBf16), "kernel", us);
  p.sketch().slice("python_function", module, ProgramSketch::at(start),
                   ProgramSketch::at(p.cpu_us() - start));
}

void drop(ProgramSketch& p, bool is_on) {
  p.begin_op("aten::dropout", shapes("[[256, 64]]", kBf16));
  if (is_on) p.op("aten::native_dropout", shapes("[[256, 64]]", kBf16), "dropout", 5);
  p.end();
}

std::optional<Finding> find_rounds_with_dropout(const DropoutDrawing& drawn) {
  return find_in_steps("dropout-rounds", [&](ProgramSketch& p) {
    for (int round = 0; round < drawn.rounds; ++round) {
      const std::string number = std::to_string(drawn.is_one_model ? 0 : round);
      if (drawn.is_first) drop(p, drawn.is_on);
      in_module(p, "nn.Module: Linear_" + number, "aten::linear", "[[256, 64], [64, 64]]", 40);
      p.op("aten::relu", shapes("[[256, 64]]", kBf16), "relu", 10);
      if (!drawn.is_first) drop(p, drawn.is_on);
      in_module(p, "nn.Module: Head_" + number, "aten::linear", "[[256, 64], [9, 64]]", 10);
      p.op(drawn.last, shapes("[[256, 9]]", kBf16), "last", 5);
    }
  });
}

TEST(DropoutRoundsTest, CountsWhatComesBeforeTheFirstDropout) {
  const auto finding = find_rounds_with_dropout({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).integer, 8);
  EXPECT_EQ(finding->brief.values.at(1).integer, 2);
  // Seven times a layer of 40 us and a relu of 10 us.
  EXPECT_EQ(finding->at_stake_ns, 350'000);
  EXPECT_TRUE(finding->action.pattern.starts_with("If the input is the same"));
}

TEST(DropoutRoundsTest, IsQuietWhereARoundMayBeAnother) {
  EXPECT_FALSE(find_rounds_with_dropout({.rounds = 2}));
  EXPECT_FALSE(find_rounds_with_dropout({.is_on = false}));
  EXPECT_FALSE(find_rounds_with_dropout({.is_one_model = false}));
  EXPECT_FALSE(find_rounds_with_dropout({.last = "aten::argmax"}));
}

// Each sample drops other parts of the input: all layers are needed again.
TEST(DropoutRoundsTest, IsQuietAboutDropoutOfTheInput) {
  EXPECT_FALSE(find_rounds_with_dropout({.is_first = true}));
}

}  // namespace
}  // namespace lanescope::explain

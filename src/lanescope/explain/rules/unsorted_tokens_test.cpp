#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

void draw_find(ProgramSketch& p, bool finds) {
  p.begin_op("aten::where");
  if (finds)
    p.wait("aten::nonzero");
  else
    p.kernel("where", 2);
  p.end();
}

// A step with a loop over experts; each launch takes 10 us of the CPU and 2 us of the GPU.
std::optional<Finding> find_loop(int experts, int products, bool finds = true,
                                 std::string_view write = "aten::index_add_") {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.launch({.us = 200, .op = "aten::topk"});
    for (int expert = 0; expert < experts; ++expert) {
      draw_find(p, finds);
      p.launch({.us = 2, .op = "aten::index"});
      for (int i = 0; i < products; ++i) p.launch({.us = 2, .op = "aten::matmul"});
      p.launch({.us = 2, .op = write}).pass(40);
    }
  });
  return find_by_rule(program.trace(), "unsorted-tokens");
}

// A round takes 7 us to find its tokens, 5 launches of 10 us, and 40 us of Python: 97 us. From the second round to the end of the eighth
// are 7 * 97 - 40 = 639 us. In these the GPU works 7 * 5 * 2 - 1 = 69 us (the last kernel ends 1 us later), and 35 kernels begin 2 us
// after their calls: 500 us are left.
TEST(UnsortedTokensTest, NamesALoopOverExperts) {
  const auto finding = find_loop(8, 3);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->at_stake_ns, us(500));
  EXPECT_EQ(finding->brief.values.at(0).integer, 8);
  EXPECT_THAT(finding->brief.pattern, ::testing::HasSubstr(", once per step: "));
  EXPECT_EQ(finding->explains.front().at_stake_ns, finding->at_stake_ns);
}

// Two layers of four experts each, with few calls between them.
TEST(UnsortedTokensTest, KnowsWhereALoopEnds) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int layer = 0; layer < 2; ++layer) {
      p.launch({.us = 10, .op = "aten::layer_norm"}).launch({.us = 10, .op = "aten::topk"});
      for (int expert = 0; expert < 4; ++expert) {
        draw_find(p, true);
        p.launch({.us = 2, .op = "aten::index"});
        for (int i = 0; i < 2; ++i) p.launch({.us = 2, .op = "aten::linear"});
        p.launch({.us = 2, .op = "aten::index_add_"}).pass(40);
      }
    }
  });
  const auto finding = find_by_rule(program.trace(), "unsorted-tokens");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values[0].integer, 4);  // experts
  EXPECT_EQ(finding->brief.values[1].integer, 2);  // times per step
}

// Three levels of a pyramid, one product per class, aten::where with three arguments, and results that go nowhere by index.
TEST(UnsortedTokensTest, IsQuietAboutOtherLoops) {
  EXPECT_TRUE(find_loop(4, 2));
  EXPECT_FALSE(find_loop(3, 2));
  EXPECT_FALSE(find_loop(8, 1));
  EXPECT_FALSE(find_loop(8, 3, false));
  EXPECT_FALSE(find_loop(8, 3, true, "aten::add_"));
  EXPECT_TRUE(find_loop(8, 3, true, "aten::index_put_"));
}

}  // namespace
}  // namespace lanescope::explain

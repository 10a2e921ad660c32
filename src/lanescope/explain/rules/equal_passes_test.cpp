#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Passes of a step: each makes its state, draws in each of its rounds and reads a value.
struct Passes {
  int count = 4, rounds = 10;
  std::string_view product = "aten::matmul", drawn = "aten::randn", read = "aten::item";
  bool makes_state = true;
  std::string_view last = "aten::mean";
};

// 20 us of the CPU for 10 us of work.
void work(ProgramSketch& p, std::string_view op) {
  p.begin_op(op).pass(20).launch({.us = 10}).end();
}

std::optional<Finding> find_passes(const Passes& passes) {
  return find_in_steps("equal-passes", [&](ProgramSketch& p) {
    p.launch({.us = 5, .op = "aten::clone"});
    for (int i = 0; i < passes.count; ++i) {
      if (passes.makes_state) {
        work(p, "aten::ones");
        work(p, "aten::zeros");
      }
      for (int round = 0; round < passes.rounds; ++round) {
        work(p, passes.drawn);
        work(p, passes.product);
        work(p, "aten::exp");
      }
      work(p, passes.last);
      if (!passes.read.empty()) work(p, passes.read);
    }
  });
}

TEST(EqualPassesTest, SeesASimulationThatIsRunAgainForEachInput) {
  const auto finding = find_passes({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).integer, 4);
  EXPECT_EQ(finding->brief.values.at(1).integer, 2 + 10 * 3 + 2);
  EXPECT_EQ(finding->brief.values.at(2).integer, 10);
  // Three of four passes: 34 calls with 10 us of work each.
  EXPECT_EQ(finding->at_stake_ns - finding->waiting_ns, 3 * 34 * 10'000);
}

// Steps of a simulation or of a diffusion model go on with what the one before them made.
TEST(EqualPassesTest, IsQuietAboutRoundsThatGoOn) {
  EXPECT_FALSE(find_passes({.makes_state = false}));
  EXPECT_FALSE(find_passes({.read = ""}));
  EXPECT_FALSE(find_passes({.product = "aten::linear"}));
  EXPECT_FALSE(find_passes({.product = "aten::conv2d"}));
  EXPECT_FALSE(find_passes({.last = "aten::topk"}));
}

TEST(EqualPassesTest, IsQuietWithoutRandomNumbersAndAboutTwoPasses) {
  EXPECT_FALSE(find_passes({.drawn = "aten::add"}));
  EXPECT_FALSE(find_passes({.count = 2}));
  EXPECT_FALSE(find_passes({.rounds = 5}));
}

}  // namespace
}  // namespace lanescope::explain

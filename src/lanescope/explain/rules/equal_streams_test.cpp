#include <gtest/gtest.h>

#include <array>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// `streams` pieces of ten kernels, each launched 40 us after the one before it and 10 us long. `is_equal`: or each stream
// runs kernels of its own.
Trace draw_streams(int streams, bool is_equal, std::int64_t kernel_us = 10) {
  constexpr std::array<const char*, 3> kNames = {"gemm", "softmax", "norm"};
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int stream = 0; stream < streams; ++stream)
      for (int i = 0; i < 10; ++i)
        p.pass(30).launch({.name = kNames[static_cast<std::size_t>(is_equal ? i % 3 : stream % 3)],
                           .us = kernel_us,
                           .stream = 7 + stream});
  });
  return program.trace();
}

// The GPU's waiting for the CPU without the part of one stream's launches: two thirds of it.
TEST(EqualStreamsTest, TellsOfTheSameKernelsOnSeveralStreams) {
  const Trace trace = draw_streams(3, true);
  const auto finding = find_by_rule(trace, "equal-streams");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values[0].integer, 3);
  EXPECT_EQ(finding->brief.values[1].integer, 10);
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns),
              static_cast<double>(facts->per_step(facts->waiting_for_cpu_ns())) * 2 / 3, 10);
}

TEST(EqualStreamsTest, IsQuietAboutOneStream) {
  EXPECT_FALSE(find_by_rule(draw_streams(1, true), "equal-streams"));
}

TEST(EqualStreamsTest, IsQuietAboutStreamsWithWorkOfTheirOwn) {
  EXPECT_FALSE(find_by_rule(draw_streams(3, false), "equal-streams"));
}

// As cuDNN's LSTM: one operator uses streams of its own.
TEST(EqualStreamsTest, IsQuietAboutStreamsInsideOneOperator) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin_op("aten::lstm");
    for (int stream = 0; stream < 3; ++stream)
      for (int i = 0; i < 10; ++i) p.pass(30).launch({.stream = 7 + stream});
    p.end();
  });
  EXPECT_FALSE(find_by_rule(program.trace(), "equal-streams"));
}

// The GPU is behind the launches.
TEST(EqualStreamsTest, IsQuietWhereTheGpuIsBusy) {
  EXPECT_FALSE(find_by_rule(draw_streams(3, true, 400), "equal-streams"));
}

}  // namespace
}  // namespace lanescope::explain

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_compiled_test.h"

namespace lanescope::explain {
namespace {

// A step of 60 us, kernel [59, 64): then the GPU waits for the launch that ends at 117. Of these 53
// us 46 are the compiler's ([64, 110) of lookup, region and graph), the rest the operator's.
TEST(CompileOverheadTest, SpeaksWhenTheGpuWaitsForTheLayers) {
  const auto finding = find_by_rule(compiled_call(5).trace(), "compile-overhead");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 46'000);
}

// The graph has most of the layers' time where the lookup is short, the lookup where it is long.
TEST(CompileOverheadTest, NamesTheLayerWithMostOfTheTime) {
  const auto layer = [](std::int64_t guards_us, std::int64_t region_us, std::int64_t graph_us) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.begin("TorchDynamo Cache Lookup").pass(guards_us).end();
      p.begin("Torch-Compiled Region: 0/0").pass(region_us).begin("## Call CompiledFxGraph fa ##");
      p.pass(graph_us).launch({.name = "triton_poi_fused_add_mul_0", .us = 5}).end().end();
    });
    const auto finding = find_by_rule(program.trace(), "compile-overhead");
    return finding ? finding->brief.values.at(0).text : "";
  };
  EXPECT_EQ(layer(60, 10, 10), "torch.compile's guards");
  EXPECT_EQ(layer(10, 10, 60), "Inductor's wrapper code");
  EXPECT_EQ(layer(20, 10, 25), "Inductor's wrapper code and other layers of torch.compile");
}

// One call per step cannot become one larger one, and what was fused gains from being compiled.
TEST(CompileOverheadTest, AdvisesNothingThatHolds) {
  const auto finding = find_by_rule(compiled_call(5).trace(), "compile-overhead");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::Not(::testing::HasSubstr("one larger")));
  EXPECT_THAT(finding->try_next, ::testing::Contains(::testing::HasSubstr("do not compile")));
  testing::ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 2; ++k) {
      program.begin("Torch-Compiled Region: 0/0").pass(10).begin("## Call CompiledFxGraph fa ##");
      program.pass(20).launch({.name = "triton_poi_fused_add_mul_0", .us = 5}).end().end();
    }
    program.end();
  }
  const auto fused = find_by_rule(program.trace(), "compile-overhead");
  ASSERT_TRUE(fused);
  EXPECT_THAT(fused->action.pattern, ::testing::HasSubstr("one larger"));
  EXPECT_THAT(fused->try_next,
              ::testing::Not(::testing::Contains(::testing::HasSubstr("do not compile"))));
}

TEST(CompileOverheadTest, LeavesBrokenCallsToGraphBreaks) {
  EXPECT_FALSE(find_by_rule(with_break(true).trace(), "compile-overhead"));
}

TEST(CompileOverheadTest, IsQuietWhenTheGpuIsBusy) {
  EXPECT_FALSE(find_by_rule(compiled_call(200).trace(), "compile-overhead"));
}

// Three compiled calls next to each other: with .item() between them, or nothing.
TEST(CompileOverheadTest, NamesWhatCutsOneFunctionIntoSeveral) {
  const auto draw = [](bool reads) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      for (int i = 0; i < 3; ++i) {
        p.begin("Torch-Compiled Region: 0/0").pass(30).begin("## Call CompiledFxGraph fa ##");
        p.pass(20).launch({.name = "triton_poi_fused_add_mul_0", .us = 5}).end().end();
        if (reads && i < 2) p.wait("aten::item");
      }
    });
    return find_by_rule(program.trace(), "compile-overhead");
  };
  const auto read = draw(true), next = draw(false);
  ASSERT_TRUE(read && next);
  EXPECT_THAT(read->brief.pattern, ::testing::HasSubstr("with {} between them"));
  EXPECT_EQ(read->brief.values.back().text, "aten::item");
  EXPECT_THAT(read->action.pattern, ::testing::HasSubstr("torch.where"));
  EXPECT_THAT(next->action.pattern, ::testing::HasSubstr("one larger"));
}

}  // namespace
}  // namespace lanescope::explain

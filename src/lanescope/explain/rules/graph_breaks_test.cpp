#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_compiled_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(GraphBreaksTest, SpeaksOfARegionInsideARegion) {
  const auto finding = find_by_rule(with_break(true).trace(), "graph-breaks");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);  // breaks, in three calls
  EXPECT_EQ(finding->verdict.values[1].integer, 3);
  // 60 us between the graphs, and one of two pieces stays. Two matmuls of 10 us are in no graph: one is as long as
  // its graph's row, and counts as the outer one.
  EXPECT_EQ(finding->at_stake_ns, 50'000);
  ASSERT_EQ(finding->evidence.size(),
            3u);  // the longest uncompiled operator, what cuts, the region
  EXPECT_EQ(finding->evidence[2].text.values[2].text, "aten::item");
}

// Between two graphs of one compiled call a function of 100 us runs by itself.
Trace with_function_left_out(const char* function) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto graph = [&] {
      p.begin("## Call CompiledFxGraph fabc ##").kernel("triton_poi", 100).end();
    };
    p.begin("Torch-Compiled Region: 0/0");
    graph();
    const std::int64_t from = p.cpu_us();
    p.op("aten::mul", {}, "mul", 60).op("aten::mean", {}, "mean", 40);
    if (function)
      p.sketch().slice("python_function", function, ProgramSketch::at(from), us(p.cpu_us() - from));
    p.begin("Torch-Compiled Region: 1/0");
    graph();
    p.end().end().wait();
  });
  return program.trace();
}

TEST(GraphBreaksTest, NamesWhatRunsUncompiledBetweenThePieces) {
  const auto finding = find_by_rule(with_function_left_out("model.py(7): norm"), "graph-breaks");
  ASSERT_TRUE(finding);
  EXPECT_GE(finding->at_stake_ns, us(100));
  EXPECT_EQ(finding->brief.pattern, "{} runs uncompiled between pieces of compiled code");
  EXPECT_EQ(finding->brief.values.at(0).text, "norm (model.py:7)");
  EXPECT_NE(finding->action.pattern.find("torch.compiler.disable"), std::string::npos);
  const auto nameless = find_by_rule(with_function_left_out(nullptr), "graph-breaks");
  ASSERT_TRUE(nameless);
  EXPECT_EQ(nameless->brief.values.at(0).integer, 2);  // operators
}

TEST(GraphBreaksTest, IsQuietOnFunctionsCompiledSeparately) {
  EXPECT_FALSE(find_by_rule(with_break(false).trace(), "graph-breaks"));
}

// Two graphs of one compiled call, with an operator that waits between them, or code without one.
std::optional<Finding> cut_by(const char* op) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto graph = [&] {
      p.begin("## Call CompiledFxGraph fabc ##").kernel("triton_poi", 10).end();
    };
    p.begin("Torch-Compiled Region: 0/0");
    graph();
    if (op) p.wait(op);
    p.pass(50).begin("Torch-Compiled Region: 1/0");
    graph();
    p.end().end().pass(20);
  });
  return find_by_rule(program.trace(), "graph-breaks");
}

// The call that cuts the code is on the first screen, and what to do about it.
TEST(GraphBreaksTest, NamesTheCallBetweenTheGraphs) {
  const auto finding = cut_by("aten::item");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.pattern, "{} cuts torch.compile's code into pieces, once per step");
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::item");
  EXPECT_NE(finding->action.pattern.find("torch.where"), std::string::npos);
}

// A break without an operator, as print() makes it.
TEST(GraphBreaksTest, NamesNothingWhereNoOperatorRunsBetween) {
  const auto finding = cut_by(nullptr);
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->brief.pattern.find("graph"), std::string::npos);
  EXPECT_NE(finding->action.pattern.find("TORCH_LOGS=graph_breaks"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain

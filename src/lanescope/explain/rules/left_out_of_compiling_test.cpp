#include "lanescope/explain/rules/left_out_of_compiling.h"

#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnFrames {
  const char* region = "Torch-Compiled Region: 0/0";
  const char* wrapper = "torch/_dynamo/eval_frame.py(1240): _fn";
  const char* function = "model.py(7): norm";
};

// Three elementwise operators in a function that a wrapper calls.
std::string action_of_chain(const DrawnFrames& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.kernel("gemm", 100);
    p.begin(drawn.region).pass(1);
    const std::int64_t start_us = p.cpu_us();
    p.pass(2);
    for (const char* op : {"aten::mul", "aten::add", "aten::rsqrt"})
      p.op(op, {.input_dims = "[[1000, 500], [1000, 500]]", .input_types = R"(["float", "float"])"},
           kElementwise, 30);
    p.pass(2);
    const std::int64_t length_us = p.cpu_us() - start_us;
    p.sketch().slice("python_function", drawn.wrapper, ProgramSketch::at(start_us), us(length_us));
    p.sketch().slice("python_function", drawn.function, ProgramSketch::at(start_us + 1),
                     us(length_us - 2));
    p.pass(1).end();
  });
  const auto finding = find_by_rule(program.trace(), "unfused-chain");
  EXPECT_TRUE(finding);
  return finding ? finding->action.pattern : "";
}

TEST(LeftOutOfCompilingTest, KnowsAFunctionThatCompiledCodeCallsUncompiled) {
  EXPECT_NE(action_of_chain({}).find("remove torch.compiler.disable"), std::string::npos);
}

TEST(LeftOutOfCompilingTest, IsQuietAboutOthers) {
  const auto is_quiet = [](const DrawnFrames& drawn) {
    return action_of_chain(drawn).find("compiler.disable") == std::string::npos;
  };
  EXPECT_TRUE(is_quiet({.region = "forward"}));  // a compiled function that runs without a region
  EXPECT_TRUE(is_quiet({.wrapper = "model.py(3): block"}));
  EXPECT_TRUE(is_quiet({.function = "torch/_inductor/output_code.py(600): __call__"}));
}

}  // namespace
}  // namespace lanescope::explain

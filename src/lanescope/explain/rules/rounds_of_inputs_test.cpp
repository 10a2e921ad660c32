#include "lanescope/explain/rules/rounds_of_inputs.h"

#include <gtest/gtest.h>

#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Twelve rounds: `before` on the CPU, a view, a copy to the GPU, six layers, and a read of the result.
std::size_t count_rounds(std::string_view before, std::string_view view, bool is_marked = false,
                         bool trains = false) {
  ProgramSketch program;
  program.cpu_op("aten::unbind", 5);
  for (int round = 0; round < 12; ++round) {
    if (is_marked) program.step();
    if (!before.empty()) program.cpu_op(before, 5);
    program.cpu_op(view, 2);
    program.begin_op("aten::to").copy(2, 256, "Memcpy HtoD (Pageable -> Device)").end();
    for (int layer = 0; layer < 6; ++layer)
      program.begin_op("aten::linear").pass(20).kernel("gemm", 3).end();
    if (trains)
      program.begin_op("autograd::engine::evaluate_function: MmBackward0").kernel("k", 3).end();
    program.wait();
    if (is_marked) program.end();
  }
  const Trace trace = program.trace();
  return rules::rounds_of_inputs(*gather_facts(trace));
}

TEST(RoundsOfInputsTest, CountsRoundsThatTakeARowEach) {
  EXPECT_GE(count_rounds("", "aten::unsqueeze"), 11U);
  EXPECT_GE(count_rounds("aten::select", "aten::unsqueeze"), 11U);
}

// What a round makes on the CPU may come from the result of the round before it.
TEST(RoundsOfInputsTest, LeavesRoundsThatMakeTheirInput) {
  EXPECT_EQ(count_rounds("aten::lift_fresh", "aten::unsqueeze"), 0U);
  EXPECT_EQ(count_rounds("", "aten::stack"), 0U);
}

// Steps that the program marks, and steps that train, need each other.
TEST(RoundsOfInputsTest, LeavesMarkedStepsAndTraining) {
  EXPECT_EQ(count_rounds("", "aten::unsqueeze", true), 0U);
  EXPECT_EQ(count_rounds("", "aten::unsqueeze", false, true), 0U);
}

TEST(RoundsOfInputsTest, PutsTheOneCallBeforeOtherAdvice) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.kernel("gemm", 3).wait(); });
  const Trace trace = program.trace();
  EXPECT_EQ(rules::after_one_call_for_all(*gather_facts(trace), say("Do it")).pattern, "Do it");
}

}  // namespace
}  // namespace lanescope::explain

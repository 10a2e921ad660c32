#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

constexpr char kSave[] = "torch/serialization.py(945): save";

// Four steps: 100 us of GPU work that the CPU waits for, a view of [64, 256] floats, and a frame of 500 us that copies
// `bytes` in 200 us.
Trace draw_saves(const char* frame, std::int64_t bytes, const char* last_op = "aten::slice") {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.kernel("gemm", 100).wait();
    p.begin_op(last_op, {.input_dims = "[[64, 256], [], [], [], []]",
                         .input_types = R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])"});
    p.pass(2).end();
    const std::int64_t start_us = p.cpu_us();
    p.begin_op("aten::copy_").copy(200, bytes, "Memcpy DtoH (Device -> Pageable)").end();
    p.pass(start_us + 500 - p.cpu_us());
    p.sketch().slice("python_function", frame, ProgramSketch::at(start_us), us(500));
  });
  return program.trace();
}

// In each frame of 500 us the GPU copies or is idle all the time.
TEST(SavingInStepTest, TellsWhatTorchSaveHoldsUp) {
  const auto finding = find_by_rule(draw_saves(kSave, 2048), "saving-in-step");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(500));
  EXPECT_EQ(finding->sample_count, 3u);
  EXPECT_TRUE(finding->brief.pattern.starts_with("torch.save is called in the step"));
}

// 64 x 256 floats are 65,536 bytes.
TEST(SavingInStepTest, KnowsAViewThatIsSavedWhole) {
  const auto finding = find_by_rule(draw_saves(kSave, 65'536), "saving-in-step");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->brief.pattern.starts_with("torch.save of a view"));
  EXPECT_EQ(finding->brief.values[1].integer, 65'536);
  EXPECT_NE(finding->action.pattern.find("clone()"), std::string::npos);
}

// The whole tensor is what the program saves.
TEST(SavingInStepTest, SaysNothingOfAViewWhereNoneWasCut) {
  const auto finding = find_by_rule(draw_saves(kSave, 65'536, "aten::detach"), "saving-in-step");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->brief.pattern.starts_with("torch.save is called in the step"));
}

TEST(SavingInStepTest, IsQuietAboutOtherFunctions) {
  EXPECT_FALSE(find_by_rule(draw_saves("train.py(9): save", 65'536), "saving-in-step"));
}

}  // namespace
}  // namespace lanescope::explain

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnObserver {
  std::string_view taken_by = "aten::maximum";
  std::string_view range = "[[256], [256]]";
  bool is_applied = false;  // the tensor is divided by the range
  bool trains = false;
};

// A step on the CPU: abs of [1024, 256], 40 us; its largest of each column, 60 us; the largest so far, 4 us; a layer, 300 us.
Trace draw_observer(const DrawnObserver& drawn) {
  constexpr char kFloats[] = R"(["float", "float"])";
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, std::string_view dims, std::string_view types,
                          std::int64_t length_us) {
      p.begin_op(op, {.input_dims = std::string(dims), .input_types = std::string(types)});
      p.pass(length_us - 2).end();
    };
    call("aten::abs", "[[1024, 256]]", R"(["float"])", 40);
    call("aten::amax", "[[1024, 256], [], []]", R"(["float", "ScalarList", "Scalar"])", 60);
    call(drawn.taken_by, drawn.range, kFloats, 4);
    if (drawn.is_applied) call("aten::div", "[[1024, 256], [256]]", kFloats, 10);
    call("aten::linear", "[[1024, 256], [256, 256], [256]]", R"(["float", "float", "float"])", 300);
    if (drawn.trains) p.begin_op("autograd::engine::evaluate_function: MmBackward0").pass(10).end();
  });
  return program.trace();
}

TEST(RunningRangesTest, CountsWhatMeasuresAndIsNotApplied) {
  const auto finding = find_by_rule(draw_observer({}), "running-ranges");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(104));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::amax");
  EXPECT_EQ(finding->brief.values.at(1).integer, 1);
  EXPECT_EQ(finding->spared_calls.size(), 9u);
}

TEST(RunningRangesTest, IsQuietIfTheRangesMayBeRead) {
  const auto is_reported = [](const DrawnObserver& drawn) {
    return find_by_rule(draw_observer(drawn), "running-ranges").has_value();
  };
  EXPECT_FALSE(is_reported({.is_applied = true}));       // quantization that measures as it goes
  EXPECT_FALSE(is_reported({.taken_by = "aten::mul"}));  // no running range
  EXPECT_FALSE(is_reported({.range = "[[1024, 256], [1024, 256]]"}));
  EXPECT_FALSE(is_reported({.trains = true}));
}

}  // namespace
}  // namespace lanescope::explain

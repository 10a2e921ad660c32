#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnStatistic {
  bool trains = true;
  std::string_view reader = {};            // of a number, after the statistic
  std::string_view second = "[64, 4096]";  // what mul takes besides
  bool has_gradient = false;               // the sum is the loss
  std::string_view dims = "[-1]";          // that the sum leaves out
};

// A step on the CPU: a layer, 200 us, with its node; then of its result [64, 4096], without gradients: log_softmax 30 us, exp 20,
// mul 20, sum 15 and mean 5.
Trace draw_statistic(const DrawnStatistic& drawn) {
  constexpr std::string_view kRun = "autograd::engine::evaluate_function: ";
  constexpr char kFloats[] = R"(["float", "float"])";
  ProgramSketch program;
  std::int64_t number = 9;
  program.steps(4, [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, std::string_view dims, std::string_view types,
                          std::int64_t length_us, std::string_view concrete = {}) {
      Fields fields = {.input_dims = std::string(dims), .input_types = std::string(types)};
      fields.concrete_inputs = std::string(concrete);
      if (drawn.has_gradient && op == "aten::sum") {
        fields.sequence = number + 2;
        fields.fwd_thread = 0;
      }
      p.begin_op(op, fields).pass(length_us - 2).end();
    };
    p.begin_op("aten::mm", {.sequence = ++number,
                            .fwd_thread = 0,
                            .input_dims = "[[64, 256], [256, 4096]]",
                            .input_types = kFloats});
    p.pass(198).end();
    call("aten::log_softmax", "[[64, 4096], [], []]", R"(["float", "Scalar", ""])", 30,
         R"(["", "-1", ""])");
    call("aten::exp", "[[64, 4096]]", R"(["float"])", 20);
    call("aten::mul", "[[64, 4096], " + std::string(drawn.second) + "]", kFloats, 20);
    call("aten::sum", "[[64, 4096], [], [], []]", R"(["float", "ScalarList", "Scalar", ""])", 15,
         R"(["", ")" + std::string(drawn.dims) + R"(", "False", ""])");
    call("aten::mean", "[[64], []]", R"(["float", ""])", 5, R"(["", ""])");
    if (!drawn.reader.empty()) call(drawn.reader, "[[]]", R"(["float"])", 3);
    if (!drawn.trains) return;
    call("aten::ones_like", "[[], [], [], [], [], []]", R"(["float", "", "", "", "", ""])", 3);
    if (drawn.has_gradient) {
      p.begin_op(std::string(kRun) + "SumBackward1", {.sequence = number + 2, .fwd_thread = 1});
      p.pass(5).end();
    }
    p.begin_op(std::string(kRun) + "MmBackward0", {.sequence = number, .fwd_thread = 1});
    p.begin_op("MmBackward0", {.sequence = number, .fwd_thread = 1}).pass(100).end().end();
    number += 5;
  });
  return program.trace();
}

TEST(UnreadStatisticTest, CountsWhatLeadsToAResultThatNothingReads) {
  const auto finding = find_by_rule(draw_statistic({}), "unread-statistic");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(90));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::log_softmax");
  EXPECT_EQ(finding->spared_calls.size() % 5, 0u);
  // A product of two tensors is no part of it: what follows is.
  const auto of_two = find_by_rule(draw_statistic({.second = "[64, 1]"}), "unread-statistic");
  ASSERT_TRUE(of_two);
  EXPECT_EQ(of_two->at_stake_ns, us(20));
}

TEST(UnreadStatisticTest, IsQuietIfTheResultMayBeReadOrIsWhatTheStepIsFor) {
  const auto is_reported = [](const DrawnStatistic& drawn) {
    return find_by_rule(draw_statistic(drawn), "unread-statistic").has_value();
  };
  EXPECT_FALSE(is_reported({.reader = "aten::item"}));
  EXPECT_FALSE(is_reported({.reader = "aten::add_"}));  // summed up for later
  EXPECT_FALSE(is_reported({.trains = false}));         // the answer of a server
  EXPECT_FALSE(is_reported({.has_gradient = true}));
  EXPECT_TRUE(is_reported({.reader = "aten::detach"}));  // the loss, which is returned
}

}  // namespace
}  // namespace lanescope::explain

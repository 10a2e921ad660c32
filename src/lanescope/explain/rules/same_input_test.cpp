#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnSpectra {
  bool adds_gradients = true;
  bool has_layer_between = false;  // each sound is the result of one before
  bool has_targets = false;        // as many without a gradient
  std::string_view op = "aten::stft";
  std::string_view second_input = {};  // of the operator: a weight
};

// Draws a step on the CPU: three losses make the spectrum of one sound. A spectrum takes 30 us and its abs 10 us, their nodes
// 40 and 20 us.
class SpectraSketch {
 public:
  explicit SpectraSketch(const DrawnSpectra& drawn) : drawn_(drawn) {}

  Trace trace() {
    program_.steps(4, [&](ProgramSketch&) { step(); });
    return program_.trace();
  }

 private:
  void step() {
    const std::int64_t first = number_ + 1;
    for (int loss = 0; loss < 3; ++loss) {
      if (drawn_.has_layer_between) call("aten::tanh", "[[4, 100]]", ++number_, 5);
      call(drawn_.op, taken(), ++number_, 30);
      call("aten::abs", "[[4, 9, 20]]", ++number_, 10);
      if (drawn_.has_targets) {
        call(drawn_.op, taken(), number_ + 1, 30);
        call("aten::abs", "[[4, 9, 20]]", number_ + 1, 10);
      }
      call("aten::mean", loss == 0 ? "[[4, 9, 20]]" : "[[4, 9, 20], []]", ++number_, 5);
    }
    std::int64_t number = number_;
    for (int loss = 2; loss >= 0; --loss) {
      node("MeanBackward0", "[[]]", number--, 5, false);
      node("AbsBackward0", "[[4, 9, 20]]", number--, 20, false);
      node("StftBackward0", "[[4, 9, 20]]", number--, 40, loss < 2 && drawn_.adds_gradients);
      if (drawn_.has_layer_between) node("TanhBackward0", "[[4, 100]]", number--, 5, false);
    }
    EXPECT_EQ(number + 1, first);
  }

  std::string taken() const {
    return "[[4, 100]" + std::string(drawn_.second_input) + ", [], [8]]";
  }

  void call(std::string_view op, const std::string& dims, std::int64_t number,
            std::int64_t length_us) {
    program_.begin_op(op, {.sequence = number, .fwd_thread = 0, .input_dims = dims});
    program_.pass(length_us - 2).end();
  }

  void node(const std::string& label, const std::string& dims, std::int64_t number,
            std::int64_t length_us, bool adds) {
    const Fields fields = {.sequence = number, .fwd_thread = 1, .input_dims = dims};
    program_.begin_op("autograd::engine::evaluate_function: " + label,
                      {.sequence = number, .fwd_thread = 1});
    program_.begin_op(label, fields).pass(length_us - (adds ? 8 : 4)).end();
    if (adds)
      program_.begin_op("aten::add_", {.input_dims = "[[4, 100], [4, 100], []]"}).pass(2).end();
    program_.end();
  }

  DrawnSpectra drawn_;
  ProgramSketch program_;
  std::int64_t number_ = 0;
};

Trace draw_spectra(const DrawnSpectra& drawn) { return SpectraSketch(drawn).trace(); }

// Three chains of 30 + 10 us and of 20 + 40 us in the backward pass: two of three can go.
TEST(SameInputTest, CountsAllButOneOfTheChains) {
  const auto finding = find_by_rule(draw_spectra({}), "same-input");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(200));
  EXPECT_EQ(finding->verdict.values.at(0).text, "aten::stft");
  EXPECT_EQ(finding->verdict.values.at(1).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(2).integer, us(300));
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 2);
}

// As many of targets, which have no gradient: 40 us each.
TEST(SameInputTest, CountsThoseWithoutAGradientToo) {
  const auto finding = find_by_rule(draw_spectra({.has_targets = true}), "same-input");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(200) + us(80));
  EXPECT_NE(finding->action.pattern.find("target"), std::string::npos);
}

TEST(SameInputTest, IsQuietAboutDifferentTensors) {
  const auto is_reported = [](const DrawnSpectra& drawn) {
    return find_by_rule(draw_spectra(drawn), "same-input").has_value();
  };
  EXPECT_FALSE(is_reported({.adds_gradients = false}));
  EXPECT_FALSE(is_reported({.has_layer_between = true}));
  // Weights may differ, and so do random numbers.
  EXPECT_FALSE(is_reported({.op = "aten::linear", .second_input = ", [9, 100]"}));
  EXPECT_FALSE(is_reported({.op = "aten::dropout"}));
}

}  // namespace
}  // namespace lanescope::explain

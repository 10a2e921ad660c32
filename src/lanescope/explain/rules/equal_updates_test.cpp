#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A step: `all` models run and their results go to `joined`; then `updates` of one each.
struct Updates {
  int all = 5, updates = 5;
  std::string_view joined = "aten::stack", activation = "aten::relu";
  bool draws = false;  // each of the first rounds draws an action
};

// 20 us of the CPU for 2 us of work.
void call(ProgramSketch& p, std::string_view op) {
  p.begin_op(op).pass(20).launch({.us = 2}).end();
}

void run_model(ProgramSketch& p, std::string_view activation) {
  call(p, "aten::linear");
  call(p, activation);
  call(p, "aten::linear");
}

std::optional<Finding> find_updates(const Updates& updates) {
  return find_in_steps("equal-updates", [&](ProgramSketch& p) {
    p.launch({.us = 5, .op = "aten::index"});
    for (int i = 0; i < updates.all; ++i) {
      run_model(p, updates.activation);
      if (updates.draws) call(p, "aten::multinomial");
    }
    if (!updates.joined.empty()) call(p, updates.joined);
    call(p, "aten::min");
    for (int i = 0; i < updates.updates; ++i) {
      run_model(p, "aten::relu");
      call(p, "aten::mse_loss");
      p.begin("Optimizer.step#Adam.step");
      call(p, "aten::_foreach_add_");
      p.end();
    }
  });
}

TEST(EqualUpdatesTest, SeesAnEnsembleThatIsTrainedModelByModel) {
  const auto finding = find_updates({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).integer, 5);
  EXPECT_NE(finding->action.pattern.find("stack_module_state"), std::string::npos);
  // Of 1 + 5 x 3 + 2 + 5 x 5 calls, four of five rounds of both loops go: 32 of 43.
  EXPECT_GT(finding->at_stake_ratio, 0.6);
  EXPECT_LT(finding->at_stake_ratio, 0.8);
  EXPECT_EQ(finding->waiting_ns, finding->at_stake_ns);
}

// Epochs on what an agent saw: each update needs the weights of the one before it.
TEST(EqualUpdatesTest, IsQuietAboutUpdatesOfOneModel) {
  EXPECT_FALSE(find_updates({.all = 0}));
  EXPECT_FALSE(find_updates({.all = 4}));
  EXPECT_FALSE(find_updates({.joined = ""}));
  EXPECT_FALSE(find_updates({.draws = true}));
}

TEST(EqualUpdatesTest, IsQuietWhereTheOtherLoopIsOfAnotherModel) {
  EXPECT_FALSE(find_updates({.activation = "aten::gelu"}));
}

TEST(EqualUpdatesTest, IsQuietAboutTwoModels) {
  EXPECT_FALSE(find_updates({.all = 2, .updates = 2}));
}

}  // namespace
}  // namespace lanescope::explain

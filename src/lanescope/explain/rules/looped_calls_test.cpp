#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/explain/owners.h"
#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kAccumulate[] =
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";

struct DrawnLoopedCalls {
  int rounds = 20;
  const char* first = "aten::mul";
  const char* second = "aten::add";
  int gradients = 0;                     // that the step accumulates
  bool waits = false;                    // for the GPU, in each round
  const char* dims = "";                 // of both
  std::vector<const char*> before = {};  // called before the first round
};

// Four steps. A round is two operators of 10 us with a kernel of 1 us each.
Trace drawn(const DrawnLoopedCalls& loop) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (const char* op : loop.before) p.cpu_op(op, 3);
    for (int i = 0; i < loop.rounds; ++i) {
      p.launch({.us = 1, .op = loop.first, .dims = loop.dims});
      p.launch({.us = 1, .op = loop.second, .dims = loop.dims});
      if (loop.waits) p.wait();
    }
    for (int i = 0; i < loop.gradients; ++i) p.cpu_op(kAccumulate, 1);
    p.launch({.us = 5, .op = "aten::relu"});
  });
  return program.trace();
}

// 20 rounds of 20 us are 400 of about 410 us; one round has to stay, 380 can go. The edges of the
// step move the path by a launch or two.
TEST(LoopedCallsTest, AllRoundsButOneAreAtStake) {
  const auto finding = find_by_rule(drawn({}), "looped-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 380'000, 12'000);
  EXPECT_NEAR(finding->at_stake_ratio, 380.0 / 411, 0.04);
  EXPECT_THAT(finding->action.pattern, ::testing::StartsWith("If no round needs the one before"));
  EXPECT_EQ(finding->action.values.at(0).integer, 2);   // calls for all rounds
  EXPECT_EQ(finding->action.values.at(1).integer, 40);  // instead of
  EXPECT_EQ(finding->arithmetic.at(1).values.at(0).integer, 40);
  EXPECT_EQ(finding->arithmetic.at(1).values.at(1).integer, 41);
}

TEST(LoopedCallsTest, IsQuietForFewRoundsAndForWaits) {
  EXPECT_FALSE(find_by_rule(drawn({.rounds = 6}), "looped-calls"));
  EXPECT_FALSE(find_by_rule(drawn({.waits = true}), "looped-calls"));
}

// `for row in logits: sample(row).item()`: rounds of rows of one tensor. Not so where another call comes between, or where each
// round takes its own tensor apart.
TEST(LoopedCallsTest, ReadsAValueOfEachRowOfATensor) {
  const auto action = [](const DrawnLoopedCalls& loop) {
    const auto finding = find_by_rule(drawn(loop), "looped-calls");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action({.waits = true, .before = {"aten::unbind"}}),
              ::testing::StartsWith("Each round takes a row of one tensor"));
  EXPECT_EQ(action({.waits = true, .before = {"aten::unbind", "aten::relu"}}), "");
  EXPECT_EQ(action({.first = "aten::unbind", .waits = true, .before = {"aten::unbind"}}), "");
}

// Non-maximum suppression: in each round a mask decides what is left, which the CPU waits for. How much a round still does
// afterwards is unknown. A round that reads another value may have its reasons.
TEST(LoopedCallsTest, RoundsThatGoOnWithWhatAMaskLeft) {
  const auto found = [](const char* waiting, const char* first = "aten::select") {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 20; ++i)
        p.cpu_op(first, 2)
            .launch({.us = 1, .op = "aten::mul"})
            .launch({.us = 1, .op = "aten::le"})
            .wait(waiting);
      p.launch({.us = 5, .op = "aten::relu"});
    });
    return find_by_rule(program.trace(), "looped-calls");
  };
  const auto finding = found("aten::nonzero");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern,
              ::testing::AllOf(::testing::StartsWith("If each round handles one row"),
                               ::testing::HasSubstr("what a mask left")));
  EXPECT_TRUE(finding->gain_is_bound);
  EXPECT_FALSE(found("aten::item"));
  EXPECT_FALSE(
      found("aten::nonzero", "aten::view"));  // each round a mask of its own, as for each class
}

// A loss of each image of a batch: 28 calls a round, with a convolution that is no layer. In a module's forward() the rounds may be
// layers, and without stacks nothing shows what they are.
TEST(LoopedCallsTest, LongRoundsOverSlicesOutsideOfModules) {
  const auto action = [](const char* frame, const char* takes) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      const std::int64_t began = p.cpu_us();
      for (int i = 0; i < 20; ++i) {
        p.cpu_op(takes, 2);
        for (int k = 0; k < 13; ++k)
          p.launch({.us = 1, .op = "aten::conv2d"}).launch({.us = 1, .op = "aten::mul"});
        p.cpu_op("aten::mean", 2);
      }
      if (frame)
        p.sketch().slice("python_function", frame, ProgramSketch::at(began),
                         us(p.cpu_us() - began));
      p.launch({.us = 5, .op = "aten::relu"});
    });
    const auto finding = find_by_rule(program.trace(), "looped-calls");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("train.py(31): loss_of", "aten::slice"),
              ::testing::HasSubstr("pass the whole tensor instead of slices"));
  EXPECT_EQ(action("nn.Module: Net_0", "aten::slice"), "");
  EXPECT_EQ(action("train.py(31): loss_of", "aten::view"), "");
  EXPECT_EQ(action(nullptr, "aten::slice"), "");
}

// Loops that only take tensors apart, and the layers of a model, are not its business.
TEST(LoopedCallsTest, IsQuietForIndexingAndForLayers) {
  EXPECT_FALSE(
      find_by_rule(drawn({.first = "aten::select", .second = "aten::copy_"}), "looped-calls"));
  EXPECT_FALSE(find_by_rule(
      drawn({.first = "aten::linear", .second = "aten::gelu", .dims = "[[64, 256], [256, 256]]"}),
      "looped-calls"));
}

// A round for each parameter, or for each but the first, which differs.
TEST(LoopedCallsTest, AsManyRoundsAsParameters) {
  for (const int gradients : {20, 21}) {
    const auto finding = find_by_rule(drawn({.gradients = gradients}), "looped-calls");
    ASSERT_TRUE(finding);
    EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("As many rounds as parameters"));
  }
  for (const int gradients : {19, 23}) {
    const auto finding = find_by_rule(drawn({.gradients = gradients}), "looped-calls");
    ASSERT_TRUE(finding);
    EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("batch all rounds"));
  }
}

// Running averages of the parameters, changed in place: torch._foreach_* has these calls. Three rates make three rounds for each.
TEST(LoopedCallsTest, NamesTheCallsForListsOfParameters) {
  const auto action = [](int rounds, const char* second, int gradients) {
    const auto finding = find_by_rule(
        drawn({.rounds = rounds, .first = "aten::mul_", .second = second, .gradients = gradients}),
        "looped-calls");
    return finding ? finding->action : Sentence();
  };
  const Sentence averages = action(24, "aten::add_", 8);
  EXPECT_THAT(averages.pattern,
              ::testing::StartsWith("{} times as many rounds as parameters: call"));
  EXPECT_THAT(averages.pattern, ::testing::HasSubstr("_foreach_lerp_"));
  ASSERT_EQ(averages.values.size(), 3U);
  EXPECT_EQ(averages.values[0].integer, 3);
  EXPECT_EQ(averages.values[1].text, "_foreach_mul_");
  EXPECT_EQ(averages.values[2].text, "_foreach_add_");
  const Sentence once = action(20, "aten::sub_", 20);
  EXPECT_THAT(once.pattern, ::testing::StartsWith("As many rounds as parameters: call"));
  EXPECT_EQ(once.pattern.find("lerp"), std::string::npos);
  // No multiple of the parameters, or a call that lists do not have.
  EXPECT_THAT(action(24, "aten::add_", 9).pattern, ::testing::HasSubstr("batch all rounds"));
  EXPECT_THAT(action(24, "aten::cos", 8).pattern, ::testing::HasSubstr("batch all rounds"));
}

// Each round calls autograd, whose thread launches one kernel while the program's waits: 10 us and
// 20 us. `same_graph`: the nodes keep their number.
Trace backward_in_each_round(bool same_graph, const char* after = nullptr) {
  testing::Sketch sketch;
  std::int64_t at = 1'000'000, correlation = 0;
  const auto launched = [&](const char* op, std::int64_t tid, std::int64_t dur_ns,
                            std::optional<std::int64_t> sequence) {
    sketch.op(op, at, dur_ns, {.tid = tid, .sequence = sequence});
    sketch.runtime("cudaLaunchKernel", at + 2'000, 5'000,
                   {.tid = tid, .correlation = ++correlation});
    sketch.kernel("k", at + 8'000, 1'000, {.correlation = correlation});
    at += dur_ns;
  };
  for (int step = 0; step < 4; ++step) {
    const std::int64_t begin = at;
    for (int round = 0; round < 10; ++round) {
      launched("aten::linear", 100, us(10), {});
      launched("autograd::engine::evaluate_function: MulBackward0", 200, us(20),
               same_graph ? step : 10 * step + round);
      if (after) launched(after, 100, us(10), {});
    }
    sketch.annotation("ProfilerStep#" + std::to_string(step + 1), begin, at - begin);
  }
  return sketch.trace();
}

TEST(LoopedCallsTest, ABackwardPassOnAutogradsThreadIsPartOfItsRound) {
  const Trace trace = backward_in_each_round(true);
  const auto facts = gather_facts(trace);
  const Owner& loop = step_owners(*facts)->owners.at(0);
  EXPECT_EQ(loop.kind, OwnerKind::kLoop);
  EXPECT_TRUE(loop.has_backward);
  EXPECT_TRUE(loop.repeats_graph);
  EXPECT_EQ(loop.rounds, 10 * loop.loops);
  EXPECT_EQ(loop.cell_size, 2u);
  EXPECT_GT(loop.total_ns * 10, step_owners(*facts)->total_ns * 9);
  const auto finding = find_by_rule(trace, "looped-calls");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("is_grads_batched=True"));
  const auto micro = find_by_rule(backward_in_each_round(false), "looped-calls");
  ASSERT_TRUE(micro);
  EXPECT_THAT(micro->action.pattern, ::testing::HasSubstr("larger micro batches"));
}

// Rounds that set other weights, or update them, are no micro batches.
TEST(LoopedCallsTest, RoundsThatWriteWeightsAreNoMicroBatches) {
  const auto trial =
      find_by_rule(backward_in_each_round(false, "aten::_foreach_copy_"), "looped-calls");
  ASSERT_TRUE(trial);
  EXPECT_THAT(trial->action.pattern, ::testing::HasSubstr("torch.no_grad()"));
  const auto update =
      find_by_rule(backward_in_each_round(false, "aten::_fused_adamw_"), "looped-calls");
  EXPECT_TRUE(!update || update->action.pattern.find("micro batch") == std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain

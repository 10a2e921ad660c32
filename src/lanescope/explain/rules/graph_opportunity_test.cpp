#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_graphs_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using testing::Sketch;

// Launch k of a step begun at s ends at s + 7 + 10k, its kernel runs [s + 9 + 10k, s + 10 + 10k).
// Between the first launch (s + 3) and the last one's end (s + 97) the GPU waits 4 us for the first
// and 7 us for each of nine more.
TEST(GraphOpportunityTest, SpeaksWhenAllStepsLaunchTheSame) {
  const auto finding = find_by_rule(small_steps(false, false).trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values[2].integer, 10);  // pieces
  EXPECT_EQ(finding->at_stake_ns, 67'000);
}

TEST(GraphOpportunityTest, ListsWhatIsInTheWay) {
  const auto finding = find_by_rule(small_steps(false, true).trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);  // the wait comes first
  ASSERT_EQ(finding->evidence.size(), 1u);
  EXPECT_EQ(finding->evidence[0].text.values[0].text, "aten::item");
  EXPECT_EQ(finding->evidence[0].text.values[1].integer, 3);
}

// FSDP's hooks run Python around each layer: no graph holds them, and the advice on launches says so.
TEST(GraphOpportunityTest, IsQuietWhereFsdpRunsItsHooks) {
  const auto drawn = [](const char* range) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 10; ++k) program.begin(range).launch({.us = 1}).end();
      program.end();
    }
    return program.trace();
  };
  EXPECT_TRUE(find_by_rule(drawn("layer"), "graph-opportunity"));
  EXPECT_FALSE(find_by_rule(drawn("FSDP::pre_forward (layers.1)"), "graph-opportunity"));
  const auto action = [&](const char* range) {
    const auto finding = find_by_rule(drawn(range), "host-bound");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_TRUE(action("FSDP::pre_forward (layers.1)").starts_with("FSDP runs Python"));
  EXPECT_FALSE(action("layer").starts_with("FSDP"));
}

// 60 times the same kernel: a loop, which one call over the batch would end.
TEST(GraphOpportunityTest, ALoopComesFirst) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 60; ++k) program.launch({.us = 1});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->arithmetic[0].values[0].integer, 60);
}

// Ten rounds of two operators whose first size is another in each: no round's graph fits the next.
TEST(GraphOpportunityTest, ALoopOfChangingSizesComesFirst) {
  const auto kind = [](bool changes) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 10; ++k) {
        const int rows = changes ? 16 + 7 * k % 50 : 16;
        const std::string dims = "[[" + std::to_string(rows) + ", 64], [64, 64]]";
        for (const char* op : {"aten::mm", "aten::relu"}) {
          program.begin_op(op, {.input_dims = dims, .input_types = R"(["float", "float"])"});
          program.pass(8).kernel("gemm", 1).end();
        }
      }
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "graph-opportunity");
    EXPECT_TRUE(finding);
    return finding ? finding->kind : FindingKind::kNormal;
  };
  EXPECT_EQ(kind(true), FindingKind::kWhere);
  EXPECT_EQ(kind(false), FindingKind::kCost);
}

// Guards of 100 us in the middle of a step run before a replay, too. Nobody knows what compiling the eager pieces costs then.
TEST(GraphOpportunityTest, LeavesGuardsOutAndAsksToCompileTheRest) {
  const auto find = [](bool has_guards, int eager) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < eager; ++k) program.launch({.us = 1});
      program.begin("TorchDynamo Cache Lookup").pass(has_guards ? 100 : 0).end();
      program.begin("Torch-Compiled Region: 0/0").begin("## Call CompiledFxGraph fa ##");
      for (int k = 0; k < 4; ++k) program.launch({.us = 1});
      program.end().end().end();
    }
    const auto finding = find_by_rule(program.trace(), "graph-opportunity");
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
  };
  const Finding with = find(true, 8), without = find(false, 8);
  EXPECT_EQ(with.at_stake_ns, without.at_stake_ns);
  EXPECT_TRUE(with.gain_is_bound);
  EXPECT_TRUE(with.action.pattern.starts_with("Compile the whole step"));
  EXPECT_EQ(with.action.values.at(0).integer, 4);
  EXPECT_TRUE(find(true, 3).action.pattern.starts_with("Pass mode="));
}

// One step holds 300 us of garbage collection between its launches: no replay ends that.
TEST(GraphOpportunityTest, DoesNotCountAHoleInOneStep) {
  const auto with_hole = [](std::int64_t hole_us) {
    ProgramSketch program;
    for (int i = 0; i < 6; ++i) {
      program.step();
      for (int k = 0; k < 10; ++k) {
        program.launch({.us = 1});
        if (k == 4 && i == 3) program.pass(hole_us);
      }
      program.end();
    }
    return find_by_rule(program.trace(), "graph-opportunity");
  };
  const auto without = with_hole(0), with = with_hole(300);
  ASSERT_TRUE(without);
  ASSERT_TRUE(with);
  EXPECT_EQ(with->at_stake_ns, without->at_stake_ns);
}

// 2 ms of Python between the launches of every step: a replay needs that time, too.
TEST(GraphOpportunityTest, IsQuietWhereOneEventHoldsTheCpu) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) {
      program.launch({.us = 1});
      if (k == 4) program.pass(2000);
    }
    program.end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "graph-opportunity"));
}

TEST(GraphOpportunityTest, SaysWhereStepsDiffer) {
  const auto finding = find_by_rule(small_steps(true, false).trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->at_stake_ns, 0);
  EXPECT_EQ(finding->verdict.values[0].integer, 10);  // the tenth piece
}

// Steps of 100 us with four launches each, and a fifth whose call on another thread returns in the
// next step but one. In a step the GPU waits 4 us for the first launch, 3 x 17 for the next ones,
// 23 for the fifth and 9 until the end, which belongs to the spans of two or three steps.
TEST(GraphOpportunityTest, CallsThatReachIntoLaterStepsCountTheirWaitOnce) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 1; i <= 4; ++i) {
    const std::int64_t at = i * 100;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(100));
    for (int k = 0; k < 4; ++k) {
      sketch.runtime("cudaLaunchKernel", us(at + k * 20), us(4), {.correlation = ++id});
      sketch.kernel("gemm", us(at + k * 20 + 6), us(1), {.correlation = id});
    }
    sketch.runtime("cudaLaunchKernel", us(at + 80), us(150), {.tid = 200 + i, .correlation = ++id});
    sketch.kernel("gemm", us(at + 90), us(1), {.correlation = id});
  }
  const auto finding = find_by_rule(sketch.trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(87));
  EXPECT_DOUBLE_EQ(finding->at_stake_ratio, 0.87);
}

TEST(GraphOpportunityTest, IsQuietWhenTheGpuIsTheLimit) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) program.launch({.us = 50});
    program.end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "graph-opportunity"));
}

TEST(GraphOpportunityTest, NeedsSteps) {
  ProgramSketch program;
  for (int k = 0; k < 30; ++k) program.launch({.us = 1});
  EXPECT_EQ(state_of_rule(program.trace(), "graph-opportunity"), RuleRun::State::kNotChecked);
}

TEST(GraphOpportunityTest, AGraphMayHoldAllocationsInStreamOrderButNoOthers) {
  const auto in_the_way = [](std::string_view call) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 10; ++k) {
        program.launch({.us = 1});
        if (k == 4) program.call(call, 5);
      }
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "graph-opportunity");
    EXPECT_TRUE(finding) << call;
    return finding && finding->kind == FindingKind::kWhere && finding->evidence.size() == 1;
  };
  EXPECT_TRUE(in_the_way("cudaMalloc"));
  EXPECT_TRUE(in_the_way("cuMemFree_v2"));
  EXPECT_FALSE(in_the_way("cudaMallocAsync"));
  EXPECT_FALSE(in_the_way("cudaFreeAsync"));
}

}  // namespace
}  // namespace lanescope::explain

#include "lanescope/simulate/path_chain.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lanescope/simulate/drawn_steps_test.h"
#include "lanescope/testing/program_sketch.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::simulate {
namespace {

using lanescope::testing::ProgramSketch;
using lanescope::testing::Sketch;
using testing::DrawnSteps;

Chain chain_of(const DrawnSteps& drawn, std::size_t most_rows = kMostChainRows) {
  const StepGraph& graph = *drawn.simulation.graph;
  return critical_chain(graph, replay(graph, graph.edges), drawn.nesting, most_rows);
}

std::int64_t sum_of(const Chain& chain) {
  return std::accumulate(chain.rows.begin(), chain.rows.end(), std::int64_t{0},
                         [](std::int64_t sum, const ChainRow& row) { return sum + row.time_ns; });
}

// A step of 200 us: the operator aten::mul until 60 us, in it a launch from 50 to 60 us; its kernel from 60 to 160 us; a call that
// waits for it from 60 to 162 us; Python until 200 us.
Trace wait_for_a_kernel() {
  Sketch sketch;
  for (int step = 0; step < 4; ++step) {
    const std::int64_t at = step * 200'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, 200'000);
    sketch.op("aten::mul", at, 60'000);
    sketch.runtime("cudaLaunchKernel", at + 50'000, 10'000, {.correlation = step + 1});
    sketch.kernel("mul", at + 60'000, 100'000, {.correlation = step + 1});
    sketch.runtime("cudaDeviceSynchronize", at + 60'000, 102'000);
  }
  return sketch.trace();
}

TEST(Chain, GoesFromTheCpuThroughTheGpuAndBack) {
  const DrawnSteps drawn(wait_for_a_kernel());
  const Chain chain = chain_of(drawn);
  EXPECT_EQ(chain.length_ns, 200'000);
  EXPECT_EQ(chain.other_rows, 0u);
  ASSERT_EQ(chain.rows.size(), 4u);
  // The operator until its launch call began: the kernel started 10 us later.
  EXPECT_EQ(drawn.trace.name(chain.rows[0].event), "aten::mul");
  EXPECT_EQ(chain.rows[0].link, ChainLink::kNone);
  EXPECT_EQ(chain.rows[0].time_ns, 50'000);
  EXPECT_EQ(chain.rows[1].link, ChainLink::kLaunch);
  EXPECT_TRUE(chain.rows[1].is_gpu);
  EXPECT_EQ(chain.rows[1].time_ns, 110'000);
  EXPECT_EQ(chain.rows[1].delay_ns, 10'000);
  // The call returned 2 us after the kernel; then come 38 us of Python.
  EXPECT_EQ(chain.rows[2].link, ChainLink::kWait);
  EXPECT_EQ(drawn.trace.name(chain.rows[2].event), "cudaDeviceSynchronize");
  EXPECT_EQ(chain.rows[2].time_ns, 2'000);
  EXPECT_EQ(chain.rows[3].link, ChainLink::kSamePlace);
  EXPECT_EQ(chain.rows[3].event, kNone<SliceId>);
  EXPECT_EQ(chain.rows[3].time_ns, 38'000);
  EXPECT_EQ(sum_of(chain), chain.length_ns);
}

TEST(Chain, RowsThatRepeatAreALoop) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 10; ++i) p.launch({.us = 20}).wait();
  });
  const Chain chain = chain_of(DrawnSteps(program.trace()));
  EXPECT_EQ(sum_of(chain), chain.length_ns);
  std::size_t rounds = 0;
  for (const ChainRow& row : chain.rows)
    if (row.is_gpu) rounds += row.rounds;
  EXPECT_EQ(rounds, 10u);
  EXPECT_LE(chain.rows.size(), 12u);
}

TEST(Chain, KernelsOfOneStreamComeByNoLink) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.kernel("gemm", 500).kernel("relu", 250); });
  const DrawnSteps drawn(program.trace());
  const Chain chain = chain_of(drawn);
  EXPECT_EQ(chain.length_ns, 750'000);
  ASSERT_EQ(chain.rows.size(), 2u);
  EXPECT_EQ(drawn.trace.name(chain.rows[0].event), "gemm");
  EXPECT_EQ(chain.rows[0].time_ns, 500'000);
  EXPECT_EQ(chain.rows[1].link, ChainLink::kSamePlace);
  EXPECT_EQ(drawn.trace.name(chain.rows[1].event), "relu");
}

TEST(Chain, AThreadIsHandedOverTo) {
  // As in Replay.WorkOfAnotherThreadIsHandedOverAndBack: thread 200 works from 20 to 90 us of each step.
  Sketch sketch;
  for (int step = 0; step < 3; ++step) {
    const std::int64_t at = step * 110'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, 110'000);
    sketch.op("aten::mul", at, 10'000);
    sketch.op("MulBackward0", at + 20'000, 70'000, {.tid = 200});
    sketch.runtime("cudaLaunchKernel", at + 30'000, 5'000, {.tid = 200, .correlation = step + 1});
    sketch.kernel("mul", at + 36'000, 4'000, {.correlation = step + 1});
    sketch.op("aten::add_", at + 100'000, 8'000);
  }
  const DrawnSteps drawn(sketch.trace());
  const Chain chain = chain_of(drawn);
  EXPECT_EQ(sum_of(chain), 110'000);
  std::vector<ChainLink> links;
  for (const ChainRow& row : chain.rows)
    if (row.link != ChainLink::kSamePlace) links.push_back(row.link);
  EXPECT_EQ(links, (std::vector{ChainLink::kNone, ChainLink::kHandOver, ChainLink::kHandOver}));
}

TEST(Chain, ShowsTheLongestRowsAndSumsTheRest) {
  // Twenty different operators of 10 us, five of 100 us, in one step of 700 us. The last one is two rows around its call of 1 us.
  // Seven rows hold 520 us, 74 % of the step, so the whole thread is one row. Twenty rows hold the five long ones and fifteen others.
  Sketch sketch;
  for (int step = 0; step < 3; ++step) {
    std::int64_t at = step * 700'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, 700'000);
    for (int i = 0; i < 25; ++i) {
      const std::int64_t ns = i % 5 == 0 ? 100'000 : 10'000;
      sketch.op("op" + std::to_string(i), at, ns);
      at += ns;
    }
    sketch.runtime("cudaLaunchKernel", at - 5'000, 1'000, {.correlation = step + 1});
    sketch.kernel("mul", at - 3'900, 1'000, {.correlation = step + 1});
  }
  const DrawnSteps drawn(sketch.trace());
  EXPECT_EQ(chain_of(drawn, 7).rows.size(), 1u);
  const Chain chain = chain_of(drawn, 20);
  EXPECT_EQ(chain.rows.size(), 27u);
  EXPECT_EQ(sum_of(chain), 700'000);
  EXPECT_EQ(chain.other_rows, 7u);
  EXPECT_EQ(chain.other_ns, 50'000);
}

}  // namespace
}  // namespace lanescope::simulate

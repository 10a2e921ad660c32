#include "lanescope/analysis/graph_replays.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

// An eager mm and two adds by different operators, then a graph of mm, add and another kernel.
Trace eager_then_graph() {
  testing::Sketch sketch;
  sketch.op("aten::mm", 0, 20).runtime("cudaLaunchKernel", 5, 5, {.correlation = 1});
  sketch.op("aten::add", 30, 20).runtime("cudaLaunchKernel", 35, 5, {.correlation = 2});
  sketch.op("aten::add_", 60, 20).runtime("cudaLaunchKernel", 65, 5, {.correlation = 3});
  sketch.runtime("cudaGraphLaunch", 100, 10, {.correlation = 4});
  sketch.runtime("cudaGraphLaunch", 120, 10, {.correlation = 5});  // its work was not recorded
  sketch.kernel("gemm", 50, 10, {.correlation = 1}).kernel("add", 60, 5, {.correlation = 2});
  sketch.kernel("add", 70, 5, {.correlation = 3});
  sketch.kernel("gemm", 200, 30, {.correlation = 4}).kernel("add", 235, 5, {.correlation = 4});
  sketch.kernel("own", 240, 7, {.correlation = 4});
  sketch.slice("gpu_memset", "Memset (Device)", 250, 2, {.correlation = 4});
  return sketch.trace();
}

TEST(GraphReplaysTest, AReplayLastsFromItsFirstStartToItsLastEnd) {
  const Trace trace = eager_then_graph();
  const auto replays = find_graph_replays(trace, compute_launch_links(trace));
  ASSERT_EQ(replays.size(), 1u);
  EXPECT_EQ(replays[0].start_ns, 200);
  EXPECT_EQ(replays[0].end_ns, 252);
  EXPECT_EQ(replays[0].kernel_count, 3u);
}

TEST(GraphReplaysTest, ANameIsBorrowedWhereAllEagerCallsAgree) {
  const Trace trace = eager_then_graph();
  const LaunchLinks links = compute_launch_links(trace);
  const auto names = borrow_operator_names(trace, links, find_graph_replays(trace, links));
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(trace.text(names[0].kernel), "gemm");
  EXPECT_EQ(names[0].op, "aten::mm");
  EXPECT_EQ(names[0].gpu_ns, 30);
  EXPECT_EQ(trace.text(names[1].kernel), "own");
  EXPECT_EQ(names[1].op, "");
  EXPECT_EQ(trace.text(names[2].kernel), "add");
  EXPECT_EQ(names[2].op, "");  // aten::add and aten::add_ both launch it
}

TEST(GraphReplaysTest, WithoutGraphsThereIsNothing) {
  const Trace trace = testing::Sketch().op("aten::mm", 0, 10).trace();
  const LaunchLinks links = compute_launch_links(trace);
  EXPECT_TRUE(find_graph_replays(trace, links).empty());
  EXPECT_TRUE(borrow_operator_names(trace, links, {}).empty());
}

}  // namespace
}  // namespace lanescope::analysis

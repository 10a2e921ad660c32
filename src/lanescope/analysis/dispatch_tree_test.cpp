#include "lanescope/analysis/dispatch_tree.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// Two steps of: mm (launch + kernel) twice, then add; a kernel without a launch; another thread
// in step 1.
Trace two_steps() {
  Sketch sketch;
  for (std::int64_t step = 0; step < 2; ++step) {
    const std::int64_t at = 1000 * step;
    sketch.annotation(step == 0 ? "ProfilerStep#0" : "ProfilerStep#1", at, 500);
    for (std::int64_t i = 0; i < 2; ++i) {
      sketch.op("aten::mm", at + 100 + 100 * i, 50);
      sketch.runtime("cudaLaunchKernel", at + 110 + 100 * i, 10 + 4 * i,
                     {.correlation = 10 * step + i + 1});
      sketch.kernel("gemm", at + 200 + 100 * i, 20, {.correlation = 10 * step + i + 1});
    }
    sketch.op("aten::add", at + 300, 50);
  }
  sketch.kernel("leaked", 5, 7);
  sketch.op("other", 1100, 10, {.tid = 200});
  return sketch.trace();
}

DispatchTree tree_of(const Trace& trace, const DispatchTreeOptions& options = {}) {
  auto tree = compute_dispatch_tree(trace, options);
  EXPECT_TRUE(tree) << (tree ? "" : tree.error().message);
  return tree ? std::move(*tree) : DispatchTree{};
}

TEST(DispatchTreeTest, EqualNeighboursFoldAndKeepSumsAndMedians) {
  const Trace trace = two_steps();
  const DispatchTree tree = tree_of(trace);
  ASSERT_EQ(tree.threads.size(), 2u);
  ASSERT_EQ(tree.threads[0].roots.size(), 1u);  // both steps in one
  const DispatchNode& step = tree.threads[0].roots[0];
  EXPECT_EQ(step.name, "ProfilerStep*");
  EXPECT_EQ(step.count, 2u);
  EXPECT_EQ(step.total_ns, 1000);
  EXPECT_EQ(step.self_ns, 1000 - 2 * 150);
  EXPECT_EQ(step.device_ns, 80);
  ASSERT_EQ(step.children.size(), 2u);
  const DispatchNode& mm = step.children[0];
  EXPECT_EQ(mm.count, 4u);
  EXPECT_EQ(mm.start_ns, 100);
  EXPECT_EQ(mm.median_gap_ns, 50);  // 100, 50, 100, 50: the lower middle
  const DispatchNode& launch = mm.children[0];
  EXPECT_EQ(launch.total_ns, 10 + 14 + 10 + 14);
  EXPECT_EQ(launch.children[0].name, "gemm");
  EXPECT_EQ(launch.children[0].median_queue_ns, 90);
  EXPECT_EQ(launch.children[0].stream, 7);
  ASSERT_EQ(tree.unlaunched.size(), 1u);
  EXPECT_EQ(tree.unlaunched[0].name, "leaked");
  EXPECT_EQ(tree.unlaunched[0].total_ns, 7);
}

TEST(DispatchTreeTest, WithoutFoldingEachSliceHasItsNode) {
  const Trace trace = two_steps();
  const DispatchTree tree = tree_of(trace, {.step = 1, .fold = false});
  ASSERT_EQ(tree.threads[0].roots.size(), 1u);
  EXPECT_EQ(tree.threads[0].roots[0].name, "ProfilerStep#1");
  ASSERT_EQ(tree.threads[0].roots[0].children.size(), 3u);
  EXPECT_EQ(tree.threads[0].roots[0].children[1].start_ns, 200);
  ASSERT_EQ(tree.threads.size(), 2u);  // what another thread began meanwhile
  EXPECT_EQ(tree.threads[1].roots[0].start_ns, 100);
  EXPECT_TRUE(tree.unlaunched.empty());
}

TEST(DispatchTreeTest, AnOperatorsSubtreesStandAlone) {
  const Trace trace = two_steps();
  const DispatchTree tree = tree_of(trace, {.step = 0, .op = "aten::mm"});
  ASSERT_EQ(tree.threads.size(), 1u);
  ASSERT_EQ(tree.threads[0].roots.size(), 1u);
  EXPECT_EQ(tree.threads[0].roots[0].count, 2u);
}

TEST(DispatchTreeTest, BelowTheDepthLimitSlicesAreCountedAndTheirDeviceTimeKept) {
  const Trace trace = two_steps();
  const DispatchTree tree = tree_of(trace, {.step = 0, .max_depth = 1});
  EXPECT_TRUE(tree.threads[0].roots[0].children.empty());
  EXPECT_EQ(tree.threads[0].roots[0].hidden_count, 5u);
  EXPECT_EQ(tree.threads[0].roots[0].device_ns, 40);
}

TEST(DispatchTreeTest, WhatIsNotThereIsAnsweredWithWhatIs) {
  const Trace trace = two_steps();
  const auto step = compute_dispatch_tree(trace, {.step = 5});
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().message, "the trace has no step 5; it has 0, 1");
  const auto op = compute_dispatch_tree(trace, {.op = "mm"});
  ASSERT_FALSE(op);
  EXPECT_EQ(op.error().message,
            "the trace has no operator, annotation or API call named 'mm'; closest: aten::mm");
  EXPECT_FALSE(compute_dispatch_tree(trace, {.max_depth = 0}));
  EXPECT_FALSE(compute_dispatch_tree(trace, {.max_depth = 257}));
}

TEST(DispatchTreeTest, NestingOfAHostileFileIsBounded) {
  Sketch sketch;
  for (std::int64_t i = 0; i < 20000; ++i) sketch.op(i % 2 ? "a" : "b", i, 100000 - 2 * i);
  const Trace trace = sketch.trace();
  const DispatchTree tree = tree_of(trace, {.max_depth = 256});
  EXPECT_EQ(tree.threads[0].roots[0].count, 1u);
}

}  // namespace
}  // namespace lanescope::analysis

#include "lanescope/analysis/launch_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

SliceId slice(const Trace& trace, std::string_view name, int nth = 0) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name && nth-- == 0) return SliceId{i};
  ADD_FAILURE() << "no slice " << name;
  return kNone<SliceId>;
}

std::string_view name_of(const Trace& trace, SliceId id) {
  return id == kNone<SliceId> ? "none" : trace.name(id);
}

TEST(LaunchLinksTest, KernelsBelongToTheInnermostOperatorAroundTheirLaunch) {
  const Trace trace = std::move(Sketch()
                                    .annotation("step", 0, 100)
                                    .op("aten::matmul", 10, 80)
                                    .op("aten::mm", 20, 60)
                                    .driver("cuLaunchKernelEx", 30, 10, {.correlation = 7})
                                    .runtime("cudaDeviceSynchronize", 95, 50, {.correlation = 9})
                                    .kernel("gemm", 200, 5, {.correlation = 7}))
                          .trace();
  const LaunchLinks links = compute_launch_links(trace);
  const SliceId kernel = slice(trace, "gemm");
  EXPECT_EQ(name_of(trace, links.launch_of[raw(kernel)]), "cuLaunchKernelEx");
  EXPECT_EQ(name_of(trace, links.op_of[raw(kernel)]), "aten::mm");
  EXPECT_EQ(name_of(trace, links.op_of[raw(slice(trace, "cudaDeviceSynchronize"))]), "step");
  EXPECT_EQ(links.device_work_count, 1u);
  EXPECT_EQ(links.launched_count, 1u);
}

TEST(LaunchLinksTest, OneGraphLaunchStartsManyKernelsOnTwoDevices) {
  const Trace trace = std::move(Sketch()
                                    .runtime("cudaGraphLaunch", 0, 10, {.correlation = 5})
                                    .kernel("a", 20, 5, {.correlation = 5})
                                    .kernel("b", 30, 5, {.device = 1, .correlation = 5})
                                    .kernel("c", 40, 5, {.correlation = 5}))
                          .trace();
  const LaunchLinks links = compute_launch_links(trace);
  EXPECT_EQ(links.launched_by(slice(trace, "cudaGraphLaunch")).size(), 3u);
  EXPECT_TRUE(links.launched_by(slice(trace, "a")).empty());
}

TEST(LaunchLinksTest, CorrelationZeroAndMissingIdsLinkNothing) {
  const Trace trace = std::move(Sketch()
                                    .runtime("cudaLaunchKernel", 0, 10, {.correlation = 0})
                                    .kernel("zero", 20, 5, {.correlation = 0})
                                    .kernel("none", 30, 5))
                          .trace();
  const LaunchLinks links = compute_launch_links(trace);
  EXPECT_EQ(links.launched_count, 0u);
  EXPECT_EQ(links.launch_of[raw(slice(trace, "zero"))], kNone<SliceId>);
}

// An id that a process uses again: the call that started last before the kernel is its own.
TEST(LaunchLinksTest, OfEqualCorrelationIdsTheLatestCallBeforeTheKernelCounts) {
  const Trace trace = std::move(Sketch()
                                    .runtime("first", 0, 10, {.correlation = 5})
                                    .runtime("second", 100, 10, {.tid = 200, .correlation = 5})
                                    .kernel("early", 50, 5, {.correlation = 5})
                                    .kernel("late", 150, 5, {.correlation = 5}))
                          .trace();
  const LaunchLinks links = compute_launch_links(trace);
  EXPECT_EQ(name_of(trace, links.launch_of[raw(slice(trace, "early"))]), "first");
  EXPECT_EQ(name_of(trace, links.launch_of[raw(slice(trace, "late"))]), "second");
}

// B starts inside A and ends after it; the call at 60 is only in B, the one at 30 in both.
TEST(LaunchLinksTest, OverlappingOperatorsGiveTheLatestStartedOneThatIsOpen) {
  const Trace trace = std::move(Sketch()
                                    .op("A", 0, 50)
                                    .op("B", 20, 60)
                                    .op("C", 22, 3)
                                    .runtime("x", 30, 1, {.correlation = 1})
                                    .runtime("y", 60, 1, {.correlation = 2})
                                    .runtime("z", 90, 1, {.correlation = 3}))
                          .trace();
  const LaunchLinks links = compute_launch_links(trace);
  EXPECT_EQ(name_of(trace, links.op_of[raw(slice(trace, "x"))]), "B");
  EXPECT_EQ(name_of(trace, links.op_of[raw(slice(trace, "y"))]), "B");
  EXPECT_EQ(name_of(trace, links.op_of[raw(slice(trace, "z"))]), "none");
}

TEST(LaunchLinksTest, ExternalIdsServeOnlyWhereTheyProvedRight) {
  const Trace right =
      std::move(Sketch()
                    .op("op", 0, 50, {.external_id = 3})
                    .runtime("call", 10, 5, {.external_id = 3, .correlation = 8})
                    .kernel("linked", 60, 5, {.external_id = 3, .correlation = 8})
                    .kernel("lost call", 70, 5, {.external_id = 3, .correlation = 9}))
          .trace();
  LaunchLinks links = compute_launch_links(right);
  EXPECT_TRUE(links.external_id_trusted);
  EXPECT_EQ(name_of(right, links.op_of[raw(slice(right, "lost call"))]), "op");
  EXPECT_EQ(links.external_id_used_count, 1u);

  // The same with ids that are a copy of the correlation and name another operator.
  const Trace wrong =
      std::move(Sketch()
                    .op("other", 0, 5, {.external_id = 8})
                    .op("op", 8, 50, {.external_id = 3})
                    .runtime("call", 10, 5, {.correlation = 8})
                    .kernel("linked", 60, 5, {.external_id = 8, .correlation = 8})
                    .kernel("lost call", 70, 5, {.external_id = 8, .correlation = 9}))
          .trace();
  links = compute_launch_links(wrong);
  EXPECT_FALSE(links.external_id_trusted);
  EXPECT_EQ(name_of(wrong, links.op_of[raw(slice(wrong, "linked"))]), "op");
  EXPECT_EQ(name_of(wrong, links.op_of[raw(slice(wrong, "lost call"))]), "none");
}

// Logical thread 1 is tid 100: sequence number 4 is found there alone. Number 5 exists
// on both threads.
TEST(LaunchLinksTest, BackwardFindsForwardBySequenceNumberOnTheThreadThatTheVotesName) {
  const Trace trace =
      std::move(Sketch()
                    .op("aten::mul", 0, 5, {.sequence = 4})
                    .op("aten::mm", 10, 5, {.sequence = 5})
                    .op("aten::add", 10, 5, {.tid = 200, .sequence = 5})
                    .op("MulBackward0", 50, 5, {.tid = 300, .sequence = 4, .fwd_thread = 1})
                    .op("MmBackward0", 60, 5, {.tid = 300, .sequence = 5, .fwd_thread = 1}))
          .trace();
  const LaunchLinks links = compute_launch_links(trace);
  EXPECT_EQ(name_of(trace, links.forward_of[raw(slice(trace, "MmBackward0"))]), "aten::mm");
  EXPECT_EQ(name_of(trace, links.forward_of[raw(slice(trace, "MulBackward0"))]), "aten::mul");
  EXPECT_EQ(links.forward_of[raw(slice(trace, "aten::mm"))], kNone<SliceId>);
}

// Two processes have equal sequence numbers and threads: a backward operator stays in its process.
TEST(LaunchLinksTest, BackwardFindsForwardInItsOwnProcess) {
  Sketch sketch;
  sketch.op("aten::mul", 0, 5, {.sequence = 4})
      .op("MulBackward0", 50, 5, {.tid = 300, .sequence = 4, .fwd_thread = 1});
  TraceBuilder& builder = sketch.builder();
  const auto op = [&](std::string_view name, std::int64_t tid, std::int64_t start,
                      std::int64_t thread) {
    builder.args().begin();
    for (const auto& [key, value] :
         {std::pair("Sequence number", std::int64_t{4}), std::pair("Fwd thread id", thread)})
      builder.args().add_int(builder.intern(key), arg_key(key), value);
    const auto number = [](std::int64_t value) { return Scalar{false, value, kNone<StringId>}; };
    builder.add_slice(builder.thread_track(number(200), number(tid)), builder.category("cpu_op"),
                      builder.intern(name), start, 5, builder.args().end());
  };
  op("other mul", 100, 10, 0);
  op("OtherMulBackward0", 300, 60, 1);
  const Trace trace = sketch.trace();
  const LaunchLinks links = compute_launch_links(trace);
  EXPECT_EQ(name_of(trace, links.forward_of[raw(slice(trace, "MulBackward0"))]), "aten::mul");
  EXPECT_EQ(name_of(trace, links.forward_of[raw(slice(trace, "OtherMulBackward0"))]), "other mul");
}

// Some tools write no correlation ids. An External id that two calls have says nothing.
TEST(LaunchLinksTest, WithoutCorrelationIdsTheOnlyCallWithTheExternalIdLaunchedTheWork) {
  const Trace trace = std::move(Sketch()
                                    .op("aten::mm", 0, 90)
                                    .runtime("cudaLaunchKernel", 10, 5, {.external_id = 7})
                                    .runtime("first of two", 20, 5, {.external_id = 8})
                                    .runtime("second of two", 30, 5, {.external_id = 8})
                                    .kernel("gemm", 100, 5, {.external_id = 7})
                                    .kernel("either", 110, 5, {.external_id = 8}))
                          .trace();
  const LaunchLinks links = compute_launch_links(trace);
  EXPECT_EQ(name_of(trace, links.launch_of[raw(slice(trace, "gemm"))]), "cudaLaunchKernel");
  EXPECT_EQ(name_of(trace, links.op_of[raw(slice(trace, "gemm"))]), "aten::mm");
  EXPECT_EQ(links.launch_of[raw(slice(trace, "either"))], kNone<SliceId>);
}

// Forward operators of two threads with equal Sequence numbers, nested ones among them, and backward operators of two threads,
// whose numbers some files lack.
Trace drawn_passes(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::int64_t>(random() % limit);
  };
  Sketch sketch;
  for (std::int64_t i = 0; i < 150; ++i) {
    const std::int64_t at = 100 * i, sequence = below(60);
    switch (below(4)) {
      case 0:
        sketch.op("Backward", at, 40,
                  {.tid = 300 + below(2), .sequence = sequence, .fwd_thread = 1 + below(3)});
        break;
      case 1:
        sketch.runtime("cudaLaunchKernel", at, 5, {.tid = 100 + below(2), .correlation = 1 + i});
        sketch.kernel("gemm", at + 30, 9, {.external_id = 1 + below(40), .correlation = 1 + i});
        break;
      default: {
        const std::int64_t tid = 100 + below(2);
        sketch.op("outer", at, 60, {.tid = tid, .external_id = 1 + i, .sequence = sequence});
        if (below(2) == 0) sketch.op("inner", at + 10, 20, {.tid = tid, .sequence = sequence});
      }
    }
  }
  return sketch.trace();
}

TEST(LaunchLinksTest, AreTheSameForAnyNumberOfThreadsAndPieces) {
  std::size_t backward = 0;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Trace trace = drawn_passes(seed);
    const LaunchLinks alone = compute_launch_links(trace);
    backward += trace.slices().size() -
                static_cast<std::size_t>(
                    std::count(alone.forward_of.begin(), alone.forward_of.end(), kNone<SliceId>));
    for (const unsigned threads : {1u, 2u, 4u})
      for (const std::uint32_t at_once : {1u, 7u, 64u}) {
        const LaunchLinks shared = compute_launch_links(trace, threads, at_once);
        ASSERT_EQ(alone.launch_of, shared.launch_of) << seed << ", " << threads << ", " << at_once;
        ASSERT_EQ(alone.op_of, shared.op_of) << seed << ", " << threads << ", " << at_once;
        ASSERT_EQ(alone.forward_of, shared.forward_of)
            << seed << ", " << threads << ", " << at_once;
        ASSERT_EQ(alone.launched_first, shared.launched_first) << seed;
        ASSERT_EQ(alone.launched, shared.launched) << seed;
        ASSERT_EQ(alone.launched_count, shared.launched_count) << seed;
        ASSERT_EQ(alone.external_id_right_count, shared.external_id_right_count) << seed;
      }
  }
  EXPECT_GT(backward, 500u);
}

TEST(LaunchLinksTest, AnEmptyTraceHasNoLinks) {
  EXPECT_TRUE(compute_launch_links(Sketch().trace()).launch_of.empty());
}

}  // namespace
}  // namespace lanescope::analysis

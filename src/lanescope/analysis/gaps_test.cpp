#include "lanescope/analysis/gaps.h"

#include <gtest/gtest.h>

#include "lanescope/analysis/host_timeline.h"
#include "lanescope/analysis/launch_stats.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

Gaps gaps_of(const Trace& trace, const Window& range) {
  const LaunchLinks links = compute_launch_links(trace);
  return find_gaps(trace, links, compute_device_timelines(trace, links).at(0), range);
}

void expect_part(const IdlePart& part, std::int64_t start_ns, std::int64_t end_ns,
                 IdleCause cause) {
  EXPECT_EQ(part.start_ns, start_ns);
  EXPECT_EQ(part.end_ns, end_ns);
  EXPECT_EQ(part.cause, cause);
}

// Gap [20, 100): the launch returns at 90, so 70 are the CPU's and 10 latency. Before the first
// kernel and after the last one nothing is launched.
TEST(GapsTest, UntilTheLaunchReturnsTheCpuWasLate) {
  const Trace trace = Sketch()
                          .runtime("cudaLaunchKernel", 2, 3, {.correlation = 1})
                          .kernel("a", 10, 10, {.correlation = 1})
                          .runtime("cudaLaunchKernel", 80, 10, {.correlation = 2})
                          .kernel("b", 100, 10, {.correlation = 2})
                          .trace();
  const Gaps gaps = gaps_of(trace, {0, 130});
  ASSERT_EQ(gaps.parts.size(), 5u);
  expect_part(gaps.parts[0], 0, 5, IdleCause::kBeforeFirstWork);
  expect_part(gaps.parts[1], 5, 10, IdleCause::kLaunchLatency);
  expect_part(gaps.parts[2], 20, 90, IdleCause::kHostLate);
  expect_part(gaps.parts[3], 90, 100, IdleCause::kLaunchLatency);
  expect_part(gaps.parts[4], 110, 130, IdleCause::kAfterLastWork);
  EXPECT_EQ(trace.name(gaps.gaps[1].next_work), "b");
}

TEST(GapsTest, QueuedWorkThatDoesNotStartIsNotTheCpusFault) {
  const Trace trace = Sketch()
                          .runtime("cudaLaunchKernel", 0, 1, {.correlation = 1})
                          .runtime("cudaLaunchKernel", 1, 1, {.correlation = 2})
                          .runtime("cudaLaunchKernel", 2, 1, {.correlation = 3})
                          .kernel("a", 10, 10, {.correlation = 1})
                          .kernel("b", 22, 8, {.correlation = 2})
                          .kernel("c", 50'030, 10, {.correlation = 3})
                          .trace();
  const Gaps gaps = gaps_of(trace, {10, 50'040});
  ASSERT_EQ(gaps.parts.size(), 2u);
  expect_part(gaps.parts[0], 20, 22, IdleCause::kBetweenQueued);
  expect_part(gaps.parts[1], 30, 50'030, IdleCause::kWaiting);
}

// The CPU sat in cudaStreamSynchronize when the device ran empty at 50.
TEST(GapsTest, AGapAfterAWaitNamesTheWait) {
  const Trace trace = Sketch()
                          .runtime("cudaLaunchKernel", 0, 1, {.correlation = 1})
                          .kernel("a", 10, 40, {.correlation = 1})
                          .runtime("cudaStreamSynchronize", 5, 50)
                          .runtime("cudaLaunchKernel", 70, 10, {.correlation = 2})
                          .kernel("b", 85, 10, {.correlation = 2})
                          .trace();
  const Gaps gaps = gaps_of(trace, {10, 95});
  ASSERT_EQ(gaps.parts.size(), 2u);
  expect_part(gaps.parts[0], 50, 80, IdleCause::kAfterSync);
  EXPECT_EQ(trace.name(gaps.parts[0].blame), "cudaStreamSynchronize");
}

// Near miss: the wait was over before the device ran empty.
TEST(GapsTest, AWaitThatEndedEarlierIsNotBlamed) {
  const Trace trace = Sketch()
                          .runtime("cudaLaunchKernel", 0, 1, {.correlation = 1})
                          .kernel("a", 10, 40, {.correlation = 1})
                          .runtime("cudaStreamSynchronize", 5, 20)
                          .runtime("cudaLaunchKernel", 70, 10, {.correlation = 2})
                          .kernel("b", 85, 10, {.correlation = 2})
                          .trace();
  expect_part(gaps_of(trace, {10, 95}).parts.at(0), 50, 80, IdleCause::kHostLate);
}

// A node of autograd is never a launch, so no thread launches most here.
TEST(GapsTest, ALaunchNamedLikeANodeOfAutogradHasNoMainThread) {
  const Trace trace =
      Sketch()
          .runtime("autograd::engine::evaluate_function: PowBackward0", 2, 3, {.correlation = 1})
          .kernel("a", 10, 10, {.correlation = 1})
          .trace();
  EXPECT_EQ(main_launch_thread(trace, compute_launch_links(trace)), kNone<TrackId>);
  const Gaps gaps = gaps_of(trace, {0, 20});
  ASSERT_EQ(gaps.parts.size(), 2u);
  expect_part(gaps.parts[0], 0, 5, IdleCause::kBeforeFirstWork);
  expect_part(gaps.parts[1], 5, 10, IdleCause::kLaunchLatency);
}

TEST(GapsTest, TheProfilersOwnWorkIsCutOut) {
  const Trace trace = Sketch()
                          .runtime("cudaLaunchKernel", 0, 1, {.correlation = 1})
                          .kernel("a", 10, 10, {.correlation = 1})
                          .overhead("Activity Buffer Request", 30, 20)
                          .overhead("Lazy Function Loading", 60, 10)
                          .runtime("cudaLaunchKernel", 25, 70, {.correlation = 2})
                          .kernel("b", 100, 10, {.correlation = 2})
                          .trace();
  const Gaps gaps = gaps_of(trace, {10, 110});
  ASSERT_EQ(gaps.parts.size(), 4u);
  expect_part(gaps.parts[0], 20, 30, IdleCause::kHostLate);
  expect_part(gaps.parts[1], 30, 50, IdleCause::kProfiler);
  expect_part(gaps.parts[2], 50, 95, IdleCause::kHostLate);
  expect_part(gaps.parts[3], 95, 100, IdleCause::kLaunchLatency);
}

TEST(GapsTest, WithoutALaunchTheCauseIsUnknown) {
  const Trace trace = Sketch().kernel("a", 10, 10).kernel("b", 40, 10).trace();
  expect_part(gaps_of(trace, {10, 50}).parts.at(0), 20, 40, IdleCause::kUnknown);
}

TEST(GapsTest, WorkOfAnotherStreamFillsTheGap) {
  const Trace trace =
      Sketch().kernel("a", 10, 10).kernel("c", 15, 30, {.stream = 9}).kernel("b", 40, 10).trace();
  EXPECT_TRUE(gaps_of(trace, {10, 50}).gaps.empty());
}

// Three launches of a backward pass, in nodes of thread 200; one of the program's own thread.
TEST(MainLaunchThreadTest, IsTheProgramsAndNotThatOfTheBackwardPass) {
  const auto first_event = [](bool has_forward) {
    Sketch sketch;
    if (has_forward)
      sketch.runtime("cudaLaunchKernel", 10, 5, {.tid = 100, .correlation = 1})
          .kernel("forward", 20, 5, {.correlation = 1});
    for (std::int64_t i = 0; i < 3; ++i)
      sketch.op("autograd::engine::evaluate_function: MmBackward0", 100 + 20 * i, 15, {.tid = 200})
          .runtime("cudaLaunchKernel", 105 + 20 * i, 5, {.tid = 200, .correlation = 2 + i})
          .kernel("grad", 115 + 20 * i, 5, {.correlation = 2 + i});
    const Trace trace = sketch.trace();
    const TrackId main = main_launch_thread(trace, compute_launch_links(trace));
    return std::string(trace.name(SliceId{trace.tracks()[raw(main)].first_slice}));
  };
  EXPECT_EQ(first_event(true), "cudaLaunchKernel");
  // Of threads that launch in nodes only, one of them.
  EXPECT_EQ(first_event(false), "autograd::engine::evaluate_function: MmBackward0");
  const Trace empty;
  EXPECT_EQ(main_launch_thread(empty, compute_launch_links(empty)), kNone<TrackId>);
}

// A [0, 100), B [10, 50) inside it; then nothing.
TEST(HostTimelineTest, TheInnermostSliceOwnsTheMoment) {
  const Trace trace = Sketch().op("A", 0, 100).op("B", 10, 40).trace();
  const HostTimeline timeline(trace);
  std::string seen;
  timeline.visit(TrackId{0}, -5, 120, [&](SliceId slice, std::int64_t from, std::int64_t to) {
    seen += slice == kNone<SliceId> ? "-" : std::string(trace.name(slice));
    seen += std::to_string(to - from) + " ";
  });
  EXPECT_EQ(seen, "-5 A10 B40 A50 -20 ");
}

// Launches return at 10, 20, 30; work begins at 12, 40, 50: depths 1, 2, 1.
TEST(LaunchStatsTest, QueueDepthCountsWhatWasLaunchedAndHadNotBegun) {
  const Trace trace = Sketch()
                          .runtime("cudaLaunchKernel", 5, 5, {.correlation = 1})
                          .runtime("cudaLaunchKernel", 15, 5, {.correlation = 2})
                          .runtime("cudaLaunchKernel", 25, 5, {.correlation = 3})
                          .kernel("a", 12, 4, {.correlation = 1})
                          .kernel("b", 40, 10, {.correlation = 2})
                          .slice("gpu_memset", "Memset (Device)", 50, 20, {.correlation = 3})
                          .trace();
  const LaunchLinks links = compute_launch_links(trace);
  const std::vector<Window> windows{{0, 100}};
  const LaunchStats stats =
      compute_launch_stats(trace, links, compute_device_timelines(trace, links).at(0), windows);
  EXPECT_EQ(stats.kernel_count, 2u);
  EXPECT_EQ(stats.linked_count, 3u);
  EXPECT_EQ(stats.deepest_queue, 2u);
  EXPECT_EQ(stats.empty_queue_count, 2u);
  EXPECT_EQ(stats.launch_call_ns, 15);
  EXPECT_EQ(stats.median_latency_ns, 20);  // 2, 20, 20
  EXPECT_EQ(stats.shorter_than_launch_count, 1u);
}

}  // namespace
}  // namespace lanescope::analysis

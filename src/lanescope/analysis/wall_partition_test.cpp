#include "lanescope/analysis/wall_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lanescope/analysis/gaps.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Fields;
using testing::Sketch;

DeviceTimeline only_device(const Trace& trace) {
  auto timelines = compute_device_timelines(trace, compute_launch_links(trace));
  EXPECT_EQ(timelines.size(), 1u);
  return std::move(timelines.at(0));
}

// Device 0 has no launches in the trace, so nobody can know what was launched before it; the first
// kernel of device 1 is.
TEST(WallPartitionTest, WorkFromBeforeTheRecordingIsToldByTheLaunchesOfItsDevice) {
  const Trace trace = Sketch()
                          .kernel("alone", 0, 10)
                          .kernel("early", 0, 10, {.device = 1})
                          .runtime("cudaLaunchKernel", 20, 5, {.correlation = 1})
                          .kernel("late", 30, 10, {.device = 1, .correlation = 1})
                          .runtime("cudaLaunchKernel", 40, 5, {.correlation = 2})
                          .kernel("later", 50, 10, {.device = 1, .correlation = 2})
                          .trace();
  const auto timelines = compute_device_timelines(trace, compute_launch_links(trace));
  ASSERT_EQ(timelines.size(), 2u);
  EXPECT_FALSE(timelines[0].has_launches());
  EXPECT_FALSE(timelines[0].work[0].before_recording);
  EXPECT_EQ(timelines[1].launched_count, 2u);
  EXPECT_TRUE(timelines[1].work[0].before_recording);
  EXPECT_FALSE(timelines[1].work[1].before_recording);
}

// compute [0, 10), communication [5, 30), copy [25, 40), window [0, 50): the overlaps belong to
// compute, then to communication.
TEST(WallPartitionTest, AMomentThatSeveralShareIsCountedOnce) {
  const Trace trace =
      Sketch()
          .kernel("gemm", 0, 10)
          .kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 5, 25, {.stream = 8})
          .slice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 25, 15, {.stream = 9})
          .trace();
  const WallPartition part = compute_wall_partition(only_device(trace), {0, 50});
  EXPECT_EQ(part.wall_ns, 50);
  EXPECT_EQ(part.compute_ns, 10);
  EXPECT_EQ(part.exposed_communication_ns, 20);
  EXPECT_EQ(part.exposed_copy_ns, 10);
  EXPECT_EQ(part.idle_ns, 10);
  EXPECT_EQ(only_device(trace).communication_ns, 25);
}

TEST(WallPartitionTest, WindowsCutWork) {
  const Trace trace = Sketch().kernel("gemm", 10, 20).trace();
  const DeviceTimeline timeline = only_device(trace);
  EXPECT_EQ(compute_wall_partition(timeline, {0, 15}).compute_ns, 5);
  EXPECT_EQ(compute_wall_partition(timeline, {15, 25}).compute_ns, 10);
  EXPECT_EQ(compute_wall_partition(timeline, {25, 40}).idle_ns, 10);
  EXPECT_EQ(compute_wall_partition(timeline, {40, 40}).wall_ns, 0);
}

TEST(WallPartitionTest, WorkOfAnotherDeviceIsNotCounted) {
  const Trace trace = Sketch().kernel("gemm", 0, 10).kernel("gemm", 20, 10, {.device = 1}).trace();
  const auto timelines = compute_device_timelines(trace, compute_launch_links(trace));
  ASSERT_EQ(timelines.size(), 2u);
  EXPECT_EQ(compute_wall_partition(timelines[0], {0, 40}).idle_ns, 30);
  EXPECT_EQ(compute_wall_partition(timelines[1], {0, 40}).compute_ns, 10);
}

struct Event {
  int kind;  // 0 compute, 1 communication, 2 copy, 3 launch of one kernel
  std::int64_t start, dur, stream, correlation;
};

Trace draw(const std::vector<Event>& events) {
  Sketch sketch;
  for (const Event& each : events) {
    const Fields fields{.stream = each.stream, .correlation = each.correlation};
    if (each.kind == 0) sketch.kernel("gemm", each.start, each.dur, fields);
    if (each.kind == 1) sketch.kernel("ncclKernel_AllGather", each.start, each.dur, fields);
    if (each.kind == 2) sketch.slice("gpu_memcpy", "Memcpy DtoD", each.start, each.dur, fields);
    if (each.kind == 3)
      sketch.runtime("cudaLaunchKernel", each.start, each.dur, {.correlation = each.correlation});
  }
  return sketch.trace();
}

// On random traces: the parts add up to the wall and are what counting nanosecond by nanosecond
// gives, parts of gaps fill the idle time without a hole, and the order of events in the file
// does not matter.
TEST(WallPartitionTest, PartsAddUpToTheWallOnRandomTraces) {
  std::mt19937 random(7);
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<Event> events;
    for (int i = 0, n = number(1, 12); i < n; ++i) {
      const int start = number(0, 900);
      events.push_back({number(0, 2), start, number(0, 80), number(1, 3), i + 1});
      if (number(0, 3) > 0)
        events.push_back({3, std::max(0, start - number(0, 60)), number(1, 30), 0, i + 1});
    }
    const Trace trace = draw(events);
    std::shuffle(events.begin(), events.end(), random);
    const Trace shuffled = draw(events);
    const int from = number(-10, 500), to = from + number(0, 600);
    const WallPartition part = compute_wall_partition(only_device(trace), {from, to});
    EXPECT_EQ(part.compute_ns + part.exposed_communication_ns + part.exposed_copy_ns + part.idle_ns,
              part.wall_ns);

    std::array<std::int64_t, 4> slow{};
    for (int t = from; t < to; ++t) {
      int owner = 3;
      for (const Event& each : events)
        if (each.kind < 3 && each.start <= t && t < each.start + each.dur)
          owner = std::min(owner, each.kind);
      ++slow[static_cast<std::size_t>(owner)];
    }
    EXPECT_EQ(part.compute_ns, slow[0]);
    EXPECT_EQ(part.exposed_communication_ns, slow[1]);
    EXPECT_EQ(part.exposed_copy_ns, slow[2]);
    EXPECT_EQ(part.idle_ns, slow[3]);
    const WallPartition again = compute_wall_partition(only_device(shuffled), {from, to});
    EXPECT_EQ(again.compute_ns, part.compute_ns);
    EXPECT_EQ(again.exposed_copy_ns, part.exposed_copy_ns);

    const Gaps gaps = find_gaps(trace, compute_launch_links(trace), only_device(trace), {from, to});
    std::int64_t idle = 0;
    for (const Gap& gap : gaps.gaps) {
      std::int64_t at = gap.start_ns;
      for (const IdlePart& each : gaps.parts_of(gap)) {
        EXPECT_EQ(each.start_ns, at);
        EXPECT_GT(each.end_ns, each.start_ns);
        at = each.end_ns;
      }
      EXPECT_EQ(at, gap.end_ns);
      idle += gap.end_ns - gap.start_ns;
    }
    EXPECT_EQ(idle, part.idle_ns);
  }
}

}  // namespace
}  // namespace lanescope::analysis

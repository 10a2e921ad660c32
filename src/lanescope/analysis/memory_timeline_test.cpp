#include "lanescope/analysis/memory_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

std::string owner_text(const Trace& trace, const MemoryOwner& owner) {
  return std::string(trace.text(owner.annotation)) + "|" + std::string(trace.text(owner.op)) + "|" +
         std::string(trace.text(owner.frame));
}

TEST(MemoryTimelineTest, IsEmptyWithoutRecords) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 10);
  EXPECT_TRUE(compute_memory_timeline(sketch.trace()).devices.empty());
}

// 1000 bytes were there; +400, +200, -400, -100 (of the 1000), +300: levels 1400, 1600, 1200, 1100,
// 1400. The peak of 1600 is held by 600 bytes of the recording and the 1000 from before.
Sketch& draw(Sketch& sketch) {
  return sketch.annotation("ProfilerStep#1", 0, 1000)
      .annotation("forward", 10, 200)
      .op("aten::linear", 20, 50)
      .op("aten::empty", 25, 10)
      .op("aten::relu", 80, 50)
      .memory_at(30, 400, {.address = 1, .allocated = 1400, .reserved = 2000})
      .memory_at(90, 200, {.address = 2, .allocated = 1600, .reserved = 2000})
      .memory_at(300, -400, {.address = 1, .allocated = 1200, .reserved = 2000})
      .memory_at(310, -100, {.address = 9, .allocated = 1100, .reserved = 2000})
      .memory_at(320, 300, {.address = 1, .allocated = 1400, .reserved = 3000});
}

TEST(MemoryTimelineTest, LevelsPeakAndBlocks) {
  Sketch sketch;
  const auto timeline = compute_memory_timeline(draw(sketch).trace());
  ASSERT_EQ(timeline.devices.size(), 1u);
  const MemoryDevice& device = timeline.devices[0];
  EXPECT_EQ(device_type_name(device.type), "CUDA");
  EXPECT_TRUE(device.has_totals && device.has_reserved && device.has_blocks);
  EXPECT_EQ(device.allocated_at_start(), 1000);
  EXPECT_EQ(device.peak, 1u);
  EXPECT_EQ(device.peak_reserved, 3000);
  EXPECT_EQ(device.allocated_before(30), 1000);
  EXPECT_EQ(device.allocated_before(31), 1400);
  EXPECT_EQ(device.allocated_before(1'000'000), 1400);
  ASSERT_EQ(device.blocks.size(), 4u);
  EXPECT_EQ(device.blocks[0].last, 2u);
  EXPECT_FALSE(device.blocks[1].last);
  EXPECT_TRUE(device.blocks[2].before_recording);
  EXPECT_EQ(device.blocks[2].bytes, 100);
  EXPECT_EQ(device.blocks[3].first, 4u);  // the address again: another block
  EXPECT_EQ(device.lost_free_count, 0u);
}

TEST(MemoryTimelineTest, ThePeakIsHeldByOwnersAndWhatWasThereBefore) {
  Sketch sketch;
  const Trace trace = draw(sketch).trace();
  const auto timeline = compute_memory_timeline(trace);
  const MemoryHeld held = memory_held(timeline.devices[0], timeline.devices[0].peak);
  ASSERT_EQ(held.shares.size(), 2u);
  EXPECT_EQ(held.shares[0].bytes, 400);
  EXPECT_EQ(owner_text(trace, timeline.owners[held.shares[0].owner]), "forward|aten::linear|");
  EXPECT_EQ(held.shares[1].bytes, 200);
  EXPECT_EQ(owner_text(trace, timeline.owners[held.shares[1].owner]), "forward|aten::relu|");
  EXPECT_EQ(held.earlier_bytes, 1000);
  const auto kept = never_freed(timeline.devices[0], 0, 320);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].bytes, 200);
}

TEST(MemoryTimelineTest, TheInnermostFrameOfOwnCodeIsNamed) {
  Sketch sketch;
  sketch.slice("python_function", "train.py(10): main", 0, 100)
      .slice("python_function", "train.py(31): step", 5, 80)
      .slice("python_function", "torch/nn/modules/module.py(9): _call_impl", 6, 70)
      .slice("python_function", "/usr/lib/python3/dist-packages/x/y.py(9): z", 7, 60)
      .slice("python_function", "<built-in method randn>", 8, 50)
      .op("aten::randn", 9, 40)
      .memory_at(20, 64, {.address = 1, .allocated = 64});
  const Trace trace = sketch.trace();
  const auto timeline = compute_memory_timeline(trace);
  ASSERT_EQ(timeline.owners.size(), 1u);
  EXPECT_EQ(owner_text(trace, timeline.owners[0]), "|aten::randn|train.py(31): step");
}

// torch 1.9 writes neither totals nor addresses: levels count from 0, and there are no blocks.
TEST(MemoryTimelineTest, WithoutTotalsLevelsCountFromTheStart) {
  Sketch sketch;
  sketch.memory(10, 100, 1).memory(20, -300, 1).memory(30, 50, 0);
  const auto timeline = compute_memory_timeline(sketch.trace());
  ASSERT_EQ(timeline.devices.size(), 2u);
  EXPECT_FALSE(timeline.devices[0].is_accelerator());
  const MemoryDevice& device = timeline.devices[1];
  EXPECT_FALSE(device.has_totals || device.has_reserved || device.has_blocks);
  EXPECT_EQ(device.allocated_at_start(), 0);
  EXPECT_EQ(device.samples[1].allocated, -200);
  EXPECT_EQ(device.peak, 0u);
}

TEST(MemoryTimelineTest, AnAddressGivenTwiceEndsTheFirstBlock) {
  Sketch sketch;
  sketch.memory_at(10, 100, {.address = 5, .allocated = 100})
      .memory_at(20, 70, {.address = 5, .allocated = 70});
  const auto timeline = compute_memory_timeline(sketch.trace());
  const MemoryDevice& device = timeline.devices[0];
  EXPECT_EQ(device.lost_free_count, 1u);
  EXPECT_EQ(device.blocks[0].last, 1u);
  EXPECT_EQ(memory_held(device, 1).earlier_bytes, 0);
}

// As draw(), but the budget ended the records at 305 ns: levels 1400, 1600, 1200. A record at 320 is
// of a thread that had not stopped yet, and the step from 0 to 1000 has no known end.
TEST(MemoryTimelineTest, WhatComesAfterABudgetEndedTheRecordsIsUnknown) {
  Sketch sketch;
  draw(sketch).metadata("lanescope_thinned",
                        R"([{"from_ns": 305, "to_ns": null, "what": "allocations"}])");
  const Trace trace = sketch.trace();
  const auto timeline = compute_memory_timeline(trace);
  const MemoryDevice& device = timeline.devices.at(0);
  EXPECT_EQ(device.samples.size(), 3u);
  EXPECT_EQ(device.samples[device.peak].allocated, 1600);
  const auto kept = never_freed(device, 0, 1000);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].bytes, 200);
  EXPECT_TRUE(compute_memory_steps(trace, device).empty());
}

TEST(MemoryTimelineTest, AbsurdSizesDoNotOverflow) {
  Sketch sketch;
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (int i = 0; i < 10; ++i) sketch.memory_at(i, kHuge, {.address = i, .allocated = kHuge});
  const auto timeline = compute_memory_timeline(sketch.trace());
  EXPECT_EQ(timeline.devices[0].samples[9].allocated, std::int64_t{1} << 60);
  EXPECT_EQ(memory_held(timeline.devices[0], 9).earlier_bytes, 0);
}

// Two threads: each record belongs to what its own thread had open.
TEST(MemoryTimelineTest, RecordsBelongToTheirThread) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 100, {.tid = 100})
      .op("MulBackward0", 0, 100, {.tid = 200})
      .memory_at(50, 8, {.address = 1, .allocated = 8, .tid = 200});
  const Trace trace = sketch.trace();
  const auto timeline = compute_memory_timeline(trace);
  EXPECT_EQ(owner_text(trace, timeline.owners.at(0)), "|MulBackward0|");
}

}  // namespace
}  // namespace lanescope::analysis

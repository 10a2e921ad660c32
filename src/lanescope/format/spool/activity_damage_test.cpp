// Recordings with device activities that are damaged, cut or very large.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/drawn_activities_test.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/testing/sanitizers.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using namespace drawn_activities;
using spool::ActivityKind;

TEST(ActivityDamageTest, DamagedRecordsAreCountedAndTheRestIsRead) {
  Recording recording;
  const std::uint32_t name = recording.sketch.text("k");
  recording.gpu.kernel(name, 3000, 3100, 1);
  const Record second_half = recording.gpu.records[1];
  recording.gpu.records.pop_back();              // 1: its second half is missing
  recording.gpu.kernel(name, 0, 3300, 2);        // 2: not measured
  recording.gpu.kernel(name, 3500, 3400, 3);     // 3: ends before it begins
  recording.gpu.kernel(name, 3600, 0, 4);        // 4: no end
  recording.gpu.kernel(9999, 3700, 3800, 5);     // 5: a text that is not there
  recording.gpu.records.push_back(second_half);  // 6: without its first half
  Record garbage;
  garbage.head.begin_tsc = 3900;
  for (const int kind : {0, 1, 16, 40, 46, 48, 255}) {
    garbage.head.kind = static_cast<spool::RecordKind>(kind);
    recording.gpu.records.push_back(garbage);
  }
  recording.gpu.kernel(name, 4000, 4100, 0xffffffff, 0xffffffff, 0xffff);
  const Trace trace = recording.read();
  const auto kernels = rows(trace, CategoryKind::kKernel);
  ASSERT_EQ(kernels.size(), 5u);
  EXPECT_EQ(issues(trace, ImportIssue::kFieldLost), 1u);
  EXPECT_EQ(issues(trace, ImportIssue::kUnmeasuredTime), 1u);
  EXPECT_EQ(issues(trace, ImportIssue::kNegativeDuration), 1u);
  EXPECT_EQ(issues(trace, ImportIssue::kMissingField), 1u);
  EXPECT_EQ(issues(trace, ImportIssue::kEventLost), 8u);
  EXPECT_FALSE(trace.slice_args(kernels[0]).has(ArgKey::kGrid));
  EXPECT_EQ(trace.dur_ns(kernels[1]), 0);
  EXPECT_EQ(trace.dur_ns(kernels[2]), 0);
  EXPECT_EQ(trace.track(kernels.back()).stream, 0xffffffff);
  EXPECT_EQ(trace.track(kernels.back()).device, 0xffff);
}

// Everything at once, as a training loop would leave it.
Recording busy_recording(std::uint32_t launches, std::uint32_t streams) {
  Recording recording;
  recording.sketch = SpoolSketch();
  recording.sketch.window(2000, 2000 + 100ull * launches);
  recording.sketch.thread(101, 1);
  recording.sketch.thread(102, 2);
  recording.sketch.metadata("deviceProperties", kH200);
  const std::uint32_t name = recording.sketch.text("_ZN2at6native4fillEi");
  std::vector<Record>& ranges = recording.ranges[0];
  RangeRecord step = recording.sketch.range("ProfilerStep#1", 0, 0, spool::kUserScope);
  RangeRecord op = recording.sketch.range("aten::fill_", 0, 0);
  for (std::uint64_t i = 0; i < launches && ranges.size() + 2 < spool::kRecordsPerChunk; ++i) {
    const std::uint64_t at = 2000 + 100 * i;
    if (i % 10 == 0) {
      step.begin_tsc = at;
      step.end_tsc = at + 990;
      ranges.push_back(step);
    }
    op.begin_tsc = at + 10;
    op.end_tsc = at + 80;
    ranges.push_back(op);
  }
  for (std::uint32_t i = 0; i < launches; ++i) {
    const std::uint64_t at = 2000 + 100ull * i;
    recording.gpu.call(kLaunchKernel, at + 20, at + 40, i + 1);
    recording.gpu.kernel(name, at + 60, at + 150, i + 1, 7 + i % streams);
  }
  return recording;
}

TEST(ActivityDamageTest, WrittenAndReadAgainATraceStaysTheSame) {
  Recording recording = busy_recording(300, 5);
  spool::SyncRecord sync{};
  sync.begin_tsc = 3000;
  sync.end_tsc = 3100;
  sync.kind = static_cast<std::uint8_t>(ActivityKind::kSync);
  sync.sync_kind = 4;
  sync.stream = spool::kNoStream;
  recording.gpu.add(sync);
  spool::OverheadRecord overhead{};
  overhead.begin_tsc = 3000;
  overhead.end_tsc = 3500;
  overhead.kind = static_cast<std::uint8_t>(ActivityKind::kOverhead);
  recording.gpu.add(overhead);
  const Trace trace = recording.read();
  const std::string text = kineto_json_text(trace);
  auto again = read_trace_bytes(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->slices().size(), trace.slices().size());
  EXPECT_EQ(again->flows().size(), 300u);
  EXPECT_EQ(issues(*again, ImportIssue::kOrphanFlow), 0u);
  EXPECT_FALSE(again->import_stats().lost_anything());
  EXPECT_EQ(kineto_json_text(*again), text);
}

TEST(ActivityDamageTest, ThousandsOfStreamsAreThousandsOfTracks) {
  const Trace trace = busy_recording(6000, 3000).read();
  std::size_t streams = 0;
  for (const Track& track : trace.tracks())
    if (track.kind == TrackKind::kStream) ++streams;
  EXPECT_EQ(streams, 3000u);
  EXPECT_EQ(rows(trace, CategoryKind::kKernel).size(), 6000u);
}

// Quadratic code would run into the test's time limit, in any build.
TEST(ActivityDamageTest, AHundredThousandLaunchesAreAllJoined) {
  const auto trace = read_spool_bytes(busy_recording(100'000, 4).bytes());
  ASSERT_TRUE(trace);
  EXPECT_EQ(rows(*trace, CategoryKind::kKernel).size(), 100'000u);
  EXPECT_EQ(trace->flows().size(), 100'000u);
}

TEST(ActivityDamageTest, AFileCutAnywhereIsReadAsFarAsItGoes) {
  const std::string bytes = busy_recording(400, 5).bytes();
  for (std::size_t size = 0; size <= bytes.size(); size += 1777) {
    const auto trace = read_spool_bytes(std::string_view(bytes).substr(0, size));
    if (size < 8) continue;
    ASSERT_TRUE(trace) << size;
    EXPECT_EQ(issues(*trace, ImportIssue::kOrphanFlow), 0u);
  }
}

TEST(ActivityDamageTest, FlippedBitsNeverCrashTheReaderNorBreakTheArrows) {
  const std::string bytes = busy_recording(400, 5).bytes();
  std::mt19937 random(11);
  for (int round = 0; round < testing::rounds(250); ++round) {
    std::string damaged = bytes;
    for (std::uint64_t flips = 1 + random() % 40; flips > 0; --flips) {
      std::size_t at = random() % damaged.size();
      if (random() % 4 != 0) at = at / spool::kChunkBytes * spool::kChunkBytes + random() % 60'000;
      if (at >= 12) damaged[at % damaged.size()] ^= static_cast<char>(1u << random() % 8);
    }
    const auto trace = read_spool_bytes(damaged);
    if (!trace) continue;
    EXPECT_LT(trace->memory_bytes(), 64u << 20);
    EXPECT_EQ(issues(*trace, ImportIssue::kOrphanFlow), 0u);
    const auto again = read_trace_bytes(kineto_json_text(*trace));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->slices().size(), trace->slices().size());
  }
}

}  // namespace
}  // namespace lanescope::format

#include "lanescope/analysis/averages_by_track.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "lanescope/analysis/key_averages_list.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/real_traces.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

std::string text_of(const KeyAverages& table) {
  std::string text = table.device;
  const auto add = [&](auto... values) { ((text += " " + std::to_string(values)), ...); };
  const TorchEventsNotes& notes = table.corrections;
  add(table.device_busy_ns, table.device_count, table.window_ns, table.device_window_ns,
      table.annotation_span_ns, table.annotation_busy_ns);
  add(notes.unlaunched_count, notes.unlaunched_ns, notes.before_first_step_count,
      notes.before_first_step_ns, notes.overhead_claim_count, notes.overhead_claim_ns,
      notes.python_frame_count);
  for (const KeyAverage& row : table.rows) {
    text += "\n" + row.name;
    add(row.on_device, row.is_annotation, row.is_overhead, row.is_async, row.is_top_level,
        row.first_event, row.count);
    add(row.cpu_time_total_ns, row.self_cpu_time_total_ns, row.cpu_time_union_ns,
        row.device_time_total_ns, row.self_device_time_total_ns);
  }
  return text;
}

// With few slices at once, even small traces are cut into many pieces.
void expect_as_the_list(const Trace& trace, const std::string& what) {
  const auto list = key_averages_of_list(trace, {.style = TableStyle::kLanescope});
  ASSERT_TRUE(list) << what;
  const std::string expected = text_of(*list);
  for (const unsigned threads : {1u, 3u})
    for (const std::uint32_t slices : {64u, 1u << 16}) {
      const auto made = averages_by_track(trace, threads, slices);
      ASSERT_TRUE(made) << what;
      ASSERT_EQ(text_of(*made), expected) << what << ": " << threads << " threads, " << slices;
    }
}

// Ties, overlaps, nested calls of one name, overhead of other threads, work without a launch.
Trace drawn(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::int64_t>(random() % limit);
  };
  const char* const names[] = {"aten::add", "aten::mm", "aten::add.Tensor", "step", "Pi"};
  Sketch sketch;
  std::int64_t at = 1000;
  for (int i = 0; i < 400; ++i) {
    at += below(4) == 0 ? 40 + below(60) : below(8);
    const std::string name = names[below(5)];
    const std::int64_t tid = 100 + below(2), dur = below(3) == 0 ? 0 : below(60);
    const std::int64_t correlation = 1 + below(300);
    switch (below(8)) {
      case 0:
        sketch.annotation(i % 50 == 0 ? "ProfilerStep#" + std::to_string(i / 50) : name, at, dur,
                          {.tid = tid});
        break;
      case 1:
        sketch.runtime("cudaLaunchKernel", at, dur, {.tid = tid, .correlation = correlation});
        break;
      case 2:
      case 3:
        sketch.kernel(
            i % 2 ? "gemm" : "add", at + 20, dur,
            {.stream = 7 + below(2), .external_id = below(40), .correlation = correlation});
        break;
      case 4:
        sketch.gpu_annotation(name, at, dur + below(5), {.stream = 7 + below(2)});
        break;
      case 5:
        sketch.overhead("Activity Buffer Request", at, dur);
        break;
      default:
        sketch.op(name, at, dur, {.tid = tid, .external_id = 1 + below(40)});
    }
  }
  return sketch.trace();
}

TEST(AveragesByTrackTest, EqualTheListOfEventsForDrawnTraces) {
  for (std::uint32_t seed = 0; seed < 200; ++seed)
    expect_as_the_list(drawn(seed), "seed " + std::to_string(seed));
}

TEST(AveragesByTrackTest, EqualTheListOfEventsForRealTraces) {
  std::size_t checked = 0;
  for (const auto& path : testing::json_traces(testing::shipped_traces())) {
    const auto trace = format::read_trace(path.string());
    if (!trace) continue;
    const auto list = key_averages_of_list(*trace, {.style = TableStyle::kLanescope});
    if (!list || list->profile_memory || list->with_flops) continue;
    expect_as_the_list(*trace, path.string());
    ++checked;
  }
  EXPECT_GT(checked, 10u);
}

TEST(AveragesByTrackTest, WhatIsOpenOverManyPiecesIsCountedOnce) {
  Sketch sketch;
  sketch.annotation("all", 0, 100'000);
  for (std::int64_t i = 0; i < 500; ++i) sketch.op("aten::add", 100 * i, 60);
  sketch.op("aten::add", 100'000, 40);
  const auto made = averages_by_track(sketch.trace(), 2, 64);
  ASSERT_TRUE(made);
  ASSERT_EQ(made->rows.size(), 2u);
  EXPECT_EQ(made->rows[0].name, "all");
  EXPECT_EQ(made->rows[0].self_cpu_time_total_ns, 100'000 - 500 * 60);
  EXPECT_EQ(made->rows[1].count, 501);
  EXPECT_EQ(made->rows[1].cpu_time_total_ns, 500 * 60 + 40);
  EXPECT_EQ(made->rows[1].first_event, 1u);
}

}  // namespace
}  // namespace lanescope::analysis

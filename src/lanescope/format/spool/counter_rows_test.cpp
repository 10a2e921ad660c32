#include "lanescope/format/spool/counter_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/format/spool/spool_reading_test.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using lanescope::testing::ActivitySketch;
using lanescope::testing::kDay;
using lanescope::testing::SpoolSketch;
using ::testing::HasSubstr;
using ::testing::Not;

// The GPU's clock is 5 ms behind the trace's. A tick is 2 ns; tick 1000 is kDay.
constexpr std::int64_t kBehindNs = 5'000'000;
constexpr std::int64_t kIntervalNs = 1000;
// After a sample's end, until the sampler has seen it.
constexpr std::uint64_t kReadingTicks = 20;

std::uint64_t device_ns(std::uint64_t tick) {
  return static_cast<std::uint64_t>(kDay + (static_cast<std::int64_t>(tick) - 1000) * 2 -
                                    kBehindNs);
}

template <typename T>
void put(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

class CounterSketch {
 public:
  CounterSketch() {
    counters::FileHead head;
    std::memcpy(head.magic, counters::kMagic, sizeof head.magic);
    put(&bytes_, head);
    block(counters::BlockKind::kDescription, 0,
          R"({"name": "GPU", "interval_ns": 1000, "series": [{"name": "SM active", "unit": "%"}, )"
          R"({"name": "DRAM read", "unit": "bytes"}, )"
          R"({"name": "SM clock counted", "unit": "cycles"}], )"
          R"("slow_series": [{"name": "power", "unit": "W"}]})");
  }
  void block(counters::BlockKind kind, std::uint32_t values, const std::string& payload) {
    put(&bytes_,
        counters::BlockHead{
            .kind = kind, .bytes = static_cast<std::uint32_t>(payload.size()), .values = values});
    bytes_ += payload;
  }
  void sample(std::uint64_t begin_tick, float active, float bytes, float cycles = 0) {
    std::string payload;
    put(&payload, counters::SampleHead{device_ns(begin_tick), kIntervalNs});
    put(&payload, active);
    put(&payload, bytes);
    put(&payload, cycles);
    block(counters::BlockKind::kSamples, 3, payload);
  }
  void slow(std::uint64_t tick, float watts) {
    std::string payload;
    put(&payload, tick);
    put(&payload, watts);
    block(counters::BlockKind::kSlowSamples, 1, payload);
  }
  void anchor(std::uint64_t end_tick, std::uint64_t late_ticks) {
    std::string payload;
    put(&payload, counters::Anchor{end_tick + late_ticks, device_ns(end_tick)});
    block(counters::BlockKind::kAnchors, 0, payload);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct Row {
  std::int64_t tick;
  double value;
  bool operator==(const Row&) const = default;
};

std::vector<Row> rows_of(const Trace& trace, std::string_view name, std::string_view series) {
  std::vector<Row> rows;
  const CounterColumns& counters = trace.counters();
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const Track& track = trace.track(counters.track[i]);
    if (trace.text(track.name) != name || trace.text(track.series) != series) continue;
    rows.push_back(
        {(counters.time_ns[i] + trace.base_time_ns() - kDay) / 2 + 1000, counters.value[i]});
  }
  return rows;
}

std::string hardware_of(const Trace& trace) {
  for (const Metadata& entry : trace.metadata())
    if (trace.text(entry.key) == kHardwareMetadata) return std::string(trace.text(entry.json));
  return "";
}

Trace read_with(const std::string& recording, const std::string& counters) {
  ReadSpoolOptions options;
  options.counters = counters;
  return read_recording(recording, options);
}

TEST(CounterRowsTest, SamplesOfAWindowBecomeTracksOfTheDevice) {
  SpoolSketch sketch;
  sketch.window(10'000, 20'000);
  CounterSketch counters;
  counters.sample(9'900, 10, 1);  // begins before the window
  counters.sample(10'400, 50, 3000, 1500);
  counters.sample(10'900, 60, 500, 1980);
  counters.sample(19'900, 70, 1);  // ends after it
  counters.anchor(10'900, 300);
  counters.anchor(11'400, kReadingTicks);  // the smallest distance of the second
  counters.slow(10'500, 300);
  counters.slow(9'000, 200);  // earlier than the one before: damage
  const Trace trace = read_with(sketch.bytes(), counters.bytes());
  // 3000 bytes in 1000 ns are 3 GB/s. Without kernels, reading makes all times 20 ticks late.
  const auto late = static_cast<std::int64_t>(kReadingTicks);
  EXPECT_EQ(rows_of(trace, "SM active", "%"),
            (std::vector<Row>{{10'400 + late, 50}, {10'900 + late, 60}}));
  EXPECT_EQ(rows_of(trace, "DRAM read", "GB/s"),
            (std::vector<Row>{{10'400 + late, 3}, {10'900 + late, 0.5}}));
  // 1500 cycles in 1000 ns are 1500 MHz.
  EXPECT_EQ(rows_of(trace, "SM clock counted", "MHz"),
            (std::vector<Row>{{10'400 + late, 1500}, {10'900 + late, 1980}}));
  EXPECT_EQ(rows_of(trace, "power", "W"), (std::vector<Row>{{10'500, 300}}));
  EXPECT_EQ(issue_count(trace, ImportIssue::kEventLost), 1u);
  EXPECT_THAT(hardware_of(trace), HasSubstr(R"("samples": 4, "slow_samples": 1, "overflows": 0)"));
  EXPECT_THAT(hardware_of(trace), Not(HasSubstr("clock_edges")));
}

// Each kernel begins 300 ns into a sample, which is therefore 70 % as active as the next ones.
TEST(CounterRowsTest, BeginsOfKernelsCorrectTheClock) {
  SpoolSketch sketch;
  sketch.window(10'000, 200'000);
  ActivitySketch work;
  CounterSketch counters;
  const std::uint32_t name = sketch.text("k");
  constexpr int kKernels = 6;
  for (std::uint64_t k = 0; k < kKernels; ++k) {
    const std::uint64_t begin = 20'000 + k * 10'000;  // ticks; a sample has 500
    work.call(211, begin - 100, begin - 50, static_cast<std::uint32_t>(k + 1));
    work.kernel(name, begin + 150, begin + 3'000, static_cast<std::uint32_t>(k + 1));
    for (std::uint64_t i = 0; i < 20; ++i) {
      const std::uint64_t at = begin - 4'000 + i * 500;
      const float active = at < begin ? 0 : at == begin ? 56 : at < begin + 3'000 ? 80 : 0;
      counters.sample(at, active, 0);
      if (i == 10) counters.anchor(at + 500, kReadingTicks);
    }
  }
  sketch.activities(work.records);
  const Trace trace = read_with(sketch.bytes(), counters.bytes());
  EXPECT_THAT(hardware_of(trace),
              HasSubstr(R"("clock_edges": 6, "clock_shift_ns": -40, "clock_error_ns": 0)"));
  const std::vector<Row> rows = rows_of(trace, "SM active", "%");
  ASSERT_EQ(rows.size(), kKernels * 20u);
  EXPECT_EQ(rows[8], (Row{20'000, 56}));

  // In pieces: the same rows, each once.
  ReadSpoolOptions options;
  options.counters = counters.bytes();
  std::vector<Row> of_pieces;
  std::size_t pieces = 0;
  const std::string bytes = sketch.bytes();
  ASSERT_TRUE(read_spool_bytes_pieces(
      bytes, 2,
      [&](const Trace& piece, std::size_t, std::size_t count) -> Result<void> {
        pieces = count;
        for (const Row& row : rows_of(piece, "SM active", "%")) of_pieces.push_back(row);
        return {};
      },
      options));
  EXPECT_GT(pieces, 1u);
  EXPECT_EQ(of_pieces.size(), rows.size());
}

// The recorder had room for its records: only samples are missing.
TEST(CounterRowsTest, GapsAndRefusedSamplesAreLostSamples) {
  SpoolSketch sketch;
  sketch.window(10'000, 20'000);
  CounterSketch counters;
  counters.sample(10'400, 50, 3000);
  counters.anchor(10'900, kReadingTicks);
  std::string payload;
  put(&payload, counters::Losses{.overflows = 1, .refused = 2, .gaps = 3, .gap_ns = 700});
  counters.block(counters::BlockKind::kLosses, 0, payload);
  const Trace trace = read_with(sketch.bytes(), counters.bytes());
  EXPECT_EQ(issue_count(trace, ImportIssue::kLostSamples), 5u);
  EXPECT_EQ(issue_count(trace, ImportIssue::kDroppedRecords), 0u);
  EXPECT_THAT(hardware_of(trace), HasSubstr(R"("gaps": 3, "gap_ns": 700)"));
}

TEST(CounterRowsTest, WhatIsNoCounterFileIsCounted) {
  SpoolSketch sketch;
  sketch.window(10'000, 20'000);
  const Trace trace = read_with(sketch.bytes(), "something else");
  EXPECT_EQ(issue_count(trace, ImportIssue::kEventLost), 1u);
  EXPECT_EQ(trace.counters().size(), 0u);
}

TEST(CounterRowsTest, AnyByteMayBeWrong) {
  SpoolSketch sketch;
  sketch.window(10'000, 20'000);
  CounterSketch counters;
  counters.sample(10'400, 50, 3000);
  counters.anchor(10'900, kReadingTicks);
  counters.slow(10'500, 300);
  const std::string recording = sketch.bytes();
  for (std::size_t at = 0; at < counters.bytes().size(); ++at)
    for (const char change : {'\x01', '\x40', '\xff'}) {
      std::string damaged = counters.bytes();
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      read_with(recording, damaged);
    }
}

TEST(CounterClockTest, NoShiftFromFewEdges) {
  const std::vector<BusySpan> busy = {{10'000, 20'000}};
  const std::vector<std::int64_t> start = {8'000, 9'000, 10'000, 11'000, 12'000};
  const std::vector<std::uint32_t> length(5, 1000);
  const std::vector<float> active = {0, 0, 80, 80, 80};
  EXPECT_FALSE(measure_edges(busy, start, length, active, 1000));
}

}  // namespace
}  // namespace lanescope::format

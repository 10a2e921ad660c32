#include "lanescope/analysis/roofline_rows.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

// Calls as a Roofline holds them, on a trace of one operator and two kernels.
struct DrawnRows {
  Trace trace;
  Roofline roofline;
  std::vector<RooflineRow> rows;
};

RooflineCall call_of(std::uint32_t work, SliceId kernel, std::int64_t time_ns, double floor_ns,
                     RooflineClass kind) {
  RooflineCall call;
  call.op = SliceId{0};
  call.kernel = kernel;
  call.work = work;
  call.time_ns = time_ns;
  call.start_ns = time_ns;
  call.compute_floor_ns = floor_ns;
  call.kind = kind;
  return call;
}

DrawnRows rows_of(std::vector<OperatorWork> works, std::vector<RooflineCall> calls) {
  testing::Sketch sketch;
  sketch.op("aten::mm", 0, 1000);
  sketch.kernel("a", 2000, 1000).kernel("b", 4000, 1000);
  DrawnRows drawn{sketch.trace(), {}, {}};
  drawn.roofline.works = std::move(works);
  drawn.roofline.calls = std::move(calls);
  drawn.rows = compute_roofline_rows(drawn.trace, drawn.roofline);
  return drawn;
}

OperatorWork gemm(double flops) {
  OperatorWork work;
  work.kind = OperatorKind::kGemm;
  work.type = "bf16";
  work.flops = flops;
  work.bytes = 1000;
  return work;
}

// Three calls of 10, 20 and 30 us with floors of 6 us each: 18 of 60 us, 3 * 6e6 operations.
TEST(RooflineRowsTest, SumsEqualCalls) {
  const SliceId a{1}, b{2};
  const auto kind = RooflineClass::kCompute;
  const DrawnRows drawn =
      rows_of({gemm(6e6)}, {call_of(0, a, 20'000, 6000, kind), call_of(0, a, 10'000, 6000, kind),
                            call_of(0, a, 30'000, 6000, kind), call_of(0, b, 12'000, 6000, kind)});
  ASSERT_EQ(drawn.rows.size(), 2u);  // the other kernel is a row of its own
  const RooflineRow& row = drawn.rows[0];
  EXPECT_EQ(row.calls, 3u);
  EXPECT_EQ(row.time_ns, 60'000);
  EXPECT_EQ(row.median_ns, 20'000);
  EXPECT_DOUBLE_EQ(row.flops_per_s, 3e11);
  EXPECT_DOUBLE_EQ(row.bytes_per_s, 5e7);
  EXPECT_DOUBLE_EQ(*row.achieved_ratio, 0.3);
  // The best does 6e6 operations in 12 us: 5e11 a second.
  EXPECT_DOUBLE_EQ(*row.of_best_ratio, 0.6);
  EXPECT_DOUBLE_EQ(*drawn.rows[1].of_best_ratio, 1.0);
}

// Without peaks there is no roof; short calls are not compared.
TEST(RooflineRowsTest, ComparesWhereThereIsNoRoof) {
  const SliceId a{1}, b{2};
  const DrawnRows drawn =
      rows_of({gemm(6e6), gemm(1e9)}, {call_of(0, a, 20'000, 0, RooflineClass::kUnrated),
                                       call_of(1, b, 1000, 0, RooflineClass::kShort)});
  EXPECT_FALSE(drawn.rows.at(0).achieved_ratio);
  EXPECT_DOUBLE_EQ(*drawn.rows.at(0).of_best_ratio, 1.0);
  EXPECT_FALSE(drawn.rows.at(1).achieved_ratio);
  EXPECT_FALSE(drawn.rows.at(1).of_best_ratio);
}

// Floors of 30 us each in calls of 10 and 20 us: no share of what the GPU can do at most. In calls
// of 10 and 80 us they are two thirds of the time, as the row's rate is of the peak.
TEST(RooflineRowsTest, SaysWhenARowIsFasterThanThePeak) {
  const SliceId a{1}, b{2};
  const auto kind = RooflineClass::kMemory;
  const DrawnRows drawn = rows_of(
      {gemm(6e6)}, {call_of(0, a, 10'000, 30'000, kind), call_of(0, a, 20'000, 30'000, kind),
                    call_of(0, b, 10'000, 30'000, kind), call_of(0, b, 80'000, 30'000, kind)});
  ASSERT_EQ(drawn.rows.size(), 2u);
  EXPECT_FALSE(drawn.rows[0].is_above_peak);
  EXPECT_DOUBLE_EQ(*drawn.rows[0].achieved_ratio, 60.0 / 90.0);
  EXPECT_TRUE(drawn.rows[1].is_above_peak);
  EXPECT_FALSE(drawn.rows[1].achieved_ratio);
}

TEST(RooflineRowsTest, HasNoRowsWithoutCalls) { EXPECT_TRUE(rows_of({}, {}).rows.empty()); }

}  // namespace
}  // namespace lanescope::analysis

#include "lanescope/analysis/event_name_totals.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

TEST(EventNameTotalsTest, NamesThatDifferInTheirNumbersAreOneRow) {
  testing::Sketch sketch;
  sketch.annotation("ProfilerStep#1", 0, 100).annotation("ProfilerStep#2", 100, 200);
  sketch.op("aten::mm", 10, 20).op("aten::mm", 110, 30).op("mystery", 150, 5);
  sketch.annotation("batch 1", 40, 1).annotation("batch 2", 50, 1);
  sketch.kernel("gemm", 20, 50).memory(60, 512);
  const Trace trace = sketch.trace();
  const EventNameTotals totals = compute_event_name_totals(trace);
  ASSERT_EQ(totals.rows.size(), 5u);
  EXPECT_EQ(totals.rows[0].name.group, "ProfilerStep#*");
  EXPECT_EQ(totals.rows[0].count, 2);
  EXPECT_EQ(totals.rows[0].name_count, 2);
  EXPECT_EQ(totals.rows[0].total_ns, 300);
  EXPECT_EQ(totals.rows[1].name.group, "batch *");
  EXPECT_EQ(totals.rows[2].name.group, "aten::mm");
  EXPECT_EQ(totals.rows[2].total_ns, 50);
  EXPECT_EQ(totals.rows[3].name.kind, names::EventKind::kMemory);
  EXPECT_FALSE(totals.rows[4].name.known());
  EXPECT_EQ(totals.count, 8);  // without the kernel
  EXPECT_EQ(totals.known_count, 7);
  EXPECT_EQ(totals.category_count, 2);
}

}  // namespace
}  // namespace lanescope::analysis

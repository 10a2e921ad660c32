#include "lanescope/model/nested_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "lanescope/testing/sketch.h"

namespace lanescope {
namespace {

using testing::Sketch;

// "+A -A" for the begins and ends of each row, rows after each other.
std::string edges(const Trace& trace, const Track& track) {
  std::string text;
  const NestedRows rows = find_nested_rows(trace, track);
  for (std::size_t i = 0; i < rows.row_count(); ++i) {
    if (i > 0) text += " | ";
    for_each_edge(
        trace, rows.row(i), [&](SliceId id) { text += "+" + std::string(trace.name(id)); },
        [&](SliceId id) { text += "-" + std::string(trace.name(id)); });
  }
  return text;
}

TEST(NestedRowsTest, SlicesThatOverlapWithoutNestingTakeFurtherRows) {
  // A [0, 10), B [2, 5), C [4, 8), D [8, 12), E [12, 13)
  const Trace trace = std::move(Sketch()
                                    .kernel("A", 0, 10)
                                    .kernel("B", 2, 3)
                                    .kernel("C", 4, 4)
                                    .kernel("D", 8, 4)
                                    .kernel("E", 12, 1))
                          .trace();
  EXPECT_EQ(edges(trace, trace.tracks()[0]), "+A+B-B-A+E-E | +C-C+D-D");
}

TEST(NestedRowsTest, ASliceOfNoDurationIsInsideTheSliceThatBeginsThenAndAfterTheOneThatEndsThen) {
  const Trace trace =
      std::move(Sketch().op("A", 0, 5).op("Z", 5, 0).op("B", 5, 5).op("Y", 10, 0)).trace();
  EXPECT_EQ(edges(trace, trace.tracks()[0]), "+A-A+B+Z-Z-B+Y-Y");
}

TEST(NestedRowsTest, ATrackWithoutSlicesHasNoRows) {
  EXPECT_EQ(find_nested_rows(Trace(), Track()).row_count(), 0u);
}

// Every slice once, in rows that nest; 300 slices at once need 300 rows.
TEST(NestedRowsTest, AnySlicesNestInTheirRows) {
  std::mt19937 random(1);
  for (const int longest : {3, 50, 5000}) {
    Sketch sketch;
    for (int i = 0; i < 1000; ++i)
      sketch.kernel("k", static_cast<std::int64_t>(random() % 1000),
                    static_cast<std::int64_t>(random() % static_cast<unsigned>(longest)));
    const Trace trace = sketch.trace();
    const NestedRows rows = find_nested_rows(trace, trace.tracks()[0]);
    std::vector<bool> seen(1000);
    for (std::size_t i = 0; i < rows.row_count(); ++i) {
      std::int64_t now = INT64_MIN;
      std::vector<SliceId> open;
      for_each_edge(
          trace, rows.row(i),
          [&](SliceId id) {
            EXPECT_GE(trace.start_ns(id), now);
            now = trace.start_ns(id);
            open.push_back(id);
            EXPECT_FALSE(seen[raw(id)]);
            seen[raw(id)] = true;
          },
          [&](SliceId id) {
            EXPECT_GE(trace.end_ns(id), now);
            now = trace.end_ns(id);
            ASSERT_FALSE(open.empty());
            EXPECT_EQ(open.back(), id);
            open.pop_back();
          });
      EXPECT_TRUE(open.empty());
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 1000);
  }
}

}  // namespace
}  // namespace lanescope

// Parts of drawn traces as people ask for them: by times since the begin, or by a step.
#include "lanescope/view/trace_part.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::view {
namespace {

using testing::Sketch;

TEST(TracePartTest, AWindowIsTwoTimesSinceTheBegin) {
  const auto window = parse_window("10us..12.5us");
  ASSERT_TRUE(window && *window);
  EXPECT_EQ((*window)->start_ns, 10'000);
  EXPECT_EQ((*window)->end_ns, 12'500);
  const auto none = parse_window("");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(TracePartTest, WhatIsNoWindowIsSaid) {
  for (const char* text : {"5", "5ms..", "9ms..2ms", "a..b", "1ms..1ms", ".."}) {
    const auto window = parse_window(text);
    ASSERT_FALSE(window) << text;
    EXPECT_EQ(window.error().code, Errc::kInvalidArgument);
    EXPECT_NE(window.error().message.find(text), std::string::npos);
  }
}

// The first slice begins at 500 ns: the window counts from there.
TEST(TracePartTest, TimesCountFromTheFirstSlice) {
  Sketch sketch;
  sketch.op("first", 500, 100).op("second", 1000, 100);
  const Trace trace = sketch.trace();
  const auto part = find_part(trace, {"100ns..600ns", {}});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->start_ns, 600);
  EXPECT_EQ(part->end_ns, 1100);
}

TEST(TracePartTest, ATraceWithoutStepsSaysSo) {
  Sketch sketch;
  sketch.op("first", 500, 100);
  const Trace trace = sketch.trace();
  const auto part = find_part(trace, {"", 3});
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().message, "step: the trace marks no steps; ask for a window");
}

}  // namespace
}  // namespace lanescope::view

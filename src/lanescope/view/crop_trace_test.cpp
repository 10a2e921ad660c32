// Parts of drawn traces, worked out by hand: what is in them, and what the ends of a part cut.
#include "lanescope/view/crop_trace.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/testing/sketch.h"
#include "lanescope/testing/trace_text.h"
#include "lanescope/view/lanes.h"

namespace lanescope::view {
namespace {

using testing::Sketch;

CroppedTrace crop(const Trace& trace, std::int64_t start_ns, std::int64_t end_ns, Edges edges) {
  auto cropped = crop_trace(trace, start_ns, end_ns, edges);
  EXPECT_TRUE(cropped);
  return *std::move(cropped);
}

// "name start+length", in the order of the trace.
std::vector<std::string> slices_of(const Trace& trace) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId slice{i};
    texts.push_back(std::string(trace.name(slice)) + " " + std::to_string(trace.start_ns(slice)) +
                    "+" + std::to_string(trace.dur_ns(slice)));
  }
  return texts;
}

// outer [0, 100) holds inner [20, 40); a kernel runs [90, 130).
Trace nested() {
  Sketch sketch;
  sketch.op("outer", 0, 100).op("inner", 20, 20).kernel("k", 90, 40);
  return sketch.trace();
}

TEST(CropTraceTest, CutSlicesCountOnlyWithinTheWindow) {
  const Trace trace = nested();
  const CroppedTrace part = crop(trace, 30, 100, Edges::kCut);
  EXPECT_EQ(slices_of(part.trace),
            (std::vector<std::string>{"outer 30+70", "inner 30+10", "k 90+10"}));
  EXPECT_EQ(part.crossing, 3u);
}

TEST(CropTraceTest, WholeSlicesStayAsTheyAre) {
  const Trace trace = nested();
  const CroppedTrace part = crop(trace, 30, 100, Edges::kWhole);
  EXPECT_EQ(slices_of(part.trace),
            (std::vector<std::string>{"outer 0+100", "inner 20+20", "k 90+40"}));
  EXPECT_EQ(part.crossing, 3u);
}

// The window is half-open, and so are slices.
TEST(CropTraceTest, WhatOnlyMeetsAnEndIsOutside) {
  Sketch sketch;
  sketch.op("ends", 0, 50).op("empty", 50, 0).op("inside", 60, 10).op("begins", 80, 5);
  const Trace trace = sketch.trace();
  const CroppedTrace part = crop(trace, 50, 80, Edges::kCut);
  EXPECT_EQ(slices_of(part.trace), (std::vector<std::string>{"empty 50+0", "inside 60+10"}));
  EXPECT_EQ(part.crossing, 0u);
}

TEST(CropTraceTest, AStepThatIsCutIsNoStep) {
  Sketch sketch;
  sketch.annotation("ProfilerStep#1", 0, 100).annotation("ProfilerStep#2", 100, 100);
  sketch.builder().add_step(1, 0);
  sketch.builder().add_step(2, 1);
  const Trace trace = sketch.trace();
  const auto numbers = [](const Trace& part) {
    std::vector<std::int64_t> found;
    for (const Step& step : part.steps()) {
      found.push_back(step.number);
      EXPECT_EQ(part.name(step.slice), "ProfilerStep#" + std::to_string(step.number));
    }
    return found;
  };
  EXPECT_EQ(numbers(crop(trace, 50, 200, Edges::kCut).trace), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(numbers(crop(trace, 50, 200, Edges::kWhole).trace), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(numbers(crop(trace, 50, 150, Edges::kCut).trace), (std::vector<std::int64_t>{}));
}

TEST(CropTraceTest, AllOfATraceIsTheTrace) {
  Sketch sketch;
  sketch.op("outer", 0, 100, {.input_dims = "[[2, 3]]"}).op("inner", 20, 20);
  sketch.runtime("cudaLaunchKernel", 25, 5, {.correlation = 7});
  sketch.kernel("k", 90, 40, {.correlation = 7}).gpu_annotation("outer", 85, 50);
  sketch.memory(30, 512, 1).metadata("schemaVersion", "1");
  const Trace trace = sketch.trace();
  for (const auto edges : {Edges::kCut, Edges::kWhole}) {
    const CroppedTrace part = crop(trace, trace_origin_ns(trace), trace_end_ns(trace) + 1, edges);
    EXPECT_EQ(testing::trace_text(part.trace), testing::trace_text(trace));
    EXPECT_EQ(part.crossing, 0u);
    EXPECT_EQ(part.trace.import_stats().events, trace.import_stats().events);
    EXPECT_EQ(part.trace.slices().event_index, trace.slices().event_index);
  }
}

// People type times as the page of `lanescope view` shows them.
TEST(CropTraceTest, TimesBeginWhereTheViewBegins) {
  Sketch sketch;
  sketch.memory(5, 100, 1).op("op", 20, 30).kernel("k", 90, 40);
  const Trace trace = sketch.trace();
  EXPECT_EQ(trace_origin_ns(trace), 5);
  EXPECT_EQ(trace_end_ns(trace), 130);
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  const Lanes lanes(*facts);
  EXPECT_EQ(lanes.origin_ns(), 5);
  EXPECT_EQ(lanes.end_ns(), 130);
}

TEST(CropTraceTest, AnEmptyTraceHasNoPart) {
  const Trace trace;
  EXPECT_EQ(trace_origin_ns(trace), 0);
  EXPECT_EQ(trace_end_ns(trace), 0);
}

}  // namespace
}  // namespace lanescope::view

// Parts of drawn traces by category, worked out by hand.
#include "lanescope/view/kept_categories.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lanescope/testing/sketch.h"
#include "lanescope/view/crop_trace.h"
#include "lanescope/view/trace_part.h"

namespace lanescope::view {
namespace {

using testing::Sketch;

// On one thread outer [0, 100) around inner [20, 40) around a launch [25, 30); its kernel runs [90, 130), and a copy [140, 150).
// Arrows: from the launch to the kernel, and within inner.
Trace launched() {
  Sketch sketch;
  sketch.annotation("ProfilerStep#4", 0, 110).op("outer", 0, 100).op("inner", 20, 20);
  sketch.builder().add_step(4, 0);
  sketch.runtime("cudaLaunchKernel", 25, 5, {.correlation = 7});
  sketch.kernel("k", 90, 40, {.correlation = 7});
  sketch.slice("gpu_memcpy", "Memcpy HtoD", 140, 10);
  sketch.memory(30, 512, 1);
  return sketch.trace();
}

std::vector<std::string> names_of(const Trace& trace) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    names.emplace_back(trace.name(SliceId{i}));
  return names;
}

Trace part_of(const Trace& whole, const PartAsked& asked, Edges edges = Edges::kCut) {
  auto part = take_part(whole, asked, edges);
  EXPECT_TRUE(part) << part.error().message;
  return std::move(part->trace);
}

TEST(KeptCategoriesTest, OnlySlicesAndMarksOfTheCategoriesStay) {
  const Trace trace = launched();
  const Trace work = part_of(trace, {.categories = "kernel,gpu_memcpy"});
  EXPECT_EQ(names_of(work).size(), 2u);
  EXPECT_EQ(work.instants().size(), 0u);
  EXPECT_EQ(work.steps().size(), 0u);
  const Trace marks = part_of(trace, {.categories = "cpu_instant_event"});
  EXPECT_EQ(marks.slices().size(), 0u);
  EXPECT_EQ(marks.instants().size(), 1u);
  const Trace ranges = part_of(trace, {.categories = "user_annotation"});
  ASSERT_EQ(ranges.steps().size(), 1u);
  EXPECT_EQ(ranges.steps().front().number, 4);
  EXPECT_EQ(ranges.name(ranges.steps().front().slice), "ProfilerStep#4");
}

TEST(KeptCategoriesTest, TheCaptureWindowStaysUnlessTimesAreAskedToo) {
  const Trace trace = launched();
  const Trace work = part_of(trace, {.categories = "kernel"});
  EXPECT_EQ(work.window_start_ns(), trace.window_start_ns());
  EXPECT_EQ(work.window_end_ns(), trace.window_end_ns());
  const Trace part = part_of(trace, {.window = "100ns..120ns", .categories = "kernel"});
  ASSERT_EQ(part.slices().size(), 1u);
  EXPECT_EQ(part.start_ns(SliceId{0}), 100);
  EXPECT_EQ(part.dur_ns(SliceId{0}), 20);
  const Trace whole =
      part_of(trace, {.window = "100ns..120ns", .categories = "kernel"}, Edges::kWhole);
  EXPECT_EQ(whole.dur_ns(SliceId{0}), 40);
}

// torch 1.8 wrote "Operator" for what torch 2 calls cpu_op.
TEST(KeptCategoriesTest, ANameIsTheTextOfTheFileOrTheWordOfTorch2) {
  Sketch sketch;
  sketch.slice("Operator", "aten::mm", 0, 10).slice("cpu_op", "aten::add", 20, 10);
  sketch.slice("own", "mine", 40, 10);
  const Trace trace = sketch.trace();
  EXPECT_EQ(names_of(part_of(trace, {.categories = "Operator"})),
            (std::vector<std::string>{"aten::mm"}));
  EXPECT_EQ(names_of(part_of(trace, {.categories = "cpu_op"})),
            (std::vector<std::string>{"aten::mm", "aten::add"}));
  EXPECT_EQ(names_of(part_of(trace, {.categories = "own"})), (std::vector<std::string>{"mine"}));
}

TEST(KeptCategoriesTest, ANameThatTheTraceLacksIsAnErrorWithThoseThatItHas) {
  const Trace trace = launched();
  for (const char* names : {"kernels", "kernel,", "", "kernel, gpu_memcpy"}) {
    const auto kept = kept_categories(trace, names);
    ASSERT_FALSE(kept) << names;
    EXPECT_EQ(kept.error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(kept.error().message.starts_with("category expects")) << kept.error().message;
    EXPECT_NE(kept.error().message.find("cpu_op, cuda_runtime, gpu_memcpy, kernel"),
              std::string::npos)
        << kept.error().message;
  }
  EXPECT_EQ(kept_categories(Trace(), "kernel").error().message,
            "category expects names with commas between them; the trace has no category; found "
            "'kernel'");
}

// An arrow stays if a kept slice holds each of its ends: also one around the slice that it was drawn from.
TEST(KeptCategoriesTest, ArrowsNeedAKeptSliceAtBothEnds) {
  Sketch sketch;
  sketch.op("outer", 0, 100).runtime("cudaLaunchKernel", 25, 5, {.correlation = 7});
  sketch.kernel("k", 90, 40, {.correlation = 7}).op("later", 200, 10);
  TraceBuilder& builder = sketch.builder();
  const auto arrow = [&](std::int64_t from_ns, TrackId from, std::int64_t to_ns, TrackId to) {
    Flow flow;
    flow.name = builder.intern("ac2g");
    flow.category = builder.category("ac2g");
    flow.from_track = from, flow.to_track = to;
    flow.from_ns = from_ns, flow.to_ns = to_ns;
    builder.add_flow(flow);
  };
  const TrackId thread{0}, stream{1};
  arrow(25, thread, 90, stream);
  arrow(100, thread, 100, stream);  // outer is half-open: it has ended
  arrow(50, thread, 200, thread);
  const Trace trace = sketch.trace();
  ASSERT_EQ(trace.track(thread).kind, TrackKind::kThread);
  ASSERT_EQ(trace.track(stream).kind, TrackKind::kStream);
  ASSERT_EQ(trace.flows().size(), 3u);
  EXPECT_EQ(part_of(trace, {.categories = "kernel"}).flows().size(), 0u);
  EXPECT_EQ(part_of(trace, {.categories = "cpu_op"}).flows().size(), 1u);
  EXPECT_EQ(part_of(trace, {.categories = "cpu_op,kernel"}).flows().size(), 2u);
  EXPECT_EQ(part_of(trace, {.categories = "cuda_runtime,kernel"}).flows().size(), 1u);
}

// Values have no category.
TEST(KeptCategoriesTest, CounterValuesAreLeftOut) {
  Sketch sketch;
  sketch.kernel("k", 0, 10);
  sketch.builder().add_counter(TrackId{0}, 5, 1.0);
  const Trace trace = sketch.trace();
  ASSERT_EQ(trace.counters().size(), 1u);
  EXPECT_EQ(part_of(trace, {.categories = "kernel"}).counters().size(), 0u);
}

}  // namespace
}  // namespace lanescope::view

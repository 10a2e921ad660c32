#include "lanescope/model/profiler_steps.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "lanescope/model/trace_builder.h"

namespace lanescope {
namespace {

TEST(ProfilerStepsTest, StepsComeFromProfilerStepRangesOfTheCpu) {
  TraceBuilder b;
  const Scalar one{false, 1};
  const TrackId cpu = b.thread_track(one, one);
  const CategoryId note = b.category("user_annotation");
  b.add_slice(cpu, note, b.intern("ProfilerStep#3"), 50, 10, kNone<ArgsId>);
  b.add_slice(cpu, note, b.intern("ProfilerStep#2"), 10, 10, kNone<ArgsId>);
  b.add_slice(cpu, note, b.intern("ProfilerStep#"), 10, 10, kNone<ArgsId>);
  b.add_slice(b.stream_track({false, 0}, {false, 7}), b.category("gpu_user_annotation"),
              b.intern("ProfilerStep#2"), 10, 10, kNone<ArgsId>);
  add_profiler_steps(b);
  const Trace trace = *std::move(b).finish();
  ASSERT_EQ(trace.steps().size(), 2u);
  EXPECT_EQ(trace.steps()[0].number, 2);
  EXPECT_EQ(trace.steps()[1].number, 3);
}

TEST(ProfilerStepsTest, TheNumberIsAllThatFollowsTheSign) {
  EXPECT_EQ(profiler_step_number("ProfilerStep#12"), 12);
  for (const char* name : {"ProfilerStep#", "ProfilerStep#1a", "ProfilerStep", "Step#1", ""})
    EXPECT_EQ(profiler_step_number(name), std::nullopt) << name;
}

}  // namespace
}  // namespace lanescope

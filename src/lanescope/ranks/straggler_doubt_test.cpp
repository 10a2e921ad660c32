// What recording costs a CPU, and when a late CPU is no verdict because of it.
#include "lanescope/ranks/straggler_doubt.h"

#include <gtest/gtest.h>

#include "lanescope/ranks/rank_summary.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::ranks {
namespace {

// A rank that is 3 ms later in each step of 10 ms, by its CPU, in operators that the others run as well.
JobVerdict late_cpu() {
  JobVerdict verdict;
  verdict.kind = VerdictKind::kStraggler;
  verdict.ranks = {1};
  verdict.step_ns = 10'000'000;
  verdict.late_ns = 3'000'000;
  verdict.threshold_ns = 300'000;
  verdict.steps = verdict.late_steps = 8;
  verdict.causes = {{LateCause::kHost, 3'000'000}};
  verdict.host_part = "aten::mm";
  verdict.same_kernels = true;
  return verdict;
}

// Its CPU needs 2 ms more of a step, and recording may have cost it so much.
JobVerdict recorded_cpu(std::int64_t profiler_ns) {
  JobVerdict verdict = late_cpu();
  verdict.more_work_ns = 2'000'000;
  verdict.profiler_ns = profiler_ns;
  return verdict;
}

TEST(StragglerDoubtTest, ACpuThatNeedsLessMoreThanRecordingCostIsNoVerdict) {
  EXPECT_EQ(straggler_doubt(recorded_cpu(1'700'000)), "");  // leaves the threshold
  EXPECT_EQ(
      straggler_doubt(recorded_cpu(1'700'001)),
      "rank 1 is 3.00 ms later than the others in each step (30 % of 10.00 ms), because of the "
      "CPU. But that CPU needs only 2.00 ms more of a step, in the same operators, and the "
      "profiler may have cost it up to 1.70 ms there; compare the step times of a run without it");
}

TEST(StragglerDoubtTest, OnlyEventsAreSlowedByAProfiler) {
  JobVerdict verdict = recorded_cpu(9'000'000);
  EXPECT_NE(straggler_doubt(verdict), "");
  verdict.more_outside_ns = 300'000;  // Python, a loader: as much as the threshold
  EXPECT_EQ(straggler_doubt(verdict), "");
  verdict = recorded_cpu(9'000'000);
  verdict.causes.front().cause = LateCause::kCompute;
  EXPECT_EQ(straggler_doubt(verdict), "");
  verdict = recorded_cpu(9'000'000);
  verdict.same_kernels = false;  // it does other work
  EXPECT_EQ(straggler_doubt(verdict), "");
}

TEST(StragglerDoubtTest, LessThanAFifthOfAStepIsNoVerdictWithoutAnEstimate) {
  JobVerdict verdict = late_cpu();
  verdict.late_ns = 1'999'999;
  EXPECT_NE(straggler_doubt(verdict), "");
  verdict.late_ns = 2'000'000;
  EXPECT_EQ(straggler_doubt(verdict), "");
}

// In each step of 100 us events of the launching thread begin and end at 0, 10, 12, 16 and 30 us, and the next step
// begins at 100: half of 10, 2, 4 and 14 us, and 7.5 us, because half of 70 us is more. Together 22.5 us.
TEST(StragglerDoubtTest, TheCostOfRecordingIsThatOfEachBeginAndEnd) {
  testing::Sketch sketch;
  for (std::int64_t step = 0; step < 3; ++step) {
    const std::int64_t at = step * 100'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step + 5), at, 100'000);
    sketch.op("aten::mm", at + 10'000, 20'000);
    testing::Fields call;
    call.correlation = step + 1;
    sketch.runtime("cudaLaunchKernel", at + 12'000, 4'000, call);
    sketch.kernel("gemm", at + 20'000, 40'000, call);
    testing::Fields other;  // a thread that launches nothing
    other.tid = 200;
    sketch.op("aten::copy_", at + 5'000, 50'000, other);
  }
  const auto summary = summarize_rank(sketch.trace(), "rank0.json");
  ASSERT_TRUE(summary);
  ASSERT_EQ(summary->steps.size(), 3u);
  EXPECT_EQ(summary->steps[0].host_recording_ns, 22'500);
  EXPECT_EQ(summary->steps[1].host_recording_ns, 22'500);
}

}  // namespace
}  // namespace lanescope::ranks

#include "lanescope/ranks/pipeline_waits.h"

#include <gtest/gtest.h>

#include "lanescope/ranks/job_helpers_test.h"

namespace lanescope::ranks {
namespace {

// Two stages, `m` micro-batches, one step of forward passes each of `first` and `second` us, transfers of
// 10 us: stage 0 computes and sends; stage 1 receives and computes, then sends one result back. Clocks are
// 7 ms apart, and no collective links them.
std::vector<RankFile> pipeline_job(std::int64_t m, std::int64_t first, std::int64_t second,
                                   int steps = 4) {
  DrawnRank zero(0, 2), one(1, 2, 7000);
  for (int i = 0; i < steps; ++i) {
    const std::int64_t begin = i * 100'000;
    std::int64_t a = begin, b = begin;
    struct Call {
      std::int64_t start, end;
    };
    std::vector<Call> sends, receives;
    for (std::int64_t micro = 0; micro < m; ++micro) {
      const std::int64_t ready = a + first, end = std::max(ready, b) + 10;
      sends.push_back({ready, end});
      receives.push_back({b, end});
      a = end;
      b = end + second;
    }
    const std::int64_t end = std::max(a, b) + 10;
    std::int64_t zero_exposed = end - a, one_exposed = end - b;
    for (std::int64_t micro = 0; micro < m; ++micro) {
      zero_exposed += sends[micro].end - sends[micro].start;
      one_exposed += receives[micro].end - receives[micro].start;
    }
    zero.step(i, begin, m * first, 0, zero_exposed);
    one.step(i, begin, m * second, 0, one_exposed);
    for (const Call& call : sends)
      zero.call(call.start, call.end, call.end - call.start, 1000, -1, "send");
    zero.call(a, end, end - a, 1000, -1, "recv");
    for (const Call& call : receives)
      one.call(call.start, call.end, call.end - call.start, 1000, -1, "recv");
    one.call(b, end, end - b, 1000, -1, "send");
  }
  return {zero.file(), one.file()};
}

// m = 2, both 100 us: stage 1 waits 100 us for its first micro-batch (receive of 110 us, send of 10) and
// nothing then; stage 0 waits 100 us for the answer, in its only receive, so up to its first one. A step
// is 100 + 10 + 100 + 10 + 100 + 10 = 330 us.
TEST(PipelineWaitsTest, TheBubbleOfEqualStagesIsMeasuredWithoutClocks) {
  const Result<Job> job = build_job(pipeline_job(2, 100, 100));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->times[0].stage.first_ns, 100'000);
  EXPECT_EQ(job->times[1].stage.first_ns, 100'000);
  EXPECT_EQ(job->times[1].stage.between_ns + job->times[1].stage.last_ns, 0);
  EXPECT_EQ(job->times[1].stage.receives, 2u);
  EXPECT_TRUE(job->clocks[1].known && job->clocks[1].by_pairs);
  EXPECT_EQ(job->clocks[1].offset_ns, 7'000'000);
  const JobVerdict verdict = judge_job(*job);
  ASSERT_EQ(verdict.kind, VerdictKind::kPipeline);
  EXPECT_EQ(verdict.late_ns, 100'000);
  EXPECT_EQ(verdict.step_ns, 330'000);
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_EQ(verdict.pipeline.stages, 2u);
  EXPECT_EQ(verdict.pipeline.micro_batches, 2u);  // stage 0 receives once a step
  EXPECT_EQ(verdict.pipeline.longer_ns, 0);
}

// m = 3, stage 1 takes 300 us: stage 0 waits (300 - 100 - 10 + 10 = 190 us at its second and third send)
// and 290 us for the answer.
TEST(PipelineWaitsTest, ALongStageIsNamed) {
  const Result<Job> job = build_job(pipeline_job(3, 100, 300));
  ASSERT_TRUE(job);
  const JobVerdict verdict = judge_job(*job);
  ASSERT_EQ(verdict.kind, VerdictKind::kPipeline);
  EXPECT_EQ(verdict.ranks, std::vector<std::int64_t>{1});
  EXPECT_EQ(verdict.pipeline.longer_ns, 300'000);  // 900 against a mean of 600
}

// With 40 micro-batches a stage waits 100 of 4400 us, which is 2 %: no verdict.
TEST(PipelineWaitsTest, ManyMicroBatchesAreSilent) {
  const Result<Job> job = build_job(pipeline_job(40, 100, 100));
  ASSERT_TRUE(job);
  EXPECT_TRUE(measure_pipeline(*job));
  const JobVerdict verdict = judge_job(*job);
  EXPECT_EQ(verdict.kind, VerdictKind::kUnknown);
  EXPECT_NE(verdict.reason.find("too small for one"), std::string::npos);
}

TEST(PipelineWaitsTest, AJobWithoutReceivesHasNoPipeline) {
  DrawnRank zero(0, 2), one(1, 2);
  for (std::int64_t i = 0; i < 4; ++i) {
    zero.step(i, i * 1000, 600, 0, 400).call(i * 1000 + 600, i * 1000 + 1000, 400);
    one.step(i, i * 1000, 840, 0, 160).call(i * 1000 + 840, i * 1000 + 1000, 160);
  }
  EXPECT_FALSE(measure_pipeline(*build_job({zero.file(), one.file()})));
}

}  // namespace
}  // namespace lanescope::ranks

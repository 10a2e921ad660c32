// When the GPU source leaves CUPTI, and what a recording waits for at its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "fake_gpu.h"
#include "gpu_source_fixture.h"
#include "lanescope/base/json_value.h"
#include "lanescope/codec/record_options.h"
#include "lanescope/record/thread_writer.h"

namespace {
using namespace lanescope;
using namespace lanescope::fake_gpu;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(GpuSourceTest, DetachingLeavesNothingAndTheNextWindowAttachesAnew) {
  auto recorder = open(LANESCOPE_RECORD_DETACH);
  for (std::uint32_t window = 0; window < 3; ++window) {
    ASSERT_TRUE(recorder->start());
    fake_gpu_launch("in", window);
    recorder->stop();
    EXPECT_EQ(fake_gpu_stats().finalized, window + 1);
    EXPECT_EQ(fake_gpu_stats().subscribers, 0u);
    fake_gpu_launch("between", 100 + window);
  }
  EXPECT_THAT(recorder->notes(), IsEmpty());
  const Activities found = read(recorder->spool_path());
  EXPECT_EQ(found.count(ActivityKind::kKernel), 3u);
  EXPECT_EQ(found.count(ActivityKind::kApiCall), 3u);
  EXPECT_EQ(fake_gpu_stats().clock_registrations, 3u);
  EXPECT_EQ(fake_gpu_stats().buffers_out, 0u);
}

TEST_F(GpuSourceTest, DetachingIsNotForcedUponAnotherProfiler) {
  fake_gpu_refuse_subscriber(39);
  auto recorder = open(LANESCOPE_RECORD_DETACH);
  ASSERT_TRUE(recorder->start());
  fake_gpu_launch("in", 1);
  recorder->stop();
  EXPECT_EQ(fake_gpu_stats().finalized, 0u);
  recorder->close();
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("CUPTI stays in the process")));
}

// What a profile asks for that leaves the choice to the recorder.
TEST_F(GpuSourceTest, ItLeavesUnaskedWhereThatWasTested) {
  fake_gpu_set_version(130000);
  auto recorder = empty_window(LANESCOPE_RECORD_DETACH_WHERE_TESTED);
  EXPECT_EQ(fake_gpu_stats().finalized, 1u);
  EXPECT_EQ(fake_gpu_stats().subscribers, 0u);
  recorder->close();
  EXPECT_THAT(recorder->notes(), IsEmpty());
  EXPECT_THAT(read(recorder->spool_path()).metadata("lanescope_cupti"),
              HasSubstr("\"detached\": true"));
}

TEST_F(GpuSourceTest, ItStaysWhereLeavingWasNotTestedAndSaysNothing) {
  auto recorder = empty_window(LANESCOPE_RECORD_DETACH_WHERE_TESTED);
  EXPECT_EQ(fake_gpu_stats().finalized, 0u);
  recorder->close();
  EXPECT_THAT(recorder->notes(), IsEmpty());
  EXPECT_THAT(read(recorder->spool_path()).metadata("lanescope_cupti"),
              HasSubstr("\"detached\": false"));
}

TEST_F(GpuSourceTest, ItStaysUnaskedBesideAnotherProfilerAndSaysNothing) {
  fake_gpu_set_version(130000);
  fake_gpu_refuse_subscriber(39);
  auto recorder = empty_window(LANESCOPE_RECORD_DETACH_WHERE_TESTED);
  EXPECT_EQ(fake_gpu_stats().finalized, 0u);
  recorder->close();
  EXPECT_THAT(recorder->notes(), IsEmpty());
}

TEST_F(GpuSourceTest, ItStaysWhereCuptiRefusesToLeaveAndSaysSo) {
  fake_gpu_refuse_to_leave(1);
  auto recorder = empty_window(LANESCOPE_RECORD_DETACH);
  EXPECT_EQ(fake_gpu_stats().subscribers, 0u);
  recorder->close();
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("asked to leave: it refused")));
}

TEST_F(GpuSourceTest, ARecordingEndsWhenItsLastWorkIsDone) {
  auto recorder = window_of(100, LANESCOPE_RECORD_DETACH);
  EXPECT_EQ(read(recorder->spool_path()).count(ActivityKind::kKernel), 1u);
  EXPECT_EQ(fake_gpu_stats().finalized, 1u);
  recorder->close();
  EXPECT_THAT(recorder->notes(), IsEmpty());
}

// Longer than the timeout with another profiler.
TEST_F(GpuSourceTest, WorkThatTakesSecondsIsWaitedFor) {
  auto recorder = window_of(4000);
  EXPECT_EQ(read(recorder->spool_path()).count(ActivityKind::kKernel), 1u);
  recorder->close();
  EXPECT_THAT(recorder->notes(), IsEmpty());
}

TEST_F(GpuSourceTest, WorkThatDoesNotEndIsMissingAndSaid) {
  fake_gpu_refuse_subscriber(39);  // waits less
  auto recorder = window_of(3'600'000, LANESCOPE_RECORD_DETACH);
  EXPECT_EQ(fake_gpu_stats().finalized, 0u);
  recorder->close();
  EXPECT_THAT(recorder->notes(),
              Contains(HasSubstr("1 buffer(s) of GPU records did not come back from CUPTI")));
  const Activities found = read(recorder->spool_path());
  EXPECT_EQ(found.count(ActivityKind::kKernel), 0u);
  EXPECT_THAT(found.metadata("lanescope_cupti"), HasSubstr("\"missing_buffers\": 1"));

  // It is done by now, and its buffer comes back in a later recording, which is whole.
  auto next = window_of(0);
  next->close();
  EXPECT_THAT(next->notes(), IsEmpty());
  const Activities later = read(next->spool_path());
  EXPECT_EQ(later.count(ActivityKind::kKernel), 2u);
  EXPECT_THAT(later.metadata("lanescope_cupti"), HasSubstr("\"missing_buffers\": 0"));
}

TEST_F(GpuSourceTest, ABufferThatAnotherProfilerTookIsSaidOnce) {
  fake_gpu_refuse_subscriber(39);
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  fake_gpu_launch("taken", 1);
  ASSERT_NE(fake_gpu_lose_buffer(), nullptr);
  recorder->stop();
  recorder->close();
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("another profiler of this process took them")));
  auto next = window_of(100);
  next->close();
  EXPECT_THAT(next->notes(), IsEmpty());
  EXPECT_EQ(read(next->spool_path()).count(ActivityKind::kKernel), 1u);
}

TEST_F(GpuSourceTest, ABufferOfAnotherProfilerIsLeftAlone) {
  std::vector<std::uint8_t> foreign(4096, 0x5a);
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  fake_gpu_launch("in", 1);
  fake_gpu_give_back(foreign.data(), foreign.size());
  fake_gpu_be_busy(100);
  fake_gpu_launch("long", 2);
  recorder->stop();
  EXPECT_EQ(foreign, std::vector<std::uint8_t>(4096, 0x5a));
  EXPECT_EQ(read(recorder->spool_path()).count(ActivityKind::kKernel), 2u);
  recorder->close();
  EXPECT_THAT(recorder->notes(), IsEmpty());
}

TEST_F(GpuSourceTest, NothingIsWaitedForWhenCudaIsGone) {
  auto recorder = open(LANESCOPE_RECORD_DETACH);
  ASSERT_TRUE(recorder->start());
  fake_gpu_be_busy(3'600'000);
  fake_gpu_launch("endless", 1);
  fake_cuda_refuse_to_count(4);  // CUDA_ERROR_DEINITIALIZED
  recorder->stop();
  EXPECT_EQ(fake_gpu_stats().finalized, 0u);
  recorder->close();
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("or CUDA had ended")));
}

// Its buffer has room: what is launched later lands there, too.
TEST_F(GpuSourceTest, AHungGpuIsSaidInTheNextRecordingToo) {
  for (int window = 0; window < 2; ++window) {
    auto recorder = window_of(3'600'000, LANESCOPE_RECORD_DETACH);
    EXPECT_EQ(fake_gpu_stats().finalized, 0u);
    recorder->close();
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("1 buffer(s) of GPU records did not")));
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("CUPTI stays in the process")));
  }
}

TEST_F(GpuSourceTest, AFlushThatFailsIsTriedAgain) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  fake_gpu_launch("in", 1);
  fake_gpu_refuse_to_flush(1);
  std::thread mends([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    fake_gpu_refuse_to_flush(0);
  });
  recorder->stop();
  mends.join();
  EXPECT_EQ(read(recorder->spool_path()).count(ActivityKind::kKernel), 1u);
  ASSERT_TRUE(recorder->start());
  fake_gpu_launch("in", 2);
  fake_gpu_refuse_to_flush(1);
  recorder->stop();
  recorder->close();
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("did not come back")));
}

// The recorder's thread notices, while another thread launches all the time.
TEST_F(GpuSourceTest, ItLeavesWhenTheBudgetIsUsedUpAndTheProgramGoesOn) {
  fake_gpu_set_version(130000);
  record::RecorderOptions wanted;
  wanted.budget_ratio = 0.01;
  const auto recorder = open(std::move(wanted));
  ASSERT_TRUE(recorder->start());
  std::atomic<bool> end{false};
  std::atomic<std::uint32_t> launches{0};
  std::thread program([&] {
    std::uint64_t last = record::ticks();
    while (!end) {
      fake_gpu_launch("loop", ++launches);
      auto& cost = record::thread_writer()->cost.ticks[kLanescopeGpuCalls];
      cost.store(cost.load() + (record::ticks() - last) / 2);
      last = record::ticks();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_TRUE(wait_until([] { return fake_gpu_stats().finalized == 1; }));
  EXPECT_FALSE(record::is_recording());
  const std::uint32_t before = launches;
  EXPECT_TRUE(wait_until([&] { return launches > before + 20; }));
  recorder->stop();
  EXPECT_EQ(fake_gpu_stats().finalized, 1u);
  EXPECT_EQ(fake_gpu_stats().subscribers, 0u);
  EXPECT_EQ(fake_gpu_stats().buffers_out, 0u);
  end = true;
  program.join();
  recorder->close();
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("nothing is recorded: recording the GPU")));
  const Activities found = read(recorder->spool_path());
  EXPECT_GT(found.count(ActivityKind::kKernel), 0u);
  EXPECT_LT(found.count(ActivityKind::kKernel), launches);
  EXPECT_THAT(found.metadata("lanescope_cupti"), HasSubstr("\"detached\": true"));
}

// A program that launches all the time, under a budget of 10 %. As long as CUPTI is there, its calls
// are said to take all of the time: a part of the budget of 1 s (100 ms) is spent in about 0.15 s.
TEST_F(GpuSourceTest, WithABudgetTheGpuComesWhenItIsPaidForAndLeavesWhenThatIsSpent) {
  fake_gpu_set_version(130000);
  const auto recorder = open_in_parts(0.1);
  ASSERT_TRUE(recorder->start());
  EXPECT_EQ(fake_gpu_stats().kinds_on, 0u);  // nothing before it is paid for
  EXPECT_EQ(fake_gpu_stats().subscribers, 0u);
  std::atomic<bool> end{false};
  std::atomic<std::uint32_t> launches{0};
  std::thread program([&] {
    std::uint64_t last = record::ticks();
    while (!end) {
      fake_gpu_launch("loop", ++launches);
      auto& cost = record::thread_writer()->cost.ticks[kLanescopeGpuCalls];
      const std::uint64_t now = record::ticks();
      if (fake_gpu_stats().kinds_on != 0) cost.store(cost.load() + now - last);
      last = now;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (std::uint32_t part = 1; part <= 2; ++part) {
    EXPECT_TRUE(wait_until([&] { return fake_gpu_stats().finalized == part; })) << part;
    EXPECT_EQ(fake_gpu_stats().kinds_on, 0u);
    EXPECT_EQ(fake_gpu_stats().subscribers, 0u);
    EXPECT_FALSE(record::is_recording());
  }
  end = true;
  program.join();
  recorder->stop();
  recorder->close();
  EXPECT_EQ(fake_gpu_stats().buffers_out, 0u);
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("paid for 2 parts with the GPU")));
  const std::string line = recorder->notes().back();
  const std::size_t from = line.find("from ");
  ASSERT_NE(from, std::string::npos) << line;
  const double from_s = std::atof(line.c_str() + from + 5);
  EXPECT_GT(from_s, 1) << line;  // 145 ms at 10 % of the time
  EXPECT_LT(from_s, 300) << line;
  const Activities found = read(recorder->spool_path());
  ASSERT_EQ(found.index.windows.size(), 3u);
  EXPECT_FALSE(found.index.windows[0].options & LANESCOPE_RECORD_GPU_PART);
  std::uint64_t inside = 0;
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_TRUE(found.index.windows[i].options & LANESCOPE_RECORD_GPU_PART);
    EXPECT_GT(found.index.windows[i].stop, found.index.windows[i].start);
  }
  for (const spool::Record& record : found.records)
    if (spool::activity_kind(record) == ActivityKind::kKernel) ++inside;
  EXPECT_GT(inside, 0u);
  EXPECT_LT(inside, launches);
  EXPECT_THAT(found.metadata("lanescope_gpu_parts"), HasSubstr("\"parts\": [{\"from_ns\": "));
  const auto cost = parse_json(found.metadata("lanescope_cost"));
  ASSERT_TRUE(cost);
  EXPECT_LE(cost->find("share_ratio")->number, 0.101);
}

TEST_F(GpuSourceTest, ARecordingThatEndsBeforeTheGpuIsPaidForSaysSo) {
  const auto recorder = open_in_parts(0.01);
  recorder->prepare();
  ASSERT_TRUE(recorder->start());
  fake_gpu_launch("early", 1);
  recorder->stop();
  recorder->close();
  EXPECT_THAT(recorder->notes(),
              Contains(HasSubstr("the GPU was not recorded: the budget of 1 %")));
  EXPECT_EQ(fake_gpu_stats().clock_registrations, 0u);
  const Activities found = read(recorder->spool_path());
  EXPECT_EQ(found.index.windows.size(), 1u);
  EXPECT_EQ(found.count(ActivityKind::kKernel), 0u);
  EXPECT_THAT(found.metadata("lanescope_gpu_parts"), HasSubstr("\"parts\": []"));
}

// CUPTI cannot be used: the window goes on, and operators have all of the budget.
TEST_F(GpuSourceTest, WithABudgetAGpuThatCannotBeRecordedCutsNoWindow) {
  fake_gpu_refuse_subscriber(1);
  const auto recorder = open_in_parts(0.5);
  ASSERT_TRUE(recorder->start());
  EXPECT_TRUE(wait_until([&] { return !recorder->notes().empty(); }));
  EXPECT_TRUE(record::is_recording());
  recorder->stop();
  recorder->close();
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("CUPTI cannot be used")));
  EXPECT_EQ(read(recorder->spool_path()).index.windows.size(), 1u);
}

}  // namespace

// The GPU source with a fake libcupti: what is switched on and off, which records reach the
// spool, what is dropped and said. Each test runs in a separate process, because a process has
// only one source.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fake_gpu.h"
#include "gpu_source_fixture.h"
#include "lanescope/record/range.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record_cupti/buffer_sizing.h"
#include "lanescope/testing/sanitizers.h"

namespace {
using namespace lanescope;
using namespace lanescope::fake_gpu;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(GpuSourceTest, LaunchesBecomeRecordsWithWhatCuptiSaid) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  EXPECT_THAT(recorder->notes(), IsEmpty());
  fake_gpu_launch("_Z6kernelv", 11);
  fake_gpu_copy_and_wait(4096, 12);
  recorder->stop();
  const Activities found = read(recorder->spool_path());
  ASSERT_EQ(found.count(ActivityKind::kKernel), 1u);
  // The runtime's three; the driver's call inside the launch is the launch.
  ASSERT_EQ(found.count(ActivityKind::kApiCall), 3u);
  ASSERT_EQ(found.count(ActivityKind::kMemcpy), 1u);
  ASSERT_EQ(found.count(ActivityKind::kSync), 1u);
  const auto call =
      spool::activity_as<spool::ApiCallRecord>(found.records[found.first(ActivityKind::kApiCall)]);
  EXPECT_EQ(call.domain, static_cast<std::uint8_t>(spool::ApiDomain::kRuntime));
  EXPECT_EQ(call.cbid, 211u);
  EXPECT_EQ(call.correlation, 11u);
  EXPECT_EQ(call.os_tid, static_cast<std::uint32_t>(gettid()));
  const std::size_t at = found.first(ActivityKind::kKernel);
  const auto kernel = spool::activity_as<spool::KernelRecord>(found.records[at]);
  const auto more = spool::activity_as<spool::KernelMoreRecord>(found.records[at + 1]);
  EXPECT_EQ(found.index.texts[kernel.name], "_Z6kernelv");
  EXPECT_EQ(kernel.correlation, 11u);
  EXPECT_EQ(kernel.stream, 7u);
  EXPECT_EQ(kernel.registers_per_thread, 40);
  EXPECT_EQ(kernel.block_z, 1);
  EXPECT_GE(kernel.begin_tsc, call.begin_tsc);  // both from the recorder's clock
  EXPECT_EQ(more.kind, static_cast<std::uint8_t>(ActivityKind::kContinued));
  EXPECT_EQ(more.grid_x, 100'000u);
  EXPECT_EQ(more.block_x, 256);
  EXPECT_EQ(more.block_y, 2);
  EXPECT_EQ(more.dynamic_shared_bytes, 213'000u);
  const auto copy =
      spool::activity_as<spool::MemcpyRecord>(found.records[found.first(ActivityKind::kMemcpy)]);
  EXPECT_EQ(copy.bytes, 4096u);
  EXPECT_EQ(copy.copy_kind, 1);
  EXPECT_EQ(copy.source_memory, 2);
  EXPECT_EQ(copy.is_async, 1);
  EXPECT_EQ(copy.more, 0);
  const auto sync =
      spool::activity_as<spool::SyncRecord>(found.records[found.first(ActivityKind::kSync)]);
  EXPECT_EQ(sync.sync_kind, 3);
  EXPECT_EQ(sync.stream, 7u);
  EXPECT_EQ(sync.correlation, 13u);
  EXPECT_EQ(sync.event_id, spool::kNoEvent);
}

// Each wait names the record call of its event, by a number that only these two have.
TEST_F(GpuSourceTest, WaitsKnowWhatTheyWaitFor) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  int a = 0, b = 0;
  fake_gpu_record_and_wait(&a, 100);
  fake_gpu_record_and_wait(&b, 200);
  fake_gpu_record_and_wait(&a, 300);  // recorded again: another record call of the same event
  recorder->stop();
  const Activities found = read(recorder->spool_path());
  std::vector<spool::CudaEventRecord> records;
  std::vector<spool::SyncRecord> waits;
  for (const spool::Record& record : found.records) {
    if (spool::activity_kind(record) == ActivityKind::kCudaEvent)
      records.push_back(spool::activity_as<spool::CudaEventRecord>(record));
    if (spool::activity_kind(record) == ActivityKind::kSync)
      waits.push_back(spool::activity_as<spool::SyncRecord>(record));
  }
  ASSERT_EQ(records.size(), 3u);
  ASSERT_EQ(waits.size(), 6u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(records[i].correlation, 100 * (i + 1));
    EXPECT_EQ(records[i].stream, 7u);
    EXPECT_EQ(waits[2 * i].sync_kind, 2);  // a stream for the event
    EXPECT_EQ(waits[2 * i].stream, 7u);
    EXPECT_EQ(waits[2 * i + 1].sync_kind, 1);  // the host for the event
    EXPECT_EQ(waits[2 * i + 1].stream, spool::kNoStream);
    for (const std::size_t wait : {2 * i, 2 * i + 1}) {
      EXPECT_EQ(waits[wait].event_sync_id, records[i].event_sync_id);
      EXPECT_EQ(waits[wait].event_id, records[i].event_id);
    }
  }
  EXPECT_EQ(records[0].event_id, records[2].event_id);
  EXPECT_NE(records[0].event_id, records[1].event_id);
  EXPECT_NE(records[0].event_sync_id, records[2].event_sync_id);
  EXPECT_EQ(found.count(ActivityKind::kApiCall), 9u);
}

TEST_F(GpuSourceTest, ARecordingInsideAnotherHasItsKernels) {
  auto outer = open();
  ASSERT_TRUE(outer->start());
  auto inner = open();
  ASSERT_TRUE(inner->start());
  fake_gpu_launch("in", 1);
  inner->stop();
  EXPECT_EQ(read(inner->spool_path()).count(ActivityKind::kKernel), 1u);
  inner->close();
  outer->stop();
}

TEST_F(GpuSourceTest, WhatCuptiAllocatesIsNotForbiddenByACapture) {
  auto recorder = open();
  for (int window = 0; window < 2; ++window) {
    ASSERT_TRUE(recorder->start());
    EXPECT_EQ(fake_cuda_capture_mode(), 0);
    recorder->stop();
    EXPECT_EQ(fake_cuda_capture_mode(), 0);
  }
  EXPECT_EQ(fake_gpu_stats().strict_allocations, 0u);
}

TEST_F(GpuSourceTest, CallsThatExplainNothingAreRecordedOnlyWhenAllAreWanted) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  fake_gpu_quiet_call(1);
  recorder->stop();
  EXPECT_EQ(read(recorder->spool_path()).count(ActivityKind::kApiCall), 0u);
  auto all = open(LANESCOPE_RECORD_ALL_API);
  ASSERT_TRUE(all->start());
  fake_gpu_quiet_call(2);
  all->stop();
  EXPECT_EQ(read(all->spool_path()).count(ActivityKind::kApiCall), 1u);
}

TEST_F(GpuSourceTest, NothingIsOnBetweenWindowsAndTheClockIsRegisteredOnce) {
  auto recorder = open();
  for (std::uint32_t window = 0; window < 3; ++window) {
    ASSERT_TRUE(recorder->start());
    EXPECT_GT(fake_gpu_stats().kinds_on, 0u);
    EXPECT_EQ(fake_gpu_stats().flush_period_ms, 350u);
    fake_gpu_launch("in", window);
    recorder->stop();
    EXPECT_EQ(fake_gpu_stats().kinds_on, 0u);
    EXPECT_EQ(fake_gpu_stats().flush_period_ms, 0u);
    fake_gpu_launch("between", 100 + window);
  }
  const Activities found = read(recorder->spool_path());
  EXPECT_EQ(found.count(ActivityKind::kKernel), 3u);
  for (const std::string& text : found.index.texts) EXPECT_NE(text, "between");
  const FakeGpuStats stats = fake_gpu_stats();
  EXPECT_EQ(stats.clock_registrations, 1u);
  EXPECT_EQ(stats.forced_flushes, 0u);
  EXPECT_EQ(stats.finalized, 0u);
  EXPECT_EQ(stats.subscribers, 0u);
  EXPECT_EQ(stats.buffers_out, 0u);
}

TEST_F(GpuSourceTest, AMillionKernelsUseFewBuffersAndLoseNothing) {
  constexpr std::uint32_t kLaunches = lanescope::testing::kSanitizers ? 200'000 : 1'000'000;
  std::unique_ptr<record::Recorder> recorder;
  // 2 M a second. A machine that starves the recorder's thread of that is given more time.
  for (std::uint32_t burst = 2000; burst > 30; burst /= 4) {
    recorder.reset();
    recorder = open();
    ASSERT_TRUE(recorder->start());
    for (std::uint32_t i = 0; i < kLaunches; ++i) {
      fake_gpu_launch(i % 3 == 0 ? "a" : "b", i);
      if (i % burst == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    recorder->stop();
    if (recorder->stats().dropped_records == 0) break;
  }
  const Activities found = read(recorder->spool_path());
  EXPECT_EQ(found.count(ActivityKind::kKernel), kLaunches);
  EXPECT_EQ(found.count(ActivityKind::kContinued), kLaunches);
  EXPECT_EQ(found.count(ActivityKind::kApiCall), kLaunches);
  EXPECT_EQ(fake_gpu_stats().dirty_buffers, 0u);
  EXPECT_EQ(recorder->stats().dropped_records, 0u);
  EXPECT_THAT(found.metadata("lanescope_cupti"), HasSubstr("\"dropped_records\": 0"));
  // A record and its continuation stay in one chunk.
  for (std::size_t i = 0; i + 1 < found.records.size(); ++i)
    if (spool::activity_kind(found.records[i]) == ActivityKind::kKernel) {
      ASSERT_EQ(spool::activity_kind(found.records[i + 1]), ActivityKind::kContinued);
    }
}

TEST_F(GpuSourceTest, ManyThreadsLaunchWhileWindowsOpenAndClose) {
  auto recorder = open();
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  std::atomic<std::uint32_t> correlation{1};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!done.load()) {
        for (int launch = 0; launch < 50; ++launch) fake_gpu_launch("k", correlation.fetch_add(1));
        std::this_thread::sleep_for(std::chrono::microseconds(200));  // the fake has one lock
      }
    });
  for (int window = 0; window < 5; ++window) {
    ASSERT_TRUE(recorder->start());
    // One launch is wholly in the window: four of these may not be done.
    const std::uint32_t before = correlation;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(wait_until([&] { return correlation > before + 4; }));
    recorder->stop();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  const Activities found = read(recorder->spool_path());
  EXPECT_GE(found.count(ActivityKind::kKernel), 5u);
  std::set<std::uint32_t> seen;
  for (const spool::Record& record : found.records)
    if (spool::activity_kind(record) == ActivityKind::kKernel) {
      EXPECT_TRUE(seen.insert(spool::activity_as<spool::KernelRecord>(record).correlation).second);
    }
}

TEST_F(GpuSourceTest, DevicesAndVersionsAreInEveryTrace) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  recorder->stop();
  const Activities found = read(recorder->spool_path());
  const std::string devices = found.metadata("deviceProperties");
  EXPECT_THAT(devices, HasSubstr("\"name\": \"Fake \\\"GPU\\\"\""));
  EXPECT_THAT(devices, HasSubstr("\"numSms\": 132"));
  // 1,000,000 kHz * 2 transfers * 4096 bits / 8 = 1,024,000,000,000 bytes a second
  EXPECT_THAT(devices, HasSubstr("\"memoryBandwidthBytesPerSecond\": 1024000000000"));
  EXPECT_THAT(devices, HasSubstr("\"mig\": false"));
  EXPECT_EQ(found.metadata("cuda_driver_version"), "13000");
  EXPECT_EQ(found.metadata("cuda_runtime_version"), "");  // the program has loaded none
}

TEST_F(GpuSourceTest, TheVersionOfALoadedCudaRuntimeIsInTheTrace) {
  void* const runtime = dlopen(LANESCOPE_FAKE_CUDART, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(runtime) << dlerror();
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  recorder->stop();
  EXPECT_EQ(read(recorder->spool_path()).metadata("cuda_runtime_version"), "12090");
  dlclose(runtime);
}

TEST_F(GpuSourceTest, ARefusedSourceIsOneLineAndTheCpuPartGoesOn) {
  fake_gpu_refuse_kernels(35);  // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  { const RecordFunction range("still recorded"); }
  recorder->stop();
  ASSERT_EQ(recorder->notes().size(), 1u);
  EXPECT_THAT(recorder->notes()[0], HasSubstr("cupti: CUPTI records no kernels here"));
  const Activities found = read(recorder->spool_path());
  EXPECT_EQ(found.records.size(), 0u);
  EXPECT_EQ(found.index.record_chunks.size(), 1u);
}

TEST_F(GpuSourceTest, AnIdleSubscriberOfThisProcessIsNoReasonToRefuse) {
  fake_gpu_refuse_subscriber(39);  // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  EXPECT_THAT(recorder->notes(), IsEmpty());
  fake_gpu_launch("k", 1);
  fake_gpu_quiet_call(2);
  recorder->stop();
  // Calls come as CUPTI's own activity records then.
  const Activities found = read(recorder->spool_path());
  ASSERT_EQ(found.count(ActivityKind::kApiCall), 1u);
  EXPECT_EQ(found.count(ActivityKind::kKernel), 1u);
  const auto call =
      spool::activity_as<spool::ApiCallRecord>(found.records[found.first(ActivityKind::kApiCall)]);
  EXPECT_EQ(call.os_tid, static_cast<std::uint32_t>(gettid()));
}

TEST_F(GpuSourceTest, NsightSystemsIsNamed) {
  fake_gpu_refuse_subscriber(39);
  setenv("NSYS_PROFILING_SESSION_ID", "4711", 1);
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  ASSERT_EQ(recorder->notes().size(), 1u);
  EXPECT_THAT(recorder->notes()[0], HasSubstr("Nsight Systems (session 4711)"));
  recorder->stop();
}

TEST_F(GpuSourceTest, AForkedChildSaysWhyItRecordsNoGpu) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  fake_gpu_launch("parent", 1);
  const pid_t child = fork();
  if (child == 0) {
    record::RecorderOptions wanted;
    wanted.directory = folder_.string();
    wanted.activities = LANESCOPE_ACTIVITY_CPU | LANESCOPE_ACTIVITY_CUDA;
    auto own = record::Recorder::open(wanted);
    const bool started = own && (*own)->start();
    const auto notes = started ? (*own)->notes() : std::vector<std::string>();
    const bool said = notes.size() == 1 && notes[0].find("forked child") != std::string::npos;
    _exit(said ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  recorder->stop();
  EXPECT_EQ(read(recorder->spool_path()).count(ActivityKind::kKernel), 1u);
}

TEST_F(GpuSourceTest, AFullFileDropsAndCounts) {
  record::RecorderOptions wanted;
  wanted.directory = folder_.string();
  wanted.activities = LANESCOPE_ACTIVITY_CUDA;
  wanted.max_bytes = 8u << 20;
  auto recorder = record::Recorder::open(wanted);
  ASSERT_TRUE(recorder);
  ASSERT_TRUE((*recorder)->start());
  constexpr std::uint32_t kLaunches = 100'000;  // 14 MB of records
  for (std::uint32_t i = 0; i < kLaunches; ++i) fake_gpu_launch("k", i);
  (*recorder)->stop();
  const Activities found = read((*recorder)->spool_path());
  const std::uint64_t dropped = (*recorder)->stats().dropped_records;
  EXPECT_GT(dropped, 0u);
  // A launch is three records: the call, the kernel and its continuation.
  EXPECT_EQ(found.records.size() + dropped, 3u * kLaunches);
  EXPECT_EQ(found.stats[ImportIssue::kDroppedRecords].count, dropped);
}

// A dump during recording has the newest kernels, which CUPTI still kept.
TEST_F(GpuSourceTest, ADumpHoldsWhatCuptiHadNotGivenYet) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  fake_gpu_launch("just now", 1);
  const std::string path = (folder_ / "dump.lspool").string();
  ASSERT_TRUE(recorder->dump(path));
  const Activities found = read(path);
  EXPECT_EQ(found.count(ActivityKind::kKernel), 1u);
  EXPECT_EQ(found.count(ActivityKind::kApiCall), 1u);
  recorder->stop();
  EXPECT_EQ(read(recorder->spool_path()).count(ActivityKind::kKernel), 1u);
}

// CUPTI keeps a buffer that is not full while work is under way: what a killed program loses must
// be little also when it launches slowly.
TEST_F(GpuSourceTest, SlowLaunchesReachTheFileWithoutBeingAskedFor) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  for (std::uint32_t i = 0; i < 50; ++i) {
    fake_gpu_launch("k", i);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::size_t found = 0;
  EXPECT_TRUE(wait_until([&] {
    found = read(recorder->spool_path()).count(ActivityKind::kKernel);
    return found >= 15;
  }));
  EXPECT_LT(found, 50u) << "the last buffer is not full";
  recorder->stop();
  EXPECT_EQ(read(recorder->spool_path()).count(ActivityKind::kKernel), 50u);
}

// 1 MB a second is 100 KB in 100 ms: 64 KiB is the power of two below it.
TEST(BufferSizingTest, FollowsWhatTheGpuHasDoneAndNotWhatIsQueued) {
  using record_cupti::BufferSizing;
  constexpr std::size_t kKiB = 1024;
  constexpr std::uint64_t kMs = 1'000'000;
  BufferSizing sizing;
  std::uint64_t now = 7, seen = 0;
  const auto after = [&](std::uint64_t ns, std::size_t outstanding = 0) {
    return sizing.next(now += ns, 128 * 1024, outstanding, seen);
  };
  for (int i = 0; i < 100; ++i) EXPECT_EQ(after(100), 2 * kKiB) << "queued, none of it done";
  EXPECT_EQ(after(100, 128), 2 * kKiB);
  EXPECT_EQ(after(100, 129), 128 * kKiB) << "more than can be queued";
  for (int i = 0; i < 10; ++i) sizing.completed(100'000);
  EXPECT_EQ(after(999 * kMs - 12'000), 2 * kKiB) << "the second is not over";
  EXPECT_EQ(after(1 * kMs + 2'000), 64 * kKiB);
  sizing.completed(8'000'000);
  EXPECT_EQ(after(500 * kMs), 64 * kKiB);
  EXPECT_EQ(after(500 * kMs), 128 * kKiB) << "at most what it is allowed";
  sizing.completed(60'000);
  EXPECT_EQ(after(1000 * kMs), 4 * kKiB);
  EXPECT_EQ(after(5000 * kMs), 2 * kKiB) << "at least the smallest";
  EXPECT_EQ(sizing.next(now, kKiB, 0, seen), kKiB);
  // Two threads fill a buffer each: 1 MB a second is 50 KB for each of them.
  std::uint64_t other = 0;
  EXPECT_EQ(sizing.next(now += 1, 128 * kKiB, 0, other), 2 * kKiB);
  for (int i = 0; i < 10; ++i) sizing.completed(100'000);
  EXPECT_EQ(after(1000 * kMs), 32 * kKiB);
}

// NVTX looks for its library once, at the process's first NVTX call: before the recording began.
TEST_F(GpuSourceTest, NvtxRangesAreRangesOfTheRecorder) {
  setenv("NVTX_INJECTION64_PATH", LANESCOPE_CUPTI_SOURCE, 1);
  auto recorder = open();
  nvtxRangePushA("pushed before");  // its pop comes inside: no range
  ASSERT_TRUE(recorder->start());
  nvtxRangePop();
  nvtxRangePushA("outer");
  nvtxRangePushW(L"inner");
  nvtxRangePop();
  const nvtxRangeId_t id = nvtxRangeStartA("over threads");
  std::thread([id] { nvtxRangeEnd(id); }).join();
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, "step");
  nvtxDomainRangePushEx(domain, &event);
  nvtxDomainRangePop(domain);
  nvtxMarkA("a mark");
  nvtxRangePop();
  recorder->stop();
  const Bytes bytes(recorder->spool_path());
  ImportStats stats;
  auto index = format::read_spool_index(bytes, true, &stats);
  ASSERT_TRUE(index);
  std::vector<std::byte> buffer(spool::kChunkBytes);
  std::map<std::string, spool::RangeRecord> ranges;
  std::vector<std::string> marks;
  std::size_t ends_elsewhere = 0;
  for (const auto& chunk : index->record_chunks)
    for (const spool::Record& record : format::read_records(bytes, chunk, buffer, &stats)) {
      const spool::RecordKind kind = record.head.kind;
      if (kind == spool::RecordKind::kRange) ranges[index->texts[record.range.name]] = record.range;
      if (kind == spool::RecordKind::kInstant) marks.push_back(index->texts[record.instant.name]);
      ends_elsewhere += kind == spool::RecordKind::kEndByHandle;
    }
  ASSERT_EQ(ranges.size(), 4u);
  EXPECT_EQ(ranges.count("pushed before"), 0u);
  for (const auto& [name, record] : ranges) EXPECT_TRUE(record.flags & spool::kNvtx) << name;
  EXPECT_GE(ranges["inner"].begin_tsc, ranges["outer"].begin_tsc);
  EXPECT_LE(ranges["inner"].end_tsc, ranges["outer"].end_tsc);
  EXPECT_NE(ranges["outer"].end_tsc, 0u);
  EXPECT_GE(ranges["library: step"].begin_tsc, ranges["inner"].end_tsc);
  EXPECT_EQ(ranges["over threads"].end_tsc, 0u);  // ended from another thread
  EXPECT_EQ(ends_elsewhere, 2u);                  // that, and the pop of "pushed before"
  EXPECT_THAT(marks, ::testing::ElementsAre("a mark"));
}

}  // namespace

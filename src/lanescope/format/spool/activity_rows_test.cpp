// Recordings with device activities, read as a trace: rows, joins, windows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "lanescope/codec/op_details.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/activity_words.h"
#include "lanescope/format/spool/drawn_activities_test.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/testing/sanitizers.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using namespace drawn_activities;
using spool::ActivityKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The 4096 x 4096 matrix product of an H200 trace that torch.profiler wrote, but for the occupancy,
// where it says 0.
TEST(ActivityRowsTest, AKernelHasKinetosArgumentsAndOurs) {
  Recording recording;
  recording.sketch.metadata("deviceProperties", kH200);
  recording.annotation("ProfilerStep#12", 2500, 80'000);
  recording.range("aten::addmm", 3000, 9000);
  const std::uint32_t name =
      recording.sketch.text("nvjet_sm90_tst_256x128_64x4_1x2_h_badd_coopA_NNT");
  recording.gpu.call(652, 4000, 5000, 47, 101, spool::ApiDomain::kDriver);
  recording.gpu.kernel(name, 10'000, 12'000, 47, 7, 0,
                       {.grid = 132,
                        .block = 384,
                        .registers = 168,
                        .static_shared = 4,
                        .dynamic_shared = 213'184,
                        .graph = 0,
                        .graph_node = 0,
                        .priority = -1});
  const Trace trace = recording.read();
  const SliceId call = only(trace, CategoryKind::kDriver);
  EXPECT_EQ(trace.name(call), "cuLaunchKernelEx");
  EXPECT_EQ(trace.start_ns(call), ns(4000));
  EXPECT_EQ(trace.dur_ns(call), 2000);
  EXPECT_EQ(trace.text(trace.track(call).name), "thread 101 (worker)");
  EXPECT_EQ(args_text(trace, call), "External id: 2, cbid: 652, correlation: 47");
  const SliceId kernel = only(trace, CategoryKind::kKernel);
  EXPECT_EQ(trace.name(kernel), "nvjet_sm90_tst_256x128_64x4_1x2_h_badd_coopA_NNT");
  EXPECT_EQ(trace.start_ns(kernel), ns(10'000));
  EXPECT_EQ(trace.dur_ns(kernel), 4000);
  EXPECT_EQ(args_text(trace, kernel),
            "External id: 2, queued: 0, device: 0, context: 1, stream: 7, correlation: 47, "
            "registers per thread: 168, shared memory: 213188, blocks per SM: 1.000000, "
            "warps per SM: 12.000000, grid: [132, 1, 1], block: [384, 1, 1], "
            "est. achieved occupancy %: 19, occupancy limit: registers, shared memory, "
            "priority: 4294967295, launch step: 12");
  EXPECT_EQ(trace.slice_args(kernel).integer(ArgKey::kPriority), -1);
  const Track& stream = trace.track(kernel);
  EXPECT_EQ(stream.kind, TrackKind::kStream);
  EXPECT_EQ(stream.device, 0);
  EXPECT_EQ(stream.stream, 7);
  EXPECT_EQ(trace.text(stream.name), "stream 7 ");
  EXPECT_EQ(stream.sort_index, 7);
  const Process& device = trace.process(stream.process);
  EXPECT_EQ(trace.text(device.name), "program");
  EXPECT_EQ(trace.text(device.labels), "GPU 0");
  EXPECT_EQ(device.sort_index, 5'000'000);
  EXPECT_FALSE(trace.import_stats().lost_anything());
  EXPECT_EQ(trace.metadata_json("deviceProperties"), kH200);
}

TEST(ActivityRowsTest, WithoutDevicePropertiesOccupancyIsAbsent) {
  Recording recording;
  recording.gpu.kernel(recording.sketch.text("k"), 3000, 3100, 1);
  const Trace trace = recording.read();
  EXPECT_EQ(
      args_text(trace, only(trace, CategoryKind::kKernel)),
      "queued: 0, device: 0, context: 1, stream: 7, correlation: 1, registers per thread: 32, "
      "shared memory: 0, grid: [132, 1, 1], block: [128, 1, 1]");
  EXPECT_EQ(trace.metadata_json("deviceProperties"), "[]");
}

TEST(ActivityRowsTest, CopiesAndMemsetsReadAsKinetoWritesThem) {
  Recording recording;
  spool::MemcpyRecord copy{};
  copy.begin_tsc = 3000;
  copy.end_tsc = 4000;  // 2000 ns for 4,000,000 bytes: 2000 GB/s
  copy.correlation = 5;
  copy.kind = static_cast<std::uint8_t>(ActivityKind::kMemcpy);
  copy.copy_kind = 1;
  copy.source_memory = 1;
  copy.destination_memory = 3;
  copy.bytes = 4'000'000;
  copy.stream = 9;
  copy.context = 1;
  copy.device = 2;
  recording.gpu.add(copy);
  copy.begin_tsc = 5000;
  copy.end_tsc = 5000;
  copy.copy_kind = 10;
  copy.source_memory = 3;
  copy.more = 1;
  recording.gpu.add(copy);
  spool::TransferMoreRecord more{};
  more.kind = static_cast<std::uint8_t>(ActivityKind::kContinued);
  more.is_peer = 1;
  more.source_device = 2;
  more.destination_device = 3;
  more.source_context = 1;
  more.destination_context = 4;
  recording.gpu.add(more);
  spool::MemsetRecord set{};
  set.begin_tsc = 6000;
  set.end_tsc = 6004;
  set.kind = static_cast<std::uint8_t>(ActivityKind::kMemset);
  set.memory_kind = 3;
  set.bytes = 4;
  set.stream = 9;
  set.context = 1;
  set.device = 2;
  recording.gpu.add(set);
  const Trace trace = recording.read();
  const auto copies = rows(trace, CategoryKind::kGpuMemcpy);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(trace.name(copies[0]), "Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(args_text(trace, copies[0]),
            "device: 2, context: 1, stream: 9, correlation: 5, bytes: 4000000, "
            "memory bandwidth (GB/s): 2000.000000");
  EXPECT_EQ(trace.name(copies[1]), "Memcpy PtoP (Device -> Device)");
  EXPECT_EQ(args_text(trace, copies[1]),
            "device: 2, context: 1, stream: 9, correlation: 5, bytes: 4000000, "
            "memory bandwidth (GB/s): N/A, fromDevice: 2, inDevice: 2, toDevice: 3, "
            "fromContext: 1, inContext: 1, toContext: 4");
  const SliceId memset = only(trace, CategoryKind::kGpuMemset);
  EXPECT_EQ(trace.name(memset), "Memset (Device)");
  EXPECT_EQ(args_text(trace, memset),
            "device: 2, context: 1, stream: 9, correlation: 0, bytes: 4, "
            "memory bandwidth (GB/s): 0.500000");
  for (const Process& process : trace.processes())
    EXPECT_NE(trace.text(process.labels), "GPU 0");  // only devices that did something
}

TEST(ActivityRowsTest, OneGraphLaunchOwnsAllItsKernels) {
  Recording recording;
  recording.range("replay", 3000, 9000);
  const std::uint32_t name = recording.sketch.text("k");
  recording.gpu.call(kGraphLaunch, 4000, 5000, 60);
  for (std::uint64_t i = 0; i < 3; ++i)
    recording.gpu.kernel(name, 6000 + i * 100, 6050 + i * 100, 60, 7, 0,
                         {.grid = 1,
                          .block = 32,
                          .registers = 16,
                          .static_shared = 0,
                          .dynamic_shared = 0,
                          .graph = 5,
                          .graph_node = (5ull << 32) + i,
                          .priority = 0});
  const Trace trace = recording.read();
  const auto kernels = rows(trace, CategoryKind::kKernel);
  ASSERT_EQ(kernels.size(), 3u);
  for (const SliceId kernel : kernels) {
    EXPECT_EQ(trace.slice_args(kernel).integer(ArgKey::kExternalId), 1);
    EXPECT_EQ(trace.slice_args(kernel).integer(ArgKey::kGraphId), 5);
  }
  EXPECT_EQ(trace.slice_args(kernels[2]).integer(ArgKey::kGraphNodeId), (5ll << 32) + 2);
  ASSERT_EQ(trace.flows().size(), 3u);
  for (const Flow& flow : trace.flows()) {
    EXPECT_EQ(flow.from_ns, ns(4000));
    EXPECT_EQ(flow.id_value, 60);
    EXPECT_TRUE(flow.binds_enclosing);
  }
  EXPECT_EQ(issues(trace, ImportIssue::kOrphanFlow), 0u);
}

TEST(ActivityRowsTest, ANameThatIsGivenWinsAndUnknownNumbersSayWhatTheyAre) {
  Recording recording;
  spool::ApiCallRecord call{};
  call.begin_tsc = 3000;
  call.end_tsc = 3100;
  call.kind = static_cast<std::uint8_t>(ActivityKind::kApiCall);
  call.domain = static_cast<std::uint8_t>(spool::ApiDomain::kRuntime);
  call.cbid = 9999;
  call.os_tid = 555;
  call.result = 2;
  recording.gpu.add(call);
  call.begin_tsc = 3200;
  call.end_tsc = 3300;
  call.name_given = 1;
  call.name = recording.sketch.text("cudaBrandNew");
  recording.gpu.add(call);
  const Trace trace = recording.read();
  const auto calls = rows(trace, CategoryKind::kRuntime);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(trace.name(calls[0]), "cuda runtime call #9999");
  EXPECT_EQ(args_text(trace, calls[0]), "cbid: 9999, correlation: 0, result: 2");
  EXPECT_EQ(trace.name(calls[1]), "cudaBrandNew");
  EXPECT_EQ(trace.text(trace.track(calls[0]).name), "thread 555");  // it has no slot
  EXPECT_EQ(trace.track(calls[0]).tid.number, 555);
}

TEST(ActivityRowsTest, ADriverCallInsideARuntimeCallOfItsNumberIsDrawnOnce) {
  Recording recording;
  const auto driver = spool::ApiDomain::kDriver;
  recording.gpu.call(kDriverLaunchKernel, 3010, 3090, 8, 101, driver);  // inside, same number
  recording.gpu.call(kLaunchKernel, 3000, 3100, 8);
  recording.gpu.call(kLaunchKernel, 4000, 4100, 9);
  recording.gpu.call(kDriverLaunchKernel, 4010, 4090, 10, 101, driver);  // another number
  recording.gpu.call(kDriverLaunchKernel, 4010, 4090, 9, 102, driver);   // another thread
  recording.gpu.kernel(recording.sketch.text("k"), 5000, 5100, 8);
  const Trace trace = recording.read();
  EXPECT_EQ(rows(trace, CategoryKind::kRuntime).size(), 2u);
  EXPECT_EQ(rows(trace, CategoryKind::kDriver).size(), 2u);
  ASSERT_EQ(trace.flows().size(), 1u);
  EXPECT_EQ(trace.flows()[0].from_ns, ns(3000));
}

TEST(ActivityRowsTest, KernelsOfWarmUpAreMarkedAndTheirCallsAreNoRows) {
  Recording recording;
  const std::uint32_t name = recording.sketch.text("k");
  recording.gpu.call(kLaunchKernel, 1500, 1600, 20);  // known, before the window
  recording.gpu.kernel(name, 2100, 2200, 20);
  recording.gpu.kernel(name, 2300, 2400, 19);  // no call; older than the window's first
  recording.gpu.call(kLaunchKernel, 3000, 3100, 21);
  recording.gpu.kernel(name, 3200, 3300, 21);
  recording.gpu.kernel(name, 3400, 3500, 23);  // no call; newer: its call was lost
  recording.gpu.kernel(name, 3600, 3700, 0);   // nothing is known
  recording.gpu.kernel(name, 1700, 1800, 18);  // neither begins nor was launched in the window
  recording.gpu.call(kLaunchKernel, 89'000, 89'100, 24);
  recording.gpu.kernel(name, 95'000, 95'100, 24);  // launched in the window, ran after it
  recording.gpu.kernel(name, 96'000, 96'100, 25);
  const Trace trace = recording.read();
  const auto kernels = rows(trace, CategoryKind::kKernel);
  std::vector<std::int64_t> starts;
  std::vector<bool> marked;
  for (const SliceId id : kernels) {
    starts.push_back((trace.start_ns(id) - kDay) / 2 + 1000);
    marked.push_back(trace.slice_args(id).has(ArgKey::kLaunchedBeforeWindow));
  }
  EXPECT_THAT(starts, ElementsAre(2100, 2300, 3200, 3400, 3600, 95'000));
  EXPECT_THAT(marked, ElementsAre(true, true, false, false, false, false));
  EXPECT_EQ(rows(trace, CategoryKind::kRuntime).size(), 2u);
  EXPECT_EQ(trace.flows().size(), 2u);
  EXPECT_EQ(issues(trace, ImportIssue::kLaunchedBeforeWindow), 2u);
  EXPECT_EQ(issues(trace, ImportIssue::kLaunchUnknown), 2u);
  EXPECT_EQ(issues(trace, ImportIssue::kOutOfWindow), 2u);
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST(ActivityRowsTest, AnIdOlderThanTheWindowIsToldAlsoWhereIdsBeginAnew) {
  Recording recording;
  const std::uint32_t name = recording.sketch.text("k");
  recording.gpu.call(kLaunchKernel, 3000, 3100, 2);  // ids have wrapped
  recording.gpu.kernel(name, 2300, 2400, 0xfffffff0);
  recording.gpu.kernel(name, 3200, 3300, 2);
  const Trace trace = recording.read();
  EXPECT_EQ(issues(trace, ImportIssue::kLaunchedBeforeWindow), 1u);
  EXPECT_EQ(issues(trace, ImportIssue::kLaunchUnknown), 0u);
}

TEST(ActivityRowsTest, OfAChosenCycleTheWorkOfOthersIsNoNews) {
  Recording recording;
  recording.sketch.window(100'000, 200'000, 1);
  const std::uint32_t name = recording.sketch.text("k");
  recording.gpu.call(kLaunchKernel, 3000, 3100, 1);
  recording.gpu.kernel(name, 3200, 3300, 1);
  recording.gpu.call(kLaunchKernel, 89'900, 89'950, 2);
  recording.gpu.kernel(name, 100'100, 100'200, 2);  // launched in cycle 0, ran in cycle 1
  const Trace second = recording.read({.session = 1, .cycle = 1, .metadata = {}});
  const SliceId kernel = only(second, CategoryKind::kKernel);
  EXPECT_TRUE(second.slice_args(kernel).has(ArgKey::kLaunchedBeforeWindow));
  EXPECT_EQ(issues(second, ImportIssue::kOutOfWindow), 0u);
  const Trace first = recording.read({.session = 1, .cycle = 0, .metadata = {}});
  EXPECT_EQ(rows(first, CategoryKind::kKernel).size(), 2u);
  EXPECT_EQ(issues(first, ImportIssue::kLaunchedBeforeWindow), 0u);
}

// forward: step [2500, 60000) > block [3000, 9000) > mm; backward on thread 102 without any
// annotation around it.
TEST(ActivityRowsTest, EveryAnnotationAroundALaunchHasItsPlaceOnTheStream) {
  Recording recording;
  recording.annotation("ProfilerStep#3", 2500, 60'000);
  recording.annotation("block", 3000, 9000);
  RangeRecord& forward = recording.range("aten::mm", 3500, 8000);
  forward.flags = spool::kHasSequence;
  forward.sequence_number = 11;
  RangeRecord& backward = recording.range("MmBackward0", 20'000, 30'000, spool::kBackwardScope, 1);
  backward.flags = spool::kHasSequence | spool::kHasForwardThread;
  backward.sequence_number = 11;
  backward.forward_thread = 1;
  const std::uint32_t name = recording.sketch.text("k");
  recording.gpu.call(kLaunchKernel, 4000, 4100, 1);
  recording.gpu.kernel(name, 5000, 5500, 1);
  recording.gpu.kernel(name, 6000, 6400, 1, 8);
  recording.gpu.call(kLaunchKernel, 10'000, 10'100, 2);  // in the step alone
  recording.gpu.kernel(name, 11'000, 11'500, 2);
  recording.gpu.call(kLaunchKernel, 21'000, 21'100, 3, 102);
  recording.gpu.kernel(name, 22'000, 22'500, 3);
  const Trace trace = recording.read();
  std::vector<std::string> found;
  for (const SliceId id : rows(trace, CategoryKind::kGpuUserAnnotation))
    found.push_back(
        std::string(trace.name(id)) + " stream " + std::to_string(*trace.track(id).stream) + " " +
        std::to_string((trace.start_ns(id) + 1 - kDay) / 2 + 1000) + "-" +
        std::to_string((trace.end_ns(id) - 1 - kDay) / 2 + 1000) + " " + args_text(trace, id));
  EXPECT_THAT(found, ::testing::UnorderedElementsAre(
                         "ProfilerStep#3 stream 7 5000-11500 External id: 1, launches: own",
                         "ProfilerStep#3 stream 8 6000-6400 External id: 1, launches: nested",
                         "ProfilerStep#3 stream 7 22000-22500 External id: 1, launches: backward",
                         "block stream 7 5000-5500 External id: 2, launches: own",
                         "block stream 8 6000-6400 External id: 2, launches: own",
                         "block stream 7 22000-22500 External id: 2, launches: backward"));
  const auto kernels = rows(trace, CategoryKind::kKernel);
  for (const SliceId id : kernels)  // the backward thread works for the step too
    EXPECT_EQ(trace.slice_args(id).integer(ArgKey::kLaunchStep), 3);
}

TEST(ActivityRowsTest, ACollectivesKernelSaysWhatItsOperatorSays) {
  Recording recording;
  char buffer[256];
  codec::OpDetailsWriter details(buffer, sizeof buffer);
  details.keywords();
  details.key("Collective name");
  details.string("allreduce");
  details.key("In msg nelems");
  details.integer(1024);
  RangeRecord& op = recording.range("record_param_comms", 3000, 9000);
  op.detail = recording.sketch.text(details.bytes());
  recording.range("nccl:all_reduce", 3500, 8000);
  recording.gpu.call(kLaunchKernel, 4000, 4100, 1);
  recording.gpu.kernel(recording.sketch.text("ncclDevKernel_AllReduce_Sum_f32_RING_LL()"), 5000,
                       5500, 1);
  recording.gpu.call(kLaunchKernel, 4200, 4300, 2);
  recording.gpu.kernel(recording.sketch.text("other"), 5600, 5700, 2);
  const Trace trace = recording.read();
  const auto kernels = rows(trace, CategoryKind::kKernel);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_THAT(
      args_text(trace, kernels[0]),
      ::testing::EndsWith("block: [128, 1, 1], Collective name: allreduce, In msg nelems: 1024"));
  EXPECT_FALSE(trace.slice_args(kernels[1]).has(ArgKey::kCollectiveName));
}

TEST(ActivityRowsTest, WaitsNameTheEventRecordTheyWaitedFor) {
  Recording recording;
  recording.range("wait", 5900, 6200);
  recording.gpu.call(kEventRecord, 3000, 3100, 30);
  spool::CudaEventRecord event{};
  event.kind = static_cast<std::uint8_t>(ActivityKind::kCudaEvent);
  event.correlation = 30;
  event.device = 1;
  event.stream = 13;
  event.context = 2;
  event.event_id = 77;
  event.event_sync_id = 500;
  recording.gpu.add(event);  // no times: joins, but is no row
  recording.gpu.call(kStreamWaitEvent, 6000, 6100, 31);
  spool::SyncRecord sync{};
  sync.begin_tsc = 6010;
  sync.end_tsc = 6020;
  sync.kind = static_cast<std::uint8_t>(ActivityKind::kSync);
  sync.sync_kind = 2;
  sync.correlation = 31;
  sync.stream = 7;
  sync.context = 2;
  sync.event_id = 77;
  sync.event_sync_id = 500;
  recording.gpu.add(sync);
  sync.begin_tsc = 7000;
  sync.end_tsc = 7500;
  sync.sync_kind = 4;
  sync.correlation = 0;
  sync.stream = spool::kNoStream;
  sync.context = 9;  // on no device that is known
  recording.gpu.add(sync);
  event.begin_tsc = event.end_tsc = 8000;
  event.correlation = 40;
  recording.gpu.add(event);
  const Trace trace = recording.read();
  const auto syncs = rows(trace, CategoryKind::kCudaSync);
  ASSERT_EQ(syncs.size(), 2u);
  EXPECT_EQ(trace.name(syncs[0]), "Stream Wait Event");
  EXPECT_EQ(trace.track(syncs[0]).device, 1);
  EXPECT_EQ(args_text(trace, syncs[0]),
            "External id: 1, cuda_sync_kind: Stream Wait Event, wait_on_stream: 13, "
            "wait_on_cuda_event_record_corr_id: 30, wait_on_cuda_event_id: 77, stream: 7, "
            "correlation: 31, device: 1, context: 2");
  EXPECT_EQ(trace.name(syncs[1]), "Context Sync");
  EXPECT_EQ(trace.track(syncs[1]).tid.number, -1);
  EXPECT_EQ(trace.slice_args(syncs[1]).integer(ArgKey::kDevice), -1);
  const SliceId drawn = only(trace, CategoryKind::kCudaEvent);
  EXPECT_EQ(trace.name(drawn), "cudaEvent");
  EXPECT_EQ(args_text(trace, drawn),
            "event_id: 77, stream: 13, correlation: 40, device: 1, context: 2");
  EXPECT_EQ(issues(trace, ImportIssue::kUnmeasuredTime), 0u);
}

TEST(ActivityRowsTest, OverheadHasItsOwnPlace) {
  Recording recording;
  spool::OverheadRecord overhead{};
  overhead.begin_tsc = 3000;
  overhead.end_tsc = 3500;
  overhead.kind = static_cast<std::uint8_t>(ActivityKind::kOverhead);
  overhead.object_kind = 2;
  overhead.overhead_kind = 7u << 16;
  overhead.os_tid = 101;
  recording.gpu.add(overhead);
  overhead.begin_tsc = 95'000;  // after the window
  overhead.end_tsc = 95'100;
  recording.gpu.add(overhead);
  const Trace trace = recording.read();
  const SliceId row = only(trace, CategoryKind::kOverhead);
  EXPECT_EQ(trace.name(row), "Activity Buffer Request");
  EXPECT_EQ(args_text(trace, row), "thread: 101");
  EXPECT_EQ(trace.process(trace.track(row).process).pid.number, -1);
  EXPECT_EQ(trace.track(row).tid.number, 0);
}

TEST(ActivityRowsTest, AWholeGraphIsOneRow) {
  Recording recording;
  recording.gpu.call(kGraphLaunch, 3000, 3100, 6);
  spool::KernelRecord graph{};
  graph.begin_tsc = 4000;
  graph.end_tsc = 5000;
  graph.kind = static_cast<std::uint8_t>(ActivityKind::kGraphTrace);
  graph.correlation = 6;
  graph.stream = 7;
  graph.context = 1;
  graph.graph_id = 3;
  recording.gpu.add(graph);
  const Trace trace = recording.read();
  const SliceId row = only(trace, CategoryKind::kKernel);
  EXPECT_EQ(trace.name(row), "CUDA graph 3");
  EXPECT_EQ(args_text(trace, row), "device: 0, context: 1, stream: 7, correlation: 6, graph id: 3");
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST(ActivityRowsTest, NamesAreDemangledAndLongOnesStay) {
  EXPECT_EQ(kernel_name("_ZN2at6native4fillEi"), "at::native::fill(int)");
  EXPECT_EQ(kernel_name("Pi"), "Pi");
  EXPECT_EQ(kernel_name("_Z"), "_Z");
  const std::string longer = "_Z3000" + std::string(3000, 'a') + "v";
  EXPECT_EQ(kernel_name(longer), longer);
  EXPECT_EQ(memcpy_name(200, 9, 1), "Memcpy <unknown> (Unrecognized -> Pageable)");
  EXPECT_STREQ(overhead_name(0x20000), "Instrumentation");
  EXPECT_STREQ(overhead_name(0x20001), "Unrecognized");
  EXPECT_STREQ(sync_name(9), "<unknown>");
}

}  // namespace
}  // namespace lanescope::format

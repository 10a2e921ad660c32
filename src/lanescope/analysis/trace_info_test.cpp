#include "lanescope/analysis/trace_info.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

TEST(TraceInfoTest, ReadsDevicesJobAndOptionsFromTheMetadata) {
  const TraceInfo info = compute_trace_info(
      std::move(
          Sketch()
              .metadata("schemaVersion", "1")
              .metadata("deviceProperties",
                        R"([{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320,
                                                      "computeMajor": 9, "numSms": 132}, 7, {"name": 3}])")
              .metadata("distributedInfo", R"({"backend": "nccl", "rank": 2, "world_size": 4})")
              .metadata("record_shapes", "1")
              .metadata("cuda_runtime_version", "13000")
              .op("a", 1500, 10))
          .trace());
  EXPECT_EQ(info.producer, "torch.profiler (Kineto)");
  ASSERT_EQ(info.devices.size(), 2u);  // the 7 is no device
  EXPECT_EQ(info.devices[0].name, "NVIDIA H200");
  EXPECT_EQ(info.devices[0].multiprocessor_count, 132);
  EXPECT_FALSE(info.devices[1].id);
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.world_size, 4);
  EXPECT_EQ(info.recorded_with, (std::vector<std::string>{"record_shapes"}));
  EXPECT_EQ(info.versions.size(), 1u);
}

TEST(TraceInfoTest, NamesOtherProgramsThatWriteChromeTraces) {
  const auto with = [](const char* other) {
    return other_program_of(std::move(Sketch()
                                          .slice("Session", "model_run", 0, 10)
                                          .slice(other, "MatMul_0_kernel_time", 1, 5))
                                .trace());
  };
  EXPECT_EQ(with("Node"), "ONNX Runtime");
  EXPECT_EQ(with("Edge"), "");
  EXPECT_EQ(other_program_of(std::move(Sketch().metadata("viztracer_metadata", "{}")).trace()),
            "VizTracer");
  EXPECT_EQ(other_program_of(std::move(Sketch().op("aten::mm", 0, 10)).trace()), "");
  EXPECT_EQ(
      other_program_of(
          std::move(Sketch().metadata("viztracer_metadata", "{}").op("aten::mm", 0, 10)).trace()),
      "");
}

TEST(TraceInfoTest, DevicesThatAreKnownHaveTheirMakersPeaksAndTheFilesOwnNumbersWin) {
  const TraceInfo info = compute_trace_info(
      std::move(Sketch().metadata(
                    "deviceProperties",
                    R"([{"name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0},
                        {"name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0,
                         "lanescope": {"l2CacheBytes": 41943040,
                                       "memoryBandwidthBytesPerSecond": 2039000000001}},
                        {"name": "Some GPU", "computeMajor": 8, "computeMinor": 0}])"))
          .trace());
  ASSERT_EQ(info.devices.size(), 3u);
  EXPECT_EQ(info.devices[0].memory_bandwidth_bytes_per_s, 2'039'000'000'000);
  EXPECT_DOUBLE_EQ(*info.devices[0].peak.bf16, 312e12);
  EXPECT_NE(info.devices[0].data_sheet, "");
  EXPECT_EQ(info.devices[1].memory_bandwidth_bytes_per_s, 2'039'000'000'001);
  EXPECT_EQ(info.devices[1].l2_bytes, 41'943'040);
  EXPECT_EQ(info.devices[2].data_sheet, "");
  EXPECT_FALSE(info.devices[2].peak.bf16);
  EXPECT_FALSE(info.devices[2].memory_bandwidth_bytes_per_s);
}

TEST(TraceInfoTest, TheReaderOfAnotherFormatSaysWhoWroteTheFile) {
  const TraceInfo info = compute_trace_info(
      std::move(Sketch().metadata("recordedBy", "\"Nsight Systems\"").runtime("cuInit", 0, 10))
          .trace());
  EXPECT_EQ(info.producer, "Nsight Systems");
  EXPECT_EQ(info.producer_evidence, std::vector<std::string>{"the format of the file"});
}

// main [0, 100) calls step [10, 60), which calls leaf [20, 30); another thread is in work [50, 90).
TEST(TraceInfoTest, PythonFramesInsideOthersCountOnceInTheirTotal) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 40).op("aten::copy_", 10, 20);
  const auto frame = [&](std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                         std::int64_t tid) {
    TraceBuilder& builder = sketch.builder();
    Scalar process, thread;
    process.number = 100;
    thread.number = tid;
    builder.add_slice(builder.thread_track(process, thread), builder.category("python_function"),
                      builder.intern(name), start_ns, dur_ns, kNone<ArgsId>);
  };
  frame("main", 0, 100, 100);
  frame("step", 10, 50, 100);
  frame("leaf", 20, 10, 100);
  frame("work", 50, 40, 101);
  const TraceInfo info = compute_trace_info(std::move(sketch).trace());
  ASSERT_EQ(info.categories.size(), 2u);
  EXPECT_EQ(info.categories[0].text, "python_function");
  EXPECT_EQ(info.categories[0].slice_count, 4u);
  EXPECT_EQ(info.categories[0].total_ns, 140) << "main and work";
  EXPECT_EQ(info.categories[1].total_ns, 60) << "operators are added up";
}

TEST(TraceInfoTest, CountsStepsCategoriesAndBusyTime) {
  const TraceInfo info =
      compute_trace_info(std::move(Sketch()
                                       .annotation("ProfilerStep#4", 0, 100)
                                       .annotation("ProfilerStep#5", 100, 300)
                                       .op("a", 10, 50)
                                       .runtime("cudaLaunchKernel", 20, 5, {.correlation = 1})
                                       .kernel("k", 50, 20, {.correlation = 1})
                                       .kernel("k", 60, 20, {.correlation = 2})
                                       .gpu_annotation("ProfilerStep#4", 40, 200))
                             .trace());
  EXPECT_EQ(info.steps.count, 2u);
  EXPECT_EQ(info.steps.first, 4);
  EXPECT_EQ(info.steps.last, 5);
  EXPECT_EQ(info.steps.median_ns, 200);  // between 100 and 300
  EXPECT_EQ(info.window_ns, 400);
  EXPECT_FALSE(info.window_is_recorded);
  ASSERT_EQ(info.streams.size(), 1u);
  EXPECT_EQ(info.streams[0].busy_ns,
            30);  // [50, 80), the annotation's bar apart
  EXPECT_EQ(info.threads[0].busy_ns, 400);
  EXPECT_EQ(info.device_work_count, 2u);
  EXPECT_EQ(info.launched_count, 1u);
  EXPECT_EQ(info.producer, "torch.profiler (Kineto)");  // by its categories
  EXPECT_FALSE(info.rank);
}

TEST(TraceInfoTest, CategoriesNameOtherPrograms) {
  const auto producer = [](const char* category) {
    return compute_trace_info(std::move(Sketch().slice(category, "f", 0, 5)).trace()).producer;
  };
  EXPECT_EQ(producer("GROUP_API"), "NCCL (its profiler plugin)");
  EXPECT_EQ(producer("dynamo_timed"), "torch.compile (its own log, TORCH_TRACE)");
}

TEST(TraceInfoTest, AFileWithoutSignsIsUnknown) {
  EXPECT_EQ(compute_trace_info(std::move(Sketch().slice("js", "f", 0, 5)).trace()).producer,
            "unknown");
  EXPECT_EQ(
      compute_trace_info(std::move(Sketch().metadata("lanescope_notes", "[]")).trace()).producer,
      "lanescope");
}

}  // namespace
}  // namespace lanescope::analysis

// Rules about the communication of one rank: each on a drawn program in which it must speak and on
// a near miss in which it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::ProgramSketch;
using testing::Sketch;
using Work = ProgramSketch::Work;

constexpr std::string_view kNccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";

Work all_reduce(std::int64_t us, std::int64_t elements, std::int64_t stream = 7) {
  return {.name = kNccl,
          .us = us,
          .stream = stream,
          .collective = elements < 0 ? "" : "allreduce",
          .elements = elements};
}

// Steps of 10 gemms of 50 us and `calls` all-reduces of 10 us on the same stream.
ProgramSketch with_messages(int calls, std::int64_t elements) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) program.launch({.us = 50});
    for (int k = 0; k < calls; ++k) program.launch(all_reduce(10, elements));
    program.end();
  }
  return program;
}

TEST(SmallCollectivesTest, SpeaksOfManySmallMessages) {
  const auto finding = find_by_rule(with_messages(30, 1000).trace(), "small-collectives");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 90);
  EXPECT_EQ(finding->at_stake_ns, 300'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(2).integer, 4000);
}

TEST(SmallCollectivesTest, IsQuietWhenTheyAreLargeOrFewAndNotCheckedWithoutSizes) {
  EXPECT_FALSE(find_by_rule(with_messages(30, 1 << 18).trace(), "small-collectives"));
  EXPECT_FALSE(find_by_rule(with_messages(20, 1000).trace(), "small-collectives"));
  EXPECT_EQ(state_of_rule(with_messages(30, -1).trace(), "small-collectives"),
            RuleRun::State::kNotChecked);
  EXPECT_FALSE(find_by_rule(with_messages(0, 1).trace(), "small-collectives"));
}

// 200 us of compute and 80 us of communication, one after the other, a step.
TEST(SerialCommunicationTest, SpeaksOfOneStream) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50}).launch(all_reduce(20, 1'000'000));
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "serial-communication");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.values[2].text, HasSubstr("the stream that computes"));
  EXPECT_EQ(finding->at_stake_ns, 80'000);
}

TEST(SerialCommunicationTest, SpeaksOfWaitsBetweenTwoStreams) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 3; ++k)
      program.launch({.us = 50}).wait("wait").launch(all_reduce(40, 1'000'000, 20)).wait("wait");
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "serial-communication");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.values[2].text, HasSubstr("stream of its own"));
}

TEST(SerialCommunicationTest, IsQuietWhenTheyOverlap) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50}).launch(all_reduce(40, 1'000'000, 20));
    program.end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "serial-communication"));
}

// `nested_us`: what the first call begins in itself.
Trace with_first(std::int64_t first_us, std::int64_t second_us, std::int64_t nested_us = 0) {
  Sketch sketch;
  if (nested_us != 0)
    sketch.slice("cpu_op", "record_param_comms", 1000, nested_us * 1000,
                 {.collective = "allreduce", .elements = 0});
  for (int i = 0; i < 8; ++i)
    sketch.slice("cpu_op", "record_param_comms", i * 100'000'000,
                 (i == 0   ? first_us
                  : i == 1 ? second_us
                           : 60) *
                     1000,
                 {.collective = "allreduce", .elements = 10});
  return sketch.trace();
}

TEST(FirstCollectiveTest, SpeaksWhenOnlyTheFirstCallIsLong) {
  const auto finding = find_by_rule(with_first(40'000, 60), "first-collective");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_EQ(finding->at_stake_ns, 39'940'000);
}

// As NCCL has it: the communicator is made by a coalesced call inside the first one.
TEST(FirstCollectiveTest, SpeaksThoughACallInsideTheFirstIsAsLong) {
  const auto finding = find_by_rule(with_first(40'000, 60, 39'000), "first-collective");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 39'940'000);
  EXPECT_EQ(finding->sample_count, 8u);
}

TEST(FirstCollectiveTest, IsQuietWhenAnotherIsLongTooOrItIsShort) {
  EXPECT_FALSE(find_by_rule(with_first(40'000, 20'000), "first-collective"));
  EXPECT_FALSE(find_by_rule(with_first(4'000, 60), "first-collective"));
}

// Gemms of one shape: three of 100 us alone, then four of `us` inside an all-reduce, in each step.
Trace beside(std::int64_t us, bool shapes = true) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = i * 2'000'000;
    sketch.annotation("ProfilerStep#" + std::to_string(i), at, 2'000'000);
    std::int64_t gpu = at + 100'000;
    for (int k = 0; k < 7; ++k) {
      const std::int64_t cpu = at + k * 10'000, length = (k < 3 ? 100 : us) * 1000;
      sketch.op("aten::mm", cpu, 9'000, {.input_dims = shapes ? "[[64, 64], [64, 64]]" : ""});
      sketch.runtime("cudaLaunchKernel", cpu + 2'000, 4'000, {.correlation = ++id});
      if (k == 3) {
        sketch.runtime("cudaLaunchKernelExC", cpu + 9'000, 500, {.correlation = ++id});
        sketch.kernel(kNccl, gpu, 4 * us * 1000,
                      {.stream = 20, .correlation = id, .collective = "allreduce", .elements = 1});
        --id;
      }
      sketch.kernel("gemm", gpu, length, {.correlation = id});
      gpu += length;
      if (k == 3) ++id;
    }
  }
  return sketch.trace();
}

// Four calls a step take 150 us in place of 100: 200 us more.
TEST(SlowedComputeTest, SpeaksWhenKernelsAreSlowerBesideCommunication) {
  const auto finding = find_by_rule(beside(150), "slowed-compute");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->verdict.values[0].real, 1.5, 1e-9);
  EXPECT_EQ(finding->at_stake_ns, 200'000);
  EXPECT_EQ(finding->verdict.values[2].integer, 600'000);  // hidden: all of it
}

TEST(SlowedComputeTest, IsQuietWhenTheyAreNotAndNotCheckedWithoutShapes) {
  EXPECT_FALSE(find_by_rule(beside(110), "slowed-compute"));
  EXPECT_EQ(state_of_rule(beside(150, false), "slowed-compute"), RuleRun::State::kNotChecked);
}

// Three steps of `passes` backward passes. Each pass runs two nodes and sums two buckets; the
// optimizer steps `optimizers` times.
ProgramSketch with_passes(int passes, int optimizers, bool syncs_each, std::int64_t stream = 7) {
  ProgramSketch program;
  std::int64_t sequence = 0;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int pass = 0; pass < passes; ++pass) {
      sequence += 10;
      for (int node = 0; node < 2; ++node) {
        program.sketch().op("MmBackward0", ProgramSketch::at(program.cpu_us()), 12'000,
                            {.sequence = sequence - node, .fwd_thread = 1});
        program.launch({.us = 20}).pass(5);
        if (syncs_each || pass + 1 == passes)
          program.launch(all_reduce(10, 1000 * (node + 1), stream));
      }
    }
    for (int k = 0; k < optimizers; ++k)
      program.begin("Optimizer.step#SGD.step").launch({.us = 5, .op = "aten::add_"}).end();
    program.end();
  }
  return program;
}

// 4 passes x 2 all-reduces of 10 us, of which 6 a step are not needed.
TEST(MicroStepSyncTest, SpeaksWhenEachPassSums) {
  const auto finding = find_by_rule(with_passes(4, 1, true).trace(), "micro-step-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 4);
  EXPECT_EQ(finding->verdict.values[1].integer, 6);
  EXPECT_EQ(finding->verdict.values[2].integer, 8);
  EXPECT_EQ(finding->at_stake_ns, 60'000);
}

// Hidden all-reduces cost as well; by how much one trace cannot tell, at most their length.
TEST(MicroStepSyncTest, HiddenOnesAreAtStakeWhole) {
  const auto finding = find_by_rule(with_passes(4, 1, true, 20).trace(), "micro-step-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 60'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 60'000);
  EXPECT_LT(finding->arithmetic.at(0).values.at(1).integer, 60'000);
}

TEST(MicroStepSyncTest, IsQuietWithNoSyncOnePassOrTwoOptimizers) {
  EXPECT_FALSE(find_by_rule(with_passes(4, 1, false).trace(), "micro-step-sync"));
  EXPECT_FALSE(find_by_rule(with_passes(1, 1, true).trace(), "micro-step-sync"));
  EXPECT_FALSE(find_by_rule(with_passes(2, 2, true).trace(), "micro-step-sync"));  // two models
}

Trace with_keys(bool named, bool repeated) {
  Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    sketch.runtime("cudaLaunchKernel", i * 100'000, 4'000, {.correlation = i + 1});
    sketch.kernel(kNccl, i * 100'000 + 6'000, 10'000,
                  {.correlation = i + 1,
                   .collective = named ? "allreduce" : "",
                   .elements = 5,
                   .collective_seq = repeated ? i / 2 : i});
  }
  return sketch.trace();
}

TEST(CollectiveKeysTest, SpeaksOfNamelessKernelsAndRepeatedNumbers) {
  EXPECT_EQ(find_by_rule(with_keys(false, false), "collective-keys")->verdict.values[0].integer,
            10);
  EXPECT_EQ(find_by_rule(with_keys(true, true), "collective-keys")->verdict.values[0].integer, 5);
}

TEST(CollectiveKeysTest, IsQuietWhenEachCallCanBeTold) {
  EXPECT_FALSE(find_by_rule(with_keys(true, false), "collective-keys"));
}

TEST(CollectivesOfRealTracesTest, Shared) {
  namespace fs = std::filesystem;
  const char* folder = std::getenv("LANESCOPE_SHARED_TRACES");
  const fs::path root =
      folder ? fs::path(folder) : fs::path(LANESCOPE_SOURCE_DIR) / ".." / "shared" / "traces";
  if (!fs::exists(root)) GTEST_SKIP() << "LOUD: no shared traces at " << root;
  for (const char* path : {"ddp4/healthy/rank0.json.gz", "ddp4/straggler/rank3.json.gz",
                           "public/hta_a100_nccl_args_rank0of2.json.gz"}) {
    const auto trace = format::read_trace(root / path);
    ASSERT_TRUE(trace) << path;
    for (const char* rule : {"small-collectives", "serial-communication", "first-collective",
                             "micro-step-sync", "collective-keys"})
      EXPECT_FALSE(find_by_rule(*trace, rule)) << path << " " << rule;
    EXPECT_EQ(find_by_rule(*trace, "slowed-compute").has_value(),
              std::string_view(path).starts_with("ddp4"))
        << path;
  }
}

}  // namespace
}  // namespace lanescope::explain

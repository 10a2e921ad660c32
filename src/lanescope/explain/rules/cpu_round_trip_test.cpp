#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct Trip {
  std::int64_t down_bytes = 1'000'000, up_bytes = 1'000'000;  // 0: no such copy
  bool kernel_between = false;
  bool optimizer_between = false;
};

// A kernel of 50 us; a copy of 20 us to the CPU, which waits; 30 us on the CPU; a copy of 20 us back;
// a kernel of 50 us.
ProgramSketch drawn_trip(const Trip& trip) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().kernel("gemm", 50);
    if (trip.down_bytes > 0)
      program.begin_op("aten::to")
          .copy(20, trip.down_bytes, "Memcpy DtoH (Device -> Pageable)")
          .end();
    program.wait("aten::numpy");
    if (trip.optimizer_between) program.begin("Optimizer.step#Adam.step");
    program.cpu_op("aten::clamp", 30);
    if (trip.optimizer_between) program.end();
    if (trip.kernel_between) program.kernel("gemm", 1);
    if (trip.up_bytes > 0)
      program.begin_op("aten::to")
          .copy(20, trip.up_bytes, "Memcpy HtoD (Pageable -> Device)")
          .end();
    program.kernel("gemm", 50).wait().end();
  }
  return program;
}

// On the GPU: the copy down ends 20 us after the kernel. The wait returns 2 us later and its operator
// ends after 1 us more, the CPU computes for 30 us, the copy's call begins 1 us later and the
// copy 2 us after that: 20 + 3 + 30 + 1 + 2 + 20 = 76 us without a kernel, of which 40 copy.
TEST(CpuRoundTripTest, CountsFromTheCopyDownToTheNextKernel) {
  const auto finding = find_by_rule(drawn_trip({}).trace(), "cpu-round-trip");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->verdict.pattern.find("once per step"), std::string::npos);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 2'000'000);  // both ways
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, us(40));
  EXPECT_EQ(finding->at_stake_ns, us(76));
}

// Weights of 1 MB with a bias of 64 bytes: two tensors. A value of 64 bytes before them is none.
TEST(CpuRoundTripTest, CountsSmallTensorsAmongLargeOnes) {
  const auto trips = [](bool has_bias) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.kernel("gemm", 50).begin_op("aten::to");
      if (!has_bias) p.copy(2, 64, "Memcpy DtoH (Device -> Pageable)");
      p.copy(20, 1'000'000, "Memcpy DtoH (Device -> Pageable)");
      if (has_bias) p.copy(2, 64, "Memcpy DtoH (Device -> Pageable)");
      p.end().wait("aten::numpy").begin_op("aten::copy_");
      if (!has_bias) p.copy(2, 64, "Memcpy HtoD (Pageable -> Device)");
      p.copy(20, 1'000'000, "Memcpy HtoD (Pageable -> Device)");
      if (has_bias) p.copy(2, 64, "Memcpy HtoD (Pageable -> Device)");
      p.end().kernel("gemm", 50).wait();
    });
    const auto finding = find_by_rule(program.trace(), "cpu-round-trip");
    return finding ? finding->sample_count : 0;
  };
  EXPECT_EQ(trips(true), 2 * trips(false));
  EXPECT_GT(trips(false), 0u);
}

TEST(CpuRoundTripTest, KnowsAnOptimizerOnTheCpu) {
  const auto brief = [](bool optimizer_between) {
    const auto finding = find_by_rule(drawn_trip({.optimizer_between = optimizer_between}).trace(),
                                      "cpu-round-trip");
    return finding ? finding->brief.pattern : std::string();
  };
  EXPECT_EQ(brief(true).find("The optimizer works on the CPU"), 0u);
  EXPECT_EQ(brief(false).find("Data goes from the GPU"), 0u);
}

TEST(CpuRoundTripTest, KnowsATensorThatChangedItsType) {
  EXPECT_TRUE(find_by_rule(drawn_trip({.up_bytes = 2'000'000}).trace(), "cpu-round-trip"));
}

TEST(CpuRoundTripTest, IsQuietWithoutTheWayBack) {
  EXPECT_FALSE(find_by_rule(drawn_trip({.up_bytes = 0}).trace(), "cpu-round-trip"));
  EXPECT_FALSE(find_by_rule(drawn_trip({.up_bytes = 300'000}).trace(), "cpu-round-trip"));
  EXPECT_FALSE(find_by_rule(drawn_trip({.kernel_between = true}).trace(), "cpu-round-trip"));
}

TEST(CpuRoundTripTest, IsQuietAboutInputsAndValues) {
  EXPECT_FALSE(find_by_rule(drawn_trip({.down_bytes = 0}).trace(), "cpu-round-trip"));
  EXPECT_FALSE(
      find_by_rule(drawn_trip({.down_bytes = 8, .up_bytes = 8}).trace(), "cpu-round-trip"));
}

// Scores go down, then the next batch comes up: inputs of 4 MB and labels, which have the size of the scores.
TEST(CpuRoundTripTest, TakesNoBatchForAResultThatComesBack) {
  const auto is_told = [](std::string_view down, std::string_view up, std::int64_t inputs_bytes) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.kernel("gemm", 50).begin_op("aten::to").copy(20, 1'000'000, down).end();
      p.wait("aten::numpy").pass(300).begin_op("aten::to");
      if (inputs_bytes > 0) p.copy(40, inputs_bytes, up);
      p.copy(20, 1'000'000, up).end().kernel("gemm", 50).wait();
    });
    return find_by_rule(program.trace(), "cpu-round-trip").has_value();
  };
  constexpr const char* kToPageable = "Memcpy DtoH (Device -> Pageable)";
  constexpr const char* kFromPinned = "Memcpy HtoD (Pinned -> Device)";
  EXPECT_FALSE(is_told(kToPageable, kFromPinned, 4'000'000));
  // Near misses: nothing else comes up; from or to the same kind of memory.
  EXPECT_TRUE(is_told(kToPageable, kFromPinned, 0));
  EXPECT_TRUE(is_told(kToPageable, "Memcpy HtoD (Pageable -> Device)", 4'000'000));
  EXPECT_TRUE(is_told("Memcpy DtoH (Device -> Pinned)", kFromPinned, 4'000'000));
}

// Gloo takes tensors of the CPU: the remedy is another backend.
TEST(CpuRoundTripTest, KnowsATripForACollective) {
  const auto action = [](const char* between) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step)
      program.step()
          .kernel("gemm", 50)
          .begin_op("aten::to")
          .copy(20, 1'000'000, "Memcpy DtoH (Device -> Pageable)")
          .end()
          .wait("aten::detach")
          .cpu_op(between, 30)
          .begin_op("aten::to")
          .copy(20, 1'000'000, "Memcpy HtoD (Pageable -> Device)")
          .end()
          .kernel("gemm", 50)
          .wait()
          .end();
    return find_by_rule(program.trace(), "cpu-round-trip")->action.pattern;
  };
  EXPECT_NE(action("c10d::allreduce_").find("nccl"), std::string::npos);
  EXPECT_EQ(action("aten::clamp").find("nccl"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain

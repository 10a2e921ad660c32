#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_copies_test.h"

namespace lanescope::explain {
namespace {

TEST(PageableCopyTest, SpeaksOfPageableMemory) {
  const auto finding = find_by_rule(
      with_copy("Memcpy HtoD (Pageable -> Device)", 7, "aten::copy_").trace(), "pageable-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);  // a step
}

// Found by changing bytes of real traces: steps, work, and no launch at all.
TEST(PageableCopyTest, NeedsNoLaunches) {
  testing::Sketch sketch;
  for (int i = 0; i < 3; ++i) {
    sketch.annotation("ProfilerStep#" + std::to_string(i), i * 100'000, 99'000);
    sketch.slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", i * 100'000 + 10'000, 20'000);
  }
  const auto finding = find_by_rule(sketch.trace(), "pageable-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 20'000);
}

// Copies of 20 us, one after the other, in every step.
TEST(PageableCopyTest, IsQuietAboutValuesUnlessTheyComeWithData) {
  using Copies = std::vector<std::pair<std::string_view, std::int64_t>>;
  const auto copies_found = [](const Copies& copies) {
    testing::Sketch sketch;
    for (int i = 0; i < 3; ++i) {
      std::int64_t at = i * 200'000;
      sketch.annotation("ProfilerStep#" + std::to_string(i), at, 199'000);
      for (const auto& [name, bytes] : copies)
        sketch.slice("gpu_memcpy", name, at += 20'000, 20'000, {.bytes = bytes});
    }
    const auto finding = find_by_rule(sketch.trace(), "pageable-copy");
    return finding ? finding->verdict.values.at(0).integer : 0;  // a step
  };
  constexpr std::string_view kUpload = "Memcpy HtoD (Pageable -> Device)";
  constexpr std::string_view kDownload = "Memcpy DtoH (Device -> Pageable)";
  EXPECT_EQ(copies_found({{kDownload, 8}}), 0);
  EXPECT_EQ(copies_found({{kUpload, 8}}), 0);
  EXPECT_EQ(copies_found({{kDownload, 8192}}), 1);
  EXPECT_EQ(copies_found({{kUpload, 8192}, {kUpload, 8}, {kDownload, 8}}), 2);
}

// What a step saves on the CPU comes back in it, last first. Inputs and results of one size are no such data: the
// input comes first.
TEST(PageableCopyTest, SaysToKeepDataThatComesBack) {
  const auto action_of = [](const std::vector<bool>& to_device) {
    testing::Sketch sketch;
    for (int i = 0; i < 4; ++i) {
      std::int64_t at = i * 200'000;
      sketch.annotation("ProfilerStep#" + std::to_string(i), at, 199'000);
      for (const bool up : to_device)
        sketch.slice("gpu_memcpy",
                     up ? "Memcpy HtoD (Pageable -> Device)" : "Memcpy DtoH (Device -> Pageable)",
                     at += 20'000, 20'000, {.bytes = 1 << 20});
    }
    return find_by_rule(sketch.trace(), "pageable-copy").value().action.pattern;
  };
  EXPECT_TRUE(std::string_view(action_of({false, false, true, true})).starts_with("Keep them"));
  EXPECT_FALSE(std::string_view(action_of({true, true, false, false})).starts_with("Keep them"));
  EXPECT_FALSE(std::string_view(action_of({true, true, true, false})).starts_with("Keep them"));
}

// In each step the CPU uploads a batch, launches 400 us of work, waits in a copy until that is done, and prepares the next batch for
// 300 us. If it copies the result, pinned inputs would not spare the wait. If it copies another input, they would.
TEST(PageableCopyTest, SaysToPrepareAheadWhereResultsAreAwaited) {
  const auto action = [](const char* name) {
    testing::ProgramSketch program;
    std::int64_t correlation = 10'000;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.launch(testing::ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 5));
      p.kernel("gemm", 400);
      const std::int64_t start = p.cpu_us(), call_us = p.gpu_us() + 20 - start;
      p.sketch().op("aten::copy_", us(start), us(call_us + 3));
      p.sketch().runtime("cudaMemcpyAsync", us(start + 1), us(call_us),
                         {.correlation = ++correlation});
      p.sketch().slice("gpu_memcpy", name, us(p.gpu_us() + 5), us(5),
                       {.correlation = correlation, .bytes = 300'000});
      p.pass(call_us + 3).pass(300);
    });
    const auto finding = find_by_rule(program.trace(), "pageable-copy");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_TRUE(action("Memcpy DtoH (Device -> Pageable)").starts_with("Prepare the next batch"));
  EXPECT_TRUE(action("Memcpy HtoD (Pageable -> Device)").starts_with("Copy from a pinned buffer"));
}

TEST(PageableCopyTest, IsQuietAboutPinnedMemory) {
  EXPECT_FALSE(find_by_rule(with_copy("Memcpy HtoD (Pinned -> Device)", 7, "aten::copy_").trace(),
                            "pageable-copy"));
}

// A copy of 100 us to the CPU, then `ops` operators of 20 us, after one of 500 us, that work on it; then a kernel, or nothing, and an
// operator of 300 us.
TEST(PageableCopyTest, CountsAllOperatorsThatComputeWithTheCopy) {
  const auto found = [](int ops, bool launches) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step().kernel("conv", 50);
      program.begin_op("aten::to").copy(100, 8'000'000, "Memcpy DtoH (Device -> Pageable)");
      program.end().wait().cpu_op("aten::argmax", 500);
      for (int i = 0; i < ops; ++i) program.cpu_op("aten::eq", 20);
      if (launches) program.kernel("conv", 1).wait();
      program.cpu_op("aten::stack", 300);
      program.end();
    }
    return find_by_rule(program.trace(), "pageable-copy");
  };
  const auto few = found(0, false), many = found(30, false), cut = found(30, true);
  ASSERT_TRUE(few && many && cut);
  EXPECT_EQ(many->at_stake_ns - few->at_stake_ns, us(600));
  EXPECT_EQ(many->brief.values.at(1).text, "aten::argmax");
  EXPECT_TRUE(many->gain_is_bound);
  // What follows the next launch may be another thing, such as the next batch.
  EXPECT_NEAR(static_cast<double>(many->at_stake_ns - cut->at_stake_ns),
              static_cast<double>(us(300)), us(10));
}

// The results of three windows: operators on the CPU work on them right after each copy. Pinned memory would not spare them.
TEST(PageableCopyTest, SaysToComputeOnTheGpuWhatTheCpuComputesWithResults) {
  const auto action = [](std::string_view op, std::int64_t op_us) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step();
      for (int i = 0; i < 3; ++i) {
        program.begin_op("aten::to").copy(20, 1'000'000, "Memcpy HtoD (Pageable -> Device)");
        program.end().kernel("conv", 50);
        program.begin_op("aten::to").copy(100, 8'000'000, "Memcpy DtoH (Device -> Pageable)");
        program.end().wait().cpu_op(op, op_us);
      }
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "pageable-copy");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_TRUE(action("aten::add_", 500).starts_with("Compute on the GPU"));
  // Near misses: a short operator, and one that only views.
  EXPECT_FALSE(action("aten::add_", 20).starts_with("Compute on the GPU"));
  EXPECT_FALSE(action("aten::view", 500).starts_with("Compute on the GPU"));
}

}  // namespace
}  // namespace lanescope::explain

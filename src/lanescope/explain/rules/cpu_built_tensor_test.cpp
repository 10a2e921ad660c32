#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Each step makes a tensor on the CPU in 200 us, moves it (10 us of copy) and runs four gemms.
ProgramSketch with_built(const char* factory, std::int64_t pause_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    if (factory) program.cpu_op(factory, 200).pass(pause_us);
    program.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 10, "aten::to"));
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.wait().end();
  }
  return program;
}

// 200 us of making, 10 us of aten::to, and 9 us more of the copy, which began 1 us before its end.
TEST(CpuBuiltTensorTest, SpeaksOfAFactoryBeforeTheCopy) {
  const auto finding = find_by_rule(with_built("aten::zeros", 0).trace(), "cpu-built-tensor");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  EXPECT_EQ(finding->at_stake_ns, 219'000);
  EXPECT_TRUE(find_by_rule(with_built("aten::zeros", 140).trace(), "cpu-built-tensor"));
}

TEST(CpuBuiltTensorTest, IsQuietAboutOtherOperatorsAndPausesBetween) {
  EXPECT_FALSE(find_by_rule(with_built("aten::stack", 0).trace(), "cpu-built-tensor"));
  EXPECT_FALSE(find_by_rule(with_built("aten::zeros", 160).trace(), "cpu-built-tensor"));
  EXPECT_FALSE(find_by_rule(with_built(nullptr, 0).trace(), "cpu-built-tensor"));
}

// In each of `rounds` rounds of a step: what `make` calls, an aten::to, and a gemm that the CPU waits for.
Finding built_in_rounds(int rounds, const std::function<void(ProgramSketch&)>& make) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int round = 0; round < rounds; ++round) {
      make(p);
      p.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 10, "aten::to"));
      p.launch({.us = 50}).wait();
    }
  });
  return find_by_rule(program.trace(), "cpu-built-tensor").value_or(Finding());
}

// A table: 60 us of making, two aten::to of 10 us whose copies end 79 and 89 us after the first operator began.
TEST(CpuBuiltTensorTest, ATableOfEachRoundCanBeMadeOnce) {
  const auto table = [](ProgramSketch& p) {
    p.cpu_op("aten::arange", 20).cpu_op("aten::mul", 20).cpu_op("aten::cos", 20);
    p.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 10, "aten::to"));
  };
  const Finding finding = built_in_rounds(4, table);
  EXPECT_EQ(finding.at_stake_ns, us(4 * 89));
  EXPECT_NE(finding.action.pattern.find("make them once"), std::string::npos);
  ASSERT_EQ(finding.brief.values.size(), 3u);
  EXPECT_EQ(finding.brief.values[0].integer, 4);
  EXPECT_EQ(finding.brief.values[1].text, "aten::arange");
  EXPECT_EQ(finding.brief.values[2].text, "aten::cos");
  EXPECT_EQ(finding.spared_calls.size(), 3u * 4 * 5);
  // Noise is another each time; a tensor of zeros may be written into.
  const auto of = [](const char* factory) {
    return built_in_rounds(4, [&](ProgramSketch& p) { p.cpu_op(factory, 60); }).action;
  };
  EXPECT_EQ(of("aten::randn").values.at(0).text, "torch.randn");
  EXPECT_EQ(of("aten::zeros").values.at(0).text, "torch.zeros");
  EXPECT_EQ(of("aten::zeros").pattern.find("make them once"), std::string::npos);
}

// What is copied may be data: rows that random numbers choose, the batch after a random decision, a picture that is multiplied by a mask.
TEST(CpuBuiltTensorTest, IsQuietWhereDataMayBeCopied) {
  const auto is_found = [](const std::function<void(ProgramSketch&)>& make) {
    return !built_in_rounds(4, make).brief.pattern.empty();
  };
  const auto after_factory = [&](const char* op) {
    return is_found([&](ProgramSketch& p) { p.cpu_op("aten::randperm", 60).cpu_op(op, 20); });
  };
  EXPECT_TRUE(after_factory("aten::mul"));
  EXPECT_TRUE(after_factory("aten::view"));
  EXPECT_FALSE(after_factory("aten::index"));
  EXPECT_FALSE(after_factory("aten::item"));
  EXPECT_FALSE(after_factory("aten::cat"));
  // mask[a:b, a:b] = torch.triu(...), and a batch that is copied into zeros.
  const auto written = [&](bool computes) {
    return is_found([&](ProgramSketch& p) {
      p.cpu_op("aten::zeros", 60);
      for (int i = 0; i < 2; ++i) {
        if (computes) p.cpu_op("aten::full", 5).cpu_op("aten::triu", 5);
        p.cpu_op("aten::slice", 2).cpu_op("aten::copy_", 5);
      }
    });
  };
  EXPECT_TRUE(written(true));
  EXPECT_FALSE(written(false));
  const auto masked = [&](bool casts) {
    return is_found([&](ProgramSketch& p) {
      if (casts) p.begin_op("aten::to").cpu_op("aten::_to_copy", 20).end();
      p.cpu_op("aten::ones", 60).cpu_op("aten::mul", 20);
    });
  };
  EXPECT_TRUE(masked(false));
  EXPECT_FALSE(masked(true));
}

// Of two steps one is counted. 2,000 us of making, 10 us of aten::to, and 1,999 us more of its copy.
TEST(CpuBuiltTensorTest, OneLargeTensorOfAShortRecordingCounts) {
  const auto found = [](std::int64_t make_us, std::int64_t gemm_us) {
    ProgramSketch program;
    program.steps(2, [&](ProgramSketch& p) {
      p.cpu_op("aten::zeros", make_us);
      p.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", make_us, "aten::to"));
      p.launch({.us = gemm_us}).wait();
    });
    return find_by_rule(program.trace(), "cpu-built-tensor").value_or(Finding());
  };
  EXPECT_EQ(found(2'000, 5'000).at_stake_ns, us(4'009));
  EXPECT_EQ(found(200, 20'000).at_stake_ns, 0);  // 2 % of the step
}

}  // namespace
}  // namespace lanescope::explain

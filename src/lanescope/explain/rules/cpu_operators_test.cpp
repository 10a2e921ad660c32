#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A step: `op` of 500 us on the CPU, with the GPU idle; then perhaps a copy of its result, 20 us;
// then a kernel of 100 us, and a wait for it.
ProgramSketch drawn_cpu_op(std::string_view op, std::int64_t us_value, bool uploads = false) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().cpu_op(op, us_value);
    if (uploads)
      program.begin_op("aten::to").copy(20, 1'000'000, "Memcpy HtoD (Pageable -> Device)").end();
    program.kernel("gemm", 100).wait().end();
  }
  return program;
}

TEST(CpuOperatorsTest, CountsTheWaitForTheOperator) {
  const auto finding = find_by_rule(drawn_cpu_op("aten::embedding", 500).trace(), "cpu-operators");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).text, "aten::embedding");
  EXPECT_EQ(finding->verdict.values.at(1).integer, 1);  // a step
  EXPECT_EQ(finding->verdict.values.at(2).integer, us(500));
  EXPECT_EQ(finding->at_stake_ns, us(500));
  EXPECT_NE(finding->action.pattern.find("table"), std::string::npos);
}

// The copy's call begins 1 us after the operator, the copy 2 us later; it takes 20 us: 23 us more.
TEST(CpuOperatorsTest, CountsTheCopyOfTheResultToo) {
  const auto finding = find_by_rule(drawn_cpu_op("aten::sort", 500, true).trace(), "cpu-operators");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(523));
  EXPECT_EQ(finding->gone_work_ns, us(20));
  EXPECT_EQ(finding->action.pattern.find("table"), std::string::npos);
}

// x[a[b]] is two operators before one copy: 300 + 200 us, then the 23 us of above.
TEST(CpuOperatorsTest, CountsOperatorsBeforeOneCopyOnce) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.cpu_op("aten::index", 300).cpu_op("aten::index", 200);
    p.begin_op("aten::to").copy(20, 1'000'000, "Memcpy HtoD (Pageable -> Device)").end();
    p.kernel("gemm", 100).wait();
  });
  const auto finding = find_by_rule(program.trace(), "cpu-operators");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(2).integer, us(500));
  EXPECT_EQ(finding->at_stake_ns, us(523));
}

// 500 of 900 us are the longest's: not all of the time is its own. Of 600 us they are most.
TEST(CpuOperatorsTest, SaysThatOthersTakePartOfTheTime) {
  const auto brief = [](std::int64_t other_us) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.cpu_op("aten::randn_like", 500).cpu_op("aten::sort", other_us);
      p.kernel("gemm", 100).wait();
    });
    const auto finding = find_by_rule(program.trace(), "cpu-operators");
    return finding ? finding->brief : Sentence{};
  };
  const Sentence both = brief(400);
  EXPECT_NE(both.pattern.find("other operator runs"), std::string::npos) << both.pattern;
  ASSERT_GE(both.values.size(), 2u);
  EXPECT_EQ(both.values.at(0).text, "aten::randn_like");
  EXPECT_EQ(both.values.at(1).integer, 1);
  EXPECT_TRUE(brief(100).pattern.starts_with("{} runs on the CPU"));
}

TEST(CpuOperatorsTest, IsQuietAboutShortOperatorsAndThoseThatOnlyMakeTensors) {
  EXPECT_FALSE(find_by_rule(drawn_cpu_op("aten::add", 90).trace(), "cpu-operators"));
  EXPECT_FALSE(find_by_rule(drawn_cpu_op("aten::randn", 500).trace(), "cpu-operators"));
  ProgramSketch filled;
  filled.steps(4, [](ProgramSketch& p) {
    p.begin_op("aten::ones").cpu_op("aten::fill_", 500).end();
    p.kernel("gemm", 100).wait();
  });
  EXPECT_FALSE(find_by_rule(filled.trace(), "cpu-operators"));
  EXPECT_FALSE(
      find_by_rule(drawn_cpu_op("aten::unflatten_dense_tensors", 500).trace(), "cpu-operators"));
}

// Anomaly detection notes the stack of each operator: a view of a tensor on the GPU takes long then.
TEST(CpuOperatorsTest, IsQuietAboutViews) {
  for (const char* view : {"aten::t", "aten::view", "aten::select"})
    EXPECT_FALSE(find_by_rule(drawn_cpu_op(view, 500).trace(), "cpu-operators")) << view;
}

// An operator of 500 us in which a kernel is launched is slow to launch, and computes nothing.
TEST(CpuOperatorsTest, IsQuietAboutOperatorsThatLaunch) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().begin_op("aten::mm").pass(500).kernel("gemm", 100).end();
    program.wait().end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "cpu-operators"));
}

// The loader computes on the CPU on purpose.
TEST(CpuOperatorsTest, IsQuietInsideTheDataLoader) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    program.pass(1).cpu_op("aten::stack", 500).pass(1).end();
    program.kernel("gemm", 100).wait().end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "cpu-operators"));
}

// Windows: a copy to the GPU, a kernel, the result to the CPU, and an addition there. The next copy to the GPU is the next window,
// not the sum; it counts where it has the size of what was read.
TEST(CpuOperatorsTest, WhatWorksOnAReadDoesNotGoBack) {
  const auto found = [](std::int64_t window_bytes) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step();
      for (int i = 0; i < 3; ++i) {
        program.begin_op("aten::to").copy(20, window_bytes, "Memcpy HtoD (Pageable -> Device)");
        program.end().kernel("conv", 50);
        program.begin_op("aten::to").copy(100, 8'000'000, "Memcpy DtoH (Device -> Pageable)");
        program.end().wait().cpu_op("aten::add_", 500);
      }
      program.end();
    }
    return find_by_rule(program.trace(), "cpu-operators");
  };
  const auto other = found(1'000'000);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->at_stake_ns, other->verdict.values.at(2).integer);
  EXPECT_TRUE(other->action.pattern.starts_with("They work on what was just copied"));
  const auto same = found(8'000'000);
  ASSERT_TRUE(same);
  EXPECT_GT(same->at_stake_ns, same->verdict.values.at(2).integer);
}

// 12 steps, two of which first prepare a request by operators of 2 ms each on the CPU. Between: a kernel of 100 us per step.
std::optional<Finding> find_in_requests(const std::vector<std::string>& ops, int requests) {
  ProgramSketch program;
  for (int step = 0; step < 12; ++step) {
    program.step();
    if (step == 2 || (step == 8 && requests == 2))
      for (const std::string& op : ops) program.cpu_op(op, 2000);
    program.kernel("gemm", 100).wait().end();
  }
  return find_by_rule(program.trace(), "cpu-operators");
}

// 3 operators x 2 ms in each of two requests: 6 ms each time. In 11 measured steps: 12 ms / 11.
TEST(CpuOperatorsTest, SeesThoseThatRunInFewSteps) {
  const auto finding = find_in_requests({"aten::stft", "aten::abs", "aten::pow"}, 2);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(12'000) / 11);
  EXPECT_EQ(finding->brief.values.at(1).integer, 2);  // other operators
  EXPECT_EQ(finding->brief.values.at(2).integer, 2);  // steps
  EXPECT_EQ(finding->brief.values.at(3).integer, 12);
  EXPECT_EQ(finding->brief.values.at(4).integer, us(6000));
  EXPECT_EQ(finding->action.pattern.find("set_num_threads"), std::string::npos);
  // What runs once may be start-up, or a delay.
  EXPECT_FALSE(find_in_requests({"aten::stft", "aten::abs", "aten::pow"}, 1));
}

// 20 steps of 400 us; the first one's start-up runs three operators of 1 ms twice, and step 10 runs another of 2 ms. None of them
// runs in two steps. If step 15 runs that other again, these two steps are told, without start-up: (2 + 2) ms / 19.
TEST(CpuOperatorsTest, StartUpIsNoPartOfWhatRunsInFewSteps) {
  const auto found = [](bool is_again) {
    ProgramSketch program;
    for (int step = 0; step < 20; ++step) {
      program.step();
      if (step == 10 || (is_again && step == 15)) program.cpu_op("aten::index_put_", 2000);
      program.kernel("gemm", 400);
      for (int i = 0; step == 0 && i < 2; ++i) {
        for (const char* op : {"aten::stft", "aten::abs", "aten::log10"}) program.cpu_op(op, 1000);
        program.kernel("gemm", 10);
      }
      program.wait().end();
    }
    return find_by_rule(program.trace(), "cpu-operators");
  };
  EXPECT_FALSE(found(false));
  const auto twice = found(true);
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->at_stake_ns, us(4000) / 19);
  ASSERT_EQ(twice->brief.values.size(), 4u);  // no other operators
  EXPECT_EQ(twice->brief.values.at(0).text, "aten::index_put_");
  EXPECT_EQ(twice->brief.values.at(1).integer, 2);
  EXPECT_EQ(twice->brief.values.at(2).integer, 20);
  EXPECT_EQ(twice->brief.values.at(3).integer, us(2000));
}

// Five unlike operators of 2 ms each: their time is not that of what they compute.
TEST(CpuOperatorsTest, EqualTimesOfUnlikeOperatorsMayBeThreads) {
  const auto finding =
      find_in_requests({"aten::stft", "aten::abs", "aten::pow", "aten::clamp", "aten::log10"}, 2);
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("If PyTorch has more CPU threads"), std::string::npos);
  EXPECT_EQ(finding->action.values.at(0).integer, 5);
  EXPECT_EQ(finding->action.values.at(1).integer, us(2000));
}

// crop() computes for 3,000 us in each step and then gives back its memory for 1,500 us, without an event. Near misses: a hole 1,200 us
// after the operators, with short ones between, and a hole of 4,000 us, longer than the operators.
TEST(CpuOperatorsTest, CodeThatFreesWhatTheyMadeGoesWithThem) {
  const auto at_stake = [](int between, std::int64_t hole_us) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.cpu_op("aten::mul", 1'500).cpu_op("aten::mean", 1'500);
      for (int i = 0; i < between; ++i) p.cpu_op("aten::select", 30);
      p.pass(hole_us).cpu_op("aten::view", 10).kernel("gemm", 100).wait();
    });
    const auto finding = find_by_rule(program.trace(), "cpu-operators");
    return finding ? finding->at_stake_ns : 0;
  };
  EXPECT_EQ(at_stake(1, 1'500), us(4'500));
  EXPECT_EQ(at_stake(40, 1'500), us(3'000));
  EXPECT_EQ(at_stake(1, 4'000), us(3'000));
}

// A step that reads its result, as a tracker does: the next input may depend on it. A step that trains, and one that reads a number.
TEST(CpuOperatorsTest, DoesNotAdviseWorkersWhereTheInputMayDependOnTheResult) {
  const auto action = [](std::int64_t size, bool trains) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.cpu_op("aten::mul", 1'000).kernel("gemm", 100);
      if (trains)
        p.begin_op("autograd::engine::evaluate_function: MmBackward0").kernel("k", 10).end();
      p.begin_op("aten::to").copy(5, size, "Memcpy DtoH (Device -> Pageable)").end().wait();
      p.kernel("gemm", 20);
    });
    const auto finding = find_by_rule(program.trace(), "cpu-operators");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_EQ(action(4'000, false).find("DataLoader"), std::string::npos);
  EXPECT_NE(action(4'000, true).find("DataLoader"), std::string::npos);
  EXPECT_NE(action(4, false).find("DataLoader"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain

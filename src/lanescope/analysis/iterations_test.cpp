#include "lanescope/analysis/iterations.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// Draws programs launch by launch: a launch takes 1, its kernel starts 2 later and takes 3.
class Program {
 public:
  Program& launch(const std::string& kernel, std::int64_t at_ns) {
    ++id_;
    sketch_.runtime("cudaLaunchKernel", at_ns, 1, {.correlation = id_});
    sketch_.kernel(kernel, at_ns + 2, 3, {.correlation = id_});
    return *this;
  }
  Program& range(const std::string& name, std::int64_t at_ns, std::int64_t dur_ns) {
    sketch_.annotation(name, at_ns, dur_ns);
    return *this;
  }
  Program& op(std::int64_t at_ns, const std::string& name = "aten::mm") {
    sketch_.op(name, at_ns, 2, {});
    return *this;
  }
  // Eight operators within 80: `first`, then seven equal ones.
  Program& operators(std::int64_t at_ns, const std::string& first) {
    op(at_ns, first);
    for (int i = 1; i < 8; ++i) op(at_ns + 10 * i);
    return *this;
  }
  Program& wait(std::int64_t at_ns) {
    sketch_.runtime("cudaStreamSynchronize", at_ns, 5, {});
    return *this;
  }
  Program& copy(std::int64_t at_ns) {
    ++id_;
    sketch_.runtime("cudaMemcpyAsync", at_ns, 1, {.correlation = id_});
    sketch_.slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at_ns + 2, 3,
                  {.correlation = id_});
    return *this;
  }
  // Four pieces of work within 40.
  Program& round(std::int64_t at_ns) {
    return launch("gemm", at_ns)
        .launch("relu", at_ns + 10)
        .launch("gemm", at_ns + 20)
        .launch("sum", at_ns + 30);
  }
  std::optional<Iterations> find() {
    const Trace trace = sketch_.trace();
    return find_iterations(trace, compute_launch_links(trace));
  }

 private:
  Sketch sketch_;
  std::int64_t id_ = 0;
};

// Start-up of 1000, then an Optimizer.step that ends at 1150, 1250, 1350, 1450.
TEST(IterationsTest, OneOptimizerStepToTheNextIsAnIteration) {
  Program program;
  program.launch("load", 0);
  for (int i = 0; i < 4; ++i)
    program.round(1100 + 100 * i).range("Optimizer.step#SGD.step", 1128 + 100 * i, 22);
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeEnd);
  EXPECT_EQ(found->mark, "Optimizer.step#SGD.step");
  ASSERT_EQ(found->ranges.size(), 3u);
  EXPECT_EQ(found->ranges[0].start_ns, 1150);
  EXPECT_EQ(found->ranges[0].end_ns, 1250);
  EXPECT_EQ(found->ranges[2].end_ns, 1450);
}

// The recording begins with the first of three iterations; or with something else.
TEST(IterationsTest, ThreeOptimizerStepsEndThreeIterations) {
  const auto draw = [](int before, const char* kernel) {
    Program program;
    program.op(100 - before).launch(kernel, 100 - before);
    for (int i = 0; i < 3; ++i)
      program.round(110 + 100 * i).range("Optimizer.step#SGD.step", 148 + 100 * i, 22);
    return program.find();
  };
  const auto found = draw(0, "sum");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranges.size(), 3u);
  EXPECT_EQ(found->ranges[0].start_ns, 100);
  EXPECT_EQ(found->ranges[0].end_ns, 170);
  EXPECT_EQ(found->ranges[2].end_ns, 370);
  EXPECT_FALSE(draw(500, "load"));
}

// A recording of two training steps on texts of other lengths: the second makes one piece more for each text. Not so with steps of two
// optimizers, or with other work.
TEST(IterationsTest, TwoOptimizerStepsOnOtherLengthsEndTwoIterations) {
  const auto draw = [](const char* second, const char* kernel) {
    Program program;
    for (int i = 0; i < 2; ++i) {
      const int at = 100 + 200 * i;
      program.op(at).round(at + 10).round(at + 60);
      for (int text = 0; text <= i; ++text)
        program.launch(i == 0 ? "sum" : kernel, at + 110 + 10 * text);
      program.range(i == 0 ? "Optimizer.step#SGD.step" : second, at + 140, 20);
    }
    return program.find();
  };
  const auto found = draw("Optimizer.step#SGD.step", "sum");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeEnd);
  ASSERT_EQ(found->ranges.size(), 2u);
  EXPECT_EQ(found->ranges[0].start_ns, 100);
  EXPECT_EQ(found->ranges[0].end_ns, 260);
  EXPECT_EQ(found->ranges[1].end_ns, 460);
  EXPECT_FALSE(draw("Optimizer.step#Adam.step", "sum"));
  Program other;
  other.op(100).round(110).range("Optimizer.step#SGD.step", 240, 20).op(300);
  for (int i = 0; i < 5; ++i) other.launch("other_" + std::to_string(i), 310 + 10 * i);
  EXPECT_FALSE(other.range("Optimizer.step#SGD.step", 440, 20).find());
}

// A solver reads its residual ten times in each of three steps of an optimizer.
TEST(IterationsTest, RoundsOfASolverInATrainingStepAreNoIterations) {
  const auto draw = [](bool trains) {
    Program program;
    program.launch("load", 0);
    for (int step = 0; step < 3; ++step) {
      const int begin = 1000 + 1000 * step;
      for (int i = 0; i < 10; ++i) program.round(begin + 100 * i).wait(begin + 100 * i + 50);
      if (trains) program.range("Optimizer.step#Adam.step", begin + 970, 20);
    }
    return program.find();
  };
  const auto rounds = draw(false);
  ASSERT_TRUE(rounds);
  EXPECT_EQ(rounds->kind, IterationMark::kWait);
  const auto found = draw(true);
  EXPECT_TRUE(!found || found->kind == IterationMark::kRangeEnd);
}

TEST(IterationsTest, ARangeOfTheProgramsOwnHoldsTheLastIterationToo) {
  Program program;
  for (int i = 0; i < 3; ++i) program.range("denoise", 100 * i, 50).round(5 + 100 * i);
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeStart);
  ASSERT_EQ(found->ranges.size(), 3u);
  EXPECT_EQ(found->ranges[1].start_ns, 100);
  EXPECT_EQ(found->ranges[1].end_ns, 200);
  EXPECT_EQ(found->ranges[2].end_ns, 250);
}

// One round and one wait for each of three requests, after six launches for all of them in 250: three waits are one iteration.
// Not so where the six launches come at unequal distances, or where nothing more is launched in the long periods.
TEST(IterationsTest, WaitsForTheRequestsOfABatchAreOneIteration) {
  const auto draw = [](std::initializer_list<int> requests, int launches) {
    Program program;
    int at = 0;
    for (const int count : requests) {
      for (int i = 0; i < launches; ++i) program.launch("layer", at + 10 * i);
      at += 250;
      for (int i = 0; i < count; ++i, at += 60) program.round(at).wait(at + 45);
    }
    return program.find();
  };
  const auto found = draw({3, 3, 3, 3, 3}, 6);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kWait);
  EXPECT_EQ(found->waits, 3u);
  ASSERT_EQ(found->ranges.size(), 4u);
  // The third wait ends at 250 + 120 + 45 + 5; a batch takes 250 + 3 x 60.
  EXPECT_EQ(found->ranges[0].start_ns, 420);
  EXPECT_EQ(found->ranges[0].end_ns, 850);
  const auto unequal = draw({3, 4, 3, 2, 3}, 6);
  EXPECT_TRUE(!unequal || unequal->waits == 1);
  const auto only_longer = draw({3, 3, 3, 3, 3}, 0);
  EXPECT_TRUE(!only_longer || only_longer->waits == 1);
}

// Three times: eight launches for a batch, then `rounds` of a search, each with three waits for different work.
TEST(IterationsTest, WaitsForDifferentThingsInTurnAreOneIteration) {
  const auto draw = [](std::initializer_list<int> rounds, bool alike) {
    Program program;
    int at = 0;
    program.op(at);
    for (const int count : rounds) {
      for (int i = 0; i < 8; ++i, at += 10) program.launch("layer", at);
      for (int i = 0; i < count; ++i)
        for (const char* kernel : {"and", "not", "or"}) {
          program.launch("gt", at).launch(alike ? "and" : kernel, at + 10).launch("sum", at + 20);
          program.launch("cast", at + 30).launch("copy", at + 40).wait(at + 50);
          at += 60;
        }
    }
    return program.find();
  };
  const auto found = draw({5, 5, 5}, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kWait);
  EXPECT_EQ(found->waits, 15u);
  ASSERT_EQ(found->ranges.size(), 3u);
  // A batch takes 8 x 10 + 15 x 60; its last wait ends 5 before it.
  EXPECT_EQ(found->ranges[0].start_ns, 0);
  EXPECT_EQ(found->ranges[0].end_ns, 975);
  EXPECT_EQ(found->ranges[1].end_ns, 1955);
  // Equal waits are iterations, and nothing comes again where searches differ in length.
  const auto equal = draw({5, 5, 5}, true);
  ASSERT_TRUE(equal);
  EXPECT_EQ(equal->waits, 1u);
  const auto uneven = draw({5, 4, 6}, false);
  ASSERT_TRUE(uneven);
  EXPECT_EQ(uneven->waits, 1u);
}

TEST(IterationsTest, AWaitInEveryRoundCutsWhatRepeats) {
  Program program;
  for (int i = 0; i < 5; ++i) program.round(100 * i).wait(100 * i + 50);
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kWait);
  EXPECT_EQ(found->mark, "cudaStreamSynchronize");
  ASSERT_EQ(found->ranges.size(), 4u);
  EXPECT_EQ(found->ranges[0].start_ns, 55);
  EXPECT_EQ(found->ranges[3].end_ns, 455);
}

// An optimizer that reads a value for each tensor: 12 waits close together in each of three steps.
TEST(IterationsTest, WaitsCloseTogetherInsideOfLongerStepsAreNoIterations) {
  Program program;
  for (int step = 0; step < 3; ++step)
    for (int i = 0; i < 12; ++i)
      program.round(5000 * step + 100 * i).wait(5000 * step + 100 * i + 50);
  EXPECT_FALSE(program.find());
}

// The same loop with one long pause, as for a checkpoint.
TEST(IterationsTest, OneLongIterationLeavesTheOthersWhatTheyAre) {
  Program program;
  for (int i = 0; i < 12; ++i) {
    const int at = 100 * i + (i >= 6 ? 5000 : 0);
    program.round(at).wait(at + 50);
  }
  EXPECT_TRUE(program.find());
}

// Each of three iterations reads one value at its end: the first one began with the recording.
TEST(IterationsTest, ThreeWaitsEndThreeIterations) {
  const auto draw = [](int before) {
    Program program;
    program.op(100 - before).launch("sum", 100 - before);
    for (int i = 0; i < 3; ++i) program.round(110 + 100 * i).wait(160 + 100 * i);
    return program.find();
  };
  const auto found = draw(0);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranges.size(), 3u);
  EXPECT_EQ(found->ranges[0].start_ns, 100);
  EXPECT_EQ(found->ranges[2].end_ns, 365);
  EXPECT_FALSE(draw(500));
}

// One optimizer for each of two parameters: two steps close together end an iteration.
TEST(IterationsTest, TwoOptimizerStepsInARowEndOneIteration) {
  Program program;
  for (int i = 0; i < 4; ++i)
    program.round(1000 * i)
        .range("Optimizer.step#Adam.step", 1000 * i + 100, 10)
        .range("Optimizer.step#Adam.step", 1000 * i + 120, 10);
  const auto found = program.find();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->ranges.size(), 3u);
  EXPECT_EQ(found->ranges[0].start_ns, 130);
  EXPECT_EQ(found->ranges[2].end_ns, 3130);
  EXPECT_EQ(found->owner, "2");
}

// Each step calls its closure as often as it needs to; a step with other work is no such iteration.
TEST(IterationsTest, OptimizerStepsOfAnyLengthAreIterationsWhereTheirWorkIsOfOneKind) {
  const auto draw = [](const char* of_last) {
    Program program;
    for (int i = 0; i < 5; ++i) {
      for (int round = 0; round <= i % 3; ++round) program.round(1000 * i + 50 * round);
      if (i % 2 == 1) program.launch(of_last, 1000 * i + 200);
      program.range("Optimizer.step#LBFGS.step", 1000 * i + 350, 10);
    }
    return program.find();
  };
  const auto found = draw("gemm");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ranges.size(), 4u);
  EXPECT_FALSE(draw("other"));
}

// Batches that nothing marks: each begins with its own operator, and next to nothing lies outside of them.
TEST(IterationsTest, AnOperatorThatBeginsEachBatchCutsWhatRepeats) {
  Program program;
  for (int i = 0; i < 4; ++i) program.operators(100 * i, "aten::randn");
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeStart);
  EXPECT_EQ(found->mark, "aten::randn");
  ASSERT_EQ(found->ranges.size(), 4u);
  EXPECT_EQ(found->ranges[3].start_ns, 300);
  EXPECT_EQ(found->ranges[3].end_ns, 372);
}

// Steps of a simulation: no operator comes only once in a step and begins it. After every third step one value more is computed.
// A setting before the first step is no step, and what it launches would lie outside of all.
TEST(IterationsTest, RoundsOfEqualOperatorsAreIterationsWhereNoneMarksThem) {
  const auto draw = [](int before) {
    Program program;
    int at = 0;
    for (int i = 0; i < before; ++i, at += 10) program.op(at, "aten::zeros");
    for (int step = 0; step < 6; ++step) {
      for (const char* name :
           {"aten::select", "aten::copy_", "aten::select", "aten::copy_", "aten::sum", "aten::mul",
            "aten::sum", "aten::mul", "aten::roll", "aten::roll"}) {
        program.op(at, name);
        at += 10;
      }
      if (step % 3 == 2) {
        program.op(at, "aten::max");
        at += 10;
      }
    }
    return program.find();
  };
  const auto found = draw(0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeStart);
  EXPECT_EQ(found->mark, "round of 10 operators (aten::select, aten::copy_, ...)");
  ASSERT_EQ(found->ranges.size(), 6u);
  EXPECT_EQ(found->ranges[0].start_ns, 0);
  EXPECT_EQ(found->ranges[2].end_ns, 310);  // with the value after the third step
  EXPECT_EQ(found->ranges[5].end_ns, 612);
  EXPECT_FALSE(draw(4));
}

// Tiles one by one, and then the CPU works on the whole result for longer than on all of them.
TEST(IterationsTest, OperatorsBeforeLongerWorkOnTheResultAreNoIterations) {
  const auto is_found = [](std::int64_t dur_ns) {
    Sketch sketch;
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < 8; ++k)
        sketch.op(k == 0 ? "aten::randn" : "aten::mm", 100 * i + 10 * k, 2, {});
    sketch.op("aten::argmax", 400, dur_ns, {});
    const Trace trace = sketch.trace();
    return find_iterations(trace, compute_launch_links(trace)).has_value();
  };
  EXPECT_TRUE(is_found(20));
  EXPECT_FALSE(is_found(1000));
}

// Tokens, each a replay of one graph of 20 kernels. Around the graphs of layers there is more: an embedding and a head.
TEST(IterationsTest, ReplaysOfAGraphAreIterationsWithNextToNothingAround) {
  const auto draw = [](int before, bool in_turn, int after_eighth = 0) {
    Sketch sketch;
    std::int64_t id = 1000;
    for (int i = 0; i < before; ++i, ++id)
      sketch.runtime("cudaLaunchKernel", 10 * i, 1, {.correlation = id})
          .kernel("embedding", 10 * i + 2, 3, {.correlation = id});
    for (int token = 0; token < 9; ++token) {
      const std::int64_t at = 1000 + 200 * token;
      sketch.runtime("cudaGraphLaunch", at, 20, {.correlation = token + 1});
      for (int i = 0; i < 20; ++i)
        sketch.kernel(in_turn && token % 3 == 0 ? "gemm" : "gemv", at + 30 + 8 * i, 7,
                      {.correlation = token + 1});
      for (int i = 0; token == 7 && i < after_eighth; ++i, ++id)
        sketch.runtime("cudaLaunchKernel", at + 30 + 10 * i, 1, {.correlation = id})
            .kernel("head", at + 191, 1, {.correlation = id});
    }
    const Trace trace = sketch.trace();
    return find_iterations(trace, compute_launch_links(trace));
  };
  const auto found = draw(0, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeStart);
  EXPECT_EQ(found->mark, "cudaGraphLaunch");
  ASSERT_EQ(found->ranges.size(), 8u);
  EXPECT_EQ(found->ranges[0].start_ns, 1000);
  EXPECT_EQ(found->ranges[7].end_ns, 2600);
  EXPECT_TRUE(draw(0, false, 2));   // the end of an answer
  EXPECT_FALSE(draw(0, false, 3));  // the end of a model's layers
  EXPECT_TRUE(draw(1, false));
  EXPECT_FALSE(draw(2, false));  // a tenth of an iteration
  EXPECT_FALSE(draw(0, true));   // of three in turn, only two are whole
}

// The layers of one forward pass, between an embedding and a head.
TEST(IterationsTest, LayersBetweenOtherOperatorsAreNoIterations) {
  Program program;
  program.op(0, "aten::embedding");
  for (int i = 0; i < 12; ++i) program.operators(100 + 100 * i, "aten::layer_norm");
  program.op(1400, "aten::linear");
  EXPECT_FALSE(program.find());
}

// Rounds of a solver between the steps of an optimizer: two whole rounds of the longer loop are two iterations.
TEST(IterationsTest, OperatorsOfASolverInATrainingStepAreNoIterations) {
  Program program;
  for (int step = 0; step < 2; ++step) {
    for (int i = 0; i < 6; ++i) program.operators(1000 * step + 100 * i, "aten::randn");
    program.range("Optimizer.step#Adam.step", 1000 * step + 700, 20);
  }
  const auto found = program.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->mark, "Optimizer.step#Adam.step");
  ASSERT_EQ(found->ranges.size(), 2u);
  EXPECT_EQ(found->ranges[1].start_ns, 1000);
}

// Two calls of a generator: seven waits close together while each begins, then its work without such a wait.
TEST(IterationsTest, AFewWaitsNextToMostOfTheWorkAreNoIterations) {
  Program program;
  for (int call = 0; call < 2; ++call) {
    const int begin = 60000 * call;
    for (int i = 0; i < 7; ++i) program.round(begin + 100 * i).wait(begin + 100 * i + 50);
    if (call == 0)
      for (int i = 0; i < 400; ++i) program.round(begin + 1000 + 100 * i);
  }
  EXPECT_FALSE(program.find());
}

// XLA measures kernels while it compiles: equal launches, and a wait after each round.
TEST(IterationsTest, RoundsOfXlasSearchForKernelsAreNoIterations) {
  Program program;
  program.range("TSL: XlaCompile:#module=jit_step#", 0, 900);
  for (int i = 0; i < 5; ++i) program.round(100 * i + 1).wait(100 * i + 50);
  EXPECT_FALSE(program.find());
}

// The layers of one forward pass repeat as well.
TEST(IterationsTest, LaunchesThatRepeatWithoutAWaitAreNoIterations) {
  Program program;
  for (int i = 0; i < 20; ++i) program.round(100 * i);
  program.wait(2100);
  EXPECT_FALSE(program.find());
}

TEST(IterationsTest, RangesOfAModelsPartsAreNoIterations) {
  Program program;
  for (int i = 0; i < 20; ++i) program.range("DecoderLayer", 100 * i, 50).round(5 + 100 * i);
  EXPECT_FALSE(program.find());
}

TEST(IterationsTest, RangesWithDifferentWorkAreNoIterations) {
  Program program;
  for (int i = 0; i < 6; ++i) {
    program.range("phase", 100 * i, 90);
    for (int k = 0; k < 4; ++k)
      program.launch("kernel_" + std::to_string(4 * i + k), 100 * i + 5 + 10 * k);
  }
  EXPECT_FALSE(program.find());
}

// Most of the work comes after the last of them.
TEST(IterationsTest, RangesAroundLittleOfTheWorkAreNoIterations) {
  Program program;
  for (int i = 0; i < 4; ++i) program.range("warm-up", 100 * i, 50).round(5 + 100 * i);
  for (int i = 0; i < 20; ++i) program.launch("other_" + std::to_string(i), 1000 + 10 * i);
  EXPECT_FALSE(program.find());
}

TEST(IterationsTest, TwoRoundsAreNoIterations) {
  Program program;
  for (int i = 0; i < 2; ++i) program.range("denoise", 100 * i, 50).round(5 + 100 * i);
  EXPECT_FALSE(program.find());
}

// Two requests: a copy and ten operators of an encoder, then eight words of eight operators and a wait each. A wait ends a word,
// but the whole recording is one text twice. So it is with one more operator at the end, or where no request brings data.
TEST(IterationsTest, TextsThatTheWholeRecordingRepeatsAreIterations) {
  const auto draw = [](bool has_copy, bool has_tail) {
    Program program;
    int at = 0;
    for (int request = 0; request < 2; ++request) {
      if (has_copy) program.copy(at + 5);
      for (int i = 0; i < 10; ++i, at += 10)
        program.op(at, i == 0 ? "aten::stft" : "aten::conv1d").launch("encoder", at + 1);
      for (int word = 0; word < 8; ++word) {
        for (int i = 0; i < 8; ++i, at += 10) program.op(at).launch("decoder", at + 1);
        program.wait(at);
        at += 10;
      }
    }
    if (has_tail) program.op(at, "aten::cat");
    return program.find();
  };
  const auto found = draw(true, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeStart);
  EXPECT_EQ(found->mark, "round of 74 operators (aten::stft, aten::conv1d, ...)");
  ASSERT_EQ(found->ranges.size(), 2u);
  // A request takes 10 x 10 + 8 x 90; its last operator ends 18 before the next request.
  EXPECT_EQ(found->ranges[0].start_ns, 0);
  EXPECT_EQ(found->ranges[0].end_ns, 820);
  EXPECT_EQ(found->ranges[1].end_ns, 1640 - 18);
  for (const auto& requests : {draw(true, true), draw(false, false)}) {
    ASSERT_TRUE(requests);
    ASSERT_EQ(requests->ranges.size(), 2u);
    EXPECT_EQ(requests->ranges[1].start_ns, 820);
    EXPECT_FALSE(requests->inner.empty());  // words
  }
}

// Four requests whose kernels differ, as those of pictures of four widths do.
TEST(IterationsTest, EqualTextsWithOtherKernelsAreIterationsIfEachBringsData) {
  const auto draw = [](bool has_copies) {
    Program program;
    for (int i = 0; i < 4; ++i) {
      program.operators(100 * i, "aten::randint");
      if (has_copies) program.copy(100 * i + 5);
      for (int k = 0; k < 4; ++k)
        program.launch("kernel_" + std::to_string(i), 100 * i + 20 + 10 * k);
    }
    return program.find();
  };
  const auto found = draw(true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->mark, "round of 8 operators (aten::randint, aten::mm, ...)");
  EXPECT_EQ(found->ranges.size(), 4u);
  EXPECT_FALSE(draw(false));
}

// Two iterations of four critics and an actor, each with an optimizer. A fourth step that is followed by an evaluation lacks
// nothing of the others: there a step is an iteration. Nor is a last batch of fewer rows, with other kernels, another model.
TEST(IterationsTest, StepsOfSeveralOptimizersInARhythmAreOneIteration) {
  const auto draw = [](const std::string& last, int kernels) {
    Program program;
    int at = 0;
    for (int iteration = 0; iteration < 2; ++iteration) {
      program.op(at, "aten::lift_fresh").copy(at + 3);
      at += 10;
      for (int model = 0; model < 5; ++model) {
        for (int i = 0; i < (model == 4 ? kernels : 20); ++i, at += 10)
          program.op(at, "aten::linear").launch(model == 4 ? last : "critic", at + 1);
        program.range("Optimizer.step#Adam.step", at, 8).op(at + 2, "aten::_foreach_add_");
        at += 10;
      }
    }
    return program.find();
  };
  const auto found = draw("actor", 30);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, IterationMark::kRangeEnd);
  EXPECT_EQ(found->owner, "5");
  ASSERT_EQ(found->ranges.size(), 2u);
  EXPECT_EQ(found->ranges[0].start_ns, 0);
  // 10 for the data, 4 x 210 and 310 for the models.
  EXPECT_EQ(found->ranges[0].end_ns, 1160);
  const auto evaluated = draw("critic", 23);
  ASSERT_TRUE(evaluated);
  EXPECT_EQ(evaluated->owner, "");
  EXPECT_EQ(evaluated->ranges.size(), 9u);
  const auto rows = draw("rows", 20);
  EXPECT_TRUE(!rows || rows->owner != "5");
}

// Four rounds of a game of 400, then four steps of an optimizer of 50 each on what was seen. Or a pause instead of the game.
TEST(IterationsTest, StepsOnWhatAGameShowedAreOneIteration) {
  const auto draw = [](bool plays, bool is_even = true) {
    Program program;
    for (int i = 0; i < 5; ++i) {
      const int begin = 1000 + 700 * i;
      for (int k = 0; plays && k < 5; ++k) program.round(begin + 80 * k);
      const int steps = !is_even && i % 2 == 1 ? 3 : 4;
      for (int k = 0; k < steps; ++k)
        program.round(begin + 405 + 60 * k)
            .range("Optimizer.step#Adam.step", begin + 405 + 60 * k + 45, 5);
    }
    return program.find();
  };
  const auto found = draw(true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->owner, "4");
  ASSERT_EQ(found->ranges.size(), 4u);
  EXPECT_EQ(found->ranges[0].start_ns, 1000 + 405 + 180 + 50);
  EXPECT_EQ(found->ranges[0].end_ns, 1700 + 405 + 180 + 50);
  // A pause has no work of its own: the CPU may load data, and each step is an iteration.
  const auto paused = draw(false);
  ASSERT_TRUE(paused);
  EXPECT_EQ(paused->owner, "");
  EXPECT_EQ(paused->ranges.size(), 19u);
  EXPECT_TRUE(!draw(true, false) || draw(true, false)->owner != "4");
}

}  // namespace
}  // namespace lanescope::analysis

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(TinyKernelsTest, SpeaksOfManyShortKernels) {
  EXPECT_TRUE(find_by_rule(loop(3, 250, {.us = 2}).trace(), "tiny-kernels"));
}

// Of a program that is compiled, or replays graphs, already: no advice to begin with it.
TEST(TinyKernelsTest, AdvisesNothingThatTheProgramDoes) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step().begin("Torch-Compiled Region: 0/0");
    for (int k = 0; k < 250; ++k) program.launch({.us = 2});
    program.end().end();
  }
  const auto finding = find_by_rule(program.trace(), "tiny-kernels");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("Compile more"));
  EXPECT_THAT(find_by_rule(loop(3, 250, {.us = 2}).trace(), "tiny-kernels")->action.pattern,
              ::testing::HasSubstr("torch.compile(model"));
}

// A larger batch is advised where something shows that there is one: layers, or products that are not part of solving a system.
TEST(TinyKernelsTest, AdvisesALargerBatchOnlyWhereThereIsABatch) {
  const auto action = [](std::string_view op, std::string_view other) {
    ProgramSketch program;
    for (int i = 0; i < 3; ++i) {
      program.step();
      for (int k = 0; k < 250; ++k) program.launch({.us = 2, .op = k == 9 ? other : op});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "tiny-kernels");
    return finding ? finding->action.pattern : std::string();
  };
  const std::string graph = R"(Use torch.compile(mode="reduce-overhead"))";
  EXPECT_EQ(action("aten::roll", "aten::sum"), graph);  // a simulation
  EXPECT_EQ(action("aten::matmul", "aten::linalg_cholesky"), graph);
  EXPECT_THAT(action("aten::roll", "aten::linear"), ::testing::HasSubstr("or a larger batch"));
  EXPECT_THAT(action("aten::matmul", "aten::sum"), ::testing::HasSubstr("or a larger batch"));
  EXPECT_THAT(action("aten::matmul", "aten::linalg_vector_norm"),
              ::testing::HasSubstr("or a larger batch"));
}

// A model that ran before the steps gives them no batch.
TEST(TinyKernelsTest, AdvisesNoLargerBatchForLayersOutsideOfTheSteps) {
  const auto action = [](bool in_steps) {
    ProgramSketch program;
    if (!in_steps) program.launch({.us = 2, .op = "aten::linear"});
    for (int i = 0; i < 3; ++i) {
      program.step();
      if (in_steps) program.launch({.us = 2, .op = "aten::linear"});
      for (int k = 0; k < 250; ++k) program.launch({.us = 2, .op = "aten::roll"});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "tiny-kernels");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_EQ(action(false), R"(Use torch.compile(mode="reduce-overhead"))");
  EXPECT_THAT(action(true), ::testing::HasSubstr("or a larger batch"));
}

// 250 launches of the model, with a wait after every `between`th of the first 240. Then the optimizer, with a wait after each launch.
Finding finding_with_waits(int between, int in_optimizer = 0) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step();
    for (int k = 1; k <= 250; ++k) {
      program.launch({.us = 2, .op = "aten::linear"});
      if (between > 0 && k <= 240 && k % between == 0) program.wait();
    }
    if (in_optimizer > 0) {
      program.begin("Optimizer.step#Adafactor.step");
      for (int k = 0; k < in_optimizer; ++k)
        program.launch({.us = 2, .op = "aten::linalg_vector_norm"}).wait();
      program.end().launch({.us = 2, .op = "aten::add"});
    }
    program.wait().end();  // after the last launch: in no one's way
  }
  return find_by_rule(program.trace(), "tiny-kernels").value_or(Finding());
}

// No graph holds a wait, so waits go first. A few, such as those for a loss and a norm that are logged, are not in the model.
TEST(TinyKernelsTest, NamesManyWaitsBeforeAGraph) {
  const Finding many = finding_with_waits(60);
  EXPECT_THAT(many.action.pattern, ::testing::StartsWith("First remove the {} waits"));
  ASSERT_EQ(many.action.values.size(), 2u);
  EXPECT_EQ(many.action.values[0].integer, 4);
  EXPECT_EQ(many.action.values[1].text, "aten::item");
  EXPECT_THAT(finding_with_waits(80).action.pattern, ::testing::StartsWith("Use torch.compile"));
  EXPECT_THAT(finding_with_waits(80).action.pattern, ::testing::Not(::testing::HasSubstr("wait")));
}

// Waits in the optimizer leave the model in one part, waits in the loss in two. Waits further apart leave parts of 125 and 98 of
// 250 launches: less than nine tenths.
TEST(TinyKernelsTest, LetsWaitsStayThatLieOutsideOfTheModel) {
  const Finding optimizers = finding_with_waits(0, 5);
  EXPECT_THAT(optimizers.action.pattern, ::testing::StartsWith("Use torch.compile"));
  ASSERT_EQ(optimizers.action.values.size(), 5u);
  EXPECT_EQ(optimizers.action.values[0].integer, 5);
  EXPECT_EQ(optimizers.action.values[1].text, "aten::item");
  EXPECT_NEAR(optimizers.action.values[2].real, 250.0 / 251.0, 1e-9);
  EXPECT_EQ(optimizers.action.values[3].text, " before the optimizer's");
  EXPECT_EQ(optimizers.action.values[4].text, "one part");
  const auto with_waits_at = [](int first, int apart) {
    ProgramSketch program;
    for (int i = 0; i < 3; ++i) {
      program.step();
      for (int k = 1; k <= 250; ++k) {
        program.launch({.us = 2, .op = "aten::linear"});
        if (k >= first && k < first + 4 * apart && (k - first) % apart == 0) program.wait();
      }
      program.end();
    }
    return find_by_rule(program.trace(), "tiny-kernels").value_or(Finding()).action;
  };
  const Sentence in_loss = with_waits_at(125, 2);  // 125 launches, three times 2, and 119
  ASSERT_EQ(in_loss.values.size(), 5u);
  EXPECT_EQ(in_loss.values[4].text, "two parts");
  EXPECT_EQ(in_loss.values[3].text, "");
  EXPECT_NEAR(in_loss.values[2].real, 244.0 / 250.0, 1e-9);
  const Sentence around = with_waits_at(125, 9);  // 125 and 98 without waits
  EXPECT_THAT(around.pattern, ::testing::HasSubstr("on code without waits"));
  ASSERT_EQ(around.values.size(), 5u);
  EXPECT_NEAR(around.values[0].real, 223.0 / 250.0, 1e-9);
  EXPECT_EQ(around.values[2].text, "two parts");
  EXPECT_EQ(around.values[3].integer, 4);
  // 70 launches, three times 45, and 45: less than half in two parts, none of them of 100.
  EXPECT_THAT(with_waits_at(70, 45).pattern, ::testing::StartsWith("First remove"));
}

// A solver that asks after each round whether to go on: seven rounds of 120 launches hold 840 of 847. Rounds that differ in what they
// launch need a graph each.
TEST(TinyKernelsTest, LetsWaitsStayBetweenEqualRounds) {
  const auto action = [](bool are_equal) {
    ProgramSketch program;
    program.steps(3, [&](ProgramSketch& p) {
      for (int round = 0; round < 7; ++round) {
        for (int k = 0; k < 120; ++k)
          p.launch({.name = !are_equal && k == round ? "other" : "add", .us = 2});
        p.wait().launch({.us = 2}).wait();
      }
    });
    return find_by_rule(program.trace(), "tiny-kernels").value_or(Finding()).action;
  };
  const Sentence equal = action(true);
  EXPECT_THAT(equal.pattern, ::testing::HasSubstr("can stay"));
  ASSERT_EQ(equal.values.size(), 4u);
  EXPECT_EQ(equal.values[0].integer, 120);
  EXPECT_EQ(equal.values[1].integer, 7);
  EXPECT_THAT(action(false).pattern, ::testing::StartsWith("First remove"));
}

// Two waits around each of seven rounds; a step ends with an optimizer that launches and waits for each of `own` products. Only the launches of
// the rounds become cheaper, and if the optimizer has most launches, no graph of them is the fix.
TEST(TinyKernelsTest, CountsOnlyThePartsThatAGraphWouldHold) {
  const auto found = [](int own, const char* range) {
    ProgramSketch program;
    program.steps(3, [&](ProgramSketch& p) {
      for (int round = 0; round < 7; ++round) {
        for (int k = 0; k < 120; ++k) p.launch({.us = 2});
        p.wait().launch({.us = 2}).wait();
      }
      p.begin(range);
      for (int k = 0; k < own; ++k) p.launch({.us = 2, .op = "aten::dot"}).wait();
      p.end();
    });
    return find_by_rule(program.trace(), "tiny-kernels").value_or(Finding());
  };
  const Finding few = found(40, "Optimizer.step#LBFGS.step");
  EXPECT_THAT(few.action.pattern, ::testing::HasSubstr("can stay"));
  const Finding none = found(0, "Optimizer.step#LBFGS.step");
  EXPECT_THAT(none.action.pattern, ::testing::HasSubstr("can stay"));
  EXPECT_GT(none.at_stake_ns, 0);
  EXPECT_EQ(few.at_stake_ns, none.at_stake_ns);
  const Finding most = found(900, "Optimizer.step#LBFGS.step");
  EXPECT_THAT(most.action.pattern, ::testing::HasSubstr("history_size"));
  EXPECT_THAT(found(900, "Optimizer.step#Other.step").action.pattern,
              ::testing::StartsWith("First remove"));
}

// A value that a wait copies to the CPU is no launch that a graph would hold: one part of 230 launches, then 160 reads.
TEST(TinyKernelsTest, ValuesThatWaitsReadAreNoParts) {
  const auto action = [](std::int64_t size) {
    ProgramSketch program;
    program.steps(3, [&](ProgramSketch& p) {
      for (int k = 0; k < 230; ++k) p.launch({.us = 2});
      for (int k = 0; k < 160; ++k)
        p.begin_op("aten::item").copy(1, size, "Memcpy DtoH (Device -> Pageable)").end().wait();
      p.launch({.us = 2});
    });
    return find_by_rule(program.trace(), "tiny-kernels").value_or(Finding()).action.pattern;
  };
  EXPECT_THAT(action(8), ::testing::HasSubstr("can stay"));
  EXPECT_THAT(action(1'000), ::testing::HasSubstr("on code without waits"));  // 231 of 391
}

// torch.compile does not support double backward.
TEST(TinyKernelsTest, DoesNotCompileABackwardPassThatIsDifferentiated) {
  const auto action = [](const std::string& node) {
    ProgramSketch program;
    program.steps(3, [&](ProgramSketch& p) {
      for (int k = 0; k < 250; ++k) p.launch({.us = 2});
      p.begin_op("autograd::engine::evaluate_function: " + node).kernel("mul", 2).end();
    });
    return find_by_rule(program.trace(), "tiny-kernels").value_or(Finding()).action.pattern;
  };
  EXPECT_THAT(action("TanhBackwardBackward0"), ::testing::HasSubstr("as a CUDA graph"));
  EXPECT_THAT(action("TanhBackward0"), ::testing::StartsWith("Use torch.compile(model, mode"));
}

// An optimizer's step is no part of that backward pass.
TEST(TinyKernelsTest, JoinsTheOptimizersLaunchesNextToADoubleBackward) {
  ProgramSketch program;
  program.steps(3, [&](ProgramSketch& p) {
    p.begin_op("autograd::engine::evaluate_function: TanhBackwardBackward0");
    p.kernel("mul", 2).end().begin("Optimizer.step#MyOpt.step");
    for (int k = 0; k < 250; ++k) p.launch({.us = 2});
    p.end();
  });
  const auto finding = find_by_rule(program.trace(), "tiny-kernels");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::StartsWith("Pass fused=True"));
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("torch.compile(optimizer.step)"));
}

// So many tasks a step: each has a forward pass of 120 / tasks launches and, on autograd's thread, a backward pass of twice as many.
std::string action_for_tasks(int tasks, const std::string& node) {
  testing::Sketch sketch;
  std::int64_t now = us(1000), id = 0;
  const auto call = [&](const std::string& op, int launches, std::int64_t tid) {
    const std::int64_t start = now;
    for (int k = 0; k < launches; ++k, now += us(10)) {
      sketch.runtime("cudaLaunchKernel", now + us(1), us(4), {.tid = tid, .correlation = ++id});
      sketch.kernel("add", now + us(6), us(2), {.correlation = id});
    }
    sketch.op(op, start, now - start, {.tid = tid});
    now += us(1);
  };
  for (int step = 0; step < 4; ++step) {
    const std::int64_t start = now;
    for (int task = 0; task < tasks; ++task) {
      call("aten::linear", 60 / tasks, 100);
      call("aten::mse_loss", 60 / tasks, 100);
      call("autograd::engine::evaluate_function: MseLossBackward0", 120 / tasks, 200);
      call("autograd::engine::evaluate_function: " + node, 120 / tasks, 200);
    }
    sketch.annotation("ProfilerStep#" + std::to_string(step + 1), start, now - start);
    now += us(1);
  }
  return find_by_rule(sketch.trace(), "tiny-kernels").value_or(Finding()).action.pattern;
}

TEST(TinyKernelsTest, OffersOneBatchOverEqualRoundsThatAreDifferentiatedTwice) {
  EXPECT_THAT(action_for_tasks(6, "TanhBackwardBackward0"),
              ::testing::HasSubstr("torch.func.vmap"));
  EXPECT_THAT(action_for_tasks(1, "TanhBackwardBackward0"),
              ::testing::StartsWith("Capture the step"));
  EXPECT_THAT(action_for_tasks(6, "TanhBackward0"), ::testing::StartsWith("Use torch.compile"));
}

// A product whose first size is another in each of 250 rounds.
TEST(TinyKernelsTest, AdvisesEqualSizesForALoopOfUnequalOnes) {
  ProgramSketch program;
  program.steps(3, [](ProgramSketch& p) {
    for (int k = 0; k < 250; ++k) {
      const std::string rows = std::to_string(16 + 7 * k % 50);
      p.begin_op("aten::mm", {.input_dims = "[[" + rows + ", 64], [64, 64]]",
                              .input_types = R"(["float", "float"])"});
      p.pass(8).kernel("gemm", 2).end();
    }
  });
  const auto finding = find_by_rule(program.trace(), "tiny-kernels");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("pad to one size"));
}

// Words are chosen one by one, and no shapes show whether the cache grows. A classifier takes argmax, too, but attends to no cache.
TEST(TinyKernelsTest, NamesTheCacheAsAConditionWithoutShapes) {
  const auto action = [](std::string_view attention) {
    ProgramSketch program;
    for (int i = 0; i < 6; ++i) {
      program.step().launch({.us = 2, .op = "aten::embedding"});
      for (int k = 0; k < 250; ++k)
        program.launch({.us = 2, .op = k % 10 ? "aten::add" : attention});
      program.launch({.us = 2, .op = "aten::argmax"}).end();
    }
    const auto finding = find_by_rule(program.trace(), "tiny-kernels");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("aten::scaled_dot_product_attention"),
              ::testing::StartsWith("Keep the KV cache at one length"));
  EXPECT_THAT(action("aten::linear"), ::testing::StartsWith("Use torch.compile(model"));
}

// Five words a step, two waits a word around its pass. A batch has more rows, unless the rows are what a loop goes through.
TEST(TinyKernelsTest, AdvisesALargerBatchToALoopThatChoosesWords) {
  const auto action = [](bool takes_rows) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int word = 0; word < 5; ++word) {
        p.launch({.us = 2, .op = "aten::embedding"}).wait("aten::is_nonzero");
        for (int k = 0; k < 50; ++k) {
          if (takes_rows) p.cpu_op("aten::select", 2);
          p.launch({.us = 2, .op = k == 25 ? "aten::scaled_dot_product_attention" : "aten::add"});
        }
        p.launch({.us = 2, .op = "aten::argmax"}).wait("aten::is_nonzero");
      }
      p.launch({.us = 2});
    });
    return find_by_rule(program.trace(), "tiny-kernels").value_or(Finding()).action.pattern;
  };
  EXPECT_EQ(action(false),
            "Keep the KV cache at one length (a static cache, masked), then "
            "torch.compile(mode=\"reduce-overhead\"); or a larger batch");
  EXPECT_THAT(action(true), ::testing::Not(::testing::HasSubstr("batch")));
}

TEST(TinyKernelsTest, IsQuietWhenTheGpuKeepsUp) {
  EXPECT_FALSE(find_by_rule(loop(3, 250, {.us = 9, .call_us = 2}, 0).trace(), "tiny-kernels"));
  EXPECT_FALSE(find_by_rule(loop(3, 50, {.us = 2}).trace(), "tiny-kernels"));  // few
}

// A cache of keys that grows by a word in each step: no graph replays other shapes. A list of words may grow.
TEST(TinyKernelsTest, AdvisesAStaticCacheBeforeACudaGraph) {
  const auto action = [](const std::string& before, const std::string& after) {
    ProgramSketch program;
    int length = 10;
    program.steps(6, [&](ProgramSketch& p) {
      const std::string dims = "[[[" + before + std::to_string(length++) + after + "], [" + before +
                               "1" + after + "]], []]";
      p.launch({.us = 2, .op = "aten::cat", .dims = dims});
      for (int k = 0; k < 250; ++k) p.launch({.us = 2});
    });
    return find_by_rule(program.trace(), "tiny-kernels")->action.pattern;
  };
  EXPECT_THAT(action("1, 8, ", ", 64"), ::testing::HasSubstr("static KV cache"));
  EXPECT_THAT(action("1, ", ""), ::testing::StartsWith("Use torch.compile(model, mode"));
}

// Of 32 rows each goes through eight operators. The results are stacked; or they are not, or are fewer.
TEST(TinyKernelsTest, AdvisesOneCallForRowsThatAreStackedAgain) {
  const auto action = [](int stacked) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::unbind",
                 {.input_dims = "[[32, 3, 64, 64], []]", .input_types = R"(["float", "Scalar"])"})
          .end();
      for (int k = 0; k < 256; ++k) p.launch({.us = 2});
      std::string rows;
      for (int i = 0; i < stacked; ++i) rows += i == 0 ? "[3, 64, 64]" : ", [3, 64, 64]";
      p.launch({.us = 2, .op = "aten::stack", .dims = "[[" + rows + "], []]"});
    });
    return find_by_rule(program.trace(), "tiny-kernels")->action.pattern;
  };
  EXPECT_THAT(action(32), ::testing::HasSubstr("once for the batch"));
  EXPECT_THAT(action(16), ::testing::StartsWith("Use torch.compile(model, mode"));
}

// Attention of one query to 10, 11, 12, ... words of a buffer, or always to 10.
TEST(TinyKernelsTest, AdvisesAMaskForACacheThatIsReadInParts) {
  const auto action = [](int more) {
    ProgramSketch program;
    int length = 10;
    program.steps(8, [&](ProgramSketch& p) {
      p.begin_op("aten::scaled_dot_product_attention",
                 {.input_dims = "[[1, 8, 1, 64], [1, 8, " + std::to_string(length) + ", 64], []]",
                  .input_types = R"(["c10::Half", "c10::Half", ""])"});
      p.kernel("flash_fwd", 2).end();
      length += more;
      for (int k = 0; k < 250; ++k) p.launch({.us = 2});
    });
    return find_by_rule(program.trace(), "tiny-kernels")->action.pattern;
  };
  EXPECT_THAT(action(1), ::testing::HasSubstr("static KV cache"));
  EXPECT_THAT(action(0), ::testing::StartsWith("Use torch.compile(model, mode"));
}

// torch records no shapes of a list of 32 tensors: what reads the result has as many rows.
TEST(TinyKernelsTest, KnowsALongListByWhatReadsIt) {
  const auto action = [](const char* read) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.begin_op("aten::unbind",
                 {.input_dims = "[[32, 3, 64, 64], []]", .input_types = R"(["float", "Scalar"])"})
          .end();
      for (int k = 0; k < 256; ++k) p.launch({.us = 2});
      p.launch({.us = 2, .op = "aten::stack", .dims = "[[], []]"});
      p.begin_op("aten::conv2d", {.input_dims = read, .input_types = R"(["float"])"});
      p.kernel("conv", 2).end();
    });
    return find_by_rule(program.trace(), "tiny-kernels")->action.pattern;
  };
  EXPECT_THAT(action("[[32, 3, 64, 64]]"), ::testing::HasSubstr("once for the batch"));
  EXPECT_THAT(action("[[8, 3, 64, 64]]"), ::testing::StartsWith("Use torch.compile(model, mode"));
}

}  // namespace
}  // namespace lanescope::explain

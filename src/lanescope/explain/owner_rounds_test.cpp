#include "lanescope/explain/owner_rounds.h"

#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/owner_advice.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields rows(std::int64_t count) {
  return {.input_dims = "[[1, " + std::to_string(count) + ", 64], [64, 64]]",
          .input_types = R"(["float", "float"])"};
}

// A step on the CPU: ten rounds of a product of so many rows, 100 us, and a cat of 10.
Trace draw_rounds(std::int64_t first, std::int64_t more, bool even = true) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (std::int64_t round = 0; round < 10; ++round) {
      const std::int64_t at = even ? round : round * 3 % 10;
      p.begin_op("aten::linear", rows(first + at * more)).pass(98).end();
      p.begin_op("aten::cat", rows(first + at * more)).pass(8).end();
    }
  });
  return program.trace();
}

struct ExplainedRounds {
  explicit ExplainedRounds(Trace made) : trace(std::move(made)), facts(*gather_facts(trace)) {}
  const Owner& first() const { return step_owners(facts)->owners.at(0); }
  Trace trace;
  Facts facts;
};

TEST(OwnerRoundsTest, ASizeGrowsRoundByRound) {
  const ExplainedRounds explained(draw_rounds(32, 1));
  const Owner& owner = explained.first();
  EXPECT_EQ(owner.sizes.op, "aten::linear");
  EXPECT_EQ(owner.sizes.least, 32);
  EXPECT_EQ(owner.sizes.most, 41);
  EXPECT_TRUE(owner.sizes.grows);
  EXPECT_NE(remedy_of_rounds(explained.facts, owner).pattern.find("KV cache"), std::string::npos);
}

// The mask of a decoder with a KV cache grows by one in each round as well.
TEST(OwnerRoundsTest, AGrowingMaskIsNoSignOfRowsThatAreComputedAgain) {
  const ExplainedRounds explained(draw_rounds(32, 1));
  Owner owner = explained.first();
  owner.sizes.op = "aten::pad";
  EXPECT_TRUE(remedy_of_rounds(explained.facts, owner).pattern.empty());
}

TEST(OwnerRoundsTest, ASizeChangesFromRoundToRound) {
  const ExplainedRounds explained(draw_rounds(32, 8, false));
  EXPECT_EQ(explained.first().sizes.most, 104);
  EXPECT_FALSE(explained.first().sizes.grows);
  EXPECT_NE(remedy_of_rounds(explained.facts, explained.first()).pattern.find("pad"),
            std::string::npos);
}

// From 104 rows down to 32: each round may work on what the one before left.
TEST(OwnerRoundsTest, ASizeFallsRoundByRound) {
  const ExplainedRounds explained(draw_rounds(104, -8));
  EXPECT_TRUE(explained.first().sizes.falls);
  EXPECT_FALSE(explained.first().sizes.grows);
  EXPECT_NE(remedy_of_rounds(explained.facts, explained.first()).pattern.find("all at once"),
            std::string::npos);
}

// One backward pass through pieces that were compiled one by one.
TEST(OwnerRoundsTest, PartsOfOneBackwardPassAreNoMicroBatches) {
  const ExplainedRounds explained(draw_rounds(32, 0));
  Owner owner = explained.first();
  owner.cell = {"CompiledFunctionBackward", "torch::autograd::AccumulateGrad"};
  EXPECT_EQ(remedy_of_rounds(explained.facts, owner).pattern.find("micro batches"),
            std::string::npos);
  owner.cell = {"aten::linear", "AddmmBackward0", "torch::autograd::AccumulateGrad"};
  EXPECT_NE(remedy_of_rounds(explained.facts, owner).pattern.find("micro batches"),
            std::string::npos);
}

// Nine chunks of 64 rows, and what is left in the last one.
TEST(OwnerRoundsTest, AShorterLastChunkIsNoChangeOfSize) {
  const auto sizes_of = [](int last_rounds) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int round = 0; round < 10; ++round) {
        p.begin_op("aten::linear", rows(round >= 10 - last_rounds ? 16 : 64)).pass(98).end();
        p.begin_op("aten::cat", rows(64)).pass(8).end();
      }
    });
    return ExplainedRounds(program.trace()).first().sizes;
  };
  EXPECT_TRUE(sizes_of(1).op.empty());
  EXPECT_EQ(sizes_of(4).op, "aten::linear");
}

// LBFGS calls its closure, with a forward and a backward pass, several times in a step.
TEST(OwnerRoundsTest, RoundsInsideOfAnOptimizersStepAreCallsOfItsClosure) {
  const ExplainedRounds explained(draw_rounds(32, 0));
  Owner owner = explained.first();
  owner.has_backward = owner.adds_gradients = true;
  EXPECT_NE(remedy_of_rounds(explained.facts, owner).pattern.find("micro batches"),
            std::string::npos);
  owner.around = {"Optimizer.step#LBFGS.step"};
  EXPECT_TRUE(remedy_of_rounds(explained.facts, owner)
                  .pattern.starts_with("Each round is a call of the optimizer's closure"));
}

TEST(OwnerRoundsTest, EqualConvolutionsMayBeOneInGroups) {
  const ExplainedRounds explained(draw_rounds(32, 0));
  Owner owner = explained.first();
  owner.cell = {"aten::conv2d"};
  owner.cell_size = 1;
  owner.rounds = 96;
  owner.loops = 3;
  const Sentence remedy = remedy_of_rounds(explained.facts, owner);
  EXPECT_NE(remedy.pattern.find("groups="), std::string::npos);
  EXPECT_EQ(remedy.values.at(0).integer, 32);
  owner.cell = {"aten::linear"};
  EXPECT_TRUE(remedy_of_rounds(explained.facts, owner).pattern.empty());
}

// A product holds the work of a round on a GPU, also where another operator takes the CPU longer.
TEST(OwnerRoundsTest, TheSizeIsThatOfAProductWhereOneChanges) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (std::int64_t round = 0; round < 10; ++round) {
      p.begin_op("aten::linear", rows(32 + round)).pass(48).end();
      p.begin_op("aten::scaled_dot_product_attention", rows(32 + round)).pass(98).end();
    }
  });
  EXPECT_EQ(ExplainedRounds(program.trace()).first().sizes.op, "aten::linear");
}

// Equal rounds, and parts of one tensor that do not divide evenly.
TEST(OwnerRoundsTest, EqualSizesAreNotRemarkedOn) {
  EXPECT_TRUE(ExplainedRounds(draw_rounds(32, 0)).first().sizes.op.empty());
  EXPECT_TRUE(ExplainedRounds(draw_rounds(5000, 1, false)).first().sizes.op.empty());
}

// A product of 32 rows is a layer; one of a single row may be a sample.
TEST(OwnerRoundsTest, OneCallForAllRoundsIsNotForLayers) {
  const ExplainedRounds layers(draw_rounds(32, 0)), samples(draw_rounds(1, 0));
  EXPECT_FALSE(has_remedy(layers.facts, layers.first()));
  EXPECT_TRUE(has_remedy(samples.facts, samples.first()));
}

// Of ten equal calls a step one takes 2,100 us instead of 100: 1,900 more than twice the median.
TEST(OwnerRoundsTest, CallsBeyondTwiceTheMedianAreSummed) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int round = 0; round < 10; ++round)
      p.begin_op("aten::linear", rows(32)).pass(round == 4 ? 2098 : 98).end();
  });
  const ExplainedRounds explained(program.trace());
  EXPECT_EQ(explained.first().work.uneven_ns, us(1900) * 3);  // three steady steps
  EXPECT_NE(
      more_of_rounds(explained.facts, explained.first()).pattern.find("slower than equal ones"),
      std::string::npos);
}

TEST(OwnerRoundsTest, KnowsMicroBatchesAndDifferentiatedBackwardPasses) {
  const ExplainedRounds explained(draw_rounds(32, 0));
  Owner owner = explained.first();
  owner.cell = {"aten::linear", "AddmmBackward0", "torch::autograd::AccumulateGrad"};
  EXPECT_NE(remedy_of_rounds(explained.facts, owner).pattern.find("micro batches"),
            std::string::npos);
  EXPECT_EQ(remedy_of_rounds(explained.facts, owner).pattern.find("clip"), std::string::npos);
  // The losses of one batch, each with a backward pass: no batch in the rounds.
  Owner losses = owner;
  losses.cell.erase(losses.cell.begin());
  losses.parts.clear();
  losses.has_backward = losses.adds_gradients = true;
  EXPECT_TRUE(remedy_of_rounds(explained.facts, losses).pattern.empty());
  owner.cell.insert(owner.cell.end(), {"aten::linalg_vector_norm", "aten::mul_"});
  EXPECT_NE(remedy_of_rounds(explained.facts, owner).pattern.find("clip once"), std::string::npos);
  owner.cell.push_back("ThresholdBackwardBackward0");
  EXPECT_NE(remedy_of_rounds(explained.facts, owner).pattern.find("penalty"), std::string::npos);
  owner.cell = {"aten::add_"};
  owner.around = {"Optimizer.step#SGD.step"};
  EXPECT_NE(remedy_of_rounds(explained.facts, owner).pattern.find("fused=True"), std::string::npos);
  owner.around = {"Optimizer.step#Adafactor.step"};  // has no fused form
  EXPECT_EQ(remedy_of_rounds(explained.facts, owner).pattern.find("fused=True"), std::string::npos);
}

// Four parameters are enough for a quarter of a step on a CPU, three are not; else it takes eight.
TEST(OwnerRoundsTest, AnOptimizerOfFewParametersIsToBeFusedOnACpu) {
  const auto is_told = [](bool on_gpu, std::uint64_t rounds, std::int64_t of_1000_us = 300) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      if (on_gpu) p.kernel("gemm", 10).wait();
      for (int round = 0; round < 10; ++round) p.cpu_op("aten::lerp_", 100);
    });
    const ExplainedRounds explained(program.trace());
    Owner owner;
    owner.kind = OwnerKind::kLoop;
    owner.rounds = rounds;
    owner.loops = 1;
    owner.total_ns = us(of_1000_us) * 3;  // of three steady steps
    owner.cell = {"aten::lerp_"};
    owner.cell_size = 1;
    owner.around = {"Optimizer.step#Adam.step"};
    return remedy_of_rounds(explained.facts, owner).pattern.find("fused=True") != std::string::npos;
  };
  EXPECT_TRUE(is_told(false, 4));
  EXPECT_FALSE(is_told(false, 3));
  EXPECT_FALSE(is_told(false, 4, 200));
  EXPECT_TRUE(is_told(true, 8));
  EXPECT_FALSE(is_told(true, 7));
}

// Rounds of a program's operators on one thread and of autograd's nodes on another: 8 tasks of `inner` passes by autograd.grad()
// and one by backward(), or as many micro batches.
Trace draw_tasks(int inner, bool adds) {
  constexpr const char* kNode = "autograd::engine::evaluate_function: ";
  testing::Sketch sketch;
  std::int64_t now = us(1000);
  for (int step = 0; step < 4; ++step) {
    const std::int64_t start = now;
    for (int task = 0; task < 8; ++task) {
      for (int pass = 0; pass <= inner; ++pass) {
        sketch.op("aten::linear", now, us(20), rows(32)).op("aten::mse_loss", now + us(20), us(10));
        if (pass < inner) sketch.op("aten::sub", now + us(64), us(4));  // w - lr * gradient
        const testing::Fields other{.tid = 200};
        sketch.op(std::string(kNode) + "MseLossBackward0", now + us(32), us(10), other);
        sketch.op(std::string(kNode) + "AddmmBackward0", now + us(42), us(20), other);
        if (adds && pass == inner)
          sketch.op(std::string(kNode) + "torch::autograd::AccumulateGrad", now + us(62), us(5),
                    other);
        now += us(70);
      }
    }
    sketch.annotation("ProfilerStep#" + std::to_string(step + 1), start, now - start);
    now += us(1);
  }
  return sketch.trace();
}

TEST(OwnerRoundsTest, CountsThePassesOfARound) {
  const ExplainedRounds micro(draw_tasks(0, true));
  ASSERT_TRUE(micro.first().has_backward);
  EXPECT_TRUE(micro.first().adds_gradients);
  EXPECT_EQ(micro.first().backward_passes, 1u);
  const ExplainedRounds tasks(draw_tasks(2, true));
  ASSERT_TRUE(tasks.first().has_backward);
  EXPECT_TRUE(tasks.first().adds_gradients);
  EXPECT_EQ(tasks.first().backward_passes, 3u);
  EXPECT_FALSE(ExplainedRounds(draw_tasks(2, false)).first().adds_gradients);
}

// A loop with a backward pass in each round. One pass that adds to gradients: micro batches. None that does where others do, or
// several: tasks.
TEST(OwnerRoundsTest, TellsTasksFromMicroBatches) {
  const auto remedy = [](bool some_add, bool adds, std::size_t passes) {
    const ExplainedRounds explained(draw_tasks(0, some_add));
    Owner owner = explained.first();
    owner.cell = {"aten::linear"};
    owner.has_backward = true;
    owner.adds_gradients = adds;
    owner.backward_passes = passes;
    return remedy_of_rounds(explained.facts, owner).pattern;
  };
  EXPECT_NE(remedy(true, true, 1).find("micro batches"), std::string::npos);
  EXPECT_NE(remedy(true, false, 1).find("vmap over them"), std::string::npos);
  EXPECT_NE(remedy(true, true, 3).find("vmap over them"), std::string::npos);
  EXPECT_NE(remedy(false, false, 1).find("micro batches"), std::string::npos);
}

// Eight micro batches for each step of an optimizer, or for two of them.
TEST(OwnerRoundsTest, MicroBatchesOfOneOptimizerStepMayBeOneBatch) {
  const auto remedy = [](int optimizer_steps, std::int64_t used_gib = 0) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int round = 0; round < 8; ++round) p.begin_op("aten::linear", rows(32)).pass(98).end();
      for (int i = 0; i < optimizer_steps; ++i)
        p.begin("Optimizer.step#SGD.step").cpu_op("aten::add_", 10).end();
    });
    program.sketch().metadata("deviceProperties",
                              R"([{"id": 0, "name": "GPU", "totalGlobalMem": 85899345920}])");
    if (used_gib > 0)
      program.sketch().memory_at(us(1050), 100,
                                 {.address = 1, .allocated = 1, .reserved = used_gib << 30U});
    const ExplainedRounds explained(program.trace());
    Owner owner = explained.first();
    owner.kind = OwnerKind::kLoop;
    owner.cell = {"aten::linear"};
    owner.rounds = std::uint64_t{8} * 3;  // of three steady steps
    owner.loops = 3;
    owner.has_backward = owner.adds_gradients = owner.has_large_products = true;
    owner.backward_passes = 1;
    return remedy_of_rounds(explained.facts, owner).pattern;
  };
  EXPECT_EQ(remedy(1),
            "{} micro batches for each optimizer step: if memory allows, one batch of all");
  EXPECT_NE(remedy(1, 40).find("({} of {} in use)"), std::string::npos);
  EXPECT_TRUE(remedy(1, 79).empty());  // of 80 GiB
  EXPECT_NE(remedy(2).find("larger micro batches"), std::string::npos);
  EXPECT_NE(remedy(0).find("larger micro batches"), std::string::npos);
}

// Eight micro batches a step: with an all-reduce in each, or one for all.
TEST(OwnerRoundsTest, KnowsMicroBatchesThatCommunicateEachTime) {
  const auto remedy = [](int reduces) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int round = 0; round < 8; ++round) {
        p.begin_op("aten::linear", rows(32)).pass(98).end();
        if (round < reduces) p.cpu_op("gloo:all_reduce", 10);
      }
    });
    const ExplainedRounds explained(program.trace());
    Owner owner = explained.first();
    owner.kind = OwnerKind::kLoop;
    owner.cell = {"aten::linear"};
    owner.rounds = std::uint64_t{8} * 3;  // of three steady steps
    owner.loops = 3;
    owner.has_backward = owner.adds_gradients = true;
    owner.backward_passes = 1;
    return remedy_of_rounds(explained.facts, owner).pattern;
  };
  EXPECT_NE(remedy(8).find("no_sync()"), std::string::npos);
  EXPECT_EQ(remedy(1).find("no_sync()"), std::string::npos);
  EXPECT_NE(remedy(1).find("micro batches"), std::string::npos);
}

// y[mask] = f(y[mask]): both sides wait for the size, and all other rows stay.
TEST(OwnerRoundsTest, RowsThatAMaskChoosesAreNotWhatIsLeft) {
  const ExplainedRounds explained(draw_rounds(104, -8));
  Owner owner = explained.first();
  owner.cell = {"aten::index", "aten::linear", "aten::index_put_"};
  owner.work.size_waits = 2 * owner.rounds;
  EXPECT_NE(remedy_of_rounds(explained.facts, owner).pattern.find("torch.where"),
            std::string::npos);
  owner.work.size_waits = owner.rounds;  // a list of places, which a mask made
  EXPECT_NE(remedy_of_rounds(explained.facts, owner).pattern.find("all at once"),
            std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain

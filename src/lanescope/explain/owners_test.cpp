#include "lanescope/explain/owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/explain/drawn_owners_test.h"
#include "lanescope/explain/owner_advice.h"
#include "lanescope/explain/owner_mechanism.h"
#include "lanescope/explain/owner_words.h"
#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_lock_test.h"

namespace lanescope::explain {
namespace {

using simulate::PathKind;
using testing::ProgramSketch;

TEST(OwnersTest, ALoopOfLaunchesOwnsTheWaitsForThem) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin("forward");
    for (int i = 0; i < 64; ++i) p.launch({.us = 2});
    p.end();
  });
  const ExplainedOwners explained(program);
  const Owner& owner = explained.first();
  EXPECT_EQ(owner.kind, OwnerKind::kLoop);
  EXPECT_THAT(owner.cell, ::testing::ElementsAre("aten::mm"));
  EXPECT_THAT(owner.around, ::testing::ElementsAre("forward"));
  EXPECT_EQ(owner.rounds, 64 * owner.loops);
  EXPECT_EQ(owner.work.launches, owner.rounds);
  EXPECT_EQ(explained.mechanism(), Mechanism::kLaunching);
  EXPECT_GT(owner.total_ns * 10, explained.owners().total_ns * 9);
}

// Loops of equal calls are one owner, however many rounds each has.
TEST(OwnersTest, LoopsOfOtherLengthsAreNamedByTheirRounds) {
  const auto name_of = [](const std::vector<int>& rounds) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (const int count : rounds) {
        for (int i = 0; i < count; ++i)
          p.launch({.us = 1, .op = "aten::mul"}).launch({.us = 1, .op = "aten::add"});
        p.launch({.us = 1, .op = "aten::relu"});
      }
    });
    const Trace trace = program.trace();
    const auto facts = gather_facts(trace);
    return owner_name(*facts, step_owners(*facts)->owners.at(0));
  };
  const Sentence two = name_of({20, 8});
  EXPECT_TRUE(two.pattern.starts_with("{} loops of {} and {} rounds")) << two.pattern;
  EXPECT_EQ(two.values.at(1).integer, 8);
  EXPECT_EQ(two.values.at(2).integer, 20);
  EXPECT_TRUE(name_of({20, 8, 9}).pattern.starts_with("{} loops of {} to {} rounds"));
  EXPECT_TRUE(name_of({20, 20}).pattern.starts_with("{} loops of {} rounds"));
}

// Of 30 us a round, 12 are in cudaMalloc: more than a quarter. 6 are less.
TEST(OwnersTest, LaunchesWithAQuarterInTheAllocatorAreAllocating) {
  const auto mechanism = [](std::int64_t malloc_us) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 16; ++i) {
        p.begin_op("aten::empty").call("cudaMalloc", malloc_us).end();
        p.launch({.us = 2}).pass(18 - malloc_us);
      }
    });
    const ExplainedOwners explained(program);
    EXPECT_EQ(explained.first().work.allocator_calls, 48);
    return explained.mechanism();
  };
  EXPECT_EQ(mechanism(12), Mechanism::kAllocating);
  EXPECT_EQ(mechanism(6), Mechanism::kLaunching);
}

// Samples of the launching thread, one per microsecond, all in one function.
TEST(OwnersTest, SamplesNameTheCodeBetweenOperators) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.launch({.us = 20, .op = "aten::mm"}).wait("aten::item").pass(2000);
    p.launch({.us = 20, .op = "aten::add"});
  });
  sampled(program, {.function = "train.py(17): augment", .self = 30'000});
  const ExplainedOwners explained(program);
  const Owner& owner = explained.first();
  EXPECT_EQ(owner.kind, OwnerKind::kCode);
  ASSERT_TRUE(owner.sampled);
  EXPECT_EQ(owner.sampled->function, "train.py(17): augment");
  EXPECT_EQ(owner.sampled->samples, owner.sampled->of);
  EXPECT_THAT(mechanism_text(explained.facts, owner).pattern,
              ::testing::StartsWith("code, about {} ({} of {} samples) in {}"));
  EXPECT_EQ(record_more(explained.facts, owner), "");
}

TEST(OwnersTest, AHoleOfPythonIsNamedByItsNeighbours) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.launch({.us = 20, .op = "aten::mm"}).wait("aten::item").pass(2000);
    p.launch({.us = 20, .op = "aten::add"});
  });
  const ExplainedOwners explained(program);
  const Owner& owner = explained.first();
  EXPECT_EQ(owner.kind, OwnerKind::kCode);
  EXPECT_EQ(owner.name, "aten::item");
  EXPECT_EQ(owner.next_name, "aten::add");
  EXPECT_EQ(explained.mechanism(), Mechanism::kCode);
  EXPECT_GE(owner.total_ns,
            2'000'000 * static_cast<std::int64_t>(explained.facts.selection.steady.size()));
}

TEST(OwnersTest, AnOperatorThatComputesOnTheCpuIsWork) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.launch({.us = 100}).wait().cpu_op("aten::repeat_interleave", 1500).launch({.us = 100});
  });
  const ExplainedOwners explained(program);
  EXPECT_EQ(explained.first().name, "aten::repeat_interleave");
  EXPECT_EQ(explained.mechanism(), Mechanism::kCpuWork);
  EXPECT_EQ(explained.first().work.launches, 0u);
}

// The advice for a loop of ten rounds of two operators that take so long on the CPU.
std::string advice_of_loop(const char* first, const char* second, std::int64_t us) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin("part");
    for (int i = 0; i < 10; ++i) p.cpu_op(first, us).cpu_op(second, us / 2);
    p.end();
  });
  const ExplainedOwners explained(program);
  EXPECT_EQ(explained.first().kind, OwnerKind::kLoop);
  return advice_text(explained.facts, explained.first()).pattern;
}

// One call for all rounds is no advice for nodes of the backward pass, which the program does not
// call, nor for calls that are long because they work.
TEST(OwnersTest, OnlyShortCallsOfTheProgramAreToBeBatched) {
  EXPECT_THAT(advice_of_loop("aten::dot", "aten::sub", 20), ::testing::HasSubstr("batch all"));
  EXPECT_THAT(advice_of_loop("AddmmBackward0", "GeluBackward0", 20),
              ::testing::Not(::testing::HasSubstr("batch all")));
  EXPECT_THAT(advice_of_loop("aten::linear", "aten::gelu", 2000),
              ::testing::Not(::testing::HasSubstr("batch all")));
}

// Each layer of an nn.Sequential takes what the one before it made: its rounds cannot be one batch.
TEST(OwnersTest, LayersOfASequentialAreNotToBeBatched) {
  const auto advice = [](const char* module) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      const std::int64_t start = p.cpu_us();
      for (int i = 0; i < 10; ++i) p.cpu_op("aten::dot", 20).cpu_op("aten::sub", 10);
      p.sketch().slice("python_function", module, us(start), us(p.cpu_us() - start));
    });
    const ExplainedOwners explained(program);
    EXPECT_EQ(explained.first().kind, OwnerKind::kLoop);
    return advice_text(explained.facts, explained.first()).pattern;
  };
  EXPECT_THAT(advice("nn.Module: Sequential_0"), ::testing::HasSubstr("needs the one before it:"));
  EXPECT_THAT(advice("nn.Module: Members_0"), ::testing::HasSubstr("batch all"));
}

// The operator with two fifths of the loop or more says how.
TEST(OwnersTest, OneCallForAllRoundsIsNamed) {
  EXPECT_THAT(advice_of_loop("aten::sort", "aten::sub", 20),
              ::testing::HasSubstr("all rounds ({})"));
  EXPECT_THAT(advice_of_loop("aten::sub", "aten::sort", 40),
              ::testing::Not(::testing::HasSubstr("({})")));
}

// Half of the loop is an operator of the table; an eighth is not enough.
TEST(OwnersTest, AKnownOperatorInALoopIsNamed) {
  EXPECT_THAT(advice_of_loop("aten::_weight_norm", "aten::linear", 40),
              ::testing::HasSubstr("parametrize.cached"));
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin("part");
    for (int i = 0; i < 10; ++i) p.cpu_op("aten::linear", 70).cpu_op("aten::_weight_norm", 10);
    p.end();
  });
  const ExplainedOwners explained(program);
  EXPECT_EQ(known_operator(explained.facts, explained.first()), nullptr);
}

// Singular values take most of the norm; in the second program a quarter of it.
TEST(OwnersTest, AKnownOperatorInsideAPartOfALoopIsNamed) {
  const auto advice = [](std::int64_t svd_us) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.begin("part");
      for (int i = 0; i < 10; ++i) {
        p.begin_op("aten::linalg_matrix_norm").cpu_op("aten::_linalg_svd", svd_us);
        p.cpu_op("aten::amax", 400 - svd_us).end().cpu_op("aten::add", 10);
      }
      p.end();
    });
    const ExplainedOwners explained(program);
    EXPECT_EQ(explained.first().kind, OwnerKind::kLoop);
    return advice_text(explained.facts, explained.first()).pattern;
  };
  EXPECT_THAT(advice(350), ::testing::HasSubstr("Factorise less often"));
  EXPECT_THAT(advice(100), ::testing::Not(::testing::HasSubstr("Factorise")));
}

// 30 us of an operator and 10 of another: three quarters of the loop. Three times 10 us: a third.
TEST(OwnersTest, TheLargestPartOfALoopHasItsShare) {
  ProgramSketch uneven, even;
  uneven.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 10; ++i) p.cpu_op("aten::index", 30).cpu_op("aten::add", 10);
  });
  even.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 10; ++i)
      p.cpu_op("aten::index", 10).cpu_op("aten::add", 10).cpu_op("aten::mul", 10);
  });
  const ExplainedOwners first(uneven), second(even);
  EXPECT_THAT(owner_text(first.facts, first.first()).pattern, ::testing::HasSubstr("({} {}, {})"));
  EXPECT_THAT(owner_text(second.facts, second.first()).pattern,
              ::testing::HasSubstr("({}, {}, {}"));
}

// Two kernels of one name that have nothing in common have no mean.
TEST(OwnersTest, UnlikeKernelsHaveNoMean) {
  const auto words = [](std::int64_t short_us) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.launch({.name = "div", .us = 1400, .op = "aten::div"});
      p.launch({.name = "div", .us = short_us, .op = "aten::div"});
    });
    const ExplainedOwners explained(program);
    return mechanism_text(explained.facts, explained.first());
  };
  EXPECT_THAT(words(2).pattern, ::testing::StartsWith("GPU work: {} kernels, mostly {};"));
  EXPECT_THAT(words(700).pattern, ::testing::StartsWith("GPU work: {} kernels, mostly {} of {}"));
}

TEST(OwnersTest, ALongKernelBelongsToTheOperatorThatLaunchedIt) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.launch({.name = "cdist_kernel", .us = 5000, .op = "aten::cdist"}).launch({.us = 50}).wait();
  });
  const ExplainedOwners explained(program);
  const Owner& owner = explained.first();
  EXPECT_EQ(owner.name, "aten::cdist");
  EXPECT_EQ(explained.mechanism(), Mechanism::kGpuWork);
  // The CPU's wait is not time of its own: the path goes through the kernel.
  EXPECT_GE(owner.of(PathKind::kCompute), 5'000'000);
  EXPECT_EQ(owner.work.top_kernel_ns, 5'000'000 * static_cast<std::int64_t>(owner.work.launches));
}

TEST(OwnersTest, ARangeOfManySmallPartsIsNamedAsAWhole) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin("tokenize");
    for (const char* op : {"aten::a", "aten::b", "aten::c", "aten::d", "aten::e", "aten::f"})
      p.launch({.us = 2, .op = op});
    p.end().begin("model");
    p.launch({.us = 10, .op = "aten::mm"}).end();
  });
  const ExplainedOwners explained(program);
  EXPECT_EQ(explained.first().kind, OwnerKind::kRange);
  EXPECT_EQ(explained.first().name, "tokenize");
  EXPECT_EQ(explained.first().parts.size(), 5u);
}

TEST(OwnersTest, NumberedRangesAreOne) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (const char* layer : {"layer_1", "layer_2"})
      p.begin(layer).launch({.us = 2, .op = "aten::mm"}).launch({.us = 2, .op = "aten::add"}).end();
  });
  const ExplainedOwners explained(program);
  std::vector<std::string> ranges;
  for (const Owner& owner : explained.owners().owners)
    ranges.push_back(owner.kind == OwnerKind::kRange ? owner.name : owner.around.at(0));
  EXPECT_THAT(ranges, ::testing::Each("layer_*"));
}

TEST(OwnersTest, OwnersAreDisjointAndKindsAddUp) {
  ProgramSketch program;
  program.steps(5, [](ProgramSketch& p) {
    p.begin("forward").launch({.us = 300}).pass(40).launch({.us = 3, .op = "aten::relu"}).end();
    p.wait().pass(700).begin("loss");
    for (int i = 0; i < 12; ++i) p.launch({.us = 2, .op = "aten::sub"}).cpu_op("aten::select", 9);
    p.end();
  });
  const ExplainedOwners explained(program);
  std::int64_t sum = 0, of_path = 0;
  for (const Owner& owner : explained.owners().owners) {
    std::int64_t kinds = 0;
    for (const std::int64_t time : owner.time_ns) kinds += time;
    EXPECT_EQ(kinds, owner.total_ns) << owner.name;
    sum += owner.total_ns;
  }
  for (const std::int64_t time : explained.owners().time_ns) of_path += time;
  EXPECT_EQ(of_path, explained.owners().total_ns);
  EXPECT_LE(sum, explained.owners().total_ns);
  EXPECT_GE(sum * 10, explained.owners().total_ns * 8);
}

TEST(OwnersTest, WhatHappensInOneStepSaysSo) {
  ProgramSketch program;
  int step = 0;
  program.steps(6, [&](ProgramSketch& p) {
    p.launch({.us = 100}).wait();
    if (++step == 4) p.launch({.us = 1, .op = "aten::sub"}).wait().pass(400);  // its own work
    p.launch({.us = 100, .op = "aten::add"});
  });
  const ExplainedOwners explained(program);
  for (const Owner& owner : explained.owners().owners)
    if (owner.kind == OwnerKind::kCode && owner.next_name == "aten::add") {
      EXPECT_GT(owner.most_in_a_step_ns * 10, owner.total_ns * 9);
      EXPECT_THAT(mechanism_text(explained.facts, owner).pattern,
                  ::testing::HasSubstr("in one step"));
      return;
    }
  FAIL() << "no owner is the code before aten::add";
}

TEST(OwnersTest, WithoutGpuWorkTheThreadOfTheStepsIsThePath) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 20; ++i) p.cpu_op("aten::dot", 10).cpu_op("aten::fill_", 2).pass(3);
    p.cpu_op("aten::mm", 60);
  });
  const ExplainedOwners explained(program);
  EXPECT_EQ(explained.first().kind, OwnerKind::kLoop);
  EXPECT_EQ(explained.first().cell_size, 2u);
  EXPECT_EQ(explained.mechanism(), Mechanism::kCpuWork);
  EXPECT_THAT(names_in(owner_text(explained.facts, explained.first())),
              ::testing::ElementsAre("aten::dot", "aten::fill_"));
}

// Twenty operators of 20 us that have nothing in common take more than the one of 300 us, which is named first.
TEST(OwnersTest, ManySmallPartsComeAfterWhatHasAName) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 20; ++i) p.cpu_op("aten::op" + std::to_string(i), 20);
    p.cpu_op("aten::istft", 300);
  });
  const ExplainedOwners explained(program);
  EXPECT_EQ(explained.first().name, "aten::istft");
  ASSERT_EQ(explained.owners().owners.size(), 2u);
  EXPECT_TRUE(explained.owners().owners[1].is_rest);
  EXPECT_GT(explained.owners().owners[1].total_ns, explained.first().total_ns);
}

// A recording without steps, of six batches that are one loop: 150 different short calls and one of 900 us. What takes the
// time inside is named. Few short calls stay a loop: that there are so many of them is the cause.
TEST(OwnersTest, ALoopThatIsTheRecordingIsNamedByItsParts) {
  const auto first = [](int calls, std::int64_t long_us) {
    ProgramSketch program;
    for (int i = 0; i < 20; ++i)
      program.cpu_op("aten::load" + std::to_string(i), 5);  // not found as iterations
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < calls; ++i) program.cpu_op("aten::op" + std::to_string(i), 5);
      program.cpu_op("aten::istft", long_us);
    }
    const ExplainedOwners explained(program);
    return std::pair(explained.first().kind, explained.first().name);
  };
  EXPECT_EQ(first(150, 900), std::pair(OwnerKind::kOperator, std::string("aten::istft")));
  EXPECT_EQ(first(20, 10).first, OwnerKind::kLoop);
}

// Ten times a step 58 us of recorded CPU time, half of it the profiler's, and a kernel. Where
// kernels of 35 us decide the step without the profiler, they own it: 350 us in each of five steady
// steps.
// Launches every 100 us of kernels that take 98: the path is the CPU's, and those kernels hide it.
TEST(OwnersTest, ACpuThatIsHiddenBehindTheGpuOwnsNothing) {
  for (const std::int64_t kernel_us : {98, 40}) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 10; ++i) p.pass(90).launch({.us = kernel_us});
    });
    const ExplainedOwners explained(program);
    if (kernel_us == 98)
      EXPECT_EQ(explained.mechanism(), Mechanism::kGpuWork);
    else
      EXPECT_NE(explained.mechanism(), Mechanism::kGpuWork);
  }
}

// Frames are in the trace already: no advice to record them.
TEST(OwnersTest, StacksThatAreRecordedAreNotAskedFor) {
  for (const bool has_frames : {false, true}) {
    ProgramSketch program;
    program.steps(4, [](ProgramSketch& p) { p.cpu_op("aten::conv2d", 900).pass(20); });
    if (has_frames)
      program.sketch().slice("python_function", "train.py(3): <module>", us(1000), us(3800));
    const ExplainedOwners explained(program);
    const Sentence advice = advice_text(explained.facts, explained.first());
    const std::string all =
        advice.pattern + (advice.values.empty() ? "" : advice.values.at(0).text);
    EXPECT_EQ(all.find("with_stack") != std::string::npos, !has_frames);
  }
}

// Kernels were launched and none is in the trace: what the operators take is not what they cost.
TEST(OwnersTest, AGpuThatWasNotRecordedIsAskedForFirst) {
  for (const bool launches : {true, false}) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.begin_op("aten::mm").pass(90);
      if (launches) p.call("cudaLaunchKernel", 5);
      p.end();
    });
    const ExplainedOwners explained(program);
    const std::string more = record_more(explained.facts, explained.first());
    EXPECT_EQ(more.starts_with("record the GPU too"), launches) << more;
  }
}

TEST(OwnersTest, WhatOnlyRecordingDelaysBelongsToTheGpuWork) {
  for (const std::int64_t kernel_us : {35, 10}) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      for (int i = 0; i < 10; ++i) {
        for (int k = 0; k < 12; ++k) p.cpu_op("aten::view", 4);
        p.launch({.us = kernel_us});
      }
    });
    const ExplainedOwners explained(program);
    if (kernel_us == 35) {
      EXPECT_EQ(explained.owners().total_ns, 5 * 10 * us(35));
      EXPECT_EQ(explained.mechanism(), Mechanism::kGpuWork);
    } else {
      EXPECT_GT(explained.owners().total_ns, 5 * 10 * us(50));
      EXPECT_NE(explained.mechanism(), Mechanism::kGpuWork);
    }
  }
}

// Four passes over one tensor in a range, 400 of 1300 us: the range owns them, unless one of them has most of its time.
TEST(OwnersTest, ManyShortPassesOfAFunctionAreOneOwner) {
  const auto owner = [](std::int64_t first_us, std::int64_t other_us) {
    ProgramSketch program;
    program.steps(6, [&](ProgramSketch& p) {
      p.launch({.us = 600, .op = "aten::mm"}).launch({.us = 300, .op = "aten::conv2d"});
      p.begin("draw").launch({.us = first_us, .op = "aten::div"});
      for (const char* op : {"aten::exp", "aten::add", "aten::amax"})
        p.launch({.us = other_us, .op = op});
      p.end();
    });
    const ExplainedOwners explained(program);
    for (const Owner& each : explained.owners().owners)
      if (each.name == "draw" || (!each.around.empty() && each.around.back() == "draw"))
        return std::pair(each.kind, each.total_ns);
    return std::pair(OwnerKind::kStep, std::int64_t{0});
  };
  EXPECT_EQ(owner(100, 100), std::pair(OwnerKind::kRange, 5 * us(400)));
  EXPECT_EQ(owner(250, 50), std::pair(OwnerKind::kOperator, 5 * us(250)));
}

// A detach of the loss, then a function that detaches six weights and copies them: the copies are no part of a loop of detach.
TEST(OwnersTest, ALoopEndsWhereItsFunctionDoes) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin("learn").launch({.us = 20, .op = "aten::mm"}).cpu_op("aten::detach", 2).end();
    p.begin("get_weights");
    for (int i = 0; i < 6; ++i) p.cpu_op("aten::detach", 2);
    for (int i = 0; i < 6; ++i)
      p.launch(ProgramSketch::memcpy("Memcpy DtoH (Device -> Pageable)", 300, "aten::to"))
          .wait("aten::numpy");
    p.end();
  });
  const ExplainedOwners explained(program);
  EXPECT_EQ(explained.first().cell.size(), 2u);
  EXPECT_THAT(explained.first().around, ::testing::ElementsAre("get_weights"));
}

// Twenty rounds of a product of 30 us, and of four operators of 10 us in a function: 40 of 70 us. Of one operator it is 10 of 40.
TEST(OwnersTest, ALoopNamesTheFunctionWithMostOfItsOperators) {
  const auto draw = [](int operators, const char* names) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 20; ++i) {
        p.cpu_op("aten::linear", 30);
        const std::int64_t start = p.cpu_us();
        for (int k = 0; k < operators; ++k) p.cpu_op(std::string(1, names[k]) + "op::f", 10);
        p.sketch().slice("python_function", "model.py(7): rotary", us(start),
                         us(p.cpu_us() - start));
      }
    });
    const ExplainedOwners explained(program);
    const Owner& owner = explained.first();
    EXPECT_EQ(owner.kind, OwnerKind::kLoop);
    return std::pair(owner.function,
                     static_cast<double>(owner.function_ns) / static_cast<double>(owner.total_ns));
  };
  const auto [function, share] = draw(4, "abcd");
  EXPECT_EQ(function, "model.py:7 rotary");
  EXPECT_NEAR(share, 40.0 / 70, 0.01);
  EXPECT_EQ(draw(1, "a").first, "");  // less than a quarter, with the time between operators
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const std::int64_t start = p.cpu_us();
    for (int i = 0; i < 20; ++i) p.cpu_op("aten::linear", 30).cpu_op("aten::add", 10);
    p.sketch().slice("python_function", "model.py(7): forward", us(start), us(p.cpu_us() - start));
  });
  const ExplainedOwners whole(program);
  EXPECT_EQ(whole.first().function, "");  // all of it
}

// A rotary embedding that makes its angles in each of six layers.
TEST(OwnersTest, CosinesAndSinesOfALoopAreToBeMadeOnce) {
  const auto advice = [](const char* first, const char* second) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 12; ++i) {
        p.cpu_op("aten::linear", 30);
        const std::int64_t start = p.cpu_us();
        p.cpu_op(first, 10).cpu_op(second, 10).cpu_op("aten::mul", 10);
        p.sketch().slice("python_function", "model.py(7): rotary", us(start),
                         us(p.cpu_us() - start));
      }
    });
    const ExplainedOwners explained(program);
    return advice_text(explained.facts, explained.first()).pattern;
  };
  EXPECT_THAT(advice("aten::cos", "aten::sin"), ::testing::HasSubstr("cosines and sines"));
  EXPECT_THAT(advice("aten::add", "aten::sin"),
              ::testing::Not(::testing::HasSubstr("cosines and sines")));
}

}  // namespace
}  // namespace lanescope::explain

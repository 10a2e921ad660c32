#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct IndexLoop {
  int turns = 12;
  int others = 1;           // operators of a turn besides select and its launch
  bool moves = true;        // the index is another one each turn
  bool inside_op = false;   // an operator of torch holds the loop, not the program
  std::int64_t rest = 100;  // work after the loop
  std::int64_t kernel = 1;  // of a turn
  const char* other = "aten::view";
  const char* work = "aten::mul";  // launches the kernel
};

// A turn: aten::select of 4 us, `others` operators of 2 us, then an operator of 10 us with a kernel
// of 1 us, which begins 2 us after its call.
ProgramSketch index_loop(const IndexLoop& loop) {
  ProgramSketch drawn;
  for (int step = 0; step < 4; ++step) {
    drawn.step();
    const std::int64_t began = drawn.cpu_us();
    for (int turn = 0; turn < loop.turns; ++turn) {
      drawn.sketch().op(
          "aten::select", ProgramSketch::at(drawn.cpu_us()), ProgramSketch::at(4),
          {.input_dims = "[[64, 8], [], []]",
           .concrete_inputs = R"(["", "0", ")" + std::to_string(loop.moves ? turn : 5) + R"("])"});
      drawn.pass(4);
      for (int other = 0; other < loop.others; ++other) drawn.cpu_op(loop.other, 2);
      drawn.launch({.name = kElementwise, .us = loop.kernel, .op = loop.work});
    }
    if (loop.inside_op)
      drawn.sketch().op("aten::stack", ProgramSketch::at(began),
                        ProgramSketch::at(drawn.cpu_us() - began));
    drawn.launch({.us = loop.rest});
    drawn.wait().end();
  }
  return drawn;
}

// A turn is 4 + 2 + 10 us. Its call ends 4 + 2 + 3 + 4 = 13 us into it, and the kernel runs from 15
// to 16 us: in each of 12 turns the GPU waits 13 us for the CPU (2 more are launch latency) and
// works 1 us in a small kernel. The matmul after the loop is no part of it.
TEST(PythonIndexingTest, CountsTheWaitsOfTheLoopAndItsSmallWork) {
  const auto finding = find_by_rule(index_loop({}).trace(), "python-indexing");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values[0].integer, 12);  // calls per step
  EXPECT_EQ(finding->verdict.values[1].text, "aten::select");
  EXPECT_EQ(finding->verdict.values[2].integer, 12);  // pieces per step
  EXPECT_EQ(finding->verdict.values[3].integer, 12 * 13'000);
  EXPECT_EQ(finding->at_stake_ns, 12 * 16'000);
  // 11 turns of three operators in each step: the first stays.
  EXPECT_GE(finding->spared_calls.size(), 3u * 33);
  EXPECT_EQ(finding->spared_calls.size() % 33, 0u);
}

// w = x[i]; ...; x[i:] -= ...: the next round reads what this one wrote. Only select (4 us) and slice (2 us) of each of 12
// turns can go. x[i] -= ... changes a row that no other turn reads.
TEST(PythonIndexingTest, CountsTheIndexingAloneWhereRoundsDependOnEachOther) {
  const auto dependent = find_by_rule(
      index_loop({.other = "aten::slice", .work = "aten::sub_"}).trace(), "python-indexing");
  ASSERT_TRUE(dependent);
  EXPECT_EQ(dependent->at_stake_ns, 12 * 6'000);
  EXPECT_NE(dependent->action.pattern.find("depend"), std::string::npos);
  const auto rows = find_by_rule(index_loop({.work = "aten::sub_"}).trace(), "python-indexing");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->at_stake_ns, 12 * 16'000);
  EXPECT_NE(rows->action.pattern.find("If no round needs the one before it"), std::string::npos);
}

// A round may need the one before it where it does more than take apart, copy and join. Work of its own stays: of the 16 us of
// each of 12 rounds, the 4 of select can go.
TEST(PythonIndexingTest, SaysWhatIsKnownOfTheRounds) {
  const auto found = [](const IndexLoop& loop) {
    const auto finding = find_by_rule(index_loop(loop).trace(), "python-indexing");
    EXPECT_TRUE(finding);
    return finding.value_or(Finding());
  };
  const Finding moves = found({.work = "aten::copy_"});
  EXPECT_EQ(moves.action.pattern.find("Take all rows at once"), 0u);
  EXPECT_EQ(moves.at_stake_ns, 12 * 16'000);
  const Finding unknown = found({.work = "aten::tanh"});
  EXPECT_EQ(unknown.action.pattern.find("If no round needs the one before it"), 0u);
  EXPECT_EQ(unknown.at_stake_ns, 12 * 16'000);
  const Finding products = found({.work = "aten::linear"});
  EXPECT_NE(products.action.pattern.find("x.unbind(dim)"), std::string::npos);
  EXPECT_EQ(products.at_stake_ns, 12 * 4'000);
  const Finding cells = found({.work = "aten::gru_cell"});
  EXPECT_NE(cells.action.pattern.find("nn.GRU"), std::string::npos);
  EXPECT_EQ(cells.at_stake_ns, 12 * 4'000);
}

// In each of 12 rounds a value of 4 bytes is read, which may decide on the next round. x[i].item() alone is no such loop: one
// copy reads all values.
TEST(PythonIndexingTest, ARoundThatReadsAValueMayDecideOnTheNext) {
  const auto action = [](const char* op) {
    ProgramSketch drawn;
    for (int step = 0; step < 4; ++step) {
      drawn.step();
      for (int i = 0; i < 12; ++i)
        drawn.cpu_op("aten::select", 4).launch({.us = 1, .op = op}).wait("aten::item");
      drawn.launch({.us = 20}).wait().end();
    }
    const auto finding = find_by_rule(drawn.trace(), "python-indexing");
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action("aten::gt").find("columns in one call"), std::string::npos);
  EXPECT_NE(action("aten::contiguous").find("all rows at once"), std::string::npos);
}

// scores[i, j].item() in 16 rounds: two views and a read, one time. A round that launches work for its value is no such loop.
TEST(PythonIndexingTest, ALoopThatOnlyReadsElementsIsOneToList) {
  const auto found = [](bool computes) {
    ProgramSketch drawn;
    for (int step = 0; step < 4; ++step) {
      drawn.step().launch({.us = 20});
      for (int i = 0; i < 16; ++i) {
        drawn.cpu_op("aten::select", 4).cpu_op("aten::select", 4);
        if (computes) drawn.launch({.us = 1, .op = "aten::gt"});
        drawn.wait("aten::item");
      }
      drawn.launch({.us = 20}).wait().end();
    }
    return drawn.trace();
  };
  const auto finding = find_by_rule(found(false), "python-indexing");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("tolist"), std::string::npos);
  ASSERT_EQ(finding->brief.values.size(), 3u);
  EXPECT_EQ(finding->brief.values[0].integer, 16);
  EXPECT_EQ(finding->brief.values[1].integer, 32);
  EXPECT_EQ(finding->brief.values[2].text, "aten::select");
  const auto deciding = find_by_rule(found(true), "python-indexing");
  EXPECT_EQ(deciding.value_or(Finding()).action.pattern.find("tolist"), std::string::npos);
}

// size[:, 0] * size[:, 1] for each of many boxes: two columns again and again. Twelve places are rows.
TEST(PythonIndexingTest, TheSameFewPlacesAreColumns) {
  const auto is_found = [](int places) {
    ProgramSketch drawn;
    for (int step = 0; step < 4; ++step) {
      drawn.step();
      for (int i = 0; i < 24; ++i) {
        drawn.sketch().op(
            "aten::select", ProgramSketch::at(drawn.cpu_us()), ProgramSketch::at(4),
            {.input_dims = "[[64, 12], [], []]",
             .concrete_inputs = R"(["", "1", ")" + std::to_string(i % places) + R"("])"});
        drawn.pass(4).launch({.name = kElementwise, .us = 1, .op = "aten::mul"});
      }
      drawn.wait().end();
    }
    return find_by_rule(drawn.trace(), "python-indexing").has_value();
  };
  EXPECT_TRUE(is_found(12));
  EXPECT_FALSE(is_found(2));
}

// Where no index is recorded, equal rounds show a loop. Lines that set the borders of a grid are none.
TEST(PythonIndexingTest, WithoutIndicesOnlyEqualRoundsAreALoop) {
  const auto is_found = [](const std::vector<int>& copies) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (const int count : copies) {
        p.cpu_op("aten::select", 4);
        for (int i = 0; i < count; ++i) p.launch({.us = 1, .op = "aten::copy_"});
      }
      p.launch({.us = 100});
    });
    return find_by_rule(program.trace(), "python-indexing").has_value();
  };
  EXPECT_TRUE(is_found(std::vector<int>(12, 2)));
  EXPECT_FALSE(is_found({0, 1, 4, 2, 0, 3, 1, 5, 2, 0, 1, 3}));
}

// Kernels of 12 us are no launches that one call spares.
TEST(PythonIndexingTest, KeepsCallsWithLongGpuWork) {
  const auto finding = find_by_rule(index_loop({.kernel = 12}).trace(), "python-indexing");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->spared_calls.empty());
}

TEST(PythonIndexingTest, IsQuietBelowTenTurns) {
  EXPECT_TRUE(find_by_rule(index_loop({.turns = 10}).trace(), "python-indexing"));
  EXPECT_FALSE(find_by_rule(index_loop({.turns = 9}).trace(), "python-indexing"));
}

// With nine operators between two calls they are layers of a model, not a loop over rows.
TEST(PythonIndexingTest, IsQuietWhenMuchLiesBetweenTheCalls) {
  EXPECT_TRUE(find_by_rule(index_loop({.others = 7}).trace(), "python-indexing"));
  EXPECT_FALSE(find_by_rule(index_loop({.others = 8}).trace(), "python-indexing"));
}

TEST(PythonIndexingTest, IsQuietWhenTheIndexStaysTheSame) {
  EXPECT_FALSE(find_by_rule(index_loop({.moves = false}).trace(), "python-indexing"));
}

TEST(PythonIndexingTest, LeavesLoopsInsideOfTorchAlone) {
  EXPECT_FALSE(find_by_rule(index_loop({.inside_op = true}).trace(), "python-indexing"));
}

// 12 x 13 us of waiting in a step of 12 x 16 + 3400 us are less than 5 %.
TEST(PythonIndexingTest, IsQuietWhenTheGpuHardlyWaits) {
  EXPECT_FALSE(find_by_rule(index_loop({.rest = 3'400}).trace(), "python-indexing"));
}

// Ten selects in all, five in each of two steps, are no loop of ten.
TEST(PythonIndexingTest, ALoopEndsWithTheStep) {
  EXPECT_FALSE(find_by_rule(index_loop({.turns = 5}).trace(), "python-indexing"));
}

// Each of twenty images is cut out and worked on by the CPU for 400 us: to index less often would not help.
TEST(PythonIndexingTest, LongRoundsOnTheCpuAreNotItsIndexing) {
  const auto is_found = [](std::int64_t us) {
    ProgramSketch drawn;
    for (int step = 0; step < 4; ++step) {
      drawn.step();
      for (int i = 0; i < 20; ++i) drawn.cpu_op("aten::select", 4).cpu_op("aten::normal_", us);
      drawn.launch({.us = 20, .op = "aten::mul"}).wait().end();
    }
    return find_by_rule(drawn.trace(), "python-indexing").has_value();
  };
  EXPECT_TRUE(is_found(10));
  EXPECT_FALSE(is_found(400));
}

// Twenty slices of one tensor, and what joins them.
TEST(PythonIndexingTest, AdvisesUnfoldForSlicesThatAreStacked) {
  const auto action = [](const char* op, const char* next) {
    ProgramSketch drawn;
    for (int step = 0; step < 4; ++step) {
      drawn.step();
      for (int i = 0; i < 20; ++i) {
        drawn.sketch().op(op, ProgramSketch::at(drawn.cpu_us()), ProgramSketch::at(4),
                          {.input_dims = "[[640], [], [], [], []]",
                           .concrete_inputs = R"(["", "0", ")" + std::to_string(8 * i) + R"("])"});
        drawn.pass(5);
      }
      drawn.launch({.us = 20, .op = next}).wait().end();
    }
    const auto finding = find_by_rule(drawn.trace(), "python-indexing");
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action("aten::slice", "aten::stack").find("unfold"), std::string::npos);
  EXPECT_NE(action("aten::slice", "aten::mul").find("all rows at once"), std::string::npos);
  EXPECT_NE(action("aten::select", "aten::stack").find("all rows at once"), std::string::npos);
}

// Each turn reads a file of 300 us, too: one call over all rows would still read it.
TEST(PythonIndexingTest, DoesNotCountWhatTheLoopDoesWithoutOperators) {
  const auto turns = [](std::int64_t pause_us) {
    ProgramSketch drawn;
    for (int step = 0; step < 4; ++step) {
      drawn.step();
      for (int turn = 0; turn < 12; ++turn) {
        drawn.sketch().op("aten::select", ProgramSketch::at(drawn.cpu_us()), ProgramSketch::at(4),
                          {.input_dims = "[[64, 8], [], []]",
                           .concrete_inputs = R"(["", "0", ")" + std::to_string(turn) + R"("])"});
        drawn.pass(4 + pause_us);
        drawn.launch({.name = kElementwise, .us = 1, .op = "aten::mul"});
      }
      drawn.wait().end();
    }
    return find_by_rule(drawn.trace(), "python-indexing");
  };
  // Of a turn of 4 + 40 + 10 us the GPU waits for all but the last 3 of the call, and 2 on the way.
  const auto quick = turns(40);
  ASSERT_TRUE(quick);
  EXPECT_GT(quick->waiting_ns, 11 * 40'000);
  // 300 us of each turn are left out, and the rest is less than 5 % of the step.
  EXPECT_FALSE(turns(300));
}

// The rows of a batch that the DataLoader takes one by one: dataloader-wait tells the same time.
TEST(PythonIndexingTest, IsQuietInsideTheDataLoader) {
  const auto is_found = [](bool in_loader) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step();
      if (in_loader) program.begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
      for (int turn = 0; turn < 40; ++turn) {
        program.sketch().op("aten::select", ProgramSketch::at(program.cpu_us()),
                            ProgramSketch::at(4),
                            {.input_dims = "[[64, 8], [], []]",
                             .concrete_inputs = R"(["", "0", ")" + std::to_string(turn) + R"("])"});
        program.pass(4).cpu_op("aten::view", 2);
      }
      if (in_loader) program.end();
      program.launch({.us = 50}).wait().end();
    }
    return find_by_rule(program.trace(), "python-indexing").has_value();
  };
  EXPECT_TRUE(is_found(false));
  EXPECT_FALSE(is_found(true));
}

}  // namespace
}  // namespace lanescope::explain

// What must hold for every program: random ones are drawn, changed and replayed.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "lanescope/simulate/drawn_steps_test.h"
#include "lanescope/simulate/simulated_trace.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::simulate {
namespace {

using lanescope::testing::ProgramSketch;
using testing::DrawnSteps;

constexpr unsigned kPrograms = 60;

// Of the same seed the same program: steps of up to twelve launches, waits, copies, and code of the CPU.
Trace random_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)) + 1;
  };
  constexpr const char* kNames[] = {"gemm", "relu", "softmax"};
  struct Piece {
    std::int64_t kind, us, stream;
    const char* name;
  };
  std::vector<Piece> pieces;
  for (std::int64_t i = up_to(12); i > 0; --i)
    pieces.push_back({up_to(8), up_to(90), up_to(4) == 1 ? 20 : 7, kNames[random() % 3]});
  ProgramSketch program;
  program.steps(3 + static_cast<int>(random() % 3), [&](ProgramSketch& p) {
    p.begin("forward");
    for (const Piece& piece : pieces) {
      if (piece.kind <= 4)
        p.launch({.name = piece.name, .us = piece.us, .stream = piece.stream});
      else if (piece.kind == 5)
        p.wait();
      else if (piece.kind == 6)
        p.pass(piece.us);
      else if (piece.kind == 7)
        p.cpu_op("aten::cat", piece.us);
      else
        p.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", piece.us));
    }
    p.launch({.name = "gemm", .us = 5}).end();
  });
  return program.trace();
}

std::int64_t recorded_ns(const DrawnSteps& drawn) { return drawn.simulation.recorded.step_ns; }

// What several replays find, with the whole path of two of them.
std::vector<std::int64_t> found_by_replays(const Simulation& simulation) {
  std::vector<std::int64_t> found;
  for (const Outcome* outcome : {&simulation.recorded, &simulation.unprofiled.outcome}) {
    found.insert(found.end(), {outcome->step_ns, outcome->busy_ns, outcome->path.total_ns,
                               static_cast<std::int64_t>(outcome->path.steps),
                               static_cast<std::int64_t>(outcome->limit)});
    for (const std::int64_t time_ns : outcome->path.time_ns) found.push_back(time_ns);
  }
  const Unprofiled& unprofiled = simulation.unprofiled;
  const Identity& identity = simulation.identity;
  found.insert(found.end(), {unprofiled.shortest_ns, unprofiled.longest_ns, identity.recorded_ns,
                             identity.replayed_ns, identity.recorded_busy_ns,
                             identity.replayed_busy_ns, identity.without_slack_ns});
  return found;
}

// -1: the change does not fit the program, as when it has no copy.
std::int64_t step_after(const DrawnSteps& drawn, const std::vector<std::string>& texts) {
  std::vector<Change> changes;
  for (const std::string& text : texts) changes.push_back(*parse_change(text));
  const auto prediction = predict(drawn.simulation, changes);
  return prediction ? prediction->after.step_ns : -1;
}

TEST(EveryProgram, IsReplayedAlikeByAnyNumberOfThreads) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    const std::vector<std::int64_t> alone =
        found_by_replays(DrawnSteps(random_program(seed)).simulation);
    ASSERT_GT(alone.front(), 0);
    for (const unsigned threads : {2u, 3u, 8u})
      EXPECT_EQ(found_by_replays(DrawnSteps(random_program(seed), threads).simulation), alone)
          << seed << ", " << threads << " threads";
  }
}

TEST(EveryProgram, TakesWhatItTookWithoutAChange) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    const DrawnSteps drawn(random_program(seed));
    const StepGraph& graph = *drawn.simulation.graph;
    EXPECT_EQ(replay(graph, graph.edges).time_ns, graph.time_ns) << seed;
    EXPECT_EQ(recorded_ns(drawn), drawn.simulation.identity.recorded_ns) << seed;
    for (const char* same : {"cpu 1x", "gpu 1x", "speed gemm 1x", "batch 1x", "no-profiler 0 us"})
      EXPECT_EQ(step_after(drawn, {same}), recorded_ns(drawn)) << seed << " " << same;
  }
}

// Of a step alone that does not hold: it is longer when the one before it ends earlier than it does itself.
TEST(EveryProgram, HasNoLaterMomentWhenAPartOfItIsFaster) {
  std::size_t changed = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    const DrawnSteps drawn(random_program(seed));
    const StepGraph& graph = *drawn.simulation.graph;
    for (const char* faster :
         {"cpu 3x", "gpu 3x", "speed gemm 2x", "speed aten::cat 2x", "copies 2x", "remove relu",
          "remove-sync", "cuda-graph", "pin 50 GB/s", "overlap-copies", "no-profiler 5 us"}) {
      const Change change = *parse_change(faster);
      const auto edges = changed_edges(drawn.simulation, {&change, 1});
      if (!edges) continue;
      const Replay result = replay(graph, *edges);
      for (std::size_t i = 0; i < graph.time_ns.size(); ++i)
        ASSERT_LE(result.time_ns[i], graph.time_ns[i]) << seed << " " << faster << " " << i;
      ++changed;
    }
    EXPECT_GE(step_after(drawn, {"batch 3x"}), recorded_ns(drawn)) << seed;
  }
  EXPECT_GE(changed, 5 * kPrograms);
}

// Less time in it can only matter if its time decides when the last step ends.
TEST(EveryProgram, EndsAsBeforeWhenWhatIsOffItsCriticalPathIsFaster) {
  std::size_t off_path = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    const DrawnSteps drawn(random_program(seed));
    const StepGraph& graph = *drawn.simulation.graph;
    const Replay recorded = replay(graph, graph.edges);
    const auto pieces = critical_pieces(graph, graph.edges, recorded);
    for (const char* kernel : {"gemm", "relu", "softmax"}) {
      const bool is_on_path = std::any_of(pieces.begin(), pieces.end(), [&](const auto& piece) {
        return piece.slice != kNone<SliceId> && drawn.trace.name(piece.slice) == kernel;
      });
      const Change change = *parse_change(std::string("speed ") + kernel + " 1.01x");
      const auto edges = changed_edges(drawn.simulation, {&change, 1});
      if (is_on_path || !edges) continue;
      // The path begins with the first steady step.
      const Replay faster = replay(graph, *edges);
      const std::size_t first = drawn.steady.front();
      if (faster.steps[first].start_ns != recorded.steps[first].start_ns) continue;
      ++off_path;
      EXPECT_EQ(faster.steps[drawn.steady.back()].end_ns,
                recorded.steps[drawn.steady.back()].end_ns)
          << seed << " " << kernel;
    }
  }
  EXPECT_GE(off_path, 10u);
}

TEST(EveryProgram, TakesChangesInAnyOrder) {
  const std::vector<std::string> all = {"cpu 2x",        "gpu 1.5x",       "remove-sync",
                                        "speed gemm 3x", "remove softmax", "pin 50 GB/s",
                                        "copies 2x",     "overlap-copies", "cuda-graph",
                                        "fuse forward",  "batch 2x",       "no-profiler 1 us"};
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    const DrawnSteps drawn(random_program(seed));
    std::vector<std::string> changes = all;
    std::shuffle(changes.begin(), changes.end(), random);
    changes.resize(4);
    const std::int64_t once = step_after(drawn, changes);
    for (int order = 0; order < 3; ++order) {
      std::shuffle(changes.begin(), changes.end(), random);
      EXPECT_EQ(step_after(drawn, changes), once)
          << seed << " " << changes[0] << ", " << changes[1] << ", " << changes[2];
    }
  }
}

// Read again, the trace of a replay has the steps that were predicted.
TEST(EveryProgram, ReadAgainAfterAChangeTakesWhatWasPredicted) {
  std::size_t compared = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    const DrawnSteps drawn(random_program(seed));
    for (const char* text : {"cpu 2x", "gpu 3x", "speed gemm 2x", "remove-sync", "pin 50 GB/s"}) {
      const Change change = *parse_change(text);
      const auto edges = changed_edges(drawn.simulation, {&change, 1});
      if (!edges) continue;
      auto made = simulated_trace(*drawn.simulation.graph, replay(*drawn.simulation.graph, *edges),
                                  "drawn");
      ASSERT_TRUE(made) << seed << " " << text;
      const DrawnSteps again(*std::move(made));
      const std::int64_t predicted = step_after(drawn, {text});
      EXPECT_NEAR(static_cast<double>(recorded_ns(again)), static_cast<double>(predicted),
                  static_cast<double>(predicted) * 0.01)
          << seed << " " << text;
      ++compared;
    }
  }
  EXPECT_GE(compared, 3 * kPrograms);
}

}  // namespace
}  // namespace lanescope::simulate

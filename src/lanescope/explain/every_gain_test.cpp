// What holds for every predicted gain, on drawn programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// The same program for the same seed: launches on two streams, waits, operators and code of the CPU.
Trace drawn_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)) + 1;
  };
  struct Piece {
    std::int64_t kind, us, stream;
  };
  std::vector<Piece> pieces;
  for (std::int64_t i = up_to(10); i > 0; --i)
    pieces.push_back({up_to(8), up_to(150), up_to(3) == 1 ? 20 : 7});
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (const Piece& piece : pieces) {
      if (piece.kind <= 4)
        p.launch({.us = piece.us, .stream = piece.stream});
      else if (piece.kind == 5)
        p.wait();
      else if (piece.kind == 6)
        p.pass(piece.us);
      else if (piece.kind == 7)
        p.cpu_op("aten::cat", piece.us);
      else
        p.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", piece.us));
    }
    p.launch({.us = 5});
  });
  return program.trace();
}

// Rules of every kind of fix, with stakes up to three times the step.
std::vector<Finding> drawn_findings(unsigned seed, std::int64_t step_ns) {
  std::mt19937 random(seed);
  std::vector<Finding> findings;
  for (const char* rule :
       {"python-hole", "own-python", "host-sync", "graph-opportunity", "dataloader-wait",
        "slow-gemm", "unfused-chain", "exposed-copy", "host-bound", "tiny-kernels"}) {
    Finding finding;
    finding.rule = rule;
    finding.at_stake_ns =
        static_cast<std::int64_t>(random() % static_cast<unsigned>(3 * step_ns)) + 1;
    finding.at_stake_ratio =
        static_cast<double>(finding.at_stake_ns) / static_cast<double>(step_ns);
    finding.verdict = say("a verdict");
    finding.try_next = {rule};
    findings.push_back(std::move(finding));
  }
  return findings;
}

// Calls visit(seed, facts, explanation) for each drawn program whose gains can be predicted.
template <typename Visit>
void with_drawn_gains(Visit visit) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Trace trace = drawn_program(seed);
    const auto facts = gather_facts(trace);
    ASSERT_TRUE(facts);
    Explanation explanation;
    explanation.findings = drawn_findings(seed, facts->per_step(facts->steady_wall_ns()));
    predict_gains(*facts, explanation);
    if (!explanation.gains) continue;
    visit(seed, *facts, explanation);
  }
}

TEST(EveryGain, IsWithinTheStepAndLeavesTheGpusWorkToFixesOfTheCpu) {
  std::size_t predicted = 0;
  with_drawn_gains([&](unsigned seed, const Facts&, const Explanation& explanation) {
    const GainModel& gains = *explanation.gains;
    const std::int64_t step_ns = gains.base().step_ns;
    for (const Finding& finding : explanation.findings) {
      const std::int64_t most_ns = gains.at_most_ns(finding);
      EXPECT_GE(finding.gain.gain_ns, 0) << seed << " " << finding.rule;
      EXPECT_LE(finding.gain.gain_ns, most_ns) << seed << " " << finding.rule;
      EXPECT_LE(gains.shown_ns(finding), most_ns) << seed << " " << finding.rule;
      EXPECT_LE(most_ns, step_ns) << seed << " " << finding.rule;
      EXPECT_LE(most_ns, finding.at_stake_ns) << seed << " " << finding.rule;
      // Without a wait, work of two streams may run at once.
      if (is_of_cpu(finding) && finding.rule != "host-sync") {
        EXPECT_LE(most_ns, std::max<std::int64_t>(0, step_ns - gains.busy_ns()))
            << seed << " " << finding.rule;
      }
      predicted += finding.gain.state == Gain::State::kPredicted && finding.gain.gain_ns > 0;
    }
  });
  EXPECT_GE(predicted, 20u);
}

TEST(EveryGain, OfAllFixesTogetherIsAtLeastTheLargestAndAtMostAllAndTheStep) {
  std::size_t compared = 0;
  with_drawn_gains([&](unsigned seed, const Facts& facts, const Explanation& explanation) {
    const auto first = do_first(facts, explanation);
    const auto together = gain_together(explanation, first);
    if (!together) return;
    ++compared;
    std::int64_t largest_ns = 0, most_ns = 0;
    bool is_all_of_cpu = true;
    for (const std::size_t number : together->numbers) {
      const Finding& finding = explanation.findings[first[number - 1].finding];
      largest_ns = std::max(largest_ns, first[number - 1].gain_ns);
      most_ns += explanation.gains->at_most_ns(finding);
      is_all_of_cpu = is_all_of_cpu && is_of_cpu(finding) && finding.rule != "host-sync";
    }
    EXPECT_GE(together->gain_ns, largest_ns) << seed;
    EXPECT_LE(together->gain_ns, most_ns) << seed;
    EXPECT_LE(together->gain_ns, explanation.gains->base().step_ns) << seed;
    if (is_all_of_cpu) {
      EXPECT_LE(together->gain_ns, explanation.gains->base().step_ns - explanation.gains->busy_ns())
          << seed;
    }
  });
  EXPECT_GE(compared, 5u);
}

}  // namespace
}  // namespace lanescope::explain

#include <gtest/gtest.h>

#include <cstdint>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A step: a range "backward" with a kernel of 100 us and a wait for it, `pause` of Python in the first
// `paused` steps, a range "Optimizer.step" with a kernel of 50 us.
Trace drawn_hole(std::int64_t pause, int paused = 4) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().begin("backward").kernel("gemm", 100).wait().end();
    program.pass(step < paused ? pause : 5);
    program.begin("Optimizer.step").kernel("adam", 50).wait().end();
    program.end();
  }
  return program.trace();
}

// The wait for the CPU: 3 us until the wait's operator is over, 500 us of Python, 1 us of the call; the last
// microsecond before the kernel is launch latency.
TEST(PythonHoleTest, NamesTheRangesAroundIt) {
  const auto finding = find_by_rule(drawn_hole(500), "python-hole");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values.at(0).integer, us(500));
  EXPECT_EQ(finding->verdict.values.at(2).text, "backward");
  EXPECT_EQ(finding->verdict.values.at(3).text, "Optimizer.step");
  EXPECT_EQ(finding->at_stake_ns, us(504));
}

TEST(PythonHoleTest, IsQuietAboutShortPauses) {
  EXPECT_FALSE(find_by_rule(drawn_hole(190), "python-hole"));
}

// A pause in one step is for the rules about single steps.
TEST(PythonHoleTest, IsQuietAboutOneStep) {
  EXPECT_FALSE(find_by_rule(drawn_hole(500, 2), "python-hole"));
}

// Waiting for a batch has a name, and a rule.
TEST(PythonHoleTest, IsQuietAboutTheDataLoader) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().begin("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    program.pass(500).end();
    program.kernel("gemm", 100).wait().end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "python-hole"));
}

}  // namespace
}  // namespace lanescope::explain

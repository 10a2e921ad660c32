#include "lanescope/explain/rules/cost_of_calls.h"

#include <gtest/gtest.h>

#include "lanescope/testing/program_sketch.h"

namespace lanescope::explain::rules {
namespace {

using testing::ProgramSketch;

// The calls of aten::mm from that time on.
std::unordered_set<std::uint32_t> calls_of_mm(const Facts& facts, std::int64_t from_ns) {
  std::unordered_set<std::uint32_t> calls;
  for (std::uint32_t i = 0; i < facts.trace->slices().size(); ++i)
    if (facts.trace->name(SliceId{i}) == "aten::mm" && facts.trace->start_ns(SliceId{i}) >= from_ns)
      calls.insert(i);
  return calls;
}

// In the first step, which is left out, the GPU is idle for 9 ms during the call. In each of the others the
// kernel takes 500 us, and the GPU is idle during the call from its begin to the kernel's.
TEST(CostOfCalls, IsThatOfSteadyStepsAndAtMostTheirWall) {
  ProgramSketch program;
  bool is_first = true;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op("aten::mm");
    if (is_first) p.pass(9'000);
    is_first = false;
    p.kernel("gemm", 500).end().wait();
  });
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const std::int64_t cost_ns = cost_of_calls(*facts, calls_of_mm(*facts, 0));
  EXPECT_EQ(cost_ns,
            cost_of_calls(*facts, calls_of_mm(*facts, facts->steady_windows.front().start_ns)));
  EXPECT_GE(cost_ns, 3 * 500'000);
  EXPECT_LE(cost_ns, facts->steady_wall_ns());
}

}  // namespace
}  // namespace lanescope::explain::rules

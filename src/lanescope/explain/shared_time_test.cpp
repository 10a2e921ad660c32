#include "lanescope/explain/shared_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "lanescope/explain/predicted_gains.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::explain {
namespace {

using ::testing::ElementsAre;
using testing::ProgramSketch;

Finding lost_time(const char* rule, std::int64_t at_stake_ns) {
  Finding finding;
  finding.rule = rule;
  finding.at_stake_ns = at_stake_ns;
  finding.at_stake_ratio = 0.5;
  return finding;
}

// 900 us of Python and a kernel of 100 us that the CPU waits for.
class SharedTimeTest : public ::testing::Test {
 protected:
  SharedTimeTest() { explanation_.gains = GainModel::of(facts_); }

  static Trace drawn() {
    ProgramSketch program;
    program.steps(4, [](ProgramSketch& p) { p.pass(900).launch({.us = 100}).wait(); });
    return program.trace();
  }

  // Suggestions for all findings, in their order.
  std::optional<SharedTime> shared(std::vector<Finding> findings) {
    explanation_.findings = std::move(findings);
    std::vector<Suggestion> first;
    for (std::size_t i = 0; i < explanation_.findings.size(); ++i) {
      first.emplace_back();
      first.back().finding = i;
      first.back().gain_ns = explanation_.findings[i].at_stake_ns;
    }
    return shared_time(explanation_, first);
  }
  std::int64_t idle_ns() const {
    return explanation_.gains->base().step_ns - explanation_.gains->busy_ns();
  }

  Trace trace_ = drawn();
  Facts facts_ = *gather_facts(trace_);
  Explanation explanation_;
};

// The GPU waits for about 900 us: 600 and 500 of them share at least 200. 600 and 200 need not, and a fix of the GPU's work
// has no part in this time.
TEST_F(SharedTimeTest, IsToldWhereTheSumIsMoreThanTheGpuWaits) {
  ASSERT_TRUE(explanation_.gains);
  ASSERT_GT(idle_ns(), 850'000);
  ASSERT_LT(idle_ns(), 1'000'000);
  const auto both = shared({lost_time("own-python", 600'000), lost_time("python-hole", 500'000)});
  ASSERT_TRUE(both);
  EXPECT_THAT(both->numbers, ElementsAre(1, 2));
  EXPECT_FALSE(both->is_part);
  EXPECT_LE(both->most_ns, idle_ns());
  EXPECT_GT(both->most_ns, 800'000);
  EXPECT_FALSE(shared({lost_time("own-python", 600'000), lost_time("python-hole", 200'000)}));
  EXPECT_FALSE(shared({lost_time("own-python", 900'000), lost_time("slow-gemm", 500'000)}));
}

// A function of 100 us in 300 us of code without events; and one of which only 80 us lie there.
TEST_F(SharedTimeTest, AFunctionWithinAHoleIsAPartOfIt) {
  Finding hole = lost_time("python-hole", 300'000), function = lost_time("own-python", 100'000);
  hole.spared_thread = function.spared_thread = TrackId{0};
  hole.spared_windows = {{1'000'000, 1'300'000}, {2'000'000, 2'300'000}};
  function.spared_windows = {{2'100'000, 2'200'000}};
  const auto part = shared({function, hole});
  ASSERT_TRUE(part);
  EXPECT_TRUE(part->is_part);
  EXPECT_THAT(part->numbers, ElementsAre(2, 1));
  function.spared_windows = {{2'220'000, 2'320'000}};
  EXPECT_FALSE(shared({function, hole}));
  function.spared_windows = {{2'100'000, 2'200'000}};
  function.spared_thread = TrackId{1};
  EXPECT_FALSE(shared({function, hole}));
}

// A call of 100 us lies in a function that another finding is about as a whole, or half of it does.
TEST_F(SharedTimeTest, CountsFunctionsThatAreToldAsAWhole) {
  Finding function = lost_time("values-on-cpu", 600'000), call = lost_time("library-call", 100'000);
  function.told_thread = call.spared_thread = TrackId{0};
  function.told_windows = {{1'000'000, 1'600'000}};
  call.spared_windows = {{1'100'000, 1'200'000}};
  const auto part = shared({call, function});
  ASSERT_TRUE(part);
  EXPECT_TRUE(part->is_part);
  EXPECT_THAT(part->numbers, ElementsAre(2, 1));
  call.spared_windows = {{1'550'000, 1'650'000}};
  EXPECT_FALSE(shared({call, function}));  // 700 us of a step of 1000: they may add up
}

}  // namespace
}  // namespace lanescope::explain

#include "lanescope/profiler/slow_dumps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lanescope/profiler/step_clock.h"

namespace lanescope {
namespace {

using ::testing::ElementsAre;

// Steps of 1 us are usual; one that takes 1 us + `excess` is slow. Which steps have a dump
// at the end.
class DumpedSteps {
 public:
  DumpedSteps(std::uint32_t most, std::int64_t kept_us) : dumps_(most, kept_us * 1000) {}
  std::optional<SlowDumpRequest> slow(std::int64_t now_us, std::int64_t excess_us) {
    return ask(now_us, SlowStep{(1 + excess_us) * 1000, 1000, 8});
  }
  std::optional<SlowDumpRequest> usual(std::int64_t now_us) { return ask(now_us, std::nullopt); }
  std::int64_t steps() const { return steps_; }
  // The numbers of the steps whose dumps were not replaced.
  std::vector<std::int64_t> kept() const {
    std::vector<std::int64_t> numbers;
    for (const auto& [dump, step] : dump_of_) numbers.push_back(step);
    return numbers;
  }

 private:
  std::optional<SlowDumpRequest> ask(std::int64_t now_us, const std::optional<SlowStep>& slow) {
    auto order = dumps_.ended(now_us * 1000, ++steps_, slow);
    if (!order) return order;
    if (order->replaced) {
      EXPECT_EQ(dump_of_.erase(order->replaced->dump), 1u);
    }
    dump_of_[++made_] = order->step.number;
    dumps_.dumped(now_us * 1000, made_);
    return order;
  }
  SlowDumps dumps_;
  std::map<std::uint64_t, std::int64_t> dump_of_;
  std::uint64_t made_ = 0;
  std::int64_t steps_ = 0;
};

TEST(SlowDumpsTest, AHiccupDoesNotHideAnOutlierThatComesSoonAfter) {
  DumpedSteps dumps(1, 10'000);
  const auto first = dumps.slow(100, 3);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->replaced);
  EXPECT_TRUE(first->is_last_place);
  EXPECT_FALSE(dumps.usual(101));
  const auto second = dumps.slow(200, 100);
  ASSERT_TRUE(second);
  ASSERT_TRUE(second->replaced);
  EXPECT_EQ(second->replaced->number, 1);
  EXPECT_FALSE(second->waited);
  EXPECT_THAT(dumps.kept(), ElementsAre(3));
}

TEST(SlowDumpsTest, ALittleWorseWaitsUntilADumpIsDueAndTheWorstOfThemIsTaken) {
  DumpedSteps dumps(4, 800);
  ASSERT_TRUE(dumps.slow(1000, 10));
  EXPECT_FALSE(dumps.slow(1100, 10)) << "no worse than the one before";
  EXPECT_FALSE(dumps.slow(1200, 19));  // step 3
  EXPECT_FALSE(dumps.slow(1300, 15));
  EXPECT_FALSE(dumps.usual(1699));
  const auto late = dumps.usual(1700);  // 7/8 of 800 us
  ASSERT_TRUE(late);
  EXPECT_TRUE(late->waited);
  EXPECT_EQ(late->step.number, 3);
  EXPECT_EQ(late->step.ended_ns, 1'200'000);
  EXPECT_FALSE(late->replaced);
  EXPECT_FALSE(dumps.usual(9000));
  EXPECT_THAT(dumps.kept(), ElementsAre(1, 3));
}

TEST(SlowDumpsTest, WhenAllPlacesAreTakenTheMildestGoes) {
  DumpedSteps dumps(3, 10);
  std::int64_t now = 0;
  for (const int excess : {50, 20, 40}) ASSERT_TRUE(dumps.slow(now += 100, excess));
  EXPECT_FALSE(dumps.slow(now += 100, 20)) << "no worse than the mildest";
  const auto fourth = dumps.slow(now += 100, 30);
  ASSERT_TRUE(fourth && fourth->replaced);
  EXPECT_EQ(fourth->replaced->number, 2);
  EXPECT_FALSE(fourth->is_last_place);
  ASSERT_TRUE(dumps.slow(now += 100, 60));  // instead of 30
  EXPECT_THAT(dumps.kept(), ElementsAre(1, 3, 6));
}

TEST(SlowDumpsTest, TheWorstStepIsNeverLost) {
  for (const int most : {1, 2, 5})
    for (const int kept_us : {1, 50, 800}) {
      DumpedSteps dumps(static_cast<std::uint32_t>(most), kept_us);
      std::int64_t now = 0, worst = 0, worst_step = 0;
      std::uint32_t random = 12345;
      for (int i = 0; i < 2000; ++i) {
        random = random * 1664525 + 1013904223;
        const std::int64_t excess = random >> 8 & 0xffff;
        now += 3;
        if ((random >> 28) != 0) {
          dumps.usual(now);
        } else {
          dumps.slow(now, excess);
          if (excess > worst) {
            worst = excess;
            worst_step = dumps.steps();
          }
        }
      }
      dumps.usual(now + 2 * kept_us);  // the last one that waits
      EXPECT_THAT(dumps.kept(), ::testing::Contains(worst_step)) << most << " places, " << kept_us;
    }
}

TEST(SlowDumpsTest, WithoutAPlaceThereIsNoDump) {
  DumpedSteps dumps(0, 10);
  EXPECT_FALSE(dumps.slow(100, 1000));
}

}  // namespace
}  // namespace lanescope

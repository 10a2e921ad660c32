#include "lanescope/explain/facts_memo.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <vector>

#include "lanescope/base/share_work.h"

namespace lanescope::explain {
namespace {

std::atomic<int> made_count = 0;

std::vector<int> make_numbers(const Facts&) {
  ++made_count;
  return {1, 2, 3};
}

int make_sum(const Facts& facts) {
  int sum = 0;
  for (const int number : made_once<make_numbers>(facts)) sum += number;
  return sum;
}

std::atomic<int> attempts = 0;

int make_at_second_try(const Facts&) {
  if (++attempts == 1) throw std::bad_alloc();
  return 7;
}

TEST(FactsMemo, MakesAValueOnceForAllThreadsThatAsk) {
  const Facts facts;
  Facts copy;  // as the slots of facts that were copied
  copy.memo = facts.memo;
  made_count = 0;
  std::vector<const std::vector<int>*> seen(64);
  share_work(seen.size(), 8, [&](std::size_t i) {
    if (i % 3 == 0) {
      EXPECT_EQ(made_once<make_sum>(facts), 6);
    }
    seen[i] = &made_once<make_numbers>(i % 2 == 0 ? facts : copy);
  });
  EXPECT_EQ(made_count, 1);
  for (const auto* numbers : seen) EXPECT_EQ(numbers, seen.front());
}

TEST(FactsMemo, OtherFactsHaveValuesOfTheirOwn) {
  const Facts one, other;
  made_count = 0;
  EXPECT_NE(&made_once<make_numbers>(one), &made_once<make_numbers>(other));
  EXPECT_EQ(made_count, 2);
}

TEST(FactsMemo, AValueThatFailedIsMadeWhenItIsAskedAgain) {
  const Facts facts;
  attempts = 0;
  EXPECT_THROW(made_once<make_at_second_try>(facts), std::bad_alloc);
  EXPECT_EQ(made_once<make_at_second_try>(facts), 7);
  EXPECT_EQ(made_once<make_at_second_try>(facts), 7);
  EXPECT_EQ(attempts, 2);
}

}  // namespace
}  // namespace lanescope::explain

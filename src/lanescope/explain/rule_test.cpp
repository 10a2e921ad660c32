// How a rule is put together: what it needs, and its two halves.
#include "lanescope/explain/rule.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace lanescope::explain {
namespace {

bool is_met(const Facts&) { return true; }
bool is_unmet(const Facts&) { return false; }

TEST(RuleTest, TheFirstUnmetNeedIsTheOneThatIsSaid) {
  const Facts facts;
  const Needs needs = {{is_met, "a"}, {is_unmet, "b"}, {is_unmet, "c"}};
  ASSERT_NE(needs.first_unmet(facts), nullptr);
  EXPECT_STREQ(needs.first_unmet(facts)->missing, "b");
  EXPECT_EQ(Needs({{is_met, "a"}}).first_unmet(facts), nullptr);
  EXPECT_EQ(Needs().first_unmet(facts), nullptr);
}

Finding tell_steps(const Facts&, const std::size_t& steps) {
  Finding finding;
  finding.at_stake_ns = static_cast<std::int64_t>(steps);
  return finding;
}

std::optional<std::size_t> some_steps(const Facts& facts) {
  return facts.selection.steady.empty() ? std::nullopt
                                        : std::optional(facts.selection.steady.size());
}

// One step lacks something, two are no issue, three are.
Measurement<std::size_t> steps_or_what_is_missing(const Facts& facts) {
  if (facts.selection.steady.size() == 1) return NotChecked{"another step"};
  if (facts.selection.steady.size() == 2) return Quiet{};
  return facts.selection.steady.size();
}

Facts facts_with_steady(std::size_t steps) {
  Facts facts;
  facts.selection.steady.resize(steps);
  return facts;
}

TEST(RuleTest, WhatIsMeasuredIsToldAndNothingIsQuiet) {
  constexpr auto run = measure_and_tell<some_steps, tell_steps>;
  EXPECT_TRUE(std::holds_alternative<Quiet>(run(facts_with_steady(0))));
  const Outcome outcome = run(facts_with_steady(3));
  ASSERT_TRUE(std::holds_alternative<Finding>(outcome));
  EXPECT_EQ(std::get<Finding>(outcome).at_stake_ns, 3);
}

TEST(RuleTest, AMeasurementMaySayWhatIsMissing) {
  constexpr auto run = measure_and_tell<steps_or_what_is_missing, tell_steps>;
  const Outcome outcome = run(facts_with_steady(1));
  ASSERT_TRUE(std::holds_alternative<NotChecked>(outcome));
  EXPECT_EQ(std::get<NotChecked>(outcome).missing, "another step");
  EXPECT_TRUE(std::holds_alternative<Quiet>(run(facts_with_steady(2))));
  EXPECT_TRUE(std::holds_alternative<Finding>(run(facts_with_steady(3))));
}

}  // namespace
}  // namespace lanescope::explain

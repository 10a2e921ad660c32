#include "lanescope/explain/happened_once.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

// Four steps of 100 us, three of which are measured: 300 us.
class HappenedOnceTest : public ::testing::Test {
 protected:
  static Finding once(const char* rule, std::int64_t at_stake_us, const char* words) {
    Finding finding;
    finding.rule = rule;
    finding.kind = FindingKind::kOnce;
    finding.at_stake_ns = us(at_stake_us);
    finding.once = say(words);
    return finding;
  }
  std::string told() { return happened_once(facts_, all_, first_).pattern; }
  Trace trace_ = loop(4, 10, {.us = 1}).trace();
  Facts facts_ = *gather_facts(trace_);
  Explanation all_;
  std::vector<Suggestion> first_;
};

TEST_F(HappenedOnceTest, IsToldIfItTookLongerThanTheMeasuredSteps) {
  all_.findings = {once("lone-gap", 301, "a gap")};
  EXPECT_EQ(told(), "a gap");
  all_.findings = {once("lone-gap", 300, "a gap")};
  EXPECT_EQ(told(), "");
}

// Their start-up is told in the headline.
TEST_F(HappenedOnceTest, IsNotToldOfFoundIterations) {
  all_.findings = {once("lone-gap", 500, "a gap")};
  facts_.steps.found.emplace();
  EXPECT_EQ(told(), "");
}

TEST_F(HappenedOnceTest, IsToldInOnePlaceOnly) {
  all_.findings = {once("lone-gap", 500, "a gap"), once("cold-compile", 400, "")};
  first_.resize(1);
  first_.front().finding = 1;
  EXPECT_EQ(told(), "");
}

// An entry of a range that takes as long as the gap is its cause.
TEST_F(HappenedOnceTest, OfEqualTimesTheFirstRuleCounts) {
  all_.findings = {once("lone-gap", 500, "a gap"), once("dead-window", 490, "a range")};
  EXPECT_EQ(told(), "a range");
  all_.findings = {once("lone-gap", 500, "a gap"), once("dead-window", 400, "a range")};
  EXPECT_EQ(told(), "a gap");
}

TEST_F(HappenedOnceTest, OtherKindsAndFindingsWithoutSuchASentenceAreLeftOut) {
  Finding cost = once("lone-gap", 500, "a gap");
  cost.kind = FindingKind::kCost;
  all_.findings = {cost, once("first-allocations", 500, "")};
  EXPECT_EQ(told(), "");
}

}  // namespace
}  // namespace lanescope::explain

#include "lanescope/format/perfetto/flow_pairs.h"

#include <gtest/gtest.h>

#include <string>

namespace lanescope::format {
namespace {

constexpr auto start_mark = [](std::uint64_t id, std::int64_t ns) {
  return FlowMark{.id = id, .ns = ns, .starts = true};
};
constexpr auto step_mark = [](std::uint64_t id, std::int64_t ns) {
  return FlowMark{.id = id, .ns = ns, .starts = true, .ends = true};
};
constexpr auto last_mark = [](std::uint64_t id, std::int64_t ns) {
  return FlowMark{.id = id, .ns = ns, .ends = true, .is_last = true};
};

// "1-5 5-9 +2": arrows by their times, and marks without one.
std::string text_of(std::vector<FlowMark> marks) {
  const FlowPairs found = pair_flows(std::move(marks));
  std::string text;
  for (const FlowPair& pair : found.pairs)
    text += std::to_string(pair.from.ns) + "-" + std::to_string(pair.to.ns) + " ";
  return text + "+" + std::to_string(found.unpaired);
}

TEST(FlowPairsTest, StepsMakeAChain) {
  EXPECT_EQ(text_of({last_mark(7, 9), step_mark(7, 5), step_mark(7, 1)}), "1-5 5-9 +0");
}

TEST(FlowPairsTest, NumbersAreApart) {
  EXPECT_EQ(text_of({step_mark(1, 1), step_mark(2, 2), last_mark(1, 3), last_mark(2, 4)}),
            "1-3 2-4 +0");
}

// The clocks of a CPU and a GPU differ.
TEST(FlowPairsTest, AnEndBeforeItsStartBelongsToIt) {
  EXPECT_EQ(text_of({step_mark(1, 5), last_mark(1, 4)}), "5-4 +0");
}

TEST(FlowPairsTest, ANumberMayBeUsedAgainAfterItsLastEnd) {
  EXPECT_EQ(text_of({step_mark(1, 1), last_mark(1, 2), step_mark(1, 3), last_mark(1, 4)}),
            "1-2 3-4 +0");
}

TEST(FlowPairsTest, WhatHasNoOtherEndIsCounted) {
  EXPECT_EQ(text_of({start_mark(1, 1), last_mark(2, 2), step_mark(3, 3)}), "+3");
}

TEST(FlowPairsTest, SeveralEndsMayFollowOneStart) {
  const FlowMark end{.id = 1, .ns = 5, .ends = true};
  FlowMark second = end;
  second.ns = 8;
  EXPECT_EQ(text_of({start_mark(1, 1), end, second}), "1-5 1-8 +0");
}

}  // namespace
}  // namespace lanescope::format

#include "lanescope/record/operator_lengths.h"

#include <gtest/gtest.h>

#include <memory>

namespace lanescope::record {
namespace {

TEST(OperatorLengthsTest, ANameIsShortOnlyAfterAFewMeasuredCalls) {
  const auto lengths = std::make_unique<OperatorLengths>();
  for (std::uint64_t sample = 0; sample < OperatorLengths::kMinSamples; ++sample) {
    EXPECT_FALSE(lengths->is_shorter(7, 100)) << sample;
    lengths->learn(7, 50);
  }
  EXPECT_TRUE(lengths->is_shorter(7, 100));
  EXPECT_TRUE(lengths->is_shorter(7, 51));
  EXPECT_FALSE(lengths->is_shorter(7, 50));
  EXPECT_FALSE(lengths->is_shorter(8, 100));
}

// 10, 20, 30, 40: the mean is 25, whatever their order.
TEST(OperatorLengthsTest, TheFirstSamplesAreAveraged) {
  const auto lengths = std::make_unique<OperatorLengths>();
  for (const std::uint64_t ticks : {40, 10, 30, 20}) lengths->learn(0, ticks);
  EXPECT_TRUE(lengths->is_shorter(0, 27));
  EXPECT_FALSE(lengths->is_shorter(0, 24));
}

TEST(OperatorLengthsTest, OneInterruptedCallHidesNothingForLong) {
  const auto lengths = std::make_unique<OperatorLengths>();
  lengths->set_longest(1000);
  for (int sample = 0; sample < 20; ++sample) lengths->learn(3, 50);
  lengths->learn(3, 1'000'000'000);
  EXPECT_FALSE(lengths->is_shorter(3, 100));  // 50 + 950 / 16
  for (int sample = 0; sample < 10; ++sample) lengths->learn(3, 50);
  EXPECT_TRUE(lengths->is_shorter(3, 100));
}

TEST(OperatorLengthsTest, ANameWhoseCallsBecomeLongIsNoLongerShort) {
  const auto lengths = std::make_unique<OperatorLengths>();
  for (int sample = 0; sample < 20; ++sample) lengths->learn(3, 50);
  for (int sample = 0; sample < 20; ++sample) lengths->learn(3, 500);
  EXPECT_FALSE(lengths->is_shorter(3, 300));
}

TEST(OperatorLengthsTest, NamesBeyondTheTableAreNeverShort) {
  const auto lengths = std::make_unique<OperatorLengths>();
  for (int sample = 0; sample < 20; ++sample) lengths->learn(OperatorLengths::kNames, 1);
  EXPECT_FALSE(lengths->is_shorter(OperatorLengths::kNames, 1000));
}

TEST(OperatorLengthsTest, HugeSamplesDoNotOverflow) {
  const auto lengths = std::make_unique<OperatorLengths>();
  for (int sample = 0; sample < 40; ++sample) lengths->learn(1, ~std::uint64_t{0});
  EXPECT_FALSE(lengths->is_shorter(1, 1'000'000'000));
}

}  // namespace
}  // namespace lanescope::record

// Numbers near and far behave as in one map, whatever the order.
#include "lanescope/format/perfetto/by_iid.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

namespace lanescope::format {
namespace {

TEST(ByIidTest, AValueIsFoundByItsNumberUntilItIsReplacedOrErased) {
  ByIid<int> values;
  EXPECT_EQ(values.find(0), nullptr);
  for (const std::uint64_t iid : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    values.set(iid, 1);
    values.set(iid, 2);
    ASSERT_NE(values.find(iid), nullptr);
    EXPECT_EQ(*values.find(iid), 2);
    values.erase(iid);
    EXPECT_EQ(values.find(iid), nullptr);
  }
}

// A number that was far away lies in the list once there are enough values, and is still one value.
TEST(ByIidTest, ANumberThatWasFarAwayStaysOneValueWhenMoreCome) {
  ByIid<int> values;
  values.set(60, 1);
  for (std::uint64_t iid = 1; iid < 60; ++iid) values.set(iid, 2);
  EXPECT_EQ(*values.find(60), 1);
  values.set(60, 3);
  EXPECT_EQ(*values.find(60), 3);
  values.erase(60);
  EXPECT_EQ(values.find(60), nullptr);
}

TEST(ByIidTest, ItAnswersAsAMapDoes) {
  std::mt19937_64 random(7);
  ByIid<std::uint64_t> values;
  std::map<std::uint64_t, std::uint64_t> expected;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const unsigned bits = 1 + static_cast<unsigned>(random() % 12);
    const std::uint64_t iid = random() % (std::uint64_t{1} << bits);
    if (random() % 3 == 0) {
      values.erase(iid);
      expected.erase(iid);
    } else {
      values.set(iid, i);
      expected[iid] = i;
    }
    const std::uint64_t asked = random() % 4096;
    const auto found = expected.find(asked);
    const std::uint64_t* const value = values.find(asked);
    ASSERT_EQ(value != nullptr, found != expected.end()) << asked;
    if (value) {
      ASSERT_EQ(*value, found->second) << asked;
    }
  }
}

}  // namespace
}  // namespace lanescope::format

#include "lanescope/model/args_builder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace lanescope {
namespace {

TEST(ArgsTest, EventsWithTheSameKeysShareOneShape) {
  ArgsBuilder table;
  const StringId key{3};
  ArgsId ids[2];
  for (int i = 0; i < 2; ++i) {
    table.begin();
    table.add_int(key, ArgKey::kCorrelation, 40 + i);
    ids[i] = table.end();
  }
  EXPECT_EQ(table.kind_count(), 1u);
  EXPECT_EQ(table.view(ids[0]).integer(ArgKey::kCorrelation), 40);
  EXPECT_EQ(table.view(ids[1]).integer(ArgKey::kCorrelation), 41);
  EXPECT_FALSE(table.view(ids[1]).integer(ArgKey::kStream));
}

// A kernel's own correlation; its stream, grid and occupancy repeat, and one value changes late.
TEST(ArgsTest, ValuesThatRepeatAreKeptOnce) {
  constexpr StringId kKeys[] = {StringId{1}, StringId{2}, StringId{3}, StringId{4}};
  constexpr int kEvents = 5000;
  ArgsBuilder table;
  std::vector<ArgsId> ids;
  for (int i = 0; i < kEvents; ++i) {
    table.begin();
    table.add_int(kKeys[0], ArgKey::kCorrelation, 100000 + i);
    table.add_int(kKeys[1], ArgKey::kStream, i < 4000 ? 7 : 8);
    table.add_json(kKeys[2], ArgKey::kGrid, StringId{static_cast<std::uint32_t>(10 + i % 2)});
    table.add_double(kKeys[3], ArgKey::kOccupancy, 0.25 * (i % 2));
    ids.push_back(table.end());
  }
  EXPECT_EQ(table.kind_count(), 1u);
  // Of the first 31 events all 5 values and the variant; then the variant and the correlation.
  EXPECT_EQ(table.word_count(), 31u * 6 + (kEvents - 31) * 2);
  const auto expect_all = [&ids](const auto& view_of) {
    for (int i = 0; i < kEvents; ++i) {
      const ArgsView view = view_of(ids[static_cast<std::size_t>(i)]);
      ASSERT_EQ(view.size(), 4u);
      ASSERT_EQ(view.integer(ArgKey::kCorrelation), 100000 + i);
      ASSERT_EQ(view.integer(ArgKey::kStream), i < 4000 ? 7 : 8);
      ASSERT_EQ(view.text(ArgKey::kGrid), StringId{static_cast<std::uint32_t>(10 + i % 2)});
      ASSERT_EQ(view.number(ArgKey::kOccupancy), 0.25 * (i % 2));
      ASSERT_EQ(view.field(2).type, ArgType::kJson);
    }
  };
  expect_all([&table](ArgsId id) { return table.view(id); });
  const auto taken = std::move(table).take();
  expect_all([&taken](ArgsId id) { return taken.view(id); });
  EXPECT_EQ(taken.variants.size(), 1u + 2 + 2);  // nothing shared; stream 7, stream 8
  EXPECT_EQ(taken.shared.size(), 4u * 4);        // stream, grid, occupancy of two words
}

// Two numbers that count the same thing from different beginnings, next to one that does not.
TEST(ArgsTest, NumbersThatKeepTheirDistanceAreOneNumber) {
  constexpr int kEvents = 500;
  const auto id = [](int i) { return 100 + 3 * i; };
  const auto place = [&id](int i) { return id(i) + (i < 300 ? 6000 : 6001); };
  const auto parent = [](int i) { return i * i * 7 % 100003; };
  ArgsBuilder table;
  std::vector<ArgsId> ids;
  for (int i = 0; i < kEvents; ++i) {
    table.begin();
    table.add_int(StringId{1}, ArgKey::kPythonParentId, parent(i));
    table.add_int(StringId{2}, ArgKey::kPythonId, id(i));
    table.add_int(StringId{3}, ArgKey::kEvIdx, place(i));
    ids.push_back(table.end());
  }
  // Of the first 31 events all 3 values and the variant; then the variant, the parent and the id.
  EXPECT_EQ(table.word_count(), 31u * 4 + (kEvents - 31) * 3);
  const auto taken = std::move(table).take();
  for (int i = 0; i < kEvents; ++i) {
    const ArgsView view = taken.view(ids[static_cast<std::size_t>(i)]);
    ASSERT_EQ(view.integer(ArgKey::kPythonParentId), parent(i));
    ASSERT_EQ(view.integer(ArgKey::kPythonId), id(i));
    ASSERT_EQ(view.integer(ArgKey::kEvIdx), place(i));
    ASSERT_EQ(view.number(ArgKey::kEvIdx), place(i));
    ASSERT_EQ(view.bits(view.field(2)), static_cast<std::uint64_t>(place(i)));
  }
  EXPECT_EQ(taken.variants.size(), 1u + 2);                           // nothing shared; 6000, 6001
  EXPECT_EQ(taken.shared, (std::vector<std::uint32_t>{6000, 6001}));  // no own words
}

// Their difference is taken modulo 2^32, so it has no room to overflow.
TEST(ArgsTest, NumbersOfAnySignKeepTheirDistance) {
  constexpr int kEvents = 100;
  const auto low = [](int i) { return i < 50 ? INT32_MIN + i : INT32_MAX - i; };
  const auto high = [&low](int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(low(i)) + 0x80000005u);
  };
  ArgsBuilder table;
  std::vector<ArgsId> ids;
  for (int i = 0; i < kEvents; ++i) {
    table.begin();
    table.add_int(StringId{1}, ArgKey::kExternalId, low(i));
    table.add_int(StringId{2}, ArgKey::kEvIdx, high(i));
    ids.push_back(table.end());
  }
  EXPECT_EQ(table.word_count(), 31u * 3 + (kEvents - 31) * 2);
  for (int i = 0; i < kEvents; ++i) {
    const ArgsView view = table.view(ids[static_cast<std::size_t>(i)]);
    ASSERT_EQ(view.integer(ArgKey::kExternalId), low(i));
    ASSERT_EQ(view.integer(ArgKey::kEvIdx), high(i));
  }
}

// Near misses: a distance that is new in each event, and one to a number of 64 bits.
TEST(ArgsTest, NumbersWithoutACommonDistanceAreTheEventsOwn) {
  ArgsBuilder table;
  for (int i = 0; i < 100; ++i) {
    table.begin();
    table.add_int(StringId{1}, ArgKey::kExternalId, 3 * i);
    table.add_int(StringId{2}, ArgKey::kCorrelation, 5 * i);
    table.add_int(StringId{3}, ArgKey::kAddr, (std::int64_t{1} << 40) + 3 * i);
    table.end();
  }
  EXPECT_EQ(table.word_count(), 100u * 5);
}

// A distance that no longer repeats ends, and what repeats otherwise stays shared.
TEST(ArgsTest, ADistanceThatEndsLeavesTheOtherSharedValues) {
  constexpr int kEvents = 1500;
  ArgsBuilder table;
  std::vector<ArgsId> ids;
  const auto place = [](int i) { return 2 * i + (i < 100 ? 7 : 7 * i); };
  for (int i = 0; i < kEvents; ++i) {
    table.begin();
    table.add_int(StringId{1}, ArgKey::kExternalId, 2 * i);
    table.add_int(StringId{2}, ArgKey::kEvIdx, place(i));
    table.add_int(StringId{3}, ArgKey::kStream, 7);
    ids.push_back(table.end());
  }
  for (int i = 0; i < kEvents; ++i) {
    const ArgsView view = table.view(ids[static_cast<std::size_t>(i)]);
    ASSERT_EQ(view.integer(ArgKey::kEvIdx), place(i)) << i;
    ASSERT_EQ(view.integer(ArgKey::kStream), 7) << i;
  }
  EXPECT_LT(table.word_count(), 31u * 4 + (kEvents - 31u) * 3);
  EXPECT_FALSE(table.view(ids.back()).find(ArgKey::kEvIdx)->is_shared);
  EXPECT_TRUE(table.view(ids.back()).find(ArgKey::kStream)->is_shared);
}

// A value that seemed to repeat does not any more: sharing it ends before it costs much.
TEST(ArgsTest, ValuesThatNoLongerRepeatAreTheEventsOwn) {
  ArgsBuilder table;
  std::vector<ArgsId> ids;
  constexpr int kEvents = 20000;
  for (int i = 0; i < kEvents; ++i) {
    table.begin();
    table.add_int(StringId{1}, ArgKey::kBytes, i < 40 ? 4 : i);
    ids.push_back(table.end());
  }
  for (int i = 0; i < kEvents; ++i)
    ASSERT_EQ(table.view(ids[static_cast<std::size_t>(i)]).integer(ArgKey::kBytes), i < 40 ? 4 : i);
  EXPECT_LT(std::move(table).take().variants.size(), 600u);
}

// What is left out again leaves nothing that counts.
TEST(ArgsTest, CancelledEventsLeaveNoWords) {
  ArgsBuilder table;
  table.begin();
  table.add_int(StringId{1}, ArgKey::kBytes, 4);
  const ArgsId first = table.end();
  for (int i = 0; i < 100; ++i) {
    table.begin();
    table.add_int(StringId{1}, ArgKey::kBytes, 4);
    const ArgsId id = table.end();
    EXPECT_EQ(table.view(id).integer(ArgKey::kBytes), 4);
    table.cancel();
    table.add_event(table.kind(first), std::vector<std::uint32_t>{5});
    table.cancel();
  }
  EXPECT_EQ(table.word_count(), 2u);
  EXPECT_EQ(table.view(first).integer(ArgKey::kBytes), 4);
}

TEST(ArgsTest, IntegersKeepAll64Bits) {
  ArgsBuilder table;
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{INT32_MIN}, std::int64_t{INT32_MAX} + 1,
        std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    table.begin();
    table.add_int(StringId{0}, ArgKey::kBytes, value);
    EXPECT_EQ(table.view(table.end()).integer(ArgKey::kBytes), value);
  }
}

TEST(ArgsTest, NoFieldsIsNoArgs) {
  ArgsBuilder table;
  table.begin();
  EXPECT_EQ(table.end(), kNone<ArgsId>);
  EXPECT_TRUE(table.view(kNone<ArgsId>).empty());
}

TEST(ArgsTest, EverySpellingOfAKeyIsFound) {
  EXPECT_EQ(arg_key("external id"), ArgKey::kExternalId);
  EXPECT_EQ(arg_key("External id"), ArgKey::kExternalId);
  EXPECT_EQ(arg_key("no such key"), ArgKey::kCount);
  for (std::size_t i = 0; i < kArgKeyCount; ++i)
    EXPECT_FALSE(arg_key_text(static_cast<ArgKey>(i)).empty()) << i;
}

}  // namespace
}  // namespace lanescope

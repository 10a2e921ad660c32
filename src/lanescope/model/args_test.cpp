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

#include "lanescope/model/joins.h"

#include <gtest/gtest.h>

#include <vector>

namespace lanescope {
namespace {

struct JoinEntry {
  std::uint32_t id;
  std::int64_t start_ns;
};

TEST(JoinsTest, TheLastEntryAtOrBeforeTheTimeElseTheFirst) {
  const std::vector<JoinEntry> entries{{3, 10}, {5, 10}, {5, 20}, {5, 20}, {7, 0}};
  const auto place = [&](std::uint32_t id, std::int64_t time_ns) {
    const JoinEntry* const found =
        find_by_id_and_time(std::span<const JoinEntry>(entries), id, time_ns);
    return found ? found - entries.data() : -1;
  };
  EXPECT_EQ(place(5, 19), 1);
  EXPECT_EQ(place(5, 20), 3);  // of equal entries the last
  EXPECT_EQ(place(5, 9), 1);   // all start later: the first
  EXPECT_EQ(place(7, 99), 4);
  EXPECT_EQ(place(4, 99), -1);
  EXPECT_EQ(place(8, 99), -1);
  EXPECT_EQ(place(1, -1), -1);
}

TEST(JoinsTest, TheRangeThatStartedLastAndIsOpenIsOnTop) {
  // 0: [0, 100), 1: [10, 40), 2 and 3 to 80.
  OpenRangeStack<int, std::int64_t (*)(int)> open(+[](int range) -> std::int64_t {
    return range == 0 ? 100 : range == 1 ? 40 : 80;
  });
  EXPECT_EQ(open.top(0), nullptr);
  open.push(0, 0);
  open.push(1, 10);
  open.push(2, 30);
  ASSERT_NE(open.top(50), nullptr);
  EXPECT_EQ(*open.top(50), 2);
  EXPECT_EQ(open.all().size(), 3u);  // 1 has ended below the top
  EXPECT_EQ(*open.top(80), 0);       // ends are exclusive
  EXPECT_EQ(open.all().size(), 1u);
  open.push(3, 100);
  EXPECT_EQ(open.all().size(), 1u);
  open.clear();
  EXPECT_EQ(open.top(0), nullptr);
}

}  // namespace
}  // namespace lanescope

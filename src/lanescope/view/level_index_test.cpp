// The index against what a plain walk over all slices gives, on random rows.
#include "lanescope/view/level_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lanescope::view {
namespace {

using ::testing::ElementsAre;

LevelIndex index_of(const std::vector<LevelSlice>& slices) {
  LevelIndex index;
  index.begin_row();
  for (const LevelSlice& slice : slices) index.add(slice);
  index.end_row();
  return index;
}

std::vector<LevelCell> cells_of(const LevelIndex& index, std::int64_t t0, std::int64_t t1,
                                std::int64_t step_ns, std::size_t most_raw, std::size_t row = 0) {
  std::vector<LevelCell> cells;
  index.cells(row, t0, t1, step_ns, most_raw, cells);
  return cells;
}

// The definition: every slice that touches the window, by its start's bucket; with `whole`, also
// the other slices of these buckets.
std::vector<LevelCell> plain_cells(const std::vector<LevelSlice>& slices, std::int64_t t0,
                                   std::int64_t t1, std::int64_t step_ns, std::size_t most_raw) {
  const auto bucket = [&](std::int64_t time) {
    return (time >= 0 ? time / step_ns : -((-time + step_ns - 1) / step_ns));
  };
  const auto touches = [&](const LevelSlice& each) {
    return each.start_ns < t1 && (each.start_ns >= t0 || each.start_ns + each.dur_ns > t0);
  };
  std::vector<LevelSlice> in;
  std::copy_if(slices.begin(), slices.end(), std::back_inserter(in), touches);
  std::vector<LevelCell> cells;
  if (in.size() <= most_raw) {
    for (const LevelSlice& each : in)
      cells.push_back({each.start_ns, each.dur_ns, each.dur_ns, each.id, 1});
    return cells;
  }
  const std::int64_t from = bucket(in.front().start_ns), to = bucket(in.back().start_ns);
  std::int64_t open_bucket = from - 1;
  std::int64_t longest = 0;
  for (const LevelSlice& each : slices) {
    const std::int64_t own = bucket(each.start_ns);
    if (own < from || own > to) continue;
    if (each.dur_ns >= step_ns) {
      cells.push_back({each.start_ns, each.dur_ns, each.dur_ns, each.id, 1});
      continue;
    }
    if (own != open_bucket) {
      cells.push_back({each.start_ns, each.dur_ns, each.dur_ns, each.id, 1});
      longest = each.dur_ns;
      open_bucket = own;
      continue;
    }
    LevelCell& cell = cells.back();
    cell.dur_ns = each.start_ns + each.dur_ns - cell.start_ns;
    cell.busy_ns += each.dur_ns;
    ++cell.count;
    if (each.dur_ns > longest) {
      longest = each.dur_ns;
      cell.id = each.id;
    }
  }
  return cells;
}

std::vector<LevelSlice> random_row(std::mt19937_64& random, std::size_t count,
                                   std::int64_t longest_ns, std::int64_t longest_pause_ns) {
  std::vector<LevelSlice> row;
  // Most are short: their lengths are spread over magnitudes.
  const auto length = [&](std::int64_t most) {
    const int bits = static_cast<int>(random() % 63);
    return static_cast<std::int64_t>((random() >> bits) % static_cast<std::uint64_t>(most + 1));
  };
  std::int64_t time = static_cast<std::int64_t>(random() % 2000) - 1000;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t dur = random() % 8 == 0 ? 0 : length(longest_ns);
    row.push_back({time, dur, static_cast<std::uint32_t>(i * 7)});
    time += std::max<std::int64_t>(dur, 1) + (random() % 3 == 0 ? 0 : length(longest_pause_ns));
  }
  return row;
}

TEST(LevelIndexTest, FoldsShortSlicesOfAStepAndNeverLongOnes) {
  const LevelIndex index =
      index_of({{0, 10, 0}, {12, 20, 1}, {40, 200, 2}, {300, 0, 3}, {600, 5, 4}});
  // Steps of 256 ns: the first two, the long one is shorter than 256 and folded too; 300 is alone.
  EXPECT_THAT(cells_of(index, 0, 1000, 256, 0),
              ElementsAre(LevelCell{0, 240, 230, 2, 3}, LevelCell{300, 0, 0, 3, 1},
                          LevelCell{600, 5, 5, 4, 1}));
  // Steps of 128 ns: the one of 200 ns is on its own.
  EXPECT_THAT(cells_of(index, 0, 1000, 128, 0),
              ElementsAre(LevelCell{0, 32, 30, 1, 2}, LevelCell{40, 200, 200, 2, 1},
                          LevelCell{300, 0, 0, 3, 1}, LevelCell{600, 5, 5, 4, 1}));
}

TEST(LevelIndexTest, EqualsAPlainWalkOnRandomRowsWindowsAndSteps) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 60; ++round) {
    const std::size_t count = 1 + random() % (round % 3 == 0 ? 20 : 6000);
    const std::vector<LevelSlice> row = random_row(
        random, count, round % 5 == 0 ? 20'000'000'000 : 5000, round % 4 == 0 ? 10 : 50'000);
    const LevelIndex index = index_of(row);
    const std::int64_t begin = row.front().start_ns - 10;
    const std::int64_t end = row.back().start_ns + row.back().dur_ns + 10;
    const auto span = static_cast<std::uint64_t>(end - begin);
    for (int query = 0; query < 60; ++query) {
      std::int64_t t0 = begin + static_cast<std::int64_t>(random() % span);
      std::int64_t t1 = begin + static_cast<std::int64_t>(random() % span);
      if (query == 0) t0 = begin, t1 = end;
      if (t0 > t1) std::swap(t0, t1);
      const std::int64_t step = std::int64_t{1} << (random() % 40);
      const std::size_t most_raw = random() % 3 == 0 ? random() % 200 : 0;
      ASSERT_EQ(cells_of(index, t0, t1, step, most_raw), plain_cells(row, t0, t1, step, most_raw))
          << "round " << round << " [" << t0 << ", " << t1 << ") step " << step;
      std::int64_t busy = 0;
      for (const LevelSlice& each : row)
        busy += std::max<std::int64_t>(
            0, std::min(each.start_ns + each.dur_ns, t1) - std::max(each.start_ns, t0));
      ASSERT_EQ(index.busy_within_ns(0, t0, t1), busy);
    }
  }
}

TEST(LevelIndexTest, CellsOfTheWholeRowCountEverySliceOnceAtEveryStep) {
  std::mt19937_64 random(3);
  const std::vector<LevelSlice> row = random_row(random, 50'000, 3000, 4000);
  const LevelIndex index = index_of(row);
  std::int64_t busy = 0;
  for (const LevelSlice& each : row) busy += each.dur_ns;
  for (int shift = 0; shift < 45; ++shift) {
    std::uint64_t count = 0;
    std::int64_t sum = 0;
    for (const LevelCell& cell : cells_of(index, row.front().start_ns, row.back().start_ns + 1,
                                          std::int64_t{1} << shift, 0)) {
      count += cell.count;
      sum += cell.busy_ns;
    }
    EXPECT_EQ(count, row.size()) << shift;
    EXPECT_EQ(sum, busy) << shift;
  }
}

TEST(LevelIndexTest, KeepsDurationsOverFourSeconds) {
  const LevelIndex index = index_of({{0, 5'000'000'000, 8}, {6'000'000'000, 4'294'967'295, 9}});
  EXPECT_EQ(index.slice(0, 0).dur_ns, 5'000'000'000);
  EXPECT_EQ(index.slice(0, 1).dur_ns, 4'294'967'295);
  EXPECT_EQ(index.longest(0, 0, 2), 0u);
  EXPECT_THAT(cells_of(index, 4'000'000'000, 5'000'000'000, 1 << 20, 100),
              ElementsAre(LevelCell{0, 5'000'000'000, 5'000'000'000, 8, 1}));
}

TEST(LevelIndexTest, RowsAreApart) {
  LevelIndex index;
  for (std::uint32_t row = 0; row < 3; ++row) {
    index.begin_row();
    for (std::uint32_t i = 0; i < 1000 * row; ++i) index.add({i * 10, 5, row * 10'000 + i});
    index.end_row();
  }
  EXPECT_EQ(index.row_count(), 3u);
  EXPECT_TRUE(cells_of(index, 0, 1'000'000, 64, 0, 0).empty());
  EXPECT_EQ(cells_of(index, 0, 1'000'000, 1 << 20, 0, 1),
            (std::vector<LevelCell>{{0, 9'995, 5'000, 10'000, 1000}}));
  EXPECT_EQ(cells_of(index, 0, 1'000'000, 1 << 20, 0, 2),
            (std::vector<LevelCell>{{0, 19'995, 10'000, 20'000, 2000}}));
}

TEST(LevelIndexTest, TakesAtMostTwoBytesASlice) {
  std::mt19937_64 random(5);
  const LevelIndex index = index_of(random_row(random, 1'000'000, 3000, 4000));
  EXPECT_LT(static_cast<double>(index.index_bytes()) / 1e6, 2.0);
}

}  // namespace
}  // namespace lanescope::view

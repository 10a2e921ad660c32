// Batches come in order, whoever fills them; a short table starts no thread; what goes wrong arrives.
#include "lanescope/format/nsys_sqlite/rows_ahead.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <set>
#include <thread>
#include <vector>

namespace lanescope::format {
namespace {

// Batches of two rows with the numbers 0, 1, 2, ...
class Numbers {
 public:
  explicit Numbers(std::int64_t batches, std::int64_t fails_at = -1)
      : batches_(batches), fails_at_(fails_at) {}
  bool fill(RowBatch& batch) {
    threads_.insert(std::this_thread::get_id());
    if (made_ == fails_at_) throw std::bad_alloc();
    batch.column_count = 1;
    for (std::int64_t row = 0; row < 2; ++row) {
      batch.cells.push_back({SqliteCell::kInteger, 0, 2 * made_ + row});
      ++batch.row_count;
    }
    return ++made_ < batches_;
  }
  const std::set<std::thread::id>& threads() const { return threads_; }

 private:
  std::int64_t batches_, fails_at_, made_ = 0;
  std::set<std::thread::id> threads_;
};

std::vector<std::int64_t> read(RowsAhead& ahead) {
  std::vector<std::int64_t> numbers;
  while (const RowBatch* const batch = ahead.next())
    for (std::size_t row = 0; row < batch->row_count; ++row)
      numbers.push_back(*batch->row(row).integer(0));
  return numbers;
}

TEST(RowsAheadTest, RowsComeInOrderWhoeverFillsTheBatches) {
  for (const bool may_start : {false, true}) {
    Numbers numbers(100);
    std::vector<std::int64_t> found;
    {
      RowsAhead ahead([&](RowBatch& batch) { return numbers.fill(batch); }, may_start);
      found = read(ahead);
      EXPECT_EQ(ahead.next(), nullptr);
    }
    ASSERT_EQ(found.size(), 200u);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i], static_cast<std::int64_t>(i));
    EXPECT_EQ(numbers.threads().size(), may_start ? 2u : 1u);
  }
}

TEST(RowsAheadTest, AShortTableStartsNoThread) {
  Numbers numbers(1);
  {
    RowsAhead ahead([&](RowBatch& batch) { return numbers.fill(batch); }, true);
    EXPECT_EQ(read(ahead).size(), 2u);
  }
  EXPECT_EQ(numbers.threads(), std::set{std::this_thread::get_id()});
}

TEST(RowsAheadTest, WhatTheOtherThreadThrowsArrivesAfterTheRowsBeforeIt) {
  Numbers numbers(100, 7);
  RowsAhead ahead([&](RowBatch& batch) { return numbers.fill(batch); }, true);
  for (int batch = 0; batch < 7; ++batch) ASSERT_NE(ahead.next(), nullptr);
  EXPECT_THROW(ahead.next(), std::bad_alloc);
}

TEST(RowsAheadTest, ItMayBeGivenUpAtAnyBatch) {
  for (int read = 0; read < 12; ++read) {
    Numbers numbers(1000);
    RowsAhead ahead([&](RowBatch& batch) { return numbers.fill(batch); }, true);
    for (int batch = 0; batch < read; ++batch) ASSERT_NE(ahead.next(), nullptr);
  }
}

TEST(RowsAheadTest, ACellIsANumberATextOrNeither) {
  RowBatch batch;
  batch.texts = "abcdef";
  batch.column_count = 3;
  batch.row_count = 2;
  batch.cells = {{SqliteCell::kInteger, 0, 5},
                 {SqliteCell::kText, 2, 1},
                 {},
                 {},
                 {SqliteCell::kText, 0, 0},
                 {}};
  EXPECT_EQ(batch.row(0).integer(0), 5);
  EXPECT_EQ(batch.row(0).text(0), std::nullopt);
  EXPECT_EQ(batch.row(0).text(1), "bc");
  EXPECT_EQ(batch.row(0).integer(1), std::nullopt);
  EXPECT_EQ(batch.row(0).text(2), std::nullopt);
  EXPECT_EQ(batch.row(1).integer(0), std::nullopt);
  EXPECT_EQ(batch.row(1).text(1), "");
}

}  // namespace
}  // namespace lanescope::format

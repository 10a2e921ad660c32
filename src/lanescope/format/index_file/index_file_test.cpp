// What an index gives back is the trace that it was made of.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "lanescope/format/index_file/index_bytes.h"
#include "lanescope/format/index_file/index_helpers_test.h"
#include "lanescope/format/index_file/index_rows.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/model/each_column.h"
#include "lanescope/testing/real_traces.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

namespace fs = std::filesystem;
using testing_index::index_text;
using testing_index::read_text;

template <typename T>
std::array<std::uint64_t, kRowNumbers<T>> numbers_of(const T& row) {
  std::array<std::uint64_t, kRowNumbers<T>> numbers{};
  put_row(numbers.data(), row);
  return numbers;
}

bool same(const ArgField& a, const ArgField& b) {
  return a.key == b.key && a.type == b.type && a.is_shared == b.is_shared && a.word == b.word &&
         a.base == b.base;
}
bool same(const ArgShape& a, const ArgShape& b) {
  return a.first_field == b.first_field && a.field_count == b.field_count && a.slots == b.slots;
}
template <typename T>
bool same(const T& a, const T& b) {
  if constexpr (kRowNumbers<T> > 0)
    return numbers_of(a) == numbers_of(b);
  else
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

void expect_equal(const Trace& read, const Trace& indexed) {
  each_column(
      [](const char* name, const auto& a, const auto& b) {
        ASSERT_EQ(a.size(), b.size()) << name;
        for (std::size_t i = 0; i < a.size(); ++i)
          if (!same(a[i], b[i]))
            FAIL() << name << i;  // an assertion a row takes as long as reading
      },
      read.columns(), indexed.columns());
  EXPECT_EQ(put_values(read.columns().values), put_values(indexed.columns().values));
}

// Whether what is written of a trace is compared, too: it follows from equal columns.
enum class Texts : bool { kNot, kToo };

// Returns how many traces were compared.
std::size_t write_and_open(const fs::path& root, Texts texts) {
  const fs::path index = fs::temp_directory_path() /
                         ("lanescope_index_test_" + std::to_string(::getpid()) + ".lanescope");
  std::size_t count = 0;
  for (const fs::path& path : testing::json_traces(root)) {
    const auto read = read_trace(path);
    if (!read) continue;
    SCOPED_TRACE(path);
    const IndexSource source{1, 2, 3};
    const auto bytes = write_index(*read, source, index);
    EXPECT_TRUE(bytes);
    const auto file = open_index_file(index);
    EXPECT_TRUE(file && file->is_ours && file->bytes.bytes.size() == *bytes);
    if (!file) continue;
    for (const IndexCheck check : {IndexCheck::kAll, IndexCheck::kHeader}) {
      const auto indexed = read_index(file->bytes, source, check);
      EXPECT_TRUE(indexed) << indexed.error().message;
      if (!indexed) continue;
      expect_equal(*read, *indexed);
      if (check == IndexCheck::kHeader || texts == Texts::kNot) continue;
      EXPECT_EQ(testing::trace_text(*read), testing::trace_text(*indexed));
      EXPECT_TRUE(kineto_json_text(*read) == kineto_json_text(*indexed));
    }
    EXPECT_FALSE(read_index(file->bytes, IndexSource{1, 2, 4}, IndexCheck::kAll));
    ++count;
  }
  fs::remove(index);
  return count;
}

TEST(IndexFileTest, ShippedTracesComeBackAsTheyWere) {
  EXPECT_GT(write_and_open(testing::shipped_traces(), Texts::kToo), 50u);
}

TEST(IndexFileTest, RealTracesComeBackAsTheyWere) {
  LANESCOPE_NEEDS_SHARED_TRACES("ShippedTracesComeBackAsTheyWere");
  EXPECT_GE(write_and_open(testing::shared_traces(), Texts::kNot), 70u);
}

TEST(IndexFileTest, OddTracesComeBackAsTheyWere) {
  const fs::path root = testing::odd_traces();
  EXPECT_GT(write_and_open(root, Texts::kToo), 5u);
}

TEST(IndexFileTest, AnEmptyTraceHasAnIndex) {
  const Trace empty;
  const auto indexed = read_text(index_text(empty));
  ASSERT_TRUE(indexed) << indexed.error().message;
  expect_equal(empty, *indexed);
}

TEST(IndexFileTest, EqualTracesHaveEqualBytes) {
  const fs::path path = testing::shipped_traces() / "h200_mlp_train" / "trace.json.gz";
  const auto one = read_trace(path), other = read_trace(path);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(index_text(*one), index_text(*other));
}

// The numbers of docs/formats/index_file.md, by hand.
TEST(IndexFileTest, RowsLieWhereTheDescriptionSays) {
  const auto trace = read_trace_bytes(R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 5, "tid": 6, "ts": 1.5, "dur": 2},
    {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 5, "tid": 6, "ts": 2.0, "dur": 3e6}]})");
  ASSERT_TRUE(trace);
  const std::string text = index_text(*trace, {10, 20, 30});
  const auto head = testing_index::head_of(text);
  EXPECT_EQ(text.substr(0, 8), "LSINDEX\n");
  EXPECT_EQ(head.header.file_bytes, text.size());
  EXPECT_EQ(head.header.source.changed_ns, 20);
  ASSERT_EQ(head.sections.size(), 36u);  // the values and 35 columns
  EXPECT_STREQ(head.sections[0].name, "values");
  EXPECT_STREQ(head.sections[1].name, "slices.start_ns");
  // 64 + 36 * 64 + 8 = 2376 bytes of head, so the rows begin at 2432 = 38 * 64.
  EXPECT_EQ(head.sections[0].offset, 2432u);
  std::array<std::int64_t, 2> start_ns{};
  std::memcpy(start_ns.data(), text.data() + head.sections[1].offset, sizeof(start_ns));
  EXPECT_EQ(start_ns, (std::array<std::int64_t, 2>{1500, 2000}));
  // "b" takes 3 s, more than the 2^31 ns of a short one: row 0 of the long ones.
  std::array<std::uint32_t, 2> short_dur_ns{};
  EXPECT_STREQ(head.sections[2].name, "slices.short_dur_ns");
  std::memcpy(short_dur_ns.data(), text.data() + head.sections[2].offset, sizeof(short_dur_ns));
  EXPECT_EQ(short_dur_ns, (std::array<std::uint32_t, 2>{2000, 0x80000000}));
  EXPECT_STREQ(head.sections[8].name, "slices.long_dur_ns");
  ASSERT_EQ(head.sections[8].row_count, 1u);
  std::int64_t long_dur_ns = 0;
  std::memcpy(&long_dur_ns, text.data() + head.sections[8].offset, sizeof(long_dur_ns));
  EXPECT_EQ(long_dur_ns, 3'000'000'000);
  EXPECT_STREQ(head.sections[4].name, "slices.track_low");
  EXPECT_EQ(head.sections[4].row_bytes, 2u);
  EXPECT_STREQ(head.sections[9].name, "slices.track_high");
  EXPECT_EQ(head.sections[9].row_count, 0u);  // one track
}

}  // namespace
}  // namespace lanescope::format

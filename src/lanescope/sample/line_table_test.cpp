#include "lanescope/sample/line_table.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace lanescope::sample {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out.push_back(static_cast<char>(value));
  return out;
}

// The example of Objects/lnotab_notes.txt: bytes 0, 6, 50, 350, 361 are lines 1, 2, 7, 207, 208 of
// a function whose first line is 1.
TEST(LineTableTest, LnotabHasStepsOfBytesAndLines) {
  const std::string table = bytes({6, 1, 44, 5, 255, 0, 45, 127, 0, 73, 11, 1});
  EXPECT_EQ(line_of(LineTable::kLnotab, table, 1, 0), 1);
  EXPECT_EQ(line_of(LineTable::kLnotab, table, 1, 5), 1);
  EXPECT_EQ(line_of(LineTable::kLnotab, table, 1, 6), 2);
  EXPECT_EQ(line_of(LineTable::kLnotab, table, 1, 50), 7);
  EXPECT_EQ(line_of(LineTable::kLnotab, table, 1, 350), 207);
  EXPECT_EQ(line_of(LineTable::kLnotab, table, 1, 361), 208);
}

TEST(LineTableTest, RangesMayHaveNoLine) {
  // 4 bytes of line 11, 2 bytes without a line, 6 bytes of line 9.
  const std::string table = bytes({4, 1, 2, -128, 6, -2});
  EXPECT_EQ(line_of(LineTable::kLines, table, 10, 0), 11);
  EXPECT_EQ(line_of(LineTable::kLines, table, 10, 4), 0);
  EXPECT_EQ(line_of(LineTable::kLines, table, 10, 6), 9);
  EXPECT_EQ(line_of(LineTable::kLines, table, 10, 12), 0);
}

TEST(LineTableTest, LocationsHaveFormsOfDifferentSizes) {
  const std::string table = bytes({
      0x80 | 13 << 3 | 0, 4,           // one instruction, line step +2
      0x80 | 11 << 3 | 1, 0, 9,        // two, step +1 with columns
      0x80 | 0 << 3 | 0, 0x11,         // one, same line, short form
      0x80 | 15 << 3 | 0,              // one without a line
      0x80 | 14 << 3 | 0, 7, 0, 1, 2,  // one, step -3, long form
  });
  EXPECT_EQ(line_of(LineTable::kLocations, table, 20, 0), 22);
  EXPECT_EQ(line_of(LineTable::kLocations, table, 20, 2), 23);
  EXPECT_EQ(line_of(LineTable::kLocations, table, 20, 4), 23);
  EXPECT_EQ(line_of(LineTable::kLocations, table, 20, 6), 23);
  EXPECT_EQ(line_of(LineTable::kLocations, table, 20, 8), 0);
  EXPECT_EQ(line_of(LineTable::kLocations, table, 20, 10), 20);
  EXPECT_EQ(line_of(LineTable::kLocations, table, 20, 12), 0);
}

TEST(LineTableTest, DamagedTablesGiveALineOrNone) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string table(random() % 40, '\0');
    for (char& byte : table) byte = static_cast<char>(random());
    for (const LineTable format : {LineTable::kLnotab, LineTable::kLines, LineTable::kLocations})
      EXPECT_GE(line_of(format, table, static_cast<int>(random() % 100),
                        static_cast<std::uint32_t>(random() % 200)),
                0);
  }
}

}  // namespace
}  // namespace lanescope::sample

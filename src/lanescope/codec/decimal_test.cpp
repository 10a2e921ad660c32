#include "lanescope/codec/decimal.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace lanescope::codec {
namespace {

void expect_value(std::string_view text, int scale, std::int64_t value, bool cut) {
  const Decimal decimal = parse_decimal(text, scale);
  EXPECT_EQ(decimal.status, DecimalStatus::kOk) << text;
  EXPECT_EQ(decimal.value, value) << text;
  EXPECT_EQ(decimal.cut, cut) << text;
}

TEST(DecimalTest, MicrosecondsBecomeNanosecondsExactly) {
  expect_value("4365001498111.380", 3, 4365001498111380, false);
  expect_value("1736405443861785.63", 3, 1736405443861785630, false);
  expect_value("0", 3, 0, false);
  expect_value("-0.001", 3, -1, false);
  expect_value("+5", 3, 5000, false);
}

TEST(DecimalTest, DigitsBehindTheScaleAreCutTowardsZeroAndReported) {
  expect_value("1.2345", 3, 1234, true);
  expect_value("-1.2349", 3, -1234, true);
  expect_value("1.234000", 3, 1234, false);
  expect_value("0.0004", 3, 0, true);
}

TEST(DecimalTest, ExponentsMoveThePoint) {
  expect_value("1e3", 3, 1000000, false);
  expect_value("1.5E-3", 3, 1, true);
  expect_value("12345e-2", 0, 123, true);
  expect_value("0e999999999", 3, 0, false);
  expect_value("1e-999999999", 3, 0, true);
}

TEST(DecimalTest, TheLargestTimeFitsAndTheNextDoesNot) {
  expect_value("9223372036854775.807", 3, std::numeric_limits<std::int64_t>::max(), false);
  EXPECT_EQ(parse_decimal("9223372036854775.808", 3).status, DecimalStatus::kOutOfRange);
  EXPECT_EQ(parse_decimal("1e400", 3).status, DecimalStatus::kOutOfRange);
}

TEST(DecimalTest, OtherTextIsNotANumber) {
  for (const char* text :
       {"", "-", ".", "1x", "x1", "1e", "1e+", "1.2.3", " 1", "nan", "0x10", "1 "})
    EXPECT_EQ(parse_decimal(text, 3).status, DecimalStatus::kNotANumber) << text;
}

TEST(DecimalTest, JsonNumbersAreStricter) {
  for (const char* text : {"0", "-0", "1", "10.5", "1e5", "-0.5E-7"})
    EXPECT_TRUE(is_json_number(text)) << text;
  for (const char* text : {"", "+1", "01", ".5", "1.", "1e", "-", "0x1", "1 "})
    EXPECT_FALSE(is_json_number(text)) << text;
}

TEST(DecimalTest, DigitsAreReadByTheirCountWhateverStandsBehindThem) {
  const std::string text = "1234567890123456" + std::string(16, '9');
  std::uint64_t value = 0, expected = 0;
  for (std::size_t count = 1; count <= 16; ++count) {
    expected = expected * 10 + static_cast<std::uint64_t>(text[count - 1] - '0');
    ASSERT_TRUE(parse_digits(text.data(), count, value)) << count;
    EXPECT_EQ(value, expected) << count;
  }
  ASSERT_TRUE(parse_digits("00000000000000070000000000000000", 16, value));
  EXPECT_EQ(value, 7u);
}

TEST(DecimalTest, OneByteThatIsNoDigitIsNoticedAnywhere) {
  std::uint64_t value = 0;
  for (std::size_t count = 1; count <= 16; ++count)
    for (std::size_t at = 0; at < count; ++at)
      for (int c = 0; c < 256; ++c) {
        std::string text(32, '5');
        text[at] = static_cast<char>(c);
        EXPECT_EQ(parse_digits(text.data(), count, value), c >= '0' && c <= '9') << c;
      }
}

}  // namespace
}  // namespace lanescope::codec

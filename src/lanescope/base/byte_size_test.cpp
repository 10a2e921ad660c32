#include "lanescope/base/byte_size.h"

#include <gtest/gtest.h>

namespace lanescope {
namespace {

TEST(ByteSizeTest, ReadsWhatPeopleType) {
  EXPECT_EQ(parse_byte_size("0"), 0u);
  EXPECT_EQ(parse_byte_size("100000000"), 100'000'000u);
  EXPECT_EQ(parse_byte_size("64K"), 64'000u);
  EXPECT_EQ(parse_byte_size("500M"), 500'000'000u);
  EXPECT_EQ(parse_byte_size("500MB"), 500'000'000u);
  EXPECT_EQ(parse_byte_size("2G"), 2'000'000'000u);
  EXPECT_EQ(parse_byte_size("1.5T"), 1'500'000'000'000u);
  EXPECT_EQ(parse_byte_size("4GiB"), std::uint64_t{4} << 30);
  EXPECT_EQ(parse_byte_size("0.5MiB"), 524'288u);
  EXPECT_EQ(parse_byte_size("1KiB"), 1024u);
  EXPECT_EQ(parse_byte_size("9223372036854775807"), 9'223'372'036'854'775'807u);
}

TEST(ByteSizeTest, RefusesTheRest) {
  for (const char* text : {"",
                           "G",
                           "B",
                           "1.5",
                           "-1G",
                           "+1G",
                           "1 G",
                           " 1G",
                           "1G ",
                           "1Gi",
                           "1g",
                           "1gb",
                           "1GIB",
                           "1iB",
                           "10B",
                           "1P",
                           "1.G",
                           ".G",
                           "1e9",
                           "nan",
                           "9223372036854775808",
                           "18446744073709551616",
                           "9000000000000T"})
    EXPECT_FALSE(parse_byte_size(text)) << text;
}

}  // namespace
}  // namespace lanescope

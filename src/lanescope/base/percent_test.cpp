#include "lanescope/base/percent.h"

#include <gtest/gtest.h>

namespace lanescope {
namespace {

TEST(PercentTest, ReadsSharesAsPeopleTypeThem) {
  EXPECT_DOUBLE_EQ(parse_percent("1%").value_or(0), 0.01);
  EXPECT_DOUBLE_EQ(parse_percent("0.5%").value_or(0), 0.005);
  EXPECT_DOUBLE_EQ(parse_percent("2.5 %").value_or(0), 0.025);
  EXPECT_DOUBLE_EQ(parse_percent("0.1%").value_or(0), 0.001);
  EXPECT_DOUBLE_EQ(parse_percent("50%").value_or(0), 0.5);
}

TEST(PercentTest, RefusesEverythingElse) {
  for (const char* text : {"", "%", "1", "1 ", "1  %", " 1%", "-1%", "0%", "0.09%", "50.1%", "1%%",
                           "1e0%", "nan%", "one%"})
    EXPECT_FALSE(parse_percent(text)) << text;
}

}  // namespace
}  // namespace lanescope

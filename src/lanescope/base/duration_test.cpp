#include "lanescope/base/duration.h"

#include <gtest/gtest.h>

namespace lanescope {
namespace {

TEST(DurationTest, ReadsWhatPeopleType) {
  EXPECT_EQ(parse_duration_ns("10s"), 10'000'000'000);
  EXPECT_EQ(parse_duration_ns("500ms"), 500'000'000);
  EXPECT_EQ(parse_duration_ns("2m"), 120'000'000'000);
  EXPECT_EQ(parse_duration_ns("1.5s"), 1'500'000'000);
  EXPECT_EQ(parse_duration_ns("1ms"), 1'000'000);
  EXPECT_EQ(parse_duration_ns("1000000000s"), 1'000'000'000'000'000'000);
}

TEST(DurationTest, RefusesTheRest) {
  for (const char* text : {"", "10", "s", "-1s", "+1s", "1 s", "1s ", "0s", "0.5ms", "1.s", ".s",
                           "1h", "nan", "inf", "1e3s", "1000000001s", "1..5s"})
    EXPECT_FALSE(parse_duration_ns(text)) << text;
}

}  // namespace
}  // namespace lanescope

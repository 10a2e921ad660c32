#include "lanescope/cli/progress.h"

#include <gtest/gtest.h>

namespace lanescope::cli {
namespace {

TEST(ProgressTextTest, ShowsShareAmountAndSpeed) {
  EXPECT_EQ(progress_text("reading a", ProgressUnit::kBytes, 50'000'000, 200'000'000, 0.5, 79),
            "reading a    25 %   50 of 200 MB   100 MB/s");
}

TEST(ProgressTextTest, EventsCountInMillions) {
  EXPECT_EQ(progress_text("writing a", ProgressUnit::kEvents, 500'000, 2'000'000, 0.25, 79),
            "writing a    25 %   0.5 of 2.0 M events   2.0 M events/s");
}

TEST(ProgressTextTest, WithoutATotalThereIsNoShare) {
  EXPECT_EQ(progress_text("reading a", ProgressUnit::kBytes, 50'000'000, 0, 2, 79),
            "reading a   50 MB   25 MB/s");
}

TEST(ProgressTextTest, NeverOverAHundredPercentNorWiderThanTheTerminal) {
  EXPECT_EQ(progress_text("r", ProgressUnit::kBytes, 3'000'000, 2'000'000, 1, 79),
            "r   100 %   3 of 2 MB   3 MB/s");
  EXPECT_EQ(progress_text("reading a", ProgressUnit::kBytes, 1, 2, 1, 10), "reading a ");
}

}  // namespace
}  // namespace lanescope::cli

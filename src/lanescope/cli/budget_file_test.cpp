#include "lanescope/cli/budget_file.h"

#include <gtest/gtest.h>

namespace lanescope::cli {
namespace {

std::string message(std::string_view text) {
  const auto budget = parse_budget(text, "b.toml");
  return budget ? "no error" : budget.error().message;
}

class BudgetFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (message("").find("without toml++") != std::string::npos) GTEST_SKIP() << message("");
  }
};

TEST_F(BudgetFileTest, LimitsComeInTheOrderOfTheFile) {
  const auto budget = parse_budget(
      "per = \"recording\"\nallow_damage = true\n[at_most]\nwall = \"12 ms\"\nidle = '5 %'\n"
      "copies = 3\nhost_waits = 0.5\n[at_least]\ncompute = \"80 %\"\n"
      "[rules]\nmust_not_fire = [\"host-sync\", \"host-sync\", \"exposed-copy\"]\n",
      "b.toml");
  ASSERT_TRUE(budget) << budget.error().message;
  EXPECT_TRUE(budget->per_recording);
  EXPECT_TRUE(budget->allow_damage);
  ASSERT_EQ(budget->limits.size(), 5u);
  EXPECT_STREQ(budget->limits[0].measure->key, "wall");
  EXPECT_EQ(budget->limits[0].line, 4);
  EXPECT_STREQ(budget->limits[1].measure->key, "idle");
  EXPECT_EQ(budget->limits[3].value, 0.5);
  EXPECT_FALSE(budget->limits[4].at_most);
  EXPECT_EQ(budget->quiet_rules, (std::vector<std::string>{"host-sync", "exposed-copy"}));
}

// toml++ 3.3 has undefined behaviour for these letters.
TEST_F(BudgetFileTest, LettersBeyondAsciiBelongInQuotesAndComments) {
  const std::string expected = "expected ASCII characters outside of quotes and comments";
  EXPECT_EQ(message("[at_most]\ngr\u00f6\u00dfe = 1"), "b.toml, line 2: " + expected);
  EXPECT_EQ(message("999\u01ff9teps =[ \r"), "b.toml, line 1: " + expected);
  EXPECT_EQ(message("x = \"a\\\"\u00e9\" \u00e9"), "b.toml, line 1: " + expected);
  EXPECT_EQ(message("x = '''\n\u00e9'''\n\u00e9"), "b.toml, line 3: " + expected);
  EXPECT_EQ(message("x = \"\"\"a\"\"\"\"\" \u00e9"), "b.toml, line 1: " + expected);
  EXPECT_EQ(message("# gr\u00f6\u00dfer\n[at_most]\nwall = \"10 ms\"  # \u00e9"), "no error");
  EXPECT_EQ(message("\xef\xbb\xbf[at_most]\nwall = \"10 ms\""), "no error");
  EXPECT_NE(message("[at_most]\nwall = \"\u00e9\"").find("line 2: "), std::string::npos);
}

TEST_F(BudgetFileTest, MistakesNameTheLineAndTheClosestName) {
  EXPECT_NE(message("[at_most]\n\nwal = \"1 ms\"")
                .find("line 3: there is no measure 'wal'; did you "
                      "mean wall?"),
            std::string::npos);
  EXPECT_NE(message("[at_mots]\nwall = \"1 ms\"").find("did you mean at_most"), std::string::npos);
  EXPECT_NE(message("[rules]\nmust_not_fire = [\"host-snyc\"]").find("did you mean host-sync?"),
            std::string::npos);
  EXPECT_NE(message("[rules]\nmust_fire = [\"host-sync\"]").find("must_not_fire"),
            std::string::npos);
  EXPECT_NE(message("[at_most]\nwall = 3").find("wall expects a time with"), std::string::npos);
  EXPECT_NE(message("[at_most]\nwall = [3]").find("wall expects"), std::string::npos);
  EXPECT_NE(message("[at_most]\nwall = true").find("wall expects"), std::string::npos);
  EXPECT_NE(message("[at_most]\ncopies = -1").find("copies expects"), std::string::npos);
  EXPECT_NE(message("at_most = 3").find("expects a table"), std::string::npos);
  EXPECT_NE(message("per = \"epoch\"").find("\"step\" or \"recording\""), std::string::npos);
  EXPECT_NE(message("x = [").find("line 1: expected TOML"), std::string::npos);
  EXPECT_NE(message("[at_most]\nwall = \"1 ms\"\nwall = \"2 ms\"").find("line 3"),
            std::string::npos);
}

TEST_F(BudgetFileTest, NothingToCheckIsAMistake) {
  EXPECT_NE(message("").find("expected a limit"), std::string::npos);
  EXPECT_NE(message("[at_most]\n").find("expected a limit"), std::string::npos);
}

TEST_F(BudgetFileTest, HostileTextIsRefusedInWords) {
  EXPECT_NE(message(std::string(100'000, '[')), "no error");
  for (const char* text : {"[", "[[", "[\n", "[at_most]\n[", "a", "a =", "a.", "= 1", "a = [[[{"})
    EXPECT_NE(message(text), "no error") << text;
  EXPECT_NE(message("[at_most]\n" + std::string(50'000, 'a') + " = 1"), "no error");
  EXPECT_NE(message("[at_most]\nwall = \"" + std::string(50'000, '9') + " ms\""), "no error");
  EXPECT_NE(message(std::string("\0\xff\xfe", 3)), "no error");
}

TEST_F(BudgetFileTest, ABudgetOfAJobHasItsOwnMeasuresAndVerdicts) {
  const auto budget = parse_job_budget(
      "[at_most]\nwaits = \"5 %\"\nmissing_ranks = 0\n[verdict]\nmust_not_be = [\"straggler\"]\n",
      "b.toml");
  ASSERT_TRUE(budget) << budget.error().message;
  ASSERT_EQ(budget->limits.size(), 2u);
  EXPECT_STREQ(budget->limits[0].measure->key, "waits");
  EXPECT_TRUE(budget->limits[0].is_share);
  EXPECT_EQ(budget->must_not_be, std::vector<std::string>{"straggler"});
  const auto message_for = [](std::string_view text) {
    return parse_job_budget(text, "b.toml").error().message;
  };
  EXPECT_NE(message_for("[at_most]\nwaits_ = \"1 ms\"\n").find("did you mean waits?"),
            std::string::npos);
  EXPECT_NE(message_for("[verdict]\nmust_not_be = [\"slow\"]\n").find("there is no verdict 'slow'"),
            std::string::npos);
  EXPECT_NE(message_for("per = \"step\"\n").find("there is no key 'per' here"), std::string::npos);
  EXPECT_NE(message_for("").find("must_not_be under [verdict]; found none"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::cli

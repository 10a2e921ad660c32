#include "lanescope/cli/python_package.h"

#include <gtest/gtest.h>

namespace lanescope::cli {
namespace {

TEST(IsolatingFlagTest, FindsTheFlagsThatSwitchPythonpathOff) {
  EXPECT_EQ(isolating_flag({"-I", "train.py"}), "-I");
  EXPECT_EQ(isolating_flag({"-uE", "train.py"}), "-E");
  EXPECT_EQ(isolating_flag({"-X", "dev", "-S", "train.py"}), "-S");
}

TEST(IsolatingFlagTest, TheScriptsOwnFlagsAreNotPythons) {
  EXPECT_EQ(isolating_flag({"train.py", "-I"}), "");
  EXPECT_EQ(isolating_flag({"-u", "-m", "train", "-E"}), "");
  EXPECT_EQ(isolating_flag({"-c", "pass", "-S"}), "");
  EXPECT_EQ(isolating_flag({"-XIgnored", "-WError", "train.py"}), "");
}

TEST(ClearsEnvironmentTest, OnlyEnvsOwnFlagsCount) {
  EXPECT_TRUE(clears_environment({"-i", "python3", "train.py"}));
  EXPECT_TRUE(clears_environment({"A=1", "-u", "B", "--ignore-environment", "python3"}));
  EXPECT_TRUE(clears_environment({"-", "python3"}));
  EXPECT_FALSE(clears_environment({"A=1", "python3", "-i"}));
  EXPECT_FALSE(clears_environment({"-u", "-i", "python3"}));
  EXPECT_FALSE(clears_environment({}));
}

TEST(FindProgramTest, SaysWhatIsWrongWithAPath) {
  EXPECT_EQ(*find_program("/bin/sh"), "/bin/sh");
  EXPECT_NE(find_program("/").error().message.find("a folder"), std::string::npos);
  EXPECT_NE(find_program("/etc/passwd").error().message.find("may not be executed"),
            std::string::npos);
  EXPECT_NE(find_program("./no-such-file").error().message.find("no such file"), std::string::npos);
  EXPECT_NE(find_program("train-it.py").error().message.find("python3 train-it.py"),
            std::string::npos);
}

}  // namespace
}  // namespace lanescope::cli

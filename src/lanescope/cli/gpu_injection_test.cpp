#include "lanescope/cli/gpu_injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace lanescope::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InjectionTest : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name :
         {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LANESCOPE_RECORD_NATIVE",
          "LANESCOPE_RECORD_OWNER", "LANESCOPE_RECORD_COMMAND"})
      unsetenv(name);
  }
  static std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "(unset)";
  }
};

TEST_F(InjectionTest, SetsWhatTheDriverAndTheRecordingRead) {
  EXPECT_THAT(set_injection("/lib/liblanescope_record_cupti.so"), IsEmpty());
  EXPECT_EQ(variable("CUDA_INJECTION64_PATH"), "/lib/liblanescope_record_cupti.so");
  EXPECT_EQ(variable("NVTX_INJECTION64_PATH"), "/lib/liblanescope_record_cupti.so");
  EXPECT_EQ(variable("LANESCOPE_RECORD_NATIVE"), "1");
  EXPECT_EQ(variable("LANESCOPE_RECORD_OWNER"), "0000000000");
}

TEST_F(InjectionTest, AnotherToolKeepsTheDriver) {
  setenv("CUDA_INJECTION64_PATH", "/opt/nsight/libToolsInjection64.so", 1);
  const auto lines = set_injection("/lib/liblanescope_record_cupti.so");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("'/opt/nsight/libToolsInjection64.so'; unset it"));
  EXPECT_EQ(variable("CUDA_INJECTION64_PATH"), "/opt/nsight/libToolsInjection64.so");
  EXPECT_EQ(variable("LANESCOPE_RECORD_NATIVE"), "(unset)");
  EXPECT_EQ(foreign_injection(), "/opt/nsight/libToolsInjection64.so");
}

TEST_F(InjectionTest, ALanescopeElsewhereIsReplaced) {
  setenv("CUDA_INJECTION64_PATH", "/old/liblanescope_record_cupti.so", 1);
  setenv("NVTX_INJECTION64_PATH", "/opt/other.so", 1);
  const auto lines = set_injection("/new/liblanescope_record_cupti.so");
  EXPECT_EQ(variable("CUDA_INJECTION64_PATH"), "/new/liblanescope_record_cupti.so");
  EXPECT_EQ(foreign_injection(), "");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("NVTX ranges are not recorded"));
  EXPECT_EQ(variable("NVTX_INJECTION64_PATH"), "/opt/other.so");
}

TEST(MayStartPythonTest, LooksAtThePathAndTheWords) {
  EXPECT_TRUE(is_machine_code("/proc/self/exe"));
  EXPECT_FALSE(is_machine_code(LANESCOPE_SOURCE_DIR "/README.md"));
  EXPECT_FALSE(is_machine_code("/no/such/file"));
  EXPECT_FALSE(may_start_python("/proc/self/exe", {"--size", "4"}));
  EXPECT_TRUE(may_start_python("/proc/self/exe", {"-n", "2", "/usr/bin/python3.11", "x"}));
  EXPECT_TRUE(may_start_python("/proc/self/exe", {"train.py"}));
  EXPECT_TRUE(may_start_python("/bin/sh", {"run.sh"}));
}

}  // namespace
}  // namespace lanescope::cli

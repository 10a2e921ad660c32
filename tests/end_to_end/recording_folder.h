// What tests that record have in common: a folder of their own, the one recording in it, and what they ask of it.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/format/spool/read_spool.h"
#include "lanescope/model/trace.h"
#include "lanescope/record/recorder.h"

namespace lanescope {

class RecordingFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() /
                 ("lanescope_" + std::string(info->test_suite_name()) + "_" + info->name() + "_" +
                  std::to_string(getpid()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<record::Recorder> open(record::RecorderOptions options = {}) const {
    options.directory = directory_.string();
    auto recorder = record::Recorder::open(options);
    EXPECT_TRUE(recorder) << recorder.error().message;
    return std::move(recorder).value();
  }
  // The only recording there.
  Trace read() const {
    const auto spools = format::find_spools(directory_);
    EXPECT_TRUE(spools && spools->size() == 1);
    auto trace = format::read_spool(spools->at(0));
    EXPECT_TRUE(trace) << trace.error().message;
    return std::move(trace).value();
  }
  std::filesystem::path directory_;
};

inline std::uint64_t issues(const Trace& trace, ImportIssue issue) {
  return trace.import_stats()[issue].count;
}
// The first of that name.
inline SliceId find(const Trace& trace, std::string_view name) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name) return SliceId{i};
  return kNone<SliceId>;
}

}  // namespace lanescope

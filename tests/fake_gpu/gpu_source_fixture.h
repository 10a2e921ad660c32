// What tests of the GPU source share: a recording with the fake libcupti, and what its file holds. Each
// test runs in a separate process, because a process has only one source.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fake_gpu.h"
#include "lanescope/codec/activity_layout.h"
#include "lanescope/format/spool/spool_activities.h"
#include "lanescope/format/spool/spool_index.h"
#include "lanescope/record/recorder.h"
#include "lanescope/testing/wait_until.h"

namespace lanescope::fake_gpu {

using spool::ActivityKind;
using testing::wait_until;

class Bytes final : public format::SpoolBytes {
 public:
  explicit Bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::uint64_t size() const override { return text_.size(); }
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset >= text_.size()) return 0;
    const std::size_t count =
        std::min<std::size_t>(into.size(), text_.size() - static_cast<std::size_t>(offset));
    std::memcpy(into.data(), text_.data() + offset, count);
    return count;
  }

 private:
  std::string text_;
};

struct Activities {
  std::vector<spool::Record> records;
  format::SpoolIndex index;
  ImportStats stats;
  std::size_t count(ActivityKind kind) const {
    std::size_t found = 0;
    for (const spool::Record& record : records) found += spool::activity_kind(record) == kind;
    return found;
  }
  // The first of that kind; the test has checked that there is one.
  std::size_t first(ActivityKind kind) const {
    std::size_t at = 0;
    while (spool::activity_kind(records.at(at)) != kind) ++at;
    return at;
  }
  std::string metadata(const std::string& key) const {
    std::string json;
    for (const auto& entry : index.metadata)
      if (entry.key == key) json = entry.json;
    return json;
  }
};

inline Activities read(const std::string& path) {
  Activities found;
  const Bytes bytes(path);
  auto index = format::read_spool_index(bytes, true, &found.stats);
  EXPECT_TRUE(index) << index.error().message;
  found.index = *std::move(index);
  std::vector<std::byte> buffer(spool::kChunkBytes);
  for (const auto& chunk : found.index.activity_chunks)
    for (const spool::Record& record : format::read_records(bytes, chunk, buffer, &found.stats))
      found.records.push_back(record);
  for (const auto& chunk : found.index.record_chunks)
    for (const spool::Record& record : format::read_records(bytes, chunk, buffer, &found.stats))
      if (format::is_thread_activity(record)) found.records.push_back(record);
  return found;
}

class GpuSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::getenv("LANESCOPE_CUPTI_LIBRARY"))
      GTEST_SKIP() << "needs ctest, which names the fake libcupti";
    folder_ =
        std::filesystem::temp_directory_path() / ("lanescope_fake_gpu_" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::unique_ptr<record::Recorder> open(std::uint32_t options = 0) {
    record::RecorderOptions wanted;
    wanted.options = options;
    return open(std::move(wanted));
  }
  // With that budget, in parts that it pays for before.
  std::unique_ptr<record::Recorder> open_in_parts(double budget_ratio) {
    record::RecorderOptions wanted;
    wanted.budget_ratio = budget_ratio;
    wanted.gpu_in_parts = true;
    return open(std::move(wanted));
  }
  // In the test's folder, of CPU and GPU.
  std::unique_ptr<record::Recorder> open(record::RecorderOptions wanted) {
    wanted.directory = folder_.string();
    wanted.activities = LANESCOPE_ACTIVITY_CPU | LANESCOPE_ACTIVITY_CUDA;
    auto recorder = record::Recorder::open(wanted);
    EXPECT_TRUE(recorder) << recorder.error().message;
    return *std::move(recorder);
  }
  // Started and stopped, with nothing launched between.
  std::unique_ptr<record::Recorder> empty_window(std::uint32_t options) {
    auto recorder = open(options);
    EXPECT_TRUE(recorder->start());
    recorder->stop();
    return recorder;
  }
  // Started and stopped, with one launch between that takes so long.
  std::unique_ptr<record::Recorder> window_of(int busy_ms, std::uint32_t options = 0) {
    auto recorder = open(options);
    EXPECT_TRUE(recorder->start());
    fake_gpu_be_busy(busy_ms);
    fake_gpu_launch("one", 1);
    recorder->stop();
    return recorder;
  }
  std::filesystem::path folder_;
};

}  // namespace lanescope::fake_gpu

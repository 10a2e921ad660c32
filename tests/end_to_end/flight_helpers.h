// What tests of recordings that keep their last seconds share: a ring in a folder of its own, numbered
// ranges, and what a trace has of them.
#pragma once
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "child_process.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler.h"
#include "lanescope/testing/sanitizers.h"
#include "lanescope/testing/wait_until.h"
#include "recording_folder.h"

namespace lanescope {

inline constexpr std::int64_t kMs = 1'000'000;

inline std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

class FlightTest : public RecordingFolderTest {
 protected:
  std::unique_ptr<record::Recorder> open(record::RecorderOptions options) const {
    options.spool_path = (directory_ / "ring.lspool").string();
    auto recorder = record::Recorder::open(options);
    EXPECT_TRUE(recorder) << recorder.error().message;
    return std::move(recorder).value();
  }
  static Trace read(const std::filesystem::path& path,
                    const format::ReadSpoolOptions& options = {}) {
    auto trace = format::read_spool(path, options);
    EXPECT_TRUE(trace) << trace.error().message;
    return std::move(trace).value();
  }
  Trace read() const { return read(directory_ / "ring.lspool"); }
};

inline void expect_undamaged(const Trace& trace) {
  for (const ImportIssue issue :
       {ImportIssue::kChecksumMismatch, ImportIssue::kTruncatedFile, ImportIssue::kEventLost,
        ImportIssue::kMissingField, ImportIssue::kBadTime, ImportIssue::kLostBegin})
    EXPECT_EQ(issues(trace, issue), 0u) << import_issue_info(issue).name;
}

// A range that carries its number.
inline record::RangeToken begin(std::uint32_t name, std::int64_t number, std::uint64_t handle = 0) {
  record::RangeInfo info;
  info.name = name;
  info.flags = spool::kHasSequence;
  info.sequence_number = number;
  info.handle = handle;
  return record::begin_range(info);
}
inline std::uint32_t id_of(const std::string& name) {
  return lanescope_intern(name.data(), name.size(), nullptr);
}
// The numbers of all ranges of that name, in the order of their begins.
inline std::vector<std::int64_t> numbers(const Trace& trace, std::string_view name) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name)
      found.emplace_back(
          trace.start_ns(SliceId{i}),
          trace.slice_args(SliceId{i}).integer(ArgKey::kSequenceNumber).value_or(-1));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::int64_t> result;
  for (const auto& [start, number] : found) result.push_back(number);
  return result;
}
inline void expect_no_gap(const std::vector<std::int64_t>& found) {
  for (std::size_t i = 1; i < found.size(); ++i)
    ASSERT_EQ(found[i], found[i - 1] + 1) << "at " << i << " of " << found.size();
}

// A machine may let a thread wait for longer than a ring reaches. What needs it within that time is
// tried with rings of more and more time: `attempt` says whether the machine was fast enough.
inline void with_longer_and_longer_rings(std::int64_t last_ns,
                                         const std::function<bool(std::int64_t)>& attempt) {
  for (; last_ns < 20'000 * kMs; last_ns *= 4)
    if (attempt(last_ns) || ::testing::Test::HasFailure()) return;
  FAIL() << "not even with the longest";
}
// Ranges of that name until one is not dropped: on a machine that starves the recorder's thread no
// chunk is ready in time. The number of that one.
inline std::int64_t record_until_kept(const record::Recorder& recorder, std::uint32_t name,
                                      std::int64_t number) {
  const auto kept = [&] {
    const std::uint64_t dropped = recorder.stats().dropped_records;
    record::end_range(begin(name, number++));
    return recorder.stats().dropped_records == dropped;
  };
  return testing::wait_until(kept) ? number - 1 : -1;
}

}  // namespace lanescope

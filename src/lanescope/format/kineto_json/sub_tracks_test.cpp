#include "lanescope/format/kineto_json/sub_tracks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/model/nested_rows.h"
#include "lanescope/testing/real_traces.h"

namespace lanescope::format {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// On stream 7, k [1, 4) and l [3, 6) overlap; l is where the arrow ends.
constexpr const char* kOverlap = R"([
    {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7 "}},
    {"ph":"M","name":"thread_sort_index","pid":0,"tid":7,"args":{"sort_index":7}},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":3},
    {"ph":"X","cat":"kernel","name":"l","pid":0,"tid":7,"ts":3,"dur":3},
    {"ph":"X","cat":"kernel","name":"other","pid":0,"tid":20,"ts":3,"dur":3},
    {"ph":"X","cat":"cuda_runtime","name":"call","pid":5,"tid":5,"ts":0,"dur":1},
    {"ph":"s","id":1,"cat":"ac2g","name":"ac2g","pid":5,"tid":5,"ts":0},
    {"ph":"f","id":1,"cat":"ac2g","name":"ac2g","pid":0,"tid":7,"ts":3,"bp":"e"}])";

TEST(SubTracksTest, ASliceThatOverlapsGetsAThreadOfItsOwnWithItsArrow) {
  const auto trace = read_trace_bytes(kOverlap);
  ASSERT_TRUE(trace.has_value());
  WriteOptions options;
  options.moves_overlaps = true;
  const std::string text = kineto_json_text(*trace, options);
  EXPECT_THAT(text, HasSubstr(R"("name":"l","pid":0,"tid":21,"ts":3.000)"));
  EXPECT_THAT(text, HasSubstr(R"("name":"k","pid":0,"tid":7,"ts":1.000)"));
  EXPECT_THAT(text, HasSubstr(R"({"ph":"f","cat":"ac2g","name":"ac2g","id":1,"pid":0,"tid":21,)"));
  EXPECT_THAT(text, HasSubstr(R"x("thread_name","pid":0,"tid":21,)x"
                              R"x("args":{"name":"stream 7  (overlaps 1)"})x"));
  EXPECT_THAT(text, HasSubstr(R"("thread_sort_index","pid":0,"tid":21,"args":{"sort_index":7})"));
  EXPECT_THAT(kineto_json_text(*trace), Not(HasSubstr("\"tid\":21")));
}

// Of microseconds of the day, a double holds quarters. Another reader of ours gets the same times of the day.
TEST(SubTracksTest, TimesTooLargeForADoubleCountFromALaterBaseTime) {
  const auto trace = read_trace_bytes(R"([
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":"1736405443863674.401","dur":162.66},
    {"ph":"i","name":"m","pid":1,"tid":1,"ts":"1736405443863675.503","s":"t"},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":"1736405443863837.061","dur":1.5}])");
  ASSERT_TRUE(trace.has_value());
  WriteOptions options;
  options.moves_overlaps = true;
  const std::string text = kineto_json_text(*trace, options);
  EXPECT_THAT(text, HasSubstr(R"("baseTimeNanoseconds": 1736405443000000000)"));
  EXPECT_THAT(text, HasSubstr(R"("ts":863674.401,"dur":162.660)"));
  EXPECT_THAT(text, HasSubstr(R"("ts":863675.503)"));
  EXPECT_THAT(text, HasSubstr(R"("ts":863837.061)"));
  EXPECT_THAT(kineto_json_text(*trace), HasSubstr(R"("ts":1736405443863674.401)"));
  const auto again = read_trace_bytes(text);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->base_time_ns() + again->start_ns(SliceId{0}), 1736405443863674401);
}

TEST(SubTracksTest, ANegativeTidIsWrittenWithoutItsSign) {
  const auto trace = read_trace_bytes(R"([{"ph":"X","name":"a","pid":5,"tid":5,"ts":1,"dur":10},
    {"ph":"X","name":"b","pid":5,"tid":-7,"ts":5,"dur":10},
    {"ph":"M","name":"thread_name","pid":5,"tid":-7,"args":{"name":"worker"}}])");
  ASSERT_TRUE(trace.has_value());
  WriteOptions options;
  options.moves_overlaps = true;
  const std::string text = kineto_json_text(*trace, options);
  EXPECT_THAT(text, HasSubstr(R"("name":"b","pid":5,"tid":4294967289,)"));
  EXPECT_THAT(text, HasSubstr(R"("thread_name","pid":5,"tid":4294967289,)"));
  EXPECT_THAT(text, Not(HasSubstr("-7")));
  EXPECT_THAT(kineto_json_text(*trace), HasSubstr("\"tid\":-7"));
}

TEST(SubTracksTest, NothingMovesWhereSlicesNest) {
  const auto trace = read_trace_bytes(R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":9},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":3},{"ph":"X","name":"c","pid":1,"tid":1,"ts":5,"dur":4}])");
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(SubTracks(*trace).moved_count(), 0u);
}

// As Perfetto's importer goes: in order of time, a slice is dropped when it ends after the innermost
// slice that is open at its start.
std::size_t dropped_by_perfetto(const Trace& trace) {
  std::size_t dropped = 0;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::kThread && track.kind != TrackKind::kStream) continue;
    std::vector<std::int64_t> open;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId slice{i};
      while (!open.empty() && open.back() <= trace.start_ns(slice)) open.pop_back();
      if (open.empty() || trace.end_ns(slice) <= open.back())
        open.push_back(trace.end_ns(slice));
      else
        ++dropped;
    }
  }
  return dropped;
}

TEST(SubTracksTest, OfTheTracesOfTheRepositoryPerfettoDropsNothingAfterwards) {
  for (const auto& path : testing::json_traces(testing::shipped_traces())) {
    SCOPED_TRACE(path.string());
    const auto trace = read_trace(path);
    if (!trace) continue;  // some are damaged on purpose
    WriteOptions options;
    options.moves_overlaps = true;
    const auto moved = read_trace_bytes(kineto_json_text(*trace, options));
    ASSERT_TRUE(moved.has_value());
    EXPECT_EQ(moved->slices().size(), trace->slices().size());
    EXPECT_EQ(moved->flows().size(), trace->flows().size());
    EXPECT_EQ(dropped_by_perfetto(*moved), 0u);
    EXPECT_EQ(SubTracks(*trace).moved_count(), dropped_by_perfetto(*trace));
  }
}

}  // namespace
}  // namespace lanescope::format

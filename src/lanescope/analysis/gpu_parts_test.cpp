#include "lanescope/analysis/gpu_parts.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// A trace from 3,000 to 4,000 ns.
Trace with_entry(std::string_view json) {
  Sketch sketch;
  sketch.op("aten::add", 3000, 1000);
  return std::move(sketch.metadata("lanescope_gpu_parts", json)).trace();
}

TEST(GpuPartsTest, TimesCountFromTheStartOfTheRecording) {
  const auto found = find_gpu_parts(
      with_entry(R"({"recording_from_ns": 1000, "parts": [{"from_ns": 1500, "to_ns": 1600},
                     {"from_ns": 3000, "to_ns": null}]})"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->count, 2u);
  EXPECT_EQ(found->from_ns, 2000);
  EXPECT_EQ(found->to_ns, 3000);
}

TEST(GpuPartsTest, ARecordingThatEndedBeforeHasNone) {
  const auto found = find_gpu_parts(with_entry(R"({"recording_from_ns": 3000, "parts": []})"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->count, 0u);
}

TEST(GpuPartsTest, AnEntryThatIsNotUnderstoodIsNone) {
  for (const char* json : {"[]", "{}", R"({"recording_from_ns": 1000, "parts": 2})",
                           R"({"recording_from_ns": "x", "parts": [{}]})", "7"})
    EXPECT_FALSE(find_gpu_parts(with_entry(json))) << json;
  EXPECT_FALSE(find_gpu_parts(std::move(Sketch().op("aten::add", 0, 1)).trace()));
}

}  // namespace
}  // namespace lanescope::analysis

#include "lanescope/report/track_stacks_text.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::report {
namespace {

using testing::Sketch;

std::string text_of(void (*write)(const Trace&, const TextSink&), const Trace& trace) {
  std::string text;
  write(trace, [&](std::string_view piece) {
    text += piece;
    return true;
  });
  return text;
}

Trace two_tracks() {
  return std::move(Sketch()
                       .op("aten::mm", 1000, 50)
                       .runtime("a;b\nc", 1010, 10)
                       .kernel("gemm", 1030, 40)
                       .kernel("add", 1060, 40))
      .trace();
}

TEST(TrackStacksTextTest, FoldedLinesHaveTheTrackTheStackAndItsSelfTime) {
  EXPECT_EQ(text_of(write_folded_tracks, two_tracks()),
            "process 100, thread 100;aten::mm 40\n"
            "process 100, thread 100;aten::mm;a_b?c 10\n"
            "GPU 0, stream 7;add 40\n"
            "GPU 0, stream 7;gemm 40\n");
}

TEST(TrackStacksTextTest, SpeedscopeHasAProfileForEachRowThatBeginsAtTheFirstSlice) {
  const std::string text = text_of(write_speedscope_tracks, two_tracks());
  EXPECT_NE(
      text.find(R"("name": "process 100, thread 100", "unit": "nanoseconds", "startValue": 0, )"
                R"("endValue": 100, "events": [
{"type":"O","frame":0,"at":0},
{"type":"O","frame":1,"at":10},
{"type":"C","frame":1,"at":20},
{"type":"C","frame":0,"at":50}
]})"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\"GPU 0, stream 7 (row 2)\""), std::string::npos) << text;
}

TEST(TrackStacksTextTest, ATraceWithoutSlicesIsAnEmptyFile) {
  EXPECT_EQ(text_of(write_folded_tracks, Trace()), "");
  EXPECT_NE(text_of(write_speedscope_tracks, Trace()).find("\"profiles\": [\n]"),
            std::string::npos);
}

TEST(TrackStacksTextTest, NoMoreIsWrittenWhenTheSinkWantsNoMore) {
  int pieces = 0;
  write_folded_tracks(two_tracks(), [&](std::string_view) {
    ++pieces;
    return false;
  });
  EXPECT_EQ(pieces, 1);
}

}  // namespace
}  // namespace lanescope::report

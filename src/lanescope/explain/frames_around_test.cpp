#include "lanescope/explain/frames_around.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lanescope/testing/sketch.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

std::vector<std::string> names_around(const Trace& trace, std::string_view name) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name)
      FramesAround(trace).visit(SliceId{i}, [&](SliceId frame) {
        names.emplace_back(trace.name(frame));
        return false;
      });
  return names;
}

// main [0, 100000) with a range [10, 90000), in it 300 calls of 10, then an operator.
TEST(FramesAroundTest, FramesFarBeforeTheSliceAreFoundInnermostFirst) {
  Sketch sketch;
  sketch.slice("python_function", "main", 0, 100'000).annotation("forward", 10, 90'000);
  for (int i = 0; i < 300; ++i) sketch.slice("python_function", "helper", 100 + 20 * i, 10);
  sketch.op("aten::mm", 10'000, 50);
  sketch.slice("python_function", "other thread", 0, 100'000, {.tid = 101});
  EXPECT_EQ(names_around(sketch.trace(), "aten::mm"),
            (std::vector<std::string>{"forward", "main"}));
}

TEST(FramesAroundTest, OperatorsAndFramesThatEndEarlierAreNotAround) {
  Sketch sketch;
  sketch.slice("python_function", "ended", 0, 30).op("aten::linear", 50, 100);
  sketch.slice("python_function", "inner", 60, 80).op("aten::mm", 70, 10);
  EXPECT_EQ(names_around(sketch.trace(), "aten::mm"), (std::vector<std::string>{"inner"}));
}

TEST(FramesAroundTest, TheVisitEndsWhereItIsToldTo) {
  Sketch sketch;
  sketch.slice("python_function", "main", 0, 1'000).slice("python_function", "step", 10, 900);
  sketch.op("aten::mm", 20, 5);
  const Trace trace = sketch.trace();
  int visited = 0;
  FramesAround(trace).visit(SliceId{2}, [&](SliceId) { return ++visited == 1; });
  EXPECT_EQ(visited, 1);
}

TEST(FramesAroundTest, ATraceWithoutFramesHasNone) {
  Sketch sketch;
  sketch.op("aten::linear", 0, 100).op("aten::mm", 10, 50);
  EXPECT_TRUE(names_around(sketch.trace(), "aten::mm").empty());
}

}  // namespace
}  // namespace lanescope::explain

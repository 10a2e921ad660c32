#include "lanescope/analysis/frame_table.h"

#include <gtest/gtest.h>

#include <utility>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

TEST(FrameTableTest, ATextThatManySlicesShareIsOneRow) {
  Sketch sketch;
  for (std::int64_t i = 0; i < 100; ++i) {
    sketch.slice("python_function", "train.py(88): step", 100 * i, 90);
    sketch.slice("python_function", "nn.Module: Linear_3", 100 * i + 10, 50);
    sketch.op("aten::linear", 100 * i + 20, 10);
  }
  const Trace trace = std::move(sketch).trace();
  const FrameTable frames(trace);
  ASSERT_EQ(frames.rows().size(), 2u);
  EXPECT_EQ(frames.rows()[0].function, "step");
  std::size_t found = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const names::PythonFrame* const frame = frames.find(trace.slices().name[i]);
    EXPECT_EQ(frame != nullptr, trace.kind(SliceId{i}) == CategoryKind::kPythonFunction);
    found += frame != nullptr && frame->module_class == "Linear";
  }
  EXPECT_EQ(found, 100u);
}

TEST(FrameTableTest, WithoutFramesNothingIsFound) {
  const Trace trace = std::move(Sketch().op("train.py(88): step", 0, 5)).trace();
  const FrameTable frames(trace);
  EXPECT_TRUE(frames.rows().empty());
  EXPECT_EQ(frames.find(trace.slices().name[0]), nullptr);
  EXPECT_EQ(FrameTable().find(kNone<StringId>), nullptr);
}

}  // namespace
}  // namespace lanescope::analysis

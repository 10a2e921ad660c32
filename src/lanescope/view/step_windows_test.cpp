// What is noted of the steps of a trace, and what of a note is used.
#include "lanescope/view/step_windows.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "lanescope/testing/sketch.h"
#include "lanescope/view/trace_part.h"

namespace lanescope::view {
namespace {

using testing::Sketch;

const std::vector<StepWindow> kTwoSteps = {{3, {100, 200}}, {4, {150, 301}}};

TEST(StepWindowsTest, ANoteHoldsTheSteps) {
  for (const std::vector<StepWindow>& steps : {std::vector<StepWindow>(), kTwoSteps}) {
    const auto note = note_of_steps(steps);
    ASSERT_TRUE(note);
    EXPECT_EQ(steps_of_note(*note), steps);
  }
}

TEST(StepWindowsTest, NoNoteOfVeryManySteps) {
  EXPECT_TRUE(note_of_steps(std::vector<StepWindow>(100'000)));
  EXPECT_FALSE(note_of_steps(std::vector<StepWindow>(100'001)));
}

TEST(StepWindowsTest, WhatIsNoNoteIsNotUsed) {
  const std::string note = *note_of_steps(kTwoSteps);
  EXPECT_FALSE(steps_of_note(""));
  EXPECT_FALSE(steps_of_note("3 steps\n" + note.substr(note.find('\n') + 1)));
  EXPECT_FALSE(steps_of_note("02 steps\n" + note.substr(note.find('\n') + 1)));
  for (std::size_t length = 0; length < note.size(); ++length)
    EXPECT_FALSE(steps_of_note(note.substr(0, length))) << length;
  EXPECT_FALSE(steps_of_note(note + "x"));
  EXPECT_FALSE(steps_of_note(*note_of_steps({{3, {200, 200}}})));
  EXPECT_FALSE(steps_of_note(*note_of_steps({{3, {200, 100}}})));
}

TEST(StepWindowsTest, AStepIsFoundByItsNumber) {
  const auto found = window_of_step(kTwoSteps, 4);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (TraceWindow{150, 301}));
  const auto none = window_of_step(kTwoSteps, 5);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "step: expected a step of the trace, 3 to 4; found 5");
}

// A note says that the trace has step 4, which it has not: nothing is analysed, and nothing is noted anew.
TEST(StepWindowsTest, WithANoteTheTraceIsNotAnalysed) {
  Sketch sketch;
  sketch.op("first", 500, 100);
  const Trace trace = sketch.trace();
  const std::string note = *note_of_steps(kTwoSteps);
  int noted = 0;
  const auto count = [&](std::string_view) { ++noted; };
  const auto part = find_part(trace, {"", 4}, {note, count});
  ASSERT_TRUE(part);
  EXPECT_EQ(*part, (TraceWindow{150, 301}));
  EXPECT_EQ(noted, 0);
}

TEST(StepWindowsTest, WithoutANoteWhatIsFoundIsNoted) {
  Sketch sketch;
  sketch.op("first", 500, 100);
  const Trace trace = sketch.trace();
  std::string noted;
  const auto remember = [&](std::string_view text) { noted = text; };
  const auto first = find_part(trace, {"", 3}, {"damaged", remember});
  ASSERT_FALSE(first);
  EXPECT_EQ(noted, "0 steps\n");
  const auto second = find_part(trace, {"", 3}, {noted, {}});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, first.error().message);
}

}  // namespace
}  // namespace lanescope::view

#include "lanescope/report/memory_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Sketch;

// `memory_end_ns`: where the recording's budget ended the records; 0: nowhere.
// Two steps of 1 ms. 1 MB was there; each step takes 2 MB in aten::linear and 1 MB in aten::relu,
// frees the first and keeps the second: 1, 3, 4, 2 | 4, 5, 3 MB.
Trace drawn(std::int64_t memory_end_ns = 0) {
  constexpr std::int64_t kMB = 1 << 20;
  Sketch sketch;
  std::int64_t level = kMB;
  if (memory_end_ns > 0)
    sketch.metadata("lanescope_thinned", R"([{"from_ns": )" + std::to_string(memory_end_ns) +
                                             R"(, "to_ns": null, "what": "allocations"}])");
  for (int i = 0; i < 2; ++i) {
    const std::int64_t at = i * 1'000'000;
    sketch.annotation("ProfilerStep#" + std::to_string(i + 7), at, 1'000'000)
        .op("aten::linear", at + 100'000, 100'000)
        .op("aten::relu", at + 300'000, 100'000);
    sketch.memory_at(at + 150'000, 2 * kMB,
                     {.address = 1, .allocated = level += 2 * kMB, .reserved = 8 * kMB});
    sketch.memory_at(at + 350'000, kMB,
                     {.address = 10 + i, .allocated = level += kMB, .reserved = 8 * kMB});
    sketch.memory_at(at + 900'000, -2 * kMB,
                     {.address = 1, .allocated = level -= 2 * kMB, .reserved = 8 * kMB});
  }
  return sketch.trace();
}

TEST(MemoryTextTest, SaysLevelsPeakStepsAndWhatWasKept) {
  const Trace trace = drawn();
  const std::string text = memory_text(trace, analysis::compute_memory_timeline(trace), 12);
  EXPECT_THAT(text,
              HasSubstr("CUDA 0: 6 records; allocated: 1.00 MiB at the start, 5.00 MiB at most, "
                        "3.00 MiB at the end; reserved 8.00 MiB at most\n"));
  EXPECT_THAT(text, HasSubstr("the peak, 5.00 MiB at 1.350ms in step 8, was held by\n"
                              "    1.00 MiB  allocated before the recording\n"
                              "    2.00 MiB  aten::linear in 1 block\n"
                              "    2.00 MiB  aten::relu in 2 blocks\n"));
  EXPECT_THAT(text,
              HasSubstr("         7      1.00 MiB      4.00 MiB      2.00 MiB         1.00 MiB\n"
                        "         8      2.00 MiB      5.00 MiB      3.00 MiB         1.00 MiB\n"));
  EXPECT_THAT(text, HasSubstr("allocated in the recording and not freed in it: 2.00 MiB\n"
                              "    2.00 MiB  aten::relu in 2 blocks\n"));
}

// Until 1.5 ms: 1, 3, 4, 2 | 4, 5. The free at 1.9 ms is not known, nor how step 8 ends.
TEST(MemoryTextTest, WhatABudgetEndedIsSaidToBeKnownForTheFirstPartOnly) {
  const Trace trace = drawn(1'500'000);
  const auto timeline = analysis::compute_memory_timeline(trace);
  const std::string text = memory_text(trace, timeline, 12);
  EXPECT_THAT(text, HasSubstr("5.00 MiB at the end; reserved 8.00 MiB at most; recorded for the "
                              "first 1.500ms only, to keep the budget\n"));
  EXPECT_THAT(text, HasSubstr("         7      1.00 MiB      4.00 MiB      2.00 MiB"));
  EXPECT_THAT(text, Not(HasSubstr("         8      ")));
  EXPECT_THAT(text, HasSubstr("allocated in this time and not freed in it: 4.00 MiB\n"));
  EXPECT_THAT(memory_json(trace, timeline), HasSubstr(R"("recorded_until_ns": 1500000,)"));
  EXPECT_THAT(memory_json(drawn(), analysis::compute_memory_timeline(drawn())),
              HasSubstr(R"("recorded_until_ns": null,)"));
}

TEST(MemoryTextTest, ShortListsSayWhatTheyLeaveOut) {
  const Trace trace = drawn();
  EXPECT_THAT(memory_text(trace, analysis::compute_memory_timeline(trace), 1),
              HasSubstr("    2.00 MiB  1 more\n"));
}

TEST(MemoryTextTest, WithoutRecordsSaysHowToRecordThem) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 10);
  const Trace trace = sketch.trace();
  EXPECT_THAT(memory_text(trace, analysis::compute_memory_timeline(trace), 12),
              HasSubstr("profile_memory=True"));
}

TEST(MemoryTextTest, JsonHoldsEveryRecordAndStep) {
  const Trace trace = drawn();
  const std::string json = memory_json(trace, analysis::compute_memory_timeline(trace));
  EXPECT_THAT(json, HasSubstr(R"("peak_bytes": 5242880)"));
  EXPECT_THAT(json, HasSubstr(R"("held_at_peak_from_before_bytes": 1048576)"));
  EXPECT_THAT(json, HasSubstr(R"("never_freed_bytes": 1048576)"));
  std::size_t records = 0;
  for (std::size_t at = 0; (at = json.find("\"time_ns\"", at)) != std::string::npos; ++at)
    ++records;
  EXPECT_EQ(records, 6u);
}

TEST(MemoryTextTest, HostileNamesStayOneLine) {
  Sketch sketch;
  sketch.op("evil\nname\x1b[2J", 0, 100).memory_at(50, 10, {.address = 1, .allocated = 10});
  const Trace trace = sketch.trace();
  const std::string text = memory_text(trace, analysis::compute_memory_timeline(trace), 12);
  EXPECT_THAT(text, HasSubstr("evil?name?[2J"));
}

}  // namespace
}  // namespace lanescope::report

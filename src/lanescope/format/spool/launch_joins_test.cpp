#include "lanescope/format/spool/launch_joins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/codec/activity_layout.h"

namespace lanescope::format {
namespace {

using ::testing::ElementsAre;

SpoolRange range(std::uint32_t track, std::int64_t start, std::int64_t end,
                 bool annotation = false) {
  SpoolRange out;
  out.track = TrackId{track};
  out.start_ns = start;
  out.end_ns = end;
  out.is_annotation = annotation;
  return out;
}
OpenRanges at(std::uint32_t track, std::int64_t time) {
  OpenRanges out;
  out.track = TrackId{track};
  out.time_ns = time;
  return out;
}

TEST(LaunchJoinsTest, TheRangeThatStartedLastAndIsOpenIsTheInnermost) {
  const std::vector<SpoolRange> ranges{range(1, 0, 100), range(1, 10, 50), range(1, 50, 60),
                                       range(2, 0, 1000)};
  std::vector<OpenRanges> moments{at(1, 55), at(1, 10),  at(1, 50), at(1, 60),
                                  at(1, 99), at(1, 100), at(2, 5),  at(3, 5)};
  std::vector<std::uint32_t> annotations;
  find_open_ranges(ranges, moments, &annotations);
  std::vector<std::uint32_t> found;
  for (const OpenRanges& moment : moments) found.push_back(moment.innermost);
  EXPECT_THAT(found, ElementsAre(2, 1, 2, 0, 0, kNoIndex, 3, kNoIndex));
  EXPECT_TRUE(annotations.empty());
}

// As torch.profiler has it: NCCL's kernels belong to record_param_comms and not to the annotation
// nccl:all_reduce inside it; what no operator launches belongs to the annotation.
TEST(LaunchJoinsTest, AnOperatorComesBeforeTheAnnotationInsideIt) {
  const std::vector<SpoolRange> ranges{range(1, 0, 100, true), range(1, 10, 50),
                                       range(1, 20, 40, true)};
  std::vector<OpenRanges> moments{at(1, 30), at(1, 45), at(1, 60)};
  std::vector<std::uint32_t> annotations;
  find_open_ranges(ranges, moments, &annotations);
  EXPECT_EQ(moments[0].innermost, 1u);
  EXPECT_EQ(moments[1].innermost, 1u);
  EXPECT_EQ(moments[2].innermost, 0u);
}

// 0: [0, 100), 1: [10, 40), 2: [30, 80) is no child of 1; at 50 only 0 and 2 are open, at 35 all.
TEST(LaunchJoinsTest, AnnotationsThatOverlapAreAllFound) {
  const std::vector<SpoolRange> ranges{range(1, 0, 100, true), range(1, 10, 40, true),
                                       range(1, 30, 80, true)};
  std::vector<OpenRanges> moments{at(1, 35), at(1, 50), at(1, 90), at(1, 5)};
  std::vector<std::uint32_t> annotations;
  find_open_ranges(ranges, moments, &annotations);
  const auto open = [&](const OpenRanges& moment) {
    return std::vector<std::uint32_t>(
        annotations.begin() + moment.annotations_first,
        annotations.begin() + moment.annotations_first + moment.annotations_count);
  };
  EXPECT_THAT(open(moments[0]), ElementsAre(2, 1, 0));
  EXPECT_THAT(open(moments[1]), ElementsAre(2, 0));
  EXPECT_THAT(open(moments[2]), ElementsAre(0));
  EXPECT_THAT(open(moments[3]), ElementsAre(0));
}

// A loop with a range a step and a moment only after all of them: what has ended does not hide the
// range around the loop, nor does each moment step over it.
TEST(LaunchJoinsTest, EndedSiblingsDoNotPileUpOverTheRangeAroundThem) {
  std::vector<SpoolRange> ranges{range(1, 0, 1'000'000, true)};
  for (int i = 1; i <= 5'000; ++i) ranges.push_back(range(1, 10 * i, 10 * i + 5, true));
  ranges.push_back(range(1, 60'000, 70'000, true));
  std::vector<OpenRanges> moments{at(1, 65'000)};
  std::vector<std::uint32_t> annotations;
  find_open_ranges(ranges, moments, &annotations);
  EXPECT_THAT(annotations, ElementsAre(5'001, 0));
}

TEST(LaunchJoinsTest, DeepNestsAreCut) {
  std::vector<SpoolRange> ranges;
  for (int i = 0; i < 10'000; ++i) ranges.push_back(range(1, i, 1'000'000, true));
  std::vector<OpenRanges> moments(1000, at(1, 20'000));
  std::vector<std::uint32_t> annotations;
  find_open_ranges(ranges, moments, &annotations);
  EXPECT_EQ(annotations.size(), 1000u * kMaxOpenAnnotations);
  EXPECT_EQ(moments[0].innermost, 9999u);
}

TEST(LaunchJoinsTest, AnIdThatCameBackBelongsToTheLatestCallBefore) {
  const CallsById calls({{7, 0, 1000, 1}, {7, 1, 5'000'000'000, 1}, {8, 2, 2000, 1}});
  EXPECT_EQ(calls.find(7, 1500), 0u);
  EXPECT_EQ(calls.find(7, 1000), 0u);
  EXPECT_EQ(calls.find(7, 6'000'000'000), 1u);
  EXPECT_EQ(calls.find(8, 2500), 2u);
  EXPECT_EQ(calls.find(9, 2500), kNoIndex);
  EXPECT_EQ(calls.find(0, 2500), kNoIndex);
}

TEST(LaunchJoinsTest, WorkMayBeginAClocksErrorBeforeItsCallAndNoEarlier) {
  const CallsById calls({{7, 0, 5'000'000, 1}});
  EXPECT_EQ(calls.find(7, 4'000'000), 0u);
  EXPECT_EQ(calls.find(7, 3'999'999), kNoIndex);
  EXPECT_EQ(calls.find(7, INT64_MIN), kNoIndex);
}

// A JSON of the same recording pairs them by thread, so the order of the records must not matter.
TEST(LaunchJoinsTest, OfCallsThatStartTogetherTheLowestThreadTakesEarlyWorkTheHighestLaterWork) {
  const CallsById calls({{7, 0, 5'000'000, 30}, {7, 1, 5'000'000, 20}, {7, 2, 5'000'000, 25}});
  EXPECT_EQ(calls.find(7, 4'900'000), 1u);
  EXPECT_EQ(calls.find(7, 5'000'000), 0u);
  EXPECT_EQ(calls.find(7, 5'100'000), 0u);
}

TEST(LaunchJoinsTest, ABackwardOpFindsTheLastForwardOpOfItsNode) {
  std::vector<SpoolRange> ranges{range(1, 0, 90), range(1, 10, 80), range(2, 100, 200),
                                 range(1, 300, 400)};
  for (SpoolRange& each : ranges) {
    each.sequence = 4;
    each.forward_thread = 1;
  }
  ranges[2].is_backward = true;
  EXPECT_EQ(ForwardOps(ranges).find(2), 1u);  // 3 starts later
  ranges[2].forward_thread = 2;
  EXPECT_EQ(ForwardOps(ranges).find(2), kNoIndex);
}

TEST(LaunchJoinsTest, AWaitIsForTheLatestRecordOfItsEvent) {
  const EventRecords events(
      {{.sync_id = 9, .context = 1, .event_id = 3, .correlation = 50, .stream = 7},
       {.sync_id = 0, .context = 1, .event_id = 3, .correlation = 60, .stream = 8},
       {.sync_id = 0, .context = 1, .event_id = 3, .correlation = 90, .stream = 9}});
  const auto stream = [&](std::uint64_t sync_id, std::uint32_t context, std::uint32_t event,
                          std::uint32_t correlation) -> int {
    const EventRecord* found = events.find(
        {.sync_id = sync_id, .context = context, .event_id = event, .correlation = correlation});
    return found ? static_cast<int>(found->stream) : -1;
  };
  EXPECT_EQ(stream(9, 1, 3, 70), 7);  // named exactly
  EXPECT_EQ(stream(0, 1, 3, 70), 8);
  EXPECT_EQ(stream(1, 1, 3, 70), 8);  // a sync id that no record has
  EXPECT_EQ(stream(0, 1, 3, 40), -1);
  EXPECT_EQ(stream(0, 2, 3, 70), -1);
  EXPECT_EQ(stream(0, 1, spool::kNoEvent, 70), -1);
  // Ids that wrapped: 0xffffffff is before 5.
  const EventRecords wrapped(
      {{.sync_id = 0, .context = 1, .event_id = 3, .correlation = 0xffffffff, .stream = 6}});
  EXPECT_EQ(wrapped.find({.sync_id = 0, .context = 1, .event_id = 3, .correlation = 5})->stream,
            6u);
}

}  // namespace
}  // namespace lanescope::format

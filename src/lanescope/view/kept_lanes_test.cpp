// Lanes that were kept as bytes answer as those that they were made of.
#include "lanescope/view/kept_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "lanescope/testing/program_sketch.h"
#include "lanescope/view/frame.h"

namespace lanescope::view {
namespace {

using testing::ProgramSketch;

Trace program_trace() {
  ProgramSketch program;
  for (int i = 0; i < 40; ++i)
    program.step()
        .begin("forward")
        .launch({.us = 40})
        .launch({.name = "add", .us = 3})
        .end()
        .wait("aten::item")
        .pass(300)
        .end();
  return program.trace();
}

// The bytes of sections as a file has them: each at a multiple of 64.
struct Copied {
  explicit Copied(const KeptLanes& kept) {
    std::size_t total = 0;
    for (const LaneSection& section : kept.sections) total += (section.rows.size() + 63) / 64 * 64;
    bytes.resize(total / 8 + 16);
    std::byte* at = reinterpret_cast<std::byte*>(bytes.data());
    for (const LaneSection& section : kept.sections) {
      if (!section.rows.empty()) std::memcpy(at, section.rows.data(), section.rows.size());
      sections.push_back({section.name, section.row_bytes, {at, section.rows.size()}});
      at += (section.rows.size() + 63) / 64 * 64;
    }
  }
  std::vector<std::uint64_t> bytes;
  std::vector<LaneSection> sections;
};

struct Made {
  Trace trace = program_trace();
  explain::Facts facts = *explain::gather_facts(trace);
  Lanes lanes{facts};
  Copied copied{keep_lanes(lanes)};
  int asked_for_facts = 0;
  std::unique_ptr<const Lanes> taken() {
    return lanes_from(
        trace,
        [this]() -> const explain::Facts& {
          ++asked_for_facts;
          return facts;
        },
        copied.sections, nullptr);
  }
};

TEST(KeptLanesTest, AnswerAsTheLanesThatTheyWereMadeOf) {
  Made made;
  const auto taken = made.taken();
  ASSERT_TRUE(taken);
  ASSERT_EQ(taken->lanes().size(), made.lanes.lanes().size());
  ASSERT_EQ(taken->groups().size(), made.lanes.groups().size());
  EXPECT_EQ(taken->summary(), made.lanes.summary());
  EXPECT_TRUE(std::equal(taken->steps().begin(), taken->steps().end(), made.lanes.steps().begin(),
                         made.lanes.steps().end()));
  EXPECT_EQ(taken->steps().size(), 40u);
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < taken->lanes().size(); ++i) all.push_back(i);
  const std::int64_t span = taken->end_ns() - taken->origin_ns();
  for (const std::int64_t step : {1, 64, 4'096, 262'144})
    for (const std::int64_t from : {std::int64_t{0}, span / 3}) {
      const FrameRequest request{from, std::min(span, from + step * 4'000), step, all, 0};
      EXPECT_EQ(*make_frame(*taken, request), *make_frame(made.lanes, request)) << step;
    }
  for (std::uint32_t i = 0; i < made.trace.slices().size(); ++i) {
    const auto place = taken->place(SliceId{i}), wanted = made.lanes.place(SliceId{i});
    ASSERT_EQ(place.has_value(), wanted.has_value());
    if (!place) continue;
    EXPECT_EQ(std::tuple(place->lane, place->row), std::tuple(wanted->lane, wanted->row));
  }
  EXPECT_EQ(made.asked_for_facts, 0) << "pictures and places need no facts";
  EXPECT_EQ(taken->idle_items().size(), made.lanes.idle_items().size());
  EXPECT_GT(made.asked_for_facts, 0);
}

TEST(KeptLanesTest, KeptAgainTheyAreTheSameBytes) {
  Made made;
  EXPECT_TRUE(are_sections_of(made.copied.sections, made.lanes));
  EXPECT_TRUE(are_sections_of(made.copied.sections, *made.taken()));
}

// What nobody checked is compared with lanes that are made anew, so any change is seen.
TEST(KeptLanesTest, AnyChangedByteIsNoticed) {
  Made made;
  for (std::size_t i = 0; i < made.copied.sections.size(); ++i) {
    const auto rows = made.copied.sections[i].rows;
    if (rows.empty()) continue;
    for (const std::size_t at : {std::size_t{0}, rows.size() / 2, rows.size() - 1}) {
      std::byte* const byte = const_cast<std::byte*>(rows.data()) + at;  // NOLINT: of made.copied
      *byte ^= std::byte{1};
      EXPECT_FALSE(are_sections_of(made.copied.sections, made.lanes))
          << made.copied.sections[i].name << " byte " << at;
      *byte ^= std::byte{1};
    }
  }
  auto fewer = made.copied.sections;
  fewer.pop_back();
  EXPECT_FALSE(are_sections_of(fewer, made.lanes));
}

TEST(KeptLanesTest, SectionsOfAnotherFormAreNotTaken) {
  Made made;
  const auto whole = made.copied.sections;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    made.copied.sections = whole;
    made.copied.sections[i].name = "view.other";
    EXPECT_FALSE(made.taken()) << whole[i].name;
    made.copied.sections = whole;
    made.copied.sections.erase(made.copied.sections.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(made.taken()) << whole[i].name;
  }
  for (const char* name : {"view.kinds", "view.name_uses", "view.tracks", "view.counter_times"}) {
    made.copied.sections = whole;
    for (LaneSection& section : made.copied.sections)
      if (section.name == name) section.rows = section.rows.first(section.rows.size() / 2);
    EXPECT_FALSE(made.taken()) << name;
  }
}

}  // namespace
}  // namespace lanescope::view

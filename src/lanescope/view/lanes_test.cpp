// Lanes of drawn and random traces: every slice is drawn once, and frames, areas and searches say
// what a plain walk over the trace says.
#include "lanescope/view/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "lanescope/testing/program_sketch.h"
#include "lanescope/view/area.h"
#include "lanescope/view/frame.h"
#include "lanescope/view/row_layout.h"
#include "lanescope/view/search.h"
#include "lanescope/view/slice_details.h"

namespace lanescope::view {
namespace {

using testing::ProgramSketch;
using testing::Sketch;

// A trace with its facts and lanes.
struct Drawn {
  explicit Drawn(Trace made)
      : trace(std::move(made)), facts(*explain::gather_facts(trace)), lanes(facts) {}
  Trace trace;
  explain::Facts facts;
  Lanes lanes;

  SliceId find(std::string_view name, std::size_t nth = 0) const {
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
      if (trace.name(SliceId{i}) == name && nth-- == 0) return SliceId{i};
    ADD_FAILURE() << "no " << name;
    return kNone<SliceId>;
  }
  const Lane* lane(LaneKind kind, std::size_t nth = 0) const {
    for (const Lane& each : lanes.lanes())
      if (each.kind == kind && nth-- == 0) return &each;
    return nullptr;
  }
};

// Threads with nested, touching and partly overlapping slices, streams whose kernels overlap, slices
// of length zero, several at one time, and long ones.
Trace random_trace(std::uint64_t seed, int slices) {
  std::mt19937_64 random(seed);
  const auto upto = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  const auto length = [&] {
    const std::int64_t kind = upto(20);
    return kind < 3 ? 0 : kind == 3 ? upto(6'000'000'000) : upto(std::int64_t{1} << upto(18));
  };
  const std::vector<std::string> names{"aten::mm",         "aten::add", "forward",
                                       "cudaLaunchKernel", "x",         ""};
  Sketch sketch;
  for (int i = 0; i < slices; ++i) {
    const std::int64_t start = upto(upto(3) == 0 ? 2'000 : 40'000'000);
    const std::string& name = names[static_cast<std::size_t>(upto(6))];
    switch (upto(8)) {
      case 0:
      case 1:
        sketch.op(name, start, length(), {.tid = 100 + upto(3)});
        break;
      case 2:
        sketch.annotation(name, start, length(), {.tid = 100 + upto(3)});
        break;
      case 3:
        sketch.runtime(name, start, length(), {.tid = 100 + upto(3), .correlation = upto(300)});
        break;
      case 4:
        sketch.slice("python_function", "a/b.py(3): f", start, length(), {.tid = 100 + upto(2)});
        break;
      case 5:
        sketch.gpu_annotation(name, start, length(), {.stream = 7 + upto(2)});
        break;
      default:
        sketch.kernel(name, start, length(), {.stream = 7 + upto(3), .correlation = upto(300)});
    }
  }
  return sketch.trace();
}

TEST(RowLayoutTest, NestedRowsAreDepthsAndNothingIsAboveWhatItIsIn) {
  NestedRows rows;
  EXPECT_EQ(rows.place(0, 100), 0u);
  EXPECT_EQ(rows.place(10, 30), 1u);
  EXPECT_EQ(rows.place(20, 5), 2u);
  EXPECT_EQ(rows.place(30, 50), 2u);  // overlaps the one of row 1 partly
  EXPECT_EQ(rows.place(45, 10), 3u);  // row 1 has ended, and row 2 is still open
  EXPECT_EQ(rows.place(100, 0), 0u);
  EXPECT_EQ(rows.place(100, 0), 1u);  // both can be seen
  EXPECT_EQ(rows.place(101, 7), 0u);
}

TEST(RowLayoutTest, FirstFreeRowsReuseTheLowestRow) {
  FirstFreeRows rows;
  EXPECT_EQ(rows.place(0, 10), 0u);
  EXPECT_EQ(rows.place(5, 10), 1u);
  EXPECT_EQ(rows.place(6, 1), 2u);
  EXPECT_EQ(rows.place(10, 1), 0u);
  EXPECT_EQ(rows.place(15, 1), 0u);
  EXPECT_EQ(rows.place(15, 1), 1u);
}

TEST(LanesTest, AProgramHasStepsThreadIdleTimesAndStream) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) program.step().launch({.us = 40}).pass(200).launch({.us = 10}).end();
  const Drawn drawn(program.trace());
  const Lane* steps = drawn.lane(LaneKind::kSteps);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->slice_count, 4u);
  const Lane* stream = drawn.lane(LaneKind::kGpu);
  ASSERT_TRUE(stream && stream->is_main);
  EXPECT_EQ(stream->busy_ns, 4 * 50'000);
  EXPECT_EQ(stream->row_count, 1u);
  const Lane* idle = drawn.lane(LaneKind::kIdle);
  ASSERT_TRUE(idle && idle->is_main);
  std::int64_t idle_ns = 0;
  for (const auto& part : drawn.facts.device().gaps.parts) idle_ns += part.end_ns - part.start_ns;
  EXPECT_EQ(idle->busy_ns, idle_ns);
  const Lane* queue = drawn.lane(LaneKind::kCounter);
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->source, CounterSource::kQueueDepth);
  EXPECT_EQ(drawn.lanes.counter(*queue).values().back(), 0);  // all that was launched has begun
  EXPECT_EQ(drawn.lanes.lanes().front().kind, LaneKind::kSteps);
}

// A budget ended the memory records at 500 ns, and the recording went on to 2,000 ns: the level of
// 3 MB holds until then, and from there on it is unknown.
TEST(LanesTest, TheMemoryLaneEndsWhereItsRecordsDo) {
  const auto cells_of = [](const char* thinned) {
    Sketch sketch;
    if (thinned) sketch.metadata("lanescope_thinned", thinned);
    sketch.op("aten::linear", 0, 2'000);
    sketch.memory_at(100, 3 << 20, {.address = 1, .allocated = 3 << 20, .reserved = 8 << 20});
    const Drawn drawn(sketch.trace());
    const Lane* memory = drawn.lane(LaneKind::kCounter);
    EXPECT_TRUE(memory && memory->source == CounterSource::kAllocated);
    const CounterSeries& series = drawn.lanes.counter(*memory);
    EXPECT_EQ(series.smallest(), 3 << 20);
    EXPECT_EQ(series.largest(), 3 << 20);
    return series.cells(0, 3'000, 1);
  };
  const auto whole = cells_of(nullptr);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].last, 3 << 20);
  const auto ended = cells_of(R"([{"from_ns": 500, "to_ns": null, "what": "allocations"}])");
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].last, 3 << 20);
  EXPECT_EQ(ended[1].start_ns, 500);
  EXPECT_TRUE(std::isnan(ended[1].smallest) && std::isnan(ended[1].last));
}

const Lane* lane_of_stream(const Drawn& drawn, std::int64_t stream) {
  for (const Lane& lane : drawn.lanes.lanes())
    if (lane.kind == LaneKind::kGpu && drawn.trace.track(lane.track).stream == stream) return &lane;
  return nullptr;
}

// Collectives on one stream and compute on another: the busier one alone would hide what the step is about.
TEST(LanesTest, AllBusyStreamsOfTheMainDeviceMatter) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step().launch({.us = 200, .stream = 19}).launch({.us = 40}).pass(300).end();
  const Drawn drawn(program.trace());
  ASSERT_TRUE(lane_of_stream(drawn, 7) && lane_of_stream(drawn, 19));
  EXPECT_TRUE(lane_of_stream(drawn, 7)->is_main);
  EXPECT_TRUE(lane_of_stream(drawn, 19)->is_main);
}

TEST(LanesTest, EverySliceIsDrawnExactlyOnceAndCanBeFound) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Drawn drawn(random_trace(seed, seed % 3 == 0 ? 60 : 1500));
    std::vector<int> seen(drawn.trace.slices().size(), 0);
    for (std::uint32_t number = 0; number < drawn.lanes.lanes().size(); ++number) {
      const Lane& lane = drawn.lanes.lanes()[number];
      if (!Lanes::has_slices(lane.kind)) continue;
      std::uint64_t count = 0;
      for (std::uint32_t row = 0; row < lane.row_count; ++row) {
        std::int64_t free_from = INT64_MIN;
        for (std::size_t i = 0; i < drawn.lanes.index().size(lane.first_row + row); ++i, ++count) {
          const LevelSlice each = drawn.lanes.index().slice(lane.first_row + row, i);
          ASSERT_GE(each.start_ns, free_from);
          free_from = row_end_ns(each.start_ns, each.dur_ns);
          ASSERT_EQ(each.start_ns, drawn.trace.start_ns(SliceId{each.id}));
          ASSERT_EQ(each.dur_ns, drawn.trace.dur_ns(SliceId{each.id}));
          ++seen[each.id];
          const auto place = drawn.lanes.place(SliceId{each.id});
          ASSERT_TRUE(place);
          ASSERT_EQ(std::tuple(place->lane, place->row, place->at), std::tuple(number, row, i));
        }
      }
      EXPECT_EQ(count, lane.slice_count);
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(seen.size()));
  }
}

// One entry of a frame, as the page reads it.
struct FrameEntry {
  std::uint32_t lane = 0, row = 0, kind = 0;
  std::vector<float> start, dur;
  std::vector<std::uint32_t> slice, name, folded;
  std::vector<std::uint8_t> coverage, time_kind, flags;
};

std::vector<FrameEntry> read_frame(const std::string& bytes) {
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    return value;
  };
  EXPECT_EQ(bytes.substr(0, 4), "LSVF");
  EXPECT_EQ(word(4), 1u);
  std::vector<FrameEntry> entries(word(12));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t at = 32 + i * 24;
    FrameEntry& entry = entries[i];
    entry.lane = word(at);
    entry.row = word(at + 4);
    entry.kind = word(at + 8);
    const std::size_t count = word(at + 12), offset = word(at + 16);
    EXPECT_EQ(offset % 8, 0u);
    if (entry.kind != 0) continue;
    const auto column = [&](auto& into, std::size_t number) {
      into.resize(count);
      std::memcpy(into.data(), bytes.data() + offset + number * 4 * count, 4 * count);
    };
    column(entry.start, 0);
    column(entry.dur, 1);
    column(entry.slice, 2);
    column(entry.name, 3);
    column(entry.folded, 4);
    const auto small = [&](std::vector<std::uint8_t>& into, std::size_t number) {
      into.resize(count);
      std::memcpy(into.data(), bytes.data() + offset + 20 * count + number * ((count + 3) / 4 * 4),
                  count);
    };
    small(entry.coverage, 0);
    small(entry.time_kind, 1);
    small(entry.flags, 2);
  }
  return entries;
}

TEST(FrameTest, HasEverySliceOfTheWindowWithItsTimesWhenTheyAreFew) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Drawn drawn(random_trace(seed, 400));
    std::mt19937_64 random(seed);
    for (int round = 0; round < 20; ++round) {
      FrameRequest request;
      request.t0_ns = static_cast<std::int64_t>(random() % 40'000'000);
      request.t1_ns = request.t0_ns + 1 +
                      static_cast<std::int64_t>(random() % (round % 2 == 0 ? 3000 : 40'000'000));
      request.step_ns = std::max<std::int64_t>(1, (request.t1_ns - request.t0_ns) / 1500);
      for (std::uint32_t i = 0; i < drawn.lanes.lanes().size(); ++i) request.lanes.push_back(i);
      const auto bytes = make_frame(drawn.lanes, request);
      ASSERT_TRUE(bytes) << bytes.error().message;
      std::set<std::uint32_t> found;
      for (const FrameEntry& entry : read_frame(*bytes)) {
        if (!Lanes::has_slices(drawn.lanes.lanes()[entry.lane].kind)) continue;
        for (std::size_t i = 0; i < entry.slice.size(); ++i) {
          const SliceId slice{entry.slice[i]};
          EXPECT_EQ(entry.folded[i], 1u);
          EXPECT_TRUE(found.insert(raw(slice)).second);
          const auto start = drawn.trace.start_ns(slice) - drawn.lanes.origin_ns() - request.t0_ns;
          EXPECT_EQ(entry.start[i], static_cast<float>(start));
          EXPECT_EQ(entry.dur[i], static_cast<float>(drawn.trace.dur_ns(slice)));
          EXPECT_EQ(entry.name[i], raw(drawn.trace.slices().name[raw(slice)]));
          EXPECT_EQ((entry.flags[i] & kZeroLengthFlag) != 0, drawn.trace.dur_ns(slice) == 0);
        }
      }
      std::set<std::uint32_t> expected;
      const std::int64_t from = drawn.lanes.origin_ns() + request.t0_ns,
                         to = drawn.lanes.origin_ns() + request.t1_ns;
      for (std::uint32_t i = 0; i < drawn.trace.slices().size(); ++i) {
        const std::int64_t start = drawn.trace.start_ns(SliceId{i}),
                           end = drawn.trace.end_ns(SliceId{i});
        if (start < to && (start >= from || end > from)) expected.insert(i);
      }
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(FrameTest, FoldedCellsCountEverySlice) {
  const Drawn drawn(random_trace(5, 6000));
  FrameRequest request{0, drawn.lanes.end_ns() - drawn.lanes.origin_ns() + 1, 1 << 28, {}, 7};
  for (std::uint32_t i = 0; i < drawn.lanes.lanes().size(); ++i) request.lanes.push_back(i);
  const auto bytes = make_frame(drawn.lanes, request);
  ASSERT_TRUE(bytes);
  std::map<std::uint32_t, std::uint64_t> counts;
  std::uint64_t folded = 0;
  for (const FrameEntry& entry : read_frame(*bytes))
    for (std::size_t i = 0; i < entry.folded.size(); ++i) {
      counts[entry.lane] += entry.folded[i];
      if (entry.folded[i] > 1) {
        ++folded;
        EXPECT_LT(entry.dur[i], static_cast<float>(1 << 28));
        EXPECT_GT(entry.coverage[i], 0);
      }
    }
  EXPECT_GT(folded, 0u);
  for (std::uint32_t i = 0; i < drawn.lanes.lanes().size(); ++i)
    if (drawn.lanes.lanes()[i].kind != LaneKind::kCounter) {
      EXPECT_EQ(counts[i], drawn.lanes.lanes()[i].slice_count) << i;
    }
}

TEST(FrameTest, RefusesWhatItCannotDraw) {
  const Drawn drawn(random_trace(1, 20));
  EXPECT_FALSE(make_frame(drawn.lanes, {0, 0, 1, {0}, 0}));
  EXPECT_FALSE(make_frame(drawn.lanes, {0, 1'000'000'000, 1, {0}, 0}));
  EXPECT_FALSE(make_frame(drawn.lanes, {0, 100, 1, {10'000}, 0}));
  EXPECT_FALSE(
      make_frame(drawn.lanes, {0, 100, 1, std::vector<std::uint32_t>(kMostFrameLanes + 1, 0), 0}));
}

TEST(AreaTest, SumsAreThoseOfAPlainWalk) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Drawn drawn(random_trace(seed, 500));
    AreaRequest request{drawn.lanes.origin_ns() + 1'000'000 * static_cast<std::int64_t>(seed),
                        drawn.lanes.origin_ns() + 30'000'000,
                        {}};
    for (std::uint32_t i = 0; i < drawn.lanes.lanes().size(); ++i) request.lanes.push_back(i);
    const Area area = sum_area(drawn.lanes, request);
    const Area with_facts = sum_area(drawn.lanes, request, &drawn.facts);
    ASSERT_EQ(area.launch_delay.has_value(), with_facts.launch_delay.has_value());
    if (area.launch_delay) {
      EXPECT_EQ(area.launch_delay->count, with_facts.launch_delay->count);
      EXPECT_EQ(area.launch_delay->median_ns, with_facts.launch_delay->median_ns);
    }
    std::map<std::pair<std::uint32_t, TimeKind>, std::pair<std::uint64_t, std::int64_t>> expected;
    for (std::uint32_t i = 0; i < drawn.trace.slices().size(); ++i) {
      const std::int64_t start = drawn.trace.start_ns(SliceId{i}),
                         end = drawn.trace.end_ns(SliceId{i});
      if (!(start < request.end_ns && (start >= request.start_ns || end > request.start_ns)))
        continue;
      auto& sum = expected[{raw(drawn.trace.slices().name[i]), drawn.lanes.kind(SliceId{i})}];
      ++sum.first;
      sum.second += std::min(end, request.end_ns) - std::max(start, request.start_ns);
    }
    EXPECT_EQ(area.names.size(), expected.size());
    for (const AreaName& name : area.names) {
      const auto& sum = expected.at({raw(name.name), name.kind});
      EXPECT_EQ(name.count, sum.first);
      EXPECT_EQ(name.total_ns, sum.second);
      EXPECT_LE(name.self_ns, name.total_ns);
    }
  }
}

TEST(AreaTest, SelfTimeIsWithoutWhatIsBelow) {
  Sketch sketch;
  sketch.annotation("outer", 0, 100)
      .op("aten::mm", 10, 40)
      .runtime("cudaLaunchKernel", 20, 10, {.correlation = 1});
  sketch.kernel("k", 40, 50, {.correlation = 1});
  const Drawn drawn(sketch.trace());
  AreaRequest request{drawn.lanes.origin_ns() + 15, drawn.lanes.origin_ns() + 70, {}};
  for (std::uint32_t i = 0; i < drawn.lanes.lanes().size(); ++i) request.lanes.push_back(i);
  const Area area = sum_area(drawn.lanes, request);
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> times;
  for (const AreaName& name : area.names)
    times[std::string(drawn.trace.text(name.name))] = {name.total_ns, name.self_ns};
  // Inside [15, 70): outer 55 of which aten::mm has 35, of which the call has 10; the kernel 30.
  EXPECT_EQ(times["outer"], std::pair(std::int64_t{55}, std::int64_t{20}));
  EXPECT_EQ(times["aten::mm"], std::pair(std::int64_t{35}, std::int64_t{25}));
  EXPECT_EQ(times["cudaLaunchKernel"], std::pair(std::int64_t{10}, std::int64_t{10}));
  EXPECT_EQ(times["k"], std::pair(std::int64_t{30}, std::int64_t{30}));
  ASSERT_TRUE(area.launch_delay);
  EXPECT_EQ(area.launch_delay->median_ns, 10);  // the call ends at 30, the kernel begins at 40
  std::uint32_t thread = 0;
  for (std::uint32_t i = 0; i < drawn.lanes.lanes().size(); ++i)
    if (drawn.lanes.lanes()[i].kind == LaneKind::kCpu) thread = i;
  const auto flame = make_flame(drawn.lanes, thread, request.start_ns, request.end_ns);
  ASSERT_EQ(flame.size(), 3u);
  EXPECT_EQ(flame[2].parent, 1);
  EXPECT_EQ(flame[0].self_ns, 20);
}

TEST(SearchTest, FindsNamesKindsAndLengths) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i)
    program.step().launch({.name = "ampere_sgemm_128x64_nn", .us = 40}).launch({.us = 10}).end();
  const Drawn drawn(program.trace());
  const auto count = [&](std::string_view text) {
    const auto query = parse_search(text);
    EXPECT_TRUE(query) << text;
    return query ? search(drawn.lanes, *query, {}, 100).total : 0;
  };
  EXPECT_EQ(count("SGEMM"), 3u);
  EXPECT_EQ(count("sgemm ampere"), 3u);
  EXPECT_EQ(count("sgemm volta"), 0u);
  EXPECT_EQ(count("kind:compute"), 6u);
  EXPECT_EQ(count("kind:compute >20us"), 3u);
  EXPECT_EQ(count("kind:compute <20us"), 3u);
  EXPECT_EQ(count("ProfilerStep"), 3u);
  EXPECT_FALSE(parse_search("kind:nothing"));
  EXPECT_FALSE(parse_search(">100"));
  const auto result = search(drawn.lanes, *parse_search("kind:compute"), {}, 2);
  EXPECT_EQ(result.total, 6u);
  ASSERT_EQ(result.hits.size(), 2u);
  EXPECT_LT(drawn.trace.start_ns(result.hits[0]), drawn.trace.start_ns(result.hits[1]));
}

TEST(SliceDetailsTest, OfAKernelTellTheWayFromTheStep) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) program.step().begin("forward").launch({.us = 40}).end().end();
  const Drawn drawn(program.trace());
  const SliceId kernel = drawn.find("gemm", 1);
  const SliceDetails details = describe_slice(drawn.lanes, kernel, &drawn.facts);
  std::vector<std::string> roles;
  for (const ChainLink& link : details.chain) roles.emplace_back(chain_role_name(link.role));
  EXPECT_THAT(roles, ::testing::ElementsAre("step", "annotation", "operator", "launch", "kernel"));
  ASSERT_EQ(details.arrows.size(), 1u);
  EXPECT_EQ(details.arrows[0].to, kernel);
  EXPECT_EQ(details.queue_ns,
            drawn.trace.start_ns(kernel) - drawn.trace.end_ns(details.arrows[0].from));
  EXPECT_EQ(details.same.count, 3u);
  EXPECT_EQ(details.same.median_ns, 40'000);
  EXPECT_EQ(details.same.previous, drawn.find("gemm", 0));
  EXPECT_EQ(details.next, drawn.find("gemm", 2));
  const SliceDetails step = describe_slice(drawn.lanes, drawn.find("ProfilerStep#2"), &drawn.facts);
  EXPECT_EQ(step.launched_count, 1u);
  EXPECT_EQ(step.launched, std::vector<SliceId>{kernel});
}

TEST(SliceDetailsTest, AGraphLaunchHasAnArrowToEachKernel) {
  Sketch sketch;
  sketch.runtime("cudaGraphLaunch", 0, 10, {.correlation = 5});
  for (int i = 0; i < 300; ++i) sketch.kernel("k", 20 + 10 * i, 5, {.correlation = 5});
  const Drawn drawn(sketch.trace());
  const SliceDetails details =
      describe_slice(drawn.lanes, drawn.find("cudaGraphLaunch"), &drawn.facts);
  EXPECT_EQ(details.launched_count, 300u);
  EXPECT_EQ(details.arrows.size(), kMostListedArrows);
}

// Whoever clicks before the facts are there gets the same answer, without the forward operator.
TEST(SliceDetailsTest, AreTheSameBeforeTheFactsAreKnown) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Drawn drawn(random_trace(seed, 400));
    for (std::uint32_t i = 0; i < drawn.trace.slices().size(); ++i) {
      const SliceDetails known = describe_slice(drawn.lanes, SliceId{i}, &drawn.facts);
      const SliceDetails alone = describe_slice(drawn.lanes, SliceId{i}, nullptr);
      EXPECT_EQ(alone.self_ns, known.self_ns);
      EXPECT_EQ(alone.queue_ns, known.queue_ns);
      EXPECT_EQ(alone.code, known.code);
      EXPECT_EQ(alone.launched, known.launched);
      EXPECT_EQ(alone.launched_count, known.launched_count);
      const auto links_of = [](const SliceDetails& details) {
        std::vector<std::pair<ChainLink::Role, SliceId>> links;
        for (const ChainLink& link : details.chain) links.emplace_back(link.role, link.slice);
        return links;
      };
      EXPECT_EQ(links_of(alone), links_of(known));
    }
  }
}

TEST(CounterSeriesTest, CellsHaveTheRangeOfTheirStepAndTheValueBefore) {
  CounterSeries series;
  for (int i = 0; i < 1000; ++i) series.add(i * 10, i % 7);
  series.add(9990, 100);  // the last value of a time stays
  series.finish();
  EXPECT_EQ(series.largest(), 100);
  const auto cells = series.cells(105, 145, 16);
  // 100 holds at 105 and lies in [96, 112) with 110; then [112, 128): 120; [128, 144): 130, 140.
  EXPECT_THAT(cells, ::testing::ElementsAre(CounterCell{100, 3, 4, 4}, CounterCell{120, 5, 5, 5},
                                            CounterCell{130, 0, 6, 0}));
  EXPECT_EQ(series.cells(0, 10'000, 1 << 14).size(), 1u);
}

TEST(LanesTest, ManyTracksAreOneLaneEach) {
  Sketch sketch;
  constexpr int kTracks = 100'000;
  for (int i = 0; i < kTracks; ++i) sketch.op("x", i, 5, {.tid = 1000 + i});
  const Drawn drawn(sketch.trace());
  EXPECT_EQ(drawn.lanes.lanes().size(), static_cast<std::size_t>(kTracks));
}

TEST(LanesTest, AnEmptyTraceHasNoLanes) {
  Sketch sketch;
  const Drawn drawn(sketch.trace());
  EXPECT_TRUE(drawn.lanes.lanes().empty());
  EXPECT_GT(drawn.lanes.end_ns(), drawn.lanes.origin_ns());
}

}  // namespace
}  // namespace lanescope::view

// The joins of one slice are those of the tables of all slices.
#include "lanescope/analysis/slice_joins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Sketch;

SliceId named(const Trace& trace, std::string_view name) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name) return SliceId{i};
  ADD_FAILURE() << "no " << name;
  return kNone<SliceId>;
}

SliceId first_of(const Trace& trace, SliceId slice) {
  return SliceId{trace.track(slice).first_slice};
}

TEST(SliceJoinsTest, TheWayOutwardBeginsWithTheSliceItself) {
  Sketch sketch;
  sketch.annotation("step", 0, 100).op("aten::linear", 10, 60).op("aten::mm", 20, 30);
  sketch.runtime("cudaLaunchKernel", 25, 10, {.correlation = 7}).op("aten::add", 80, 5);
  sketch.slice("python_function", "a.py(1): f", 5, 90).kernel("gemm", 60, 9, {.correlation = 7});
  const Trace trace = sketch.trace();
  const SliceId call = named(trace, "cudaLaunchKernel"), op = named(trace, "aten::mm");
  const auto enclosing = enclosing_slices(trace, call, first_of(trace, call));
  EXPECT_THAT(enclosing.outward,
              ElementsAre(call, op, named(trace, "aten::linear"), named(trace, "step")));
  EXPECT_EQ(enclosing.self_ns, 10);
  const SliceId step = named(trace, "step"), frame = named(trace, "a.py(1): f");
  EXPECT_EQ(enclosing_slices(trace, step, step).self_ns, 100 - 60 - 5);
  EXPECT_THAT(enclosing_slices(trace, frame, step).outward, IsEmpty());
  EXPECT_EQ(operator_around_call(trace, call, step), op);
  EXPECT_EQ(find_launch(trace, named(trace, "gemm")), call);
  EXPECT_THAT(*find_launched(trace, std::vector{op, call}),
              ElementsAre(std::pair(call, named(trace, "gemm"))));
}

// Two processes of one file count their ids from 1.
TEST(SliceJoinsTest, CallsOfSeveralProcessesAreLeftToTheTables) {
  Sketch sketch;
  sketch.runtime("cudaLaunchKernel", 0, 5, {.correlation = 1})
      .kernel("k", 9, 5, {.correlation = 1});
  TraceBuilder& builder = sketch.builder();
  builder.args().begin();
  builder.args().add_int(builder.intern("correlation"), ArgKey::kCorrelation, 2);
  const Scalar other{false, 200, kNone<StringId>};
  builder.add_slice(builder.thread_track(other, other), builder.category("cuda_runtime"),
                    builder.intern("cudaMemcpyAsync"), 3, 5, builder.args().end());
  const Trace trace = sketch.trace();
  EXPECT_EQ(find_launch(trace, named(trace, "k")), std::nullopt);
  EXPECT_EQ(find_launched(trace, std::vector{named(trace, "cudaLaunchKernel")}), std::nullopt);
}

// Ids repeat, lack on one side, or are External ids; ranges overlap partly.
Trace random_trace(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto upto = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  Sketch sketch;
  for (int i = 0; i < 400; ++i) {
    const std::int64_t start = upto(4'000), length = upto(6) == 0 ? 0 : upto(300);
    testing::Fields fields{.tid = 100 + upto(2), .stream = 7 + upto(2)};
    if (upto(3) != 0) fields.correlation = upto(60);
    if (upto(3) != 0) fields.external_id = upto(60);
    switch (upto(7)) {
      case 0:
        sketch.op("aten::mm", start, length, fields);
        break;
      case 1:
        sketch.annotation("forward", start, length, fields);
        break;
      case 2:
        sketch.runtime("cudaLaunchKernel", start, length, fields);
        break;
      case 3:
        sketch.driver("cuLaunchKernel", start, length, fields);
        break;
      case 4:
        sketch.slice("python_function", "a/b.py(3): f", start, length, fields);
        break;
      case 5:
        sketch.slice("cuda_sync", "Stream Sync", start, length, fields);
        break;
      default:
        sketch.kernel("gemm", start, length, fields);
    }
  }
  return sketch.trace();
}

TEST(SliceJoinsTest, AreThoseOfTheTables) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = random_trace(seed);
    const LaunchLinks links = compute_launch_links(trace);
    const SliceNesting nesting = compute_slice_nesting(trace);
    std::vector<SliceId> works;
    std::vector<SliceId> launches;
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
      const CategoryKind kind = trace.kind(SliceId{i});
      if (!is_device_work(kind) && kind != CategoryKind::kCudaSync) continue;
      works.push_back(SliceId{i});
      launches.push_back(links.launch_of[i]);
    }
    EXPECT_EQ(find_launches(trace, works), launches);
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
      const SliceId slice{i};
      const CategoryKind kind = trace.kind(slice);
      const auto enclosing = enclosing_slices(trace, slice, first_of(trace, slice));
      ASSERT_EQ(enclosing.outward.empty(), nesting.depth[i] == SliceNesting::kNotNested);
      if (!enclosing.outward.empty()) {
        EXPECT_EQ(enclosing.self_ns, nesting.self_ns[i]);
        SliceId up = slice;
        for (const SliceId each : enclosing.outward) {
          EXPECT_EQ(each, up);
          up = nesting.parent[raw(up)];
        }
        EXPECT_EQ(up, kNone<SliceId>);
      }
      if (is_device_work(kind)) {
        EXPECT_EQ(find_launch(trace, slice), links.launch_of[i]);
      }
      if (!is_api_call(kind)) continue;
      EXPECT_EQ(operator_around_call(trace, slice, first_of(trace, slice)), links.op_of[i]);
      Launched expected;
      for (const SliceId work : links.launched_by(slice)) expected.emplace_back(slice, work);
      EXPECT_EQ(find_launched(trace, {&slice, 1}), expected);
    }
  }
}

}  // namespace
}  // namespace lanescope::analysis

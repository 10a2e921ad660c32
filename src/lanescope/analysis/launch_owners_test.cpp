#include "lanescope/analysis/launch_owners.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/format/read_trace.h"
#include "lanescope/testing/real_traces.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// The columns of all slices are made of one piece for each track, if it has under 65,536 slices.
void expect_as_in_one_piece(const Trace& trace, const std::string& what) {
  const LaunchLinks links = compute_launch_links(trace);
  for (const unsigned threads : {1u, 3u}) {
    std::vector<SliceId> ops_of_calls(trace.slices().size(), kNone<SliceId>);
    const LaunchOwners owners = compute_launch_owners(trace, {.threads = threads,
                                                              .slices_at_once = 8,
                                                              .judges_external_ids = true,
                                                              .ops_of_calls = ops_of_calls});
    ASSERT_EQ(owners.device_work_count, links.device_work_count) << what;
    ASSERT_EQ(owners.launched_count, links.launched_count) << what;
    ASSERT_EQ(owners.external_id_used_count, links.external_id_used_count) << what;
    ASSERT_EQ(owners.external_id_checked_count, links.external_id_checked_count) << what;
    ASSERT_EQ(owners.external_id_right_count, links.external_id_right_count) << what;
    ASSERT_EQ(owners.external_id_trusted, links.external_id_trusted) << what;
    for (std::size_t i = 0; i < owners.device.size(); ++i) {
      const SliceId id = owners.device[i];
      ASSERT_EQ(owners.place_of(id), i) << what;
      ASSERT_EQ(owners.launch_of[i], links.launch_of[raw(id)]) << what << ": slice " << raw(id);
      ASSERT_EQ(owners.op_of[i], links.op_of[raw(id)]) << what << ": slice " << raw(id);
    }
    for (std::uint32_t i = 0; i < ops_of_calls.size(); ++i)
      if (is_api_call(trace.kind(SliceId{i}))) {
        ASSERT_EQ(ops_of_calls[i], links.op_of[i]) << what << ": slice " << i;
      }
  }
}

// Long and short ranges, some of which overlap without nesting; two threads whose ids take turns; calls without ids.
Trace drawn_calls(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::int64_t>(random() % limit);
  };
  Sketch sketch;
  std::int64_t at = 1000;
  for (int i = 0; i < 300; ++i) {
    at += below(4) == 0 ? 40 + below(60) : below(8);
    const std::int64_t tid = 100 + below(2), dur = below(12) == 0 ? 600 + below(600) : below(60);
    const std::int64_t correlation = below(9) == 0 ? 0 : seed % 2 == 0 ? i : 1 + below(200);
    switch (below(6)) {
      case 0:
      case 1:
        sketch.runtime("cudaLaunchKernel", at, below(9), {.tid = tid, .correlation = correlation});
        break;
      case 2:
      case 3:
        sketch.kernel(
            "gemm", at + 20, dur,
            {.stream = 7 + below(2), .external_id = below(40), .correlation = below(300)});
        break;
      default:
        sketch.op("aten::mm", at, dur, {.tid = tid, .external_id = 1 + below(40)});
    }
  }
  return sketch.trace();
}

TEST(LaunchOwnersTest, PiecesAndThreadsFindTheSameForDrawnTraces) {
  for (std::uint32_t seed = 0; seed < 100; ++seed)
    expect_as_in_one_piece(drawn_calls(seed), "seed " + std::to_string(seed));
}

TEST(LaunchOwnersTest, PiecesAndThreadsFindTheSameForRealTraces) {
  std::size_t checked = 0;
  for (const auto& path : testing::json_traces(testing::shipped_traces())) {
    const auto trace = format::read_trace(path.string());
    if (!trace) continue;
    expect_as_in_one_piece(*trace, path.string());
    ++checked;
  }
  EXPECT_GT(checked, 10u);
}

// The step is open over many pieces; the operator between has ended when the last call begins.
TEST(LaunchOwnersTest, ARangeThatPiecesBeforeHaveLeftOpenIsTheOperator) {
  Sketch sketch;
  sketch.annotation("step", 0, 100'000).op("aten::mm", 10, 50);
  for (std::int64_t i = 0; i < 40; ++i)
    sketch.runtime("cudaLaunchKernel", 20 + 1000 * i, 5, {.correlation = i + 1});
  sketch.kernel("first", 200'000, 5, {.correlation = 1});
  sketch.kernel("last", 200'010, 5, {.correlation = 40});
  const Trace trace = std::move(sketch).trace();
  const LaunchOwners owners = compute_launch_owners(trace, {.threads = 2, .slices_at_once = 4});
  ASSERT_EQ(owners.device.size(), 2u);
  EXPECT_EQ(trace.name(owners.op_of[0]), "aten::mm");
  EXPECT_EQ(trace.name(owners.op_of[1]), "step");
  EXPECT_EQ(owners.launched_count, 2u);
}

}  // namespace
}  // namespace lanescope::analysis

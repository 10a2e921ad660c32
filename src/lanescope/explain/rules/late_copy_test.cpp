#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using testing::Sketch;

// The record of a cudaStreamWaitEvent: stream 13 waits for what stream 7 had got when the event was recorded.
void add_wait(Sketch& sketch, std::int64_t time_ns, std::int64_t correlation,
              std::int64_t recorded_by) {
  TraceBuilder& builder = sketch.builder();
  builder.args().begin();
  const auto add = [&](std::string_view key, std::int64_t value) {
    builder.args().add_int(builder.intern(key), arg_key(key), value);
  };
  add("stream", 13);
  add("wait_on_stream", 7);
  add("wait_on_cuda_event_record_corr_id", recorded_by);
  add("correlation", correlation);
  const ArgsId args = builder.args().end();
  builder.add_slice(builder.stream_track({false, 0, kNone<StringId>}, {false, 13, kNone<StringId>}),
                    builder.category("cuda_sync"), builder.intern("Stream Wait Event"), time_ns,
                    1000, args);
}

struct DrawnCopy {
  const char* name = "Memcpy HtoD (Pinned -> Device)";
  std::int64_t kernel_us = 800;  // from 100 us on
  std::int64_t begins_us = 0;    // 0: 5 us after the kernel
  bool has_waits = true;
  bool is_recorded_early = false;  // the event, before the kernel is launched
};

// Four steps of 2 ms: a kernel on stream 7, an event, a wait of stream 13 for it, a copy of 500 us there.
Trace draw_late_copy(const DrawnCopy& drawn) {
  Sketch sketch;
  for (std::int64_t step = 0; step < 4; ++step) {
    const std::int64_t begin = step * 2000;
    const std::int64_t number = step * 10;
    const auto at = [&](std::int64_t microseconds) { return us(begin + microseconds); };
    sketch.annotation("ProfilerStep#" + std::to_string(step + 1), at(0), us(1999));
    sketch.runtime("cudaLaunchKernel", at(40), us(4), {.correlation = number + 1});
    sketch.kernel("gemm", at(100), us(drawn.kernel_us), {.stream = 7, .correlation = number + 1});
    sketch.runtime("cudaEventRecordWithFlags", at(drawn.is_recorded_early ? 30 : 50), us(1),
                   {.correlation = number + 2});
    sketch.runtime("cudaStreamWaitEvent", at(54), us(1), {.correlation = number + 3});
    if (drawn.has_waits) add_wait(sketch, at(54), number + 3, number + 2);
    sketch.runtime("cudaMemcpyAsync", at(60), us(4), {.correlation = number + 4});
    sketch.slice("gpu_memcpy", drawn.name,
                 at(drawn.begins_us > 0 ? drawn.begins_us : 105 + drawn.kernel_us), us(500),
                 {.stream = 13, .correlation = number + 4, .bytes = 1 << 20});
  }
  return sketch.trace();
}

// The copy could begin when it is launched, at 60 us, and run until 560 us: all of its 500 us are saved.
TEST(LateCopyTest, CountsWhatFitsBeforeTheEndOfTheWorkThatItWaitsFor) {
  const auto finding = find_by_rule(draw_late_copy({}), "late-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(500));
  EXPECT_EQ(finding->sample_count, 3u);  // the first step is left out
  EXPECT_EQ(finding->verdict.values.at(0).text, "gemm");
}

// Of a wait of 100 us only these are saved: the kernel ends then.
TEST(LateCopyTest, CountsNoMoreThanTheCopyWaits) {
  const auto finding = find_by_rule(draw_late_copy({.kernel_us = 60}), "late-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(100));
}

TEST(LateCopyTest, IsQuietAboutCopiesThatNeedTheirWait) {
  const auto is_reported = [](const DrawnCopy& drawn) {
    return find_by_rule(draw_late_copy(drawn), "late-copy").has_value();
  };
  EXPECT_FALSE(is_reported({.name = "Memcpy DtoH (Device -> Pinned)"}));  // of a result
  EXPECT_FALSE(is_reported({.begins_us = 400}));                          // during the kernel
  EXPECT_FALSE(is_reported({.begins_us = 1200}));  // something else makes it late
  EXPECT_FALSE(is_reported({.has_waits = false}));
  EXPECT_FALSE(is_reported({.is_recorded_early = true}));  // a wait for the step before
}

}  // namespace
}  // namespace lanescope::explain

// Which slices samples of Python stacks become.
#include "lanescope/format/spool/sample_rows.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/codec/op_details.h"
#include "lanescope/format/spool/spool_reading_test.h"
#include "lanescope/model/child_process.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using lanescope::testing::kDay;
using lanescope::testing::SpoolSketch;

struct Frame {
  std::string_view function;
  std::uint32_t line;
};

// The node of a stack, outermost frame first.
std::uint32_t node(SpoolSketch& sketch, std::initializer_list<Frame> frames) {
  std::uint32_t caller = 0;
  for (const Frame& frame : frames) {
    char buffer[codec::kMaxSampleNodeBytes];
    codec::OpDetailsWriter out(buffer, sizeof buffer);
    out.sample_node(sketch.text(frame.function), frame.line, caller);
    caller = sketch.text(std::string(out.bytes()));
  }
  return caller;
}

// A period is 100 ticks, 200 ns.
spool::SampleRecord samples(std::uint32_t node, std::uint64_t first, std::uint64_t last,
                            std::uint32_t count, std::uint64_t thread = 7, std::uint8_t flags = 0) {
  return {.begin_tsc = first,
          .end_tsc = last,
          .node = node,
          .flags = flags,
          .thread = thread,
          .samples = count,
          .period_ns = 200};
}

std::optional<std::int64_t> number(const Trace& trace, SliceId slice, ArgKey key) {
  return trace.slice_args(slice).integer(key);
}
std::optional<std::int64_t> number(const Trace& trace, SliceId slice, std::string_view key) {
  const ArgsView args = trace.slice_args(slice);
  for (std::size_t i = 0; i < args.size(); ++i)
    if (trace.text(args.field(i).key) == key) return args.integer(&args.field(i));
  return std::nullopt;
}

TEST(SampleRowsTest, EqualFramesOneAfterAnotherAreOneSlice) {
  SpoolSketch sketch;
  sketch.thread(99, 0);
  sketch.thread(7, 0);
  sketch.window(2000, 9000);
  const auto at_f = node(sketch, {{"a.py(1): main", 10}, {"a.py(5): f", 6}});
  const auto at_g = node(sketch, {{"a.py(1): main", 11}, {"a.py(8): g", 9}});
  sketch.records(0, 1,
                 {samples(at_f, 3000, 3200, 3, 7, spool::kCpuTimeKnown | spool::kOnCpu),
                  samples(at_g, 3300, 3300, 1, 7, spool::kCpuTimeKnown)});
  const Trace trace = read_recording(sketch.bytes());
  const SliceId main = find_slice(trace, "a.py(1): main"), f = find_slice(trace, "a.py(5): f"),
                g = find_slice(trace, "a.py(8): g");
  EXPECT_EQ(trace.kind(main), CategoryKind::kPythonSample);
  EXPECT_EQ(trace.text(trace.track(main).name), "Python (sampled) of thread 7 (worker)");
  // From the first sample to a period after the last one.
  EXPECT_EQ(trace.start_ns(main), kDay + (3000 - 1000) * 2);
  EXPECT_EQ(trace.dur_ns(main), 300 * 2 + 200);
  EXPECT_EQ(trace.dur_ns(f), 300 * 2);  // to the next sample
  EXPECT_EQ(trace.dur_ns(g), 200);
  EXPECT_EQ(number(trace, main, ArgKey::kSamples), 4);
  EXPECT_EQ(number(trace, main, ArgKey::kSelfSamples), 0);
  EXPECT_EQ(number(trace, main, ArgKey::kOnCpuSamples), 3);
  EXPECT_EQ(number(trace, f, ArgKey::kSelfSamples), 3);
}

// Only the innermost function has these counts: it is what the thread did while it held the lock.
TEST(SampleRowsTest, TheInterpretersLockIsInTheInnermostSlice) {
  SpoolSketch sketch;
  sketch.thread(99, 0);
  sketch.thread(7, 0);
  sketch.window(2000, 9000);
  const auto at_f = node(sketch, {{"a.py(1): main", 10}, {"a.py(5): f", 6}});
  sketch.records(0, 1,
                 {samples(at_f, 3000, 3200, 3, 7, spool::kHeldLock | spool::kOthersWaited),
                  samples(at_f, 3300, 3300, 1, 7, spool::kHeldLock),
                  samples(at_f, 3400, 3500, 2, 7, spool::kHeldLock | spool::kCollected)});
  const Trace trace = read_recording(sketch.bytes());
  const SliceId main = find_slice(trace, "a.py(1): main"), f = find_slice(trace, "a.py(5): f");
  EXPECT_EQ(number(trace, f, ArgKey::kSelfSamples), 6);
  EXPECT_EQ(number(trace, f, "Others waited for the GIL samples"), 3);
  EXPECT_EQ(number(trace, f, "Collecting garbage samples"), 2);
  EXPECT_EQ(number(trace, main, "Others waited for the GIL samples"), std::nullopt);
  EXPECT_EQ(number(trace, main, "Collecting garbage samples"), std::nullopt);
}

// A DataLoader's worker is known by its loop; the other child is not one. Both are processes of their own.
TEST(SampleRowsTest, AChildOfTheRecordedProcessIsAProcessOfItsOwn) {
  SpoolSketch sketch;
  sketch.thread(99, 0);
  sketch.thread(7, 0);
  sketch.window(2000, 9000);
  const auto own = node(sketch, {{"a.py(1): main", 10}});
  const auto worker = node(sketch, {{"torch/utils/data/_utils/worker.py(231): _worker_loop", 300},
                                    {"a.py(5): load", 6}});
  const auto other = node(sketch, {{"server.py(3): serve", 4}, {"b.py(231): _worker_loop", 9}});
  auto of = [](spool::SampleRecord record, std::uint32_t process) {
    record.process = process;
    return record;
  };
  sketch.records(0, 1,
                 {of(samples(worker, 3000, 3200, 3, 4711), 4711), samples(own, 3000, 3300, 4),
                  of(samples(other, 3100, 3200, 2, 4712), 4712)});
  const Trace trace = read_recording(sketch.bytes());
  const auto process_of = [&](std::string_view function) -> const Process& {
    return trace.process(trace.track(find_slice(trace, function)).process);
  };
  EXPECT_EQ(trace.text(process_of("a.py(5): load").name), "DataLoader worker 4711");
  EXPECT_EQ(process_of("a.py(5): load").pid.number, 4711);
  EXPECT_TRUE(is_child_process(trace, process_of("a.py(5): load")));
  EXPECT_EQ(trace.text(process_of("server.py(3): serve").name), "child process 4712");
  EXPECT_TRUE(is_child_process(trace, process_of("server.py(3): serve")));
  EXPECT_FALSE(is_child_process(trace, process_of("a.py(1): main")));
  EXPECT_EQ(trace.text(trace.track(find_slice(trace, "a.py(5): load")).name),
            "Python (sampled) of thread 4711");
}

TEST(SampleRowsTest, AGapInTheSamplesEndsAllSlices) {
  SpoolSketch sketch;
  sketch.thread(99, 0);
  sketch.window(2000, 9000);
  const auto at_f = node(sketch, {{"a.py(5): f", 6}});
  sketch.records(0, 1, {samples(at_f, 3000, 3000, 1), samples(at_f, 3401, 3401, 1)});
  const Trace trace = read_recording(sketch.bytes());
  std::size_t found = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kPythonSample) {
      EXPECT_EQ(trace.dur_ns(SliceId{i}), 200);
      ++found;
    }
  EXPECT_EQ(found, 2u);
}

TEST(SampleRowsTest, DamageIsCounted) {
  SpoolSketch sketch;
  sketch.thread(99, 0);
  sketch.window(2000, 9000);
  const auto at_f = node(sketch, {{"a.py(5): f", 6}});
  sketch.records(0, 1,
                 {samples(4711, 3000, 3000, 1),  // no such node
                  samples(at_f, 3300, 3200, 1),  // ends before it begins
                  samples(at_f, 3400, 3400, 0),  // no sample
                  samples(at_f, 3500, 3500, 1)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(issue_count(trace, ImportIssue::kBadTime), 2u);
  EXPECT_EQ(issue_count(trace, ImportIssue::kMissingField), 1u);
  EXPECT_EQ(number(trace, find_slice(trace, "a.py(5): f"), ArgKey::kSamples), 1);
}

}  // namespace
}  // namespace lanescope::format

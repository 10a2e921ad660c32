#include "lanescope/format/kineto_json/cpu_profiles.h"

#include <gtest/gtest.h>

#include <string>

#include "lanescope/format/read_text_test.h"

namespace lanescope::format {
namespace {

// "name start+dur", one line a slice, in nanoseconds.
std::string slices_of(const Trace& trace) {
  std::string lines;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId slice{i};
    lines += std::string(trace.text(trace.slices().name[i])) + " " +
             std::to_string(trace.start_ns(slice)) + "+" + std::to_string(trace.dur_ns(slice)) +
             "\n";
  }
  return lines;
}

std::string event(const std::string& name, const std::string& data, int ts,
                  const std::string& id = "0x1", int tid = 2) {
  return R"({"args":{"data":)" + data + R"(},"cat":"disabled-by-default-v8.cpu_profiler","id":")" +
         id + R"(","name":")" + name + R"(","ph":"P","pid":7,"tid":)" + std::to_string(tid) +
         R"(,"ts":)" + std::to_string(ts) + "}";
}
std::string trace_of(const std::string& events) { return R"({"traceEvents":[)" + events + "]}"; }
std::string start(int time = 100) {
  return event("Profile", R"({"startTime":)" + std::to_string(time) + "}", time);
}
std::string chunk(const std::string& nodes, const std::string& samples, const std::string& deltas,
                  int ts = 200, const std::string& rest = "") {
  return event("ProfileChunk",
               R"({"cpuProfile":{"nodes":[)" + nodes + R"(],"samples":[)" + samples +
                   R"(]},"timeDeltas":[)" + deltas + "]" + rest + "}",
               ts, "0x1", 9);
}
std::string node(int id, const std::string& name, int parent = 0) {
  return R"({"callFrame":{"codeType":"JS","functionName":")" + name + R"(","scriptId":0},"id":)" +
         std::to_string(id) + (parent != 0 ? R"(,"parent":)" + std::to_string(parent) : "") + "}";
}

const std::string kTree = node(1, "(root)") + "," + node(2, "main", 1) + "," + node(3, "work", 2) +
                          "," + node(4, "(idle)", 1);

TEST(CpuProfilesTest, AFrameLastsAsLongAsConsecutiveSamplesHaveIt) {
  // Times: 100 + 10 = 110 main, 120 work, 140 work, 150 main, 170 idle, end 200.
  const Trace trace = read_text(trace_of(
      R"({"ph":"M","name":"thread_name","pid":7,"tid":2,"args":{"name":"CrRendererMain"}},)" +
      start() + "," + chunk(kTree, "2,3,3,2,4", "10,10,20,10,20", 200, R"(,"endTime":200)")));
  EXPECT_EQ(slices_of(trace),
            "main 110000+60000\n"
            "work 120000+30000\n"
            "(idle) 170000+30000\n");
  EXPECT_EQ(trace.text(trace.tracks()[0].name), "CPU profile (thread CrRendererMain)");
  EXPECT_FALSE(trace.import_stats().lost_anything());
  EXPECT_EQ(count_of(trace, ImportIssue::kOutOfOrder), 0u);
}

TEST(CpuProfilesTest, ChunksAndParentsMayComeInAnyOrder) {
  // The second chunk comes first: 120 work; then 110 main. The start comes last.
  const Trace trace = read_text(trace_of(
      chunk(node(3, "work", 2), "3", "10", 300, R"(,"endTime":150)") + "," +
      chunk(node(1, "(root)") + "," + node(2, "main", 1), "2", "10", 200) + "," + start()));
  EXPECT_EQ(slices_of(trace), "main 110000+40000\nwork 120000+30000\n");
  EXPECT_EQ(trace.text(trace.tracks()[0].name), "CPU profile (thread 2)");
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST(CpuProfilesTest, EachIdIsAProfile) {
  const auto of = [](const std::string& id, const std::string& name) {
    return event("Profile", R"({"startTime":0})", 1, id) + "," +
           event("ProfileChunk",
                 R"({"cpuProfile":{"nodes":[)" + node(1, name) +
                     R"(],"samples":[1]},"timeDeltas":[5],"endTime":9})",
                 2, id);
  };
  const Trace trace = read_text(trace_of(of("0x1", "a") + "," + of("0x2", "b")));
  EXPECT_EQ(slices_of(trace), "a 5000+4000\nb 5000+4000\n");
  EXPECT_EQ(trace.tracks().size(), 2u);
}

TEST(CpuProfilesTest, AFileOfItsOwnHasChildren) {
  // 1000 + 5 = 1005 main; 1010 f; 1030 main; end 1040.
  const Trace trace = read_text(R"x({"nodes":[
{"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1,"columnNumber":-1},"children":[2]},
{"id":2,"callFrame":{"functionName":"","url":"node:internal/main","lineNumber":0,"columnNumber":0},"children":[3]},
{"id":3,"callFrame":{"functionName":"f","url":"file:///home/x/w.js?v=1","lineNumber":11,"columnNumber":4}}],
"startTime":1000,"endTime":1040,"samples":[2,3,2],"timeDeltas":[5,5,20]})x");
  EXPECT_EQ(slices_of(trace),
            "(anonymous) (node:internal/main:1) 1005000+35000\n"
            "f (w.js:12) 1010000+20000\n");
  EXPECT_EQ(trace.text(trace.tracks()[0].name), "CPU profile");
  const ArgsView args = trace.args(trace.slices().args[1]);
  ASSERT_EQ(args.size(), 3u);
  EXPECT_EQ(args.integer(&args.field(1)), 12);
  EXPECT_EQ(args.integer(&args.field(2)), 5);
  EXPECT_TRUE(trace.metadata().empty());
}

TEST(CpuProfilesTest, ATraceWithSuchEntriesKeepsThem) {
  const Trace trace =
      read_text(R"({"nodes":[],"samples":[],"timeDeltas":[],"x":1,"traceEvents":[]})");
  ASSERT_EQ(trace.metadata().size(), 4u);
  EXPECT_EQ(trace.text(trace.metadata()[0].key), "nodes");
  EXPECT_EQ(trace.text(trace.metadata()[3].key), "x");
}

TEST(CpuProfilesTest, TimesThatGoBackAreSorted) {
  // 110 main, 130 work, 120 main: sorted 110 main, 120 main, 130 work until 140.
  const Trace trace = read_text(
      trace_of(start() + "," + chunk(kTree, "2,3,2", "10,20,-10", 200, R"(,"endTime":140)")));
  EXPECT_EQ(slices_of(trace), "main 110000+30000\nwork 130000+10000\n");
  EXPECT_EQ(count_of(trace, ImportIssue::kOutOfOrder), 1u);
}

TEST(CpuProfilesTest, WithoutAnEndTheLastSampleLastsNoTime) {
  const Trace trace = read_text(trace_of(start() + "," + chunk(kTree, "2,3,3,4", "10,10,0,10")));
  EXPECT_EQ(slices_of(trace), "main 110000+20000\nwork 120000+10000\n");
}

struct Damage {
  std::string events, slices;
  std::uint64_t lost;
};
TEST(CpuProfilesTest, DamageIsCounted) {
  const std::string end = R"(,"endTime":200)";
  const Damage cases[] = {
      // no start: when the samples were is unknown
      {chunk(kTree, "2,3", "10,10"), "", 2},
      // a parent that is missing: the frame is an outermost one
      {start() + "," + chunk(node(3, "work", 2), "3", "10", 200, end), "work 110000+90000\n", 1},
      // a cycle of parents is cut
      {start() + "," + chunk(node(1, "a", 2) + "," + node(2, "b", 1), "1", "10", 200, end),
       "b 110000+90000\na 110000+90000\n", 1},
      {start() + "," + chunk(node(1, "a", 1), "1", "10", 200, end), "a 110000+90000\n", 1},
      // a sample of no node is a hole
      {start() + "," + chunk(kTree, "2,99,2", "10,10,10", 200, end),
       "main 110000+10000\nmain 130000+70000\n", 1},
      // more samples than times
      {start() + "," + chunk(kTree, "2,4", "10", 200, end), "main 110000+90000\n", 1},
      // after a time that no clock gives, all later ones are unknown
      {start() + "," + chunk(kTree, "2,3,3", "10,9223372036854775807,1", 200, end),
       "main 110000+90000\n", 2},
      {start() + "," + chunk(kTree, "2,3,3", "10,200000000000000,2305843009213693", 200, end),
       "main 110000+200000000000000000\n", 1},
      // values of other types
      {start() + "," +
           chunk(kTree + R"(,7,{"id":"x"},{"id":5,"callFrame":3})", "2,[1],\"3\"", "10,10,10", 200,
                 end),
       "main 110000+10000\n", 5},
      {start() + "," + event("ProfileChunk", "[1]", 5), "", 1},
  };
  for (const Damage& damage : cases) {
    SCOPED_TRACE(damage.events);
    const Trace trace = read_text(trace_of(damage.events));
    EXPECT_EQ(slices_of(trace), damage.slices);
    EXPECT_EQ(count_of(trace, ImportIssue::kProfileLost), damage.lost);
  }
}

TEST(CpuProfilesTest, AHundredThousandNestedFramesAreCut) {
  std::string nodes = node(1, "f");
  constexpr int kNodes = 100'000;
  for (int id = 2; id <= kNodes; ++id)
    nodes += R"(,{"id":)" + std::to_string(id) + R"(,"parent":)" + std::to_string(id - 1) + "}";
  const Trace trace = read_text(
      trace_of(start() + "," + chunk(nodes, "100000,1,99999", "1,1,1", 200, R"(,"endTime":200)")));
  EXPECT_EQ(trace.slices().size(), CpuProfiles::kMostFrames * 2 - 1);
  EXPECT_EQ(count_of(trace, ImportIssue::kProfileLost), kNodes - CpuProfiles::kMostFrames);
}

TEST(CpuProfilesTest, SlicesAreLimitedByTheText) {
  // Two stacks of 512 frames with nothing in common, by turns.
  std::string nodes, samples, deltas;
  for (int id = 1; id <= 1024; ++id)
    nodes += (id > 1 ? "," : "") + node(id, "f", id == 1 || id == 513 ? 0 : id - 1);
  for (int i = 0; i < 10'000; ++i) {
    samples += i == 0 ? "512" : i % 2 == 0 ? ",512" : ",1024";
    deltas += i == 0 ? "1" : ",1";
  }
  const std::string text = trace_of(start() + "," + chunk(nodes, samples, deltas));
  const Trace trace = read_text(text);
  EXPECT_LE(trace.slices().size(), CpuProfiles::kFreeSlices + text.size());
  EXPECT_GT(trace.slices().size(), CpuProfiles::kFreeSlices);
  EXPECT_GT(count_of(trace, ImportIssue::kProfileLost), 0u);
}

TEST(CpuProfilesTest, OtherEventsOfThePhaseAndObjectsAreCounted) {
  const Trace trace = read_text(trace_of(
      event("Other", "{}", 1) +
      R"(,{"ph":"N","name":"o","id":1,"ts":1},{"ph":"O","name":"o","id":1,"ts":1},{"ph":"D","name":"o","id":1,"ts":1})"));
  EXPECT_EQ(count_of(trace, ImportIssue::kUnknownPhase), 4u);
}

}  // namespace
}  // namespace lanescope::format

#include "lanescope/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/record/activity_source.h"

namespace lanescope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

namespace fs = std::filesystem;

// A separate directory for each test, removed afterwards.
class ProfilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::temp_directory_path() / fs::path("lanescope_" + std::string(info->name()) +
                                                      "_" + std::to_string(getpid()));
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string directory() const { return directory_.string(); }
  fs::path directory_;
};

// How often each name occurs, spans of the profiler itself left out.
std::map<std::string, int> counts(const Trace& trace) {
  std::map<std::string, int> found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) != CategoryKind::kTrace)
      ++found[std::string(trace.name(SliceId{i}))];
  return found;
}

std::uint64_t issues(const Trace& trace, ImportIssue issue) {
  return trace.import_stats()[issue].count;
}

std::vector<std::pair<std::int64_t, std::int64_t>> times(const Trace& trace) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    found.emplace_back(trace.start_ns(SliceId{i}), trace.dur_ns(SliceId{i}));
  std::sort(found.begin(), found.end());
  return found;
}

SliceId find(const Trace& trace, std::string_view name) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name) return SliceId{i};
  return kNone<SliceId>;
}

TEST_F(ProfilerTest, RangesAreRecordedNestedAndOnTheirThreads) {
  Profiler profiler({.output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  {
    const RecordFunction outer("outer");
    LANESCOPE_RECORD_FUNCTION("inner");
  }
  std::thread([] { LANESCOPE_RECORD_FUNCTION("elsewhere"); }).join();
  profiler.stop();
  const auto trace = profiler.trace();
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_THAT(counts(**trace),
              UnorderedElementsAre(Pair("outer", 1), Pair("inner", 1), Pair("elsewhere", 1)));
  const SliceId outer = find(**trace, "outer"), inner = find(**trace, "inner"),
                elsewhere = find(**trace, "elsewhere");
  EXPECT_LE((*trace)->start_ns(outer), (*trace)->start_ns(inner));
  EXPECT_GE((*trace)->end_ns(outer), (*trace)->end_ns(inner));
  EXPECT_EQ(&(*trace)->track(outer), &(*trace)->track(inner));
  EXPECT_NE(&(*trace)->track(outer), &(*trace)->track(elsewhere));
  EXPECT_EQ((*trace)->kind(outer), CategoryKind::kUserAnnotation);
  EXPECT_FALSE((*trace)->import_stats().lost_anything());
  EXPECT_EQ(issues(**trace, ImportIssue::kOpenRange), 0u);
  EXPECT_EQ(issues(**trace, ImportIssue::kOpenChunk), 0u);
}

TEST_F(ProfilerTest, TimesAgreeWithTheMonotonicClock) {
  Profiler profiler({.output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  const auto before = std::chrono::steady_clock::now();
  {
    const RecordFunction sleep("sleep");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  const auto elapsed = std::chrono::steady_clock::now() - before;
  profiler.stop();
  const auto trace = profiler.trace();
  ASSERT_TRUE(trace);
  const SliceId sleep = find(**trace, "sleep");
  const auto elapsed_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
  EXPECT_LE((*trace)->dur_ns(sleep), elapsed_ns + 1000);
  EXPECT_GE((*trace)->dur_ns(sleep), 200'000'000 - 1000);
  const auto unix_ns =
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  EXPECT_NEAR(static_cast<double>((*trace)->base_time_ns() + (*trace)->end_ns(sleep)),
              static_cast<double>(unix_ns), 5e9);
}

TEST_F(ProfilerTest, AScheduleRecordsItsActiveStepsAndCallsOnTraceReadyAfterEachCycle) {
  std::vector<std::string> ready;
  Profiler profiler({.schedule = *schedule({.wait = 1, .warmup = 1, .active = 2, .repeat = 2}),
                     .on_trace_ready =
                         [&](Profiler& p) {
                           std::string steps;
                           for (const Step& step : (*p.trace())->steps())
                             steps += std::to_string(step.number) + " ";
                           ready.push_back(steps);
                         },
                     .output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  for (int i = 0; i < 10; ++i) {
    const RecordFunction work(std::string("work") + std::to_string(i));
    profiler.step();  // the range is closed after the step: it belongs to the step it began in
  }
  profiler.stop();
  EXPECT_THAT(ready, ElementsAre("2 3 ", "2 3 6 7 "));
  const auto trace = profiler.trace();
  ASSERT_TRUE(trace);
  EXPECT_THAT(
      counts(**trace),
      UnorderedElementsAre(Pair("ProfilerStep#2", 1), Pair("ProfilerStep#3", 1),
                           Pair("ProfilerStep#6", 1), Pair("ProfilerStep#7", 1), Pair("work2", 1),
                           Pair("work3", 1), Pair("work6", 1), Pair("work7", 1)));
  EXPECT_EQ(profiler.step_count(), 10);
  EXPECT_THAT(profiler.warnings(), IsEmpty());
}

TEST_F(ProfilerTest, WithoutAccumulateOnlyTheLastCycleIsThere) {
  Profiler profiler({.schedule = *schedule({.wait = 1, .active = 1, .repeat = 2}),
                     .accumulate = false,
                     .output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  for (int i = 0; i < 5; ++i) profiler.step();
  profiler.stop();
  const auto trace = profiler.trace();
  ASSERT_TRUE(trace);
  EXPECT_THAT(counts(**trace), ElementsAre(Pair("ProfilerStep#3", 1)));
}

TEST_F(ProfilerTest, WithoutAccumulateATemporaryFileMakesWayForANewOneOnceItIsLarge) {
  std::vector<std::string> files;
  std::vector<int> sizes;
  int renewed = 0;
  Profiler profiler({.schedule = *schedule({.warmup = 1, .active = 1}),
                     .on_trace_ready =
                         [&](Profiler& p) {
                           if (!files.empty() && files.back() != p.spool_path()) {
                             ++renewed;
                             EXPECT_FALSE(std::filesystem::exists(files.back()));
                           }
                           files.push_back(p.spool_path());
                           sizes.push_back(counts(**p.trace())["work"]);
                         },
                     .accumulate = false});
  ASSERT_TRUE(profiler.add_metadata_json("kept", "1"));
  ASSERT_TRUE(profiler.start());
  constexpr int kCycles = 60, kRanges = 10'000;  // 0.5 MB a cycle: twice that is prepared
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    profiler.step();
    for (int i = 0; i < kRanges; ++i) const RecordFunction work("work");
    profiler.step();
  }
  EXPECT_EQ(sizes, std::vector<int>(kCycles, kRanges));
  EXPECT_EQ(files.front(), files[1]);
  // At 16 MiB of 28; the room that is prepared counts, too. A name that is free again
  // may come back.
  EXPECT_GE(renewed, 1);
  EXPECT_LE(renewed, 3);
  EXPECT_EQ(counts(**profiler.trace())["work"], kRanges);  // still there in the warm-up
  profiler.stop();
  EXPECT_EQ(counts(**profiler.trace())["work"], kRanges);
  EXPECT_EQ((*profiler.trace())->metadata_json("kept"), "1");
  EXPECT_EQ(profiler.cycle_count(), 60u);
}

TEST_F(ProfilerTest, APauseLeavesOutWhatHappensInIt) {
  for (const std::string& kept : {std::string(), directory()}) {
    Profiler profiler({.schedule = *schedule({.active = 1, .repeat = 2}),
                       .accumulate = false,
                       .output_dir = kept});
    ASSERT_TRUE(profiler.start());
    for (int cycle = 0; cycle < 2; ++cycle) {
      const std::string number = std::to_string(cycle);
      { const RecordFunction before("before " + number); }
      profiler.pause();
      { const RecordFunction inside("inside"); }
      profiler.resume();
      { const RecordFunction after("after " + number); }
      profiler.step();
    }
    profiler.resume();  // after the last cycle: nothing
    EXPECT_FALSE(profiler.is_window_open());
    profiler.stop();
    auto found = counts(**profiler.trace());
    found.erase("ProfilerStep#1");
    EXPECT_THAT(found, UnorderedElementsAre(Pair("before 1", 1), Pair("after 1", 1)));
    EXPECT_EQ(profiler.cycle_count(), 2u);
  }
}

TEST_F(ProfilerTest, WindowsCanBeOpenedByHand) {
  int ready = 0;
  Profiler profiler({.on_trace_ready = [&](Profiler&) { ++ready; }, .output_dir = directory()});
  profiler.open_window();  // before begin(): nothing
  EXPECT_FALSE(profiler.is_window_open());
  ASSERT_TRUE(profiler.begin());
  profiler.warm_up();
  { const RecordFunction before("before"); }
  EXPECT_FALSE(profiler.is_window_open());
  profiler.open_window();
  EXPECT_TRUE(profiler.is_window_open());
  { const RecordFunction inside("inside"); }
  profiler.close_window();
  { const RecordFunction after("after"); }
  EXPECT_THAT(counts(**profiler.trace()), ElementsAre(Pair("inside", 1)));
  profiler.stop();
  EXPECT_EQ(ready, 0);
}

TEST_F(ProfilerTest, TheFirstStepMayHaveAnyNumber) {
  Profiler profiler({.schedule = *schedule({.wait = 3, .active = 2}),
                     .first_step = 3,
                     .output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  profiler.step();
  profiler.stop();
  EXPECT_THAT(counts(**profiler.trace()),
              UnorderedElementsAre(Pair("ProfilerStep#3", 1), Pair("ProfilerStep#4", 1)));
}

TEST_F(ProfilerTest, AnUnfinishedWindowIsHandedOverAtStop) {
  int ready = 0;
  Profiler profiler({.schedule = *schedule({.active = 10}),
                     .on_trace_ready = [&](Profiler&) { ++ready; },
                     .output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  profiler.step();
  profiler.stop();
  EXPECT_EQ(ready, 1);
  EXPECT_THAT(counts(**profiler.trace()),
              UnorderedElementsAre(Pair("ProfilerStep#0", 1), Pair("ProfilerStep#1", 1)));
  EXPECT_THAT(profiler.warnings(), ElementsAre(HasSubstr("before the schedule's cycle did")));
}

TEST_F(ProfilerTest, AnEmptyResultSaysWhy) {
  Profiler idle({.output_dir = directory()});
  EXPECT_THAT(*idle.key_averages()->table(), HasSubstr("was not started"));

  Profiler waiting({.schedule = *schedule({.wait = 5, .active = 1}), .output_dir = directory()});
  ASSERT_TRUE(waiting.start());
  waiting.step();
  waiting.stop();
  EXPECT_THAT(*waiting.key_averages()->table(), HasSubstr("step 5 would have been the first"));

  Profiler silent({.output_dir = directory()});
  ASSERT_TRUE(silent.start());
  silent.stop();
  EXPECT_THAT(*silent.key_averages()->table(), HasSubstr("no RecordFunction range"));
}

TEST_F(ProfilerTest, ExportWorksTwiceAndPackedAndReadsBackEqual) {
  Profiler profiler({.output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  for (int i = 0; i < 100; ++i) LANESCOPE_RECORD_FUNCTION("\"quoted\" \\ name\n");
  ASSERT_TRUE(profiler.add_metadata("note", "a \"text\""));
  ASSERT_TRUE(profiler.add_metadata_json("list", "[1, 2]"));
  EXPECT_FALSE(profiler.add_metadata_json("bad", "[1, 2"));
  profiler.stop();
  for (const char* name : {"/a.json", "/a.json", "/b.json.gz"}) {
    const auto exported = profiler.export_chrome_trace(directory() + name);
    ASSERT_TRUE(exported) << exported.error().message;
    const auto read = format::read_trace(directory() + name);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_THAT(counts(*read), ElementsAre(Pair("\"quoted\" \\ name\n", 100)));
    EXPECT_EQ(read->metadata_json("note"), "\"a \\\"text\\\"\"");
    EXPECT_EQ(read->metadata_json("list"), "[1, 2]");
    EXPECT_FALSE(read->metadata_json("bad"));
    const auto trace = profiler.trace();
    EXPECT_EQ(read->base_time_ns(), (*trace)->base_time_ns());
    EXPECT_EQ(times(*read), times(**trace));
    EXPECT_EQ(read->window_start_ns(), (*trace)->window_start_ns());
    EXPECT_EQ(read->window_end_ns(), (*trace)->window_end_ns());
  }
}

TEST_F(ProfilerTest, TheTableCountsCalls) {
  Profiler profiler({.output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  for (int i = 0; i < 7; ++i) LANESCOPE_RECORD_FUNCTION("seven");
  profiler.stop();
  const auto averages = profiler.key_averages();
  ASSERT_TRUE(averages);
  ASSERT_EQ(averages->rows.size(), 1u);
  EXPECT_EQ(averages->rows[0].name, "seven");
  EXPECT_EQ(averages->rows[0].count, 7);
  EXPECT_THAT(*averages->table({.sort_by = "self_cpu_time_total"}),
              HasSubstr("Self CPU time total"));
}

TEST_F(ProfilerTest, StartStepAndStopMayComeFromDifferentThreads) {
  Profiler profiler({.schedule = *schedule({.active = 2, .repeat = 1}), .output_dir = directory()});
  std::thread([&] { ASSERT_TRUE(profiler.start()); }).join();
  std::thread([&] { profiler.step(); }).join();
  std::thread([&] { profiler.step(); }).join();
  std::thread([&] { profiler.stop(); }).join();
  const auto trace = profiler.trace();
  ASSERT_TRUE(trace);
  EXPECT_THAT(counts(**trace),
              UnorderedElementsAre(Pair("ProfilerStep#0", 1), Pair("ProfilerStep#1", 1)));
  EXPECT_EQ(issues(**trace, ImportIssue::kOpenRange), 0u);  // each was ended, by another thread
}

TEST_F(ProfilerTest, TwoProfilersAtOnceEachSeeTheirOwnWindow) {
  Profiler outer({.output_dir = directory()});
  ASSERT_TRUE(outer.start());
  { LANESCOPE_RECORD_FUNCTION("before"); }
  Profiler inner;
  ASSERT_TRUE(inner.start());
  { LANESCOPE_RECORD_FUNCTION("both"); }
  inner.stop();
  { LANESCOPE_RECORD_FUNCTION("after"); }
  EXPECT_THAT(counts(**inner.trace()), ElementsAre(Pair("both", 1)));
  outer.stop();
  EXPECT_THAT(counts(**outer.trace()),
              UnorderedElementsAre(Pair("before", 1), Pair("both", 1), Pair("after", 1)));
  EXPECT_THAT(counts(**inner.trace()), ElementsAre(Pair("both", 1)));
}

TEST_F(ProfilerTest, TwoRecordingsInARowDoNotMix) {
  Profiler profiler({.output_dir = directory()});
  const RecordFunction ended_later("never seen");
  ASSERT_TRUE(profiler.start());
  RecordFunction across("across");
  profiler.stop();
  EXPECT_THAT(counts(**profiler.trace()), ElementsAre(Pair("across", 1)));
  EXPECT_EQ(issues(**profiler.trace(), ImportIssue::kOpenRange), 1u);
  ASSERT_TRUE(profiler.start());
  { LANESCOPE_RECORD_FUNCTION("second"); }
  across.end();
  profiler.stop();
  EXPECT_THAT(counts(**profiler.trace()), ElementsAre(Pair("second", 1)));
  EXPECT_EQ(format::find_spools(directory())->size(), 2u);
}

TEST_F(ProfilerTest, ATemporaryRecordingGoesWithItsProfiler) {
  std::string path;
  {
    Profiler profiler;
    ASSERT_TRUE(profiler.start());
    profiler.stop();
    path = profiler.spool_path();
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ProfilerTest, StartingTwiceIsRefusedAndAnExistingFileIsNotOverwritten) {
  Profiler profiler({.spool_path = directory() + "/a.lspool"});
  ASSERT_TRUE(profiler.start());
  EXPECT_EQ(profiler.start().error().code, Errc::kUnavailable);
  profiler.stop();
  Profiler second({.spool_path = directory() + "/a.lspool"});
  const auto started = second.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::kIo);
  EXPECT_THAT(started.error().message, HasSubstr("exists already"));
  second.step();
  second.stop();
}

TEST_F(ProfilerTest, ThrowingCallbacksAreWarningsAndTheScheduleGoesOn) {
  Profiler profiler({.schedule = [](std::int64_t step) -> ProfilerAction {
                       if (step == 1) throw 1;
                       return ProfilerAction::kRecordAndSave;
                     },
                     .on_trace_ready = [](Profiler&) { throw 2; },
                     .output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  profiler.step();
  profiler.step();
  profiler.stop();
  EXPECT_THAT(profiler.warnings(),
              ElementsAre(HasSubstr("schedule threw"), HasSubstr("on_trace_ready threw")));
  EXPECT_THAT(counts(**profiler.trace()),
              UnorderedElementsAre(Pair("ProfilerStep#0", 1), Pair("ProfilerStep#2", 1)));
}

TEST_F(ProfilerTest, ADirectoryOrASpoolIsATraceForEveryReader) {
  Profiler profiler({.output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  { LANESCOPE_RECORD_FUNCTION("x"); }
  profiler.stop();
  const auto trace = format::read_trace(directory());
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_THAT(counts(*trace), ElementsAre(Pair("x", 1)));
}

// A source of CUDA activity that notes what it is asked and refuses.
struct RefusingSource {
  std::uint32_t options_seen = 0;
  int asked = 0;
  static int prepare(void* self, std::uint32_t options, char*, std::size_t) {
    static_cast<RefusingSource*>(self)->options_seen = options;
    ++static_cast<RefusingSource*>(self)->asked;
    return 1;
  }
  LanescopeActivitySource table = {LANESCOPE_RECORD_ABI,
                                   LANESCOPE_ACTIVITY_CUDA,
                                   "refusing source",
                                   this,
                                   prepare,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  RefusingSource() { EXPECT_EQ(lanescope_register_source(&table), 0); }
  ~RefusingSource() { lanescope_unregister_source(&table); }
};

bool has_gpu() { return fs::exists("/dev/nvidiactl") || fs::exists("/dev/dxg"); }

bool mentions(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST_F(ProfilerTest, AGpuThatIsNamedAndMissingIsAWarning) {
  if (has_gpu()) GTEST_SKIP() << "needs a machine without a GPU";
  Profiler profiler(
      {.activities = {ProfilerActivity::kCpu, ProfilerActivity::kCuda}, .output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  profiler.stop();
  EXPECT_TRUE(mentions(profiler.warnings(), "cupti: "));
  EXPECT_THAT(profiler.empty_reason(), HasSubstr("cupti: "));
}

TEST_F(ProfilerTest, AGpuThatNobodyNamedIsNotMissed) {
  if (has_gpu()) GTEST_SKIP() << "needs a machine without a GPU";
  Profiler profiler({.output_dir = directory()});
  ASSERT_TRUE(profiler.start());
  profiler.stop();
  EXPECT_FALSE(mentions(profiler.warnings(), "cupti: "));
  EXPECT_THAT(profiler.empty_reason(), ::testing::Not(HasSubstr("cupti: ")));
}

TEST_F(ProfilerTest, SourcesAreAskedForTheActivitiesThatAreNamed) {
  RefusingSource source;
  const auto run = [&](ProfilerOptions options) {
    options.output_dir = directory();
    source.asked = 0;
    Profiler profiler(options);
    ASSERT_TRUE(profiler.start());
    profiler.stop();
  };
  run({.activities = {ProfilerActivity::kCpu}, .all_api = true});
  EXPECT_EQ(source.asked, 0);
  run({.activities = {ProfilerActivity::kCuda}});
  EXPECT_GT(source.asked, 0);
  EXPECT_EQ(source.options_seen, LANESCOPE_RECORD_DETACH_WHERE_TESTED);
  run({.all_api = true});  // by default both
  EXPECT_GT(source.asked, 0);
  EXPECT_EQ(source.options_seen, LANESCOPE_RECORD_ALL_API | LANESCOPE_RECORD_DETACH_WHERE_TESTED);
}

}  // namespace
}  // namespace lanescope

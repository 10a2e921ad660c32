// Every event of every real trace: what share is known by its name, and
// that no kernel is taken for something else.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lanescope/analysis/event_name_totals.h"
#include "lanescope/analysis/kernel_name_totals.h"
#include "lanescope/analysis/trace_info.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/report/event_name_text.h"
#include "lanescope/testing/real_traces.h"

namespace lanescope::report {
namespace {

namespace fs = std::filesystem;
using names::EventKind;

// Of one trace, Python's frames apart: events, those known, and those known by their names alone.
// The others are ranges that the program named itself, and operators and calls of other libraries.
struct Share {
  std::int64_t count = 0, known = 0, by_name = 0;
};

Share share_of(const Trace& trace, const analysis::EventNameTotals& totals) {
  Share share;
  for (const auto& row : totals.rows) {
    if (row.name.kind == EventKind::kPythonFrame) continue;
    // What MTIA's own processors did: device work in a category of its own.
    if (row.category != kNone<StringId> && trace.text(row.category) == "mtia_ccp_events") continue;
    share.count += row.count;
    if (row.name.known()) share.known += row.count;
    if (row.name.known() && !row.name.by_category) share.by_name += row.count;
  }
  return share;
}

void expect_known(const fs::path& root, std::size_t at_least) {
  std::size_t traces = 0;
  Share all;
  for (const fs::path& path : testing::json_traces(root)) {
    const auto trace = format::read_trace(path);
    if (!trace) continue;  // damaged on purpose, or no trace
    if (!analysis::compute_trace_info(*trace).producer.starts_with("torch.profiler")) continue;
    // Kineto without torch: a test program that named its events op1, op_wait.
    if (path.filename() == "kineto_cupti_out_of_order_after_fix.json") continue;
    const auto totals = analysis::compute_event_name_totals(*trace);
    const Share share = share_of(*trace, totals);
    if (share.count == 0) continue;
    ++traces;
    all.count += share.count;
    all.by_name += share.by_name;
    const auto percent = [&share](std::int64_t part) {
      return 100.0 * static_cast<double>(part) / static_cast<double>(share.count);
    };
    fmt::print("{:7.2f} %, by name alone {:7.2f} %, of {:>7}  {}\n", percent(share.known),
               percent(share.by_name), share.count, fs::relative(path, root).string());
    EXPECT_GE(percent(share.known), 95.0) << path;
    for (const auto& row : totals.rows) {
      EXPECT_LE(row.name.text.size(), names::kLongestText);
      EXPECT_EQ(row.name.known(), !row.name.what.empty()) << row.name.group;
    }
  }
  EXPECT_GE(traces, at_least);
  const double by_name = 100.0 * static_cast<double>(all.by_name) / static_cast<double>(all.count);
  fmt::print("{:7.2f} % of events known by name alone in {} traces\n", by_name, traces);
  EXPECT_GE(by_name, 90.0);
}

TEST(EventNameTracesTest, NearlyAllEventsOfShippedTracesAreKnown) {
  expect_known(testing::shipped_traces(), 80);
}

TEST(EventNameTracesTest, NearlyAllEventsOfRealTracesAreKnown) {
  LANESCOPE_NEEDS_SHARED_TRACES("NearlyAllEventsOfShippedTracesAreKnown");
  expect_known(testing::shared_traces(), 40);
}

void expect_no_kernel_is_an_event(const fs::path& root) {
  for (const fs::path& path : testing::json_traces(root)) {
    const auto trace = format::read_trace(path);
    if (!trace) continue;
    for (const auto& row : analysis::compute_kernel_name_totals(*trace).rows) {
      const auto event = names::explain_event_name(trace->text(row.raw));
      EXPECT_TRUE(!event.known() || event.may_be_kernel) << trace->text(row.raw);
    }
  }
}

TEST(EventNameTracesTest, NoKernelOfShippedTracesIsTakenForAnEvent) {
  expect_no_kernel_is_an_event(testing::shipped_traces());
}

TEST(EventNameTracesTest, NoKernelOfRealTracesIsTakenForAnEvent) {
  LANESCOPE_NEEDS_SHARED_TRACES("NoKernelOfShippedTracesIsTakenForAnEvent");
  expect_no_kernel_is_an_event(testing::shared_traces());
}

TEST(EventNameTextTest, EachThingThatIsKnownIsALine) {
  EXPECT_EQ(event_name_text("ProfilerStep#17", names::explain_event_name("ProfilerStep#17")),
            "ProfilerStep#17\n"
            "  kind             program's loop\n"
            "  text             step 17 of the loop\n"
            "  what             One step of the program's loop, from one prof.step() to the next, "
            "counted from\n"
            "                   the profiler's start; steps that were not recorded count, too.\n"
            "  gpu_work         all that happens inside it\n"
            "  note             The CPU's part only: on a GPU that is late, its kernels run on "
            "after the step's\n"
            "                   row has ended.\n"
            "  step             17\n");
}

TEST(EventNameTextTest, HugeNamesAreCut) {
  const std::string huge = "aten::" + std::string(1'000'000, 'x');
  const std::string text = event_name_text(huge, names::explain_event_name(huge));
  EXPECT_LT(text.size(), 2'000u);
  EXPECT_EQ(text.substr(490, 11), "xxxxxxx...\n");
}

TEST(EventNameTextTest, WholeNamesAreTitlesAndTheFirstUnknownOneIsHelped) {
  const std::string names[] = {"Activity Buffer Request", "a\x1b[2Jb", "other",
                               "volta_sgemm_64x64_nt"};
  const std::string text = names_text(names);
  EXPECT_TRUE(text.starts_with("Activity Buffer Request\n  kind             profiler overhead\n"));
  EXPECT_NE(text.find("\na?[2Jb\n  unknown\n  lanescope knows names"), std::string::npos) << text;
  EXPECT_NE(text.find("\nother\n  unknown\nGEMM f32"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace lanescope::report

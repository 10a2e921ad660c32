// Real traces and odd ones: every number of FACTS.json, computed by another program, against the Trace.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <filesystem>
#include <map>
#include <set>

#include "lanescope/codec/decimal.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/real_traces.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

// The sum of a column of nanoseconds by category text, as FACTS.json has it in microseconds.
std::map<std::string, std::int64_t> dur_by_category(const Trace& trace) {
  std::map<std::string, std::int64_t> sums;
  for (std::size_t i = 0; i < trace.slices().size(); ++i) {
    StringId text = trace.categories()[raw(trace.slices().category[i])].text;
    // Old exports have no categories: the reader takes them from these names.
    const Scalar& pid =
        trace.process(trace.track(SliceId{static_cast<std::uint32_t>(i)}).process).pid;
    if (pid.is_text && trace.text(pid.text).ends_with(" functions")) text = kNone<StringId>;
    sums[text == kNone<StringId> ? "(none)" : std::string(trace.text(text))] +=
        trace.slices().dur_ns[i];
  }
  return sums;
}

// An export of Nsight Systems: each table has as many rows as the trace has slices of its category.
void compare_with_nsys_facts(dom::object facts, const Result<Trace>& result) {
  ASSERT_TRUE(result) << result.error().message;
  const Trace& trace = *result;
  std::map<std::string, std::uint64_t> counts;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    ++counts[std::string(trace.text(trace.categories()[raw(trace.slices().category[i])].text))];
  const auto rows = [&](const char* table) {
    std::uint64_t count = 0;
    return facts["rows"][table].get(count) ? 0 : count;
  };
  EXPECT_EQ(counts["kernel"], rows("CUPTI_ACTIVITY_KIND_KERNEL"));
  EXPECT_EQ(counts["gpu_memcpy"], rows("CUPTI_ACTIVITY_KIND_MEMCPY"));
  EXPECT_EQ(counts["gpu_memset"], rows("CUPTI_ACTIVITY_KIND_MEMSET"));
  EXPECT_EQ(counts["cuda_sync"], rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"));
  EXPECT_EQ(counts["user_annotation"], rows("NVTX_EVENTS"));
  EXPECT_EQ(counts["cuda_runtime"] + counts["cuda_driver"], rows("CUPTI_ACTIVITY_KIND_RUNTIME"));
  EXPECT_EQ(dur_by_category(trace)["kernel"], std::int64_t{facts["kernel"]["sum_ns"]});
}

void compare_with_perfetto_facts(dom::object facts, const Result<Trace>& result) {
  ASSERT_TRUE(result) << result.error().message;
  const Trace& trace = *result;
  const auto number = [](auto found) {
    std::uint64_t count = 0;
    return found.get(count) ? 0 : count;
  };
  const auto of_type = [&](const char* type) { return number(facts["track_event_types"][type]); };
  EXPECT_EQ(trace.import_stats().input_bytes, number(facts["bytes"]));
  EXPECT_EQ(trace.import_stats()[ImportIssue::kEventLost].count, 0u);
  // Slices may carry values of counters, too.
  EXPECT_GE(trace.counters().size(), of_type("TYPE_COUNTER"));
  // Facts count events of Chrome's old forms, not what each of them is.
  const std::uint64_t legacy = number(facts["legacy_events"]);
  if (legacy != 0) {
    EXPECT_GT(trace.slices().size() + trace.instants().size(), 0u);
    EXPECT_LE(trace.slices().size() + trace.instants().size(), legacy);
    return;
  }
  EXPECT_EQ(trace.slices().size(),
            of_type("TYPE_SLICE_BEGIN") + number(facts["gpu_render_stage_events"]));
  EXPECT_EQ(trace.instants().size(), of_type("TYPE_INSTANT"));
}

bool is_no_trace(dom::object facts) {
  const std::string_view kind = facts["kind"];
  std::uint64_t bytes = 1;
  return kind != "json" || !facts["not_a_trace"].error() ||
         (!facts["bytes"].get(bytes) && bytes == 0);
}

void expect_refusal(std::string_view kind, const Result<Trace>& result) {
  ASSERT_FALSE(result);
  const std::string& message = result.error().message;
  EXPECT_NE(message.find("expected a PyTorch or Chrome trace"), std::string::npos) << message;
  const char* word = kind == "sqlite" ? "SQLite" : kind == "json" ? "found" : "protobuf";
  EXPECT_NE(message.find(word), std::string::npos) << message;
}

// Bytes and events. True if the facts also count what is in the whole file.
bool compare_sizes(dom::object facts, const ImportStats& stats) {
  std::uint64_t number = 0;
  if (!facts["text_bytes"].get(number)) {
    EXPECT_EQ(stats.unpacked_bytes, number);
  }
  if (!facts["bytes"].get(number)) {
    EXPECT_EQ(stats.input_bytes, number);
  }
  if (!facts["events_read"].get(number)) {
    EXPECT_EQ(stats.events, number);
  }
  if (!facts["complete_events_before_error"].get(number)) {
    EXPECT_GE(stats.events, number);
    return false;
  }
  if (facts["events"].get(number)) return false;
  EXPECT_EQ(stats.events, number);
  EXPECT_EQ(stats[ImportIssue::kEventLost].count, 0u);
  return true;
}

// Slices, instants, counters and arrows. True if each slice is one event of the file: pairs of
// begins and ends are sums that the facts do not have.
bool compare_kinds(dom::object facts, const Trace& trace) {
  const auto of_phase = [&](const char* phase) {
    std::uint64_t count = 0;
    return facts["ph"][phase].get(count) ? 0 : count;
  };
  if (of_phase("B") + of_phase("E") + of_phase("b") + of_phase("e") > 0) {
    EXPECT_GE(trace.slices().size(), of_phase("X"));
    return false;
  }
  EXPECT_EQ(trace.slices().size(), of_phase("X"));
  EXPECT_EQ(trace.instants().size(), of_phase("i") + of_phase("I") + of_phase("R"));
  EXPECT_GE(trace.counters().size(), of_phase("C"));
  EXPECT_LE(trace.flows().size(), of_phase("f") + of_phase("t"));
  const std::uint64_t orphans = trace.import_stats()[ImportIssue::kOrphanFlow].count;
  EXPECT_GE(trace.flows().size() + orphans, of_phase("f"));
  return true;
}

void compare_places(dom::object facts, const Trace& trace) {
  std::uint64_t lanes = 0;
  if (facts["x_lanes"].get(lanes)) return;
  std::set<std::pair<std::uint32_t, std::string>> places;
  for (const Track& track : trace.tracks())
    if (track.slice_count > 0)
      places.insert({raw(track.process), track.tid.is_text
                                             ? fmt::format("'{}'", trace.text(track.tid.text))
                                             : fmt::format("{}", track.tid.number)});
  EXPECT_EQ(places.size(), lanes);
}

void compare_times(dom::object facts, const Trace& trace) {
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (std::size_t i = 0; i < trace.slices().size(); ++i) {
    first = std::min(first, trace.slices().start_ns[i]);
    last = std::max(last, trace.slices().start_ns[i] + trace.slices().dur_ns[i]);
  }
  const std::uint64_t cut_times = trace.import_stats()[ImportIssue::kSubNanosecond].count;
  std::string_view text;
  if (!facts["x_first_ts"].get(text)) {
    EXPECT_EQ(first, codec::parse_decimal(text, 3).value);
  }
  if (!facts["x_last_end"].get(text)) {
    EXPECT_NEAR(static_cast<double>(last - codec::parse_decimal(text, 3).value), 0.0,
                cut_times > 0 ? 2.0 : 0.0);
  }
  auto sums = dur_by_category(trace);
  for (const auto& [category, sum] : dom::object(facts["x_dur_sum_us_by_cat"])) {
    const codec::Decimal expected = codec::parse_decimal(std::string_view(sum), 3);
    const std::int64_t lost = expected.value - sums[std::string(category)];
    EXPECT_GE(lost, 0) << category;
    EXPECT_LE(lost, static_cast<std::int64_t>(cut_times)) << category;
  }
}

void compare_with_facts(const std::string& name, dom::object facts, const Result<Trace>& result) {
  SCOPED_TRACE(name);
  const std::string_view kind = facts["kind"];
  if (kind == "sqlite" && name.starts_with("nsys")) return compare_with_nsys_facts(facts, result);
  if (kind == "perfetto") return compare_with_perfetto_facts(facts, result);
  if (is_no_trace(facts)) return expect_refusal(kind, result);
  ASSERT_TRUE(result) << result.error().message;
  if (!compare_sizes(facts, result->import_stats()) || !compare_kinds(facts, *result)) return;
  compare_places(facts, *result);
  compare_times(facts, *result);
}

// How many files of the folder were compared.
std::size_t compare_with_facts(const fs::path& folder) {
  dom::parser parser;
  dom::object facts;
  EXPECT_FALSE(parser.load((folder / "FACTS.json").string()).get(facts));
  std::size_t files = 0;
  for (const auto& [name, about] : facts) {
    if (!fs::is_regular_file(folder / name)) continue;
    compare_with_facts(std::string(name), about, read_trace(folder / name));
    ++files;
  }
  return files;
}

TEST(OddTracesTest, EveryFileAgreesWithTheFactsAboutIt) {
  EXPECT_EQ(compare_with_facts(testing::odd_traces()), 22u);
}

// Whatever lies around a trace, or one comma in it, changes nothing of what is read.
TEST(OddTracesTest, TheSameProgramIsReadFromEachWrapping) {
  const auto plain = read_trace(testing::odd_traces() / "plain.json");
  ASSERT_TRUE(plain);
  for (const char* name : {"plain_named_gz.json.gz", "gz_trailing_zeros.json.gz",
                           "trailing_comma.json", "utf8_bom_crlf.json"}) {
    const auto trace = read_trace(testing::odd_traces() / name);
    ASSERT_TRUE(trace) << name;
    EXPECT_EQ(testing::trace_text(*trace), testing::trace_text(*plain)) << name;
  }
}

TEST(SharedTracesTest, EveryFileAgreesWithTheFactsAboutIt) {
  LANESCOPE_NEEDS_SHARED_TRACES("OddTracesTest");
  EXPECT_GE(compare_with_facts(testing::shared_traces() / "public"), 60u);
}

}  // namespace
}  // namespace lanescope::format

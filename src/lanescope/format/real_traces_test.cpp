// Real traces and odd ones: every number of FACTS.json, computed by another program, against the
// Trace; every slice against a plain DOM reader; every trace written and read back.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "lanescope/base/json_value.h"
#include "lanescope/codec/cuda_call_names.h"
#include "lanescope/codec/decimal.h"
#include "lanescope/codec/unpack.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/model/gpu_device.h"
#include "lanescope/model/gpu_occupancy.h"
#include "lanescope/testing/real_traces.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

std::string unpacked_file(const fs::path& path) {
  auto file = codec::open_file(path);
  auto source = codec::open_unpacked(*std::move(file));
  std::string text, buffer(1 << 20, '\0');
  for (;;) {
    const auto count = (*source)->read(buffer);
    if (!count || *count == 0) return text;
    text.append(buffer, 0, *count);
  }
}

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

fs::path odd_traces() { return fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "odd_traces"; }

TEST(OddTracesTest, EveryFileAgreesWithTheFactsAboutIt) {
  EXPECT_EQ(compare_with_facts(odd_traces()), 22u);
}

// Whatever lies around a trace, or one comma in it, changes nothing of what is read.
TEST(OddTracesTest, TheSameProgramIsReadFromEachWrapping) {
  const auto plain = read_trace(odd_traces() / "plain.json");
  ASSERT_TRUE(plain);
  for (const char* name : {"plain_named_gz.json.gz", "gz_trailing_zeros.json.gz",
                           "trailing_comma.json", "utf8_bom_crlf.json"}) {
    const auto trace = read_trace(odd_traces() / name);
    ASSERT_TRUE(trace) << name;
    EXPECT_EQ(testing::trace_text(*trace), testing::trace_text(*plain)) << name;
  }
}

TEST(SharedTracesTest, EveryFileAgreesWithTheFactsAboutIt) {
  LANESCOPE_NEEDS_SHARED_TRACES("OddTracesTest");
  EXPECT_GE(compare_with_facts(testing::shared_traces() / "public"), 60u);
}

// What a value of the DOM looks like as trace_text() would print the argument; nested ones by
// their own text.
std::string dom_value(dom::element value) {
  switch (value.type()) {
    case dom::element_type::NULL_VALUE:
      return "null";
    case dom::element_type::BOOL:
      return bool(value) ? "true" : "false";
    case dom::element_type::INT64:
      return std::to_string(std::int64_t(value));
    case dom::element_type::UINT64:
      return std::to_string(std::uint64_t(value));
    case dom::element_type::DOUBLE:
      return fmt::format("d{}", std::bit_cast<std::uint64_t>(double(value)));
    case dom::element_type::STRING:
      return fmt::format("s{}", std::string_view(value));
    default:
      return simdjson::minify(value);
  }
}
std::string trace_value(const Trace& trace, const ArgsView& args, const ArgField& field,
                        dom::parser& parser) {
  const std::uint64_t bits = args.bits(field);
  switch (field.type) {
    case ArgType::kNull:
      return "null";
    case ArgType::kFalse:
      return "false";
    case ArgType::kTrue:
      return "true";
    case ArgType::kInt32:
      return std::to_string(static_cast<std::int32_t>(bits));
    case ArgType::kInt64:
      return std::to_string(static_cast<std::int64_t>(bits));
    case ArgType::kUint64:
      return std::to_string(bits);
    case ArgType::kDouble:
      return fmt::format("d{}", bits);
    case ArgType::kString:
      return fmt::format("s{}", trace.text(StringId{static_cast<std::uint32_t>(bits)}));
    case ArgType::kJson:
      break;
  }
  dom::element nested;
  const std::string text(trace.text(StringId{static_cast<std::uint32_t>(bits)}));
  return parser.parse(text).get(nested) ? fmt::format("bad JSON {}", text)
                                        : std::string(simdjson::minify(nested));
}

// Event by event: the row that the i-th event became, if it is a slice.
void compare_with_dom(const fs::path& path) {
  SCOPED_TRACE(path);
  const std::string text = unpacked_file(path);
  dom::parser parser, nested;
  dom::element document;
  if (parser.parse(text).get(document)) return;  // damaged; other tests look at those
  dom::array events;
  if (document.get(events) && document["traceEvents"].get(events)) return;
  const auto trace = read_trace_bytes(text);
  ASSERT_TRUE(trace) << trace.error().message;
  std::map<std::uint32_t, std::uint32_t> row_of_event;
  for (std::uint32_t i = 0; i < trace->slices().size(); ++i)
    row_of_event[trace->slices().event_index[i]] = i;
  std::uint32_t index = 0;
  std::size_t failures = 0;
  for (const dom::element event : events) {
    const auto row = row_of_event.find(index++);
    std::string_view phase;
    if (event["ph"].get(phase) || phase != "X" || failures > 3) continue;
    ASSERT_NE(row, row_of_event.end()) << "event " << index - 1;
    const SliceId slice{row->second};
    std::string_view name;
    if (!event["name"].get(name)) {
      EXPECT_EQ(trace->name(slice), name);
    }
    std::string expected, found;
    dom::object args;
    if (!event["args"].get(args))
      for (const auto& [key, value] : args)
        expected += fmt::format("{}={}\n", key, dom_value(value));
    const ArgsView view = trace->slice_args(slice);
    for (std::size_t i = 0; i < view.size(); ++i) {
      const std::string_view key = trace->text(view.field(i).key);
      if (!key.starts_with("event:"))
        found += fmt::format("{}={}\n", key, trace_value(*trace, view, view.field(i), nested));
    }
    EXPECT_EQ(found, expected) << "event " << index - 1;
    if (found != expected) ++failures;
    double time = 0;
    if (!event["ts"].get(time)) {
      EXPECT_NEAR(static_cast<double>(trace->start_ns(slice)) / 1000.0, time,
                  0.01 + std::abs(time) * 1e-12);
    }
    if (!event["dur"].get(time)) {
      EXPECT_NEAR(static_cast<double>(trace->dur_ns(slice)) / 1000.0, std::max(time, 0.0), 0.01);
    }
  }
  EXPECT_EQ(index, trace->import_stats().events);
}

// The few largest files take the time of all others together.
bool is_small(const fs::path& path) { return fs::file_size(path) < 1'000'000; }

void compare_all_with_dom(const fs::path& root) {
  for (const fs::path& path : testing::json_traces(root))
    if (is_small(path)) compare_with_dom(path);
}

TEST(ShippedTracesTest, TheFastReaderEqualsAPlainOne) {
  for (const char* folder : {"h200", "ddp4/healthy", "h200_mlp_train", "torch213_recompile"})
    compare_all_with_dom(testing::shipped_traces() / folder);
  compare_all_with_dom(odd_traces());
}

TEST(SharedTracesTest, TheFastReaderEqualsAPlainOne) {
  LANESCOPE_NEEDS_SHARED_TRACES("ShippedTracesTest");
  compare_all_with_dom(testing::shared_traces());
}

// How many traces were written and read back.
std::size_t write_and_read_back(const fs::path& root) {
  std::size_t traces = 0;
  for (const fs::path& path : testing::json_traces(root)) {
    if (!is_small(path)) continue;
    SCOPED_TRACE(path);
    const auto trace = read_trace(path);
    if (!trace) continue;
    const auto again = read_trace_bytes(kineto_json_text(*trace));
    EXPECT_TRUE(again) << (again ? "" : again.error().message);
    if (!again) continue;
    EXPECT_TRUE(testing::trace_text(*trace) == testing::trace_text(*again));
    EXPECT_FALSE(again->import_stats().lost_anything());
    ++traces;
  }
  return traces;
}

TEST(ShippedTracesTest, EveryTraceWrittenReadsBackTheSame) {
  EXPECT_GE(write_and_read_back(testing::shipped_traces()), 120u);
  EXPECT_GE(write_and_read_back(odd_traces()), 20u);
}

TEST(SharedTracesTest, EveryTraceWrittenReadsBackTheSame) {
  LANESCOPE_NEEDS_SHARED_TRACES("ShippedTracesTest");
  EXPECT_GE(write_and_read_back(testing::shared_traces()), 70u);
}

struct CallNames {
  std::set<std::string> known, unknown;
};

CallNames call_names(const fs::path& root) {
  CallNames names;
  for (const fs::path& path : testing::json_traces(root)) {
    const auto trace = read_trace(path);
    if (!trace) continue;
    for (std::uint32_t i = 0; i < trace->slices().size(); ++i) {
      if (!is_api_call(trace->kind(SliceId{i}))) continue;
      std::string name(trace->name(SliceId{i}));
      if (name.starts_with("predictor_executor::run")) name = "predictor_executor::run";
      (trace->api_call(SliceId{i}).is_known() ? names.known : names.unknown).insert(name);
    }
  }
  return names;
}

// A new name goes into model/api_call_rows.h. Left out is the name of calls that CUPTI does not
// know.
TEST(ShippedTracesTest, TheTableOfApiCallsHasEveryName) {
  const CallNames names = call_names(testing::shipped_traces());
  EXPECT_EQ(names.unknown, (std::set<std::string>{"INVALID"}));
  EXPECT_GT(names.known.size(), 30u);
}

// Left out, too: rows of MTIA that are no calls or start work that is not read.
TEST(SharedTracesTest, TheTableOfApiCallsHasEveryName) {
  LANESCOPE_NEEDS_SHARED_TRACES("ShippedTracesTest");
  const auto [known, unknown] = call_names(testing::shared_traces());
  EXPECT_EQ(unknown,
            (std::set<std::string>{"INVALID", "gif_merge", "gif_remote", "predictor_executor::run",
                                   "runFunction - job_prep_and_submit_for_execution"}));
  EXPECT_GT(known.size(), 60u);
  // What is only in files that are not read yet: nsys (SQLite) and Ascend (SQLite).
  for (const char* name :
       {"cuKernelGetAttribute", "cudaEventCreateWithFlags_v3020", "cudaEventRecordWithFlags_v11010",
        "cudaGetFuncBySymbol_v11000", "cudaStreamGetCaptureInfo_v2_v11030",
        "aclopCompileAndExecute", "aclrtMemcpy", "aclrtMemcpyAsync", "aclrtRecordEvent",
        "aclrtStreamWaitEvent", "aclrtSynchronizeDevice", "aclrtSynchronizeStreamWithTimeout"})
    EXPECT_TRUE(find_api_call(name).is_known()) << name;
}

// Whatever CUPTI can record of these kinds.
TEST(ApiCallNamesTest, TheTableHasEveryCallOfCudaThatMayMatter) {
  const auto may_matter = [](std::string_view name) {
    if (name.find("EGL") != name.npos || name.find("Graph") != name.npos) return false;
    for (const char* part : {"Launch", "Memcpy", "Memset", "Alloc", "Malloc", "Free", "Synchronize",
                             "Event", "Wait", "Capture", "Query", "ModuleLoad", "LibraryLoad",
                             "Occupancy", "MemMap", "MemUnmap", "HostRegister", "Prefetch"})
      if (name.find(part) != name.npos && name != "cuNNSetAllocator" && name != "cuBinaryFree" &&
          !name.starts_with("cuEventCreateFrom"))
        return true;
    return false;
  };
  std::size_t count = 0;
  for (std::uint32_t number = 0; number < 1200; ++number)
    for (const std::string_view name :
         {codec::cuda_runtime_call_name(number), codec::cuda_driver_call_name(number)}) {
      if (!may_matter(name)) continue;
      ++count;
      EXPECT_TRUE(find_api_call(name).is_known()) << name;
    }
  EXPECT_GT(count, 300u);
}

void expect_nothing_lost(const fs::path& root) {
  for (const fs::path& path : testing::json_traces(root)) {
    SCOPED_TRACE(path);
    const auto trace = read_trace(path);
    ASSERT_TRUE(trace) << trace.error().message;
    for (std::size_t i = 0; i < kImportIssueCount; ++i) {
      const auto issue = static_cast<ImportIssue>(i);
      if (issue == ImportIssue::kOrphanFlow || issue == ImportIssue::kOutOfOrder)
        continue;  // torch 2.11 writes both
      EXPECT_EQ(trace->import_stats()[issue].count, 0u) << import_issue_info(issue).name;
    }
    EXPECT_GT(trace->slices().size(), 20u);
    if (trace->import_stats().events > 50000) {
      EXPECT_LE(trace->memory_bytes(), 100 * trace->import_stats().events);
    }
  }
}

TEST(ShippedTracesTest, LoseNothing) {
  for (const char* folder : {"h200", "ddp4", "h200_mlp_train", "h200_64_bf16_warm_eager"})
    expect_nothing_lost(testing::shipped_traces() / folder);
}

TEST(SharedTracesTest, OurOwnTracesLoseNothing) {
  LANESCOPE_NEEDS_SHARED_TRACES("ShippedTracesTest");
  for (const char* folder : {"h200", "ddp4"})
    expect_nothing_lost(testing::shared_traces() / folder);
}

// Kineto's own three numbers of every kernel, for those that use no more than 48 KB of shared
// memory: beyond that torch 2.11 prints an occupancy of 0.
struct Compared {
  std::size_t equal = 0, beyond = 0;
};

Compared compare_occupancy(const fs::path& root) {
  Compared count;
  for (const fs::path& path : testing::json_traces(root)) {
    const auto trace = read_trace(path);
    if (!trace || !trace->metadata_json("deviceProperties")) continue;
    const auto devices = parse_gpu_devices(*trace->metadata_json("deviceProperties"));
    for (std::uint32_t i = 0; i < trace->slices().size(); ++i) {
      const ArgsView args = trace->slice_args(SliceId{i});
      const auto grid = args.text(ArgKey::kGrid), block = args.text(ArgKey::kBlock);
      if (trace->kind(SliceId{i}) != CategoryKind::kKernel || !grid || !block) continue;
      const auto volume = [&](StringId list) {
        std::int64_t product = 1;
        const auto value = parse_json(trace->text(list));
        for (const JsonValue& each : value->items) product *= *each.integer;
        return product;
      };
      const auto occupancy = compute_gpu_occupancy(
          devices.at(static_cast<std::size_t>(*args.integer(ArgKey::kDevice))),
          {.grid_blocks = volume(*grid),
           .block_threads = volume(*block),
           .registers_per_thread = *args.integer(ArgKey::kRegistersPerThread),
           .shared_bytes = *args.integer(ArgKey::kSharedMemory),
           .shared_carveout_bytes = {}});
      EXPECT_TRUE(occupancy) << path;
      if (!occupancy) continue;
      EXPECT_NEAR(occupancy->launched_blocks, *args.number(ArgKey::kBlocksPerSm),
                  1e-6 + occupancy->launched_blocks * 1e-6);
      EXPECT_NEAR(occupancy->launched_warps, *args.number(ArgKey::kWarpsPerSm),
                  1e-6 + occupancy->launched_warps * 1e-6);
      const auto shown = static_cast<std::int64_t>(0.5 + occupancy->achieved_ratio * 100);
      if (*args.integer(ArgKey::kSharedMemory) <= 48 * 1024) {
        EXPECT_EQ(shown, args.integer(ArgKey::kOccupancy)) << trace->name(SliceId{i});
        ++count.equal;
      } else {
        EXPECT_EQ(args.integer(ArgKey::kOccupancy), 0);
        ++count.beyond;
      }
    }
  }
  return count;
}

TEST(ShippedTracesTest, OccupancyIsKinetos) {
  const Compared count = compare_occupancy(testing::shipped_traces() / "h200");
  EXPECT_GT(count.equal, 1'000u);
  EXPECT_GT(count.beyond, 100u);
}

TEST(SharedTracesTest, OccupancyIsKinetos) {
  LANESCOPE_NEEDS_SHARED_TRACES("ShippedTracesTest");
  const Compared count = compare_occupancy(testing::shared_traces() / "h200");
  EXPECT_GT(count.equal, 10'000u);
  EXPECT_GT(count.beyond, 1000u);
}

}  // namespace
}  // namespace lanescope::format

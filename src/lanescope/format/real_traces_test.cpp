// Real traces and odd ones: every slice against a plain DOM reader, every trace written and read back, the tables of API calls
// and of occupancy against what traces hold.
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
  compare_all_with_dom(testing::odd_traces());
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
  EXPECT_GE(write_and_read_back(testing::odd_traces()), 20u);
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

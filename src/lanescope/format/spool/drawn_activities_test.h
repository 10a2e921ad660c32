// A drawn recording with device activities, and what tests ask of the trace that is read from it.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/format/spool/read_spool.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format::drawn_activities {

using lanescope::testing::ActivitySketch;
using lanescope::testing::kDay;
using lanescope::testing::SpoolSketch;
using spool::RangeRecord;
using spool::Record;

inline constexpr std::uint32_t kLaunchKernel = 211, kMemcpyAsync = 41, kMemsetAsync = 51,
                               kGraphLaunch = 311, kEventRecord = 134, kStreamWaitEvent = 147,
                               kDeviceSynchronize = 165, kDriverLaunchKernel = 307;
inline constexpr const char* kH200 =
    R"([{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "computeMajor": 9,
"computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
"regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 132,
"regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448,
"sharedMemPerMultiprocessor": 233472}])";

inline std::int64_t ns(std::uint64_t tick) {
  return kDay + (static_cast<std::int64_t>(tick) - 1000) * 2;
}

// One thread (101, torch's number 1) and one window [2000, 90000].
class Recording {
 public:
  Recording() {
    sketch.window(2000, 90'000);
    sketch.thread(101, 1);
    sketch.thread(102, 2);
  }
  RangeRecord& range(std::string_view name, std::uint64_t begin, std::uint64_t end,
                     std::uint8_t scope = spool::kFunctionScope, std::uint32_t thread = 0) {
    ranges[thread].push_back(sketch.range(name, begin, end, scope));
    return ranges[thread].back().range;
  }
  RangeRecord& annotation(std::string_view name, std::uint64_t begin, std::uint64_t end) {
    return range(name, begin, end, spool::kUserScope);
  }
  std::string bytes() {
    SpoolSketch whole = sketch;
    for (const auto& [thread, list] : ranges) whole.records(thread, 1, list);
    whole.activities(gpu.records);
    return whole.bytes();
  }
  Trace read(const ReadSpoolOptions& options = {}) {
    auto trace = read_spool_bytes(bytes(), options);
    EXPECT_TRUE(trace) << trace.error().message;
    return std::move(trace).value();
  }
  SpoolSketch sketch;
  ActivitySketch gpu;
  std::map<std::uint32_t, std::vector<Record>> ranges;
};

inline std::vector<SliceId> rows(const Trace& trace, CategoryKind kind) {
  std::vector<SliceId> found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == kind) found.push_back(SliceId{i});
  return found;
}
inline SliceId only(const Trace& trace, CategoryKind kind) {
  const auto found = rows(trace, kind);
  EXPECT_EQ(found.size(), 1u) << category_kind_name(kind);
  return found.empty() ? SliceId{0} : found[0];
}
// Every argument as JSON text, in order.
inline std::string args_text(const Trace& trace, SliceId id) {
  const ArgsView args = trace.slice_args(id);
  std::string out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ArgField& field = args.field(i);
    out += (i > 0 ? ", " : "") + std::string(trace.text(field.key)) + ": ";
    if (field.type == ArgType::kTrue)
      out += "true";
    else if (field.type == ArgType::kString || field.type == ArgType::kJson)
      out += trace.text(StringId{static_cast<std::uint32_t>(args.bits(field))});
    else if (field.type == ArgType::kDouble)
      out += std::to_string(*args.number(&field));
    else
      out += std::to_string(args.bits(field));
  }
  return out;
}
inline std::uint64_t issues(const Trace& trace, ImportIssue issue) {
  return trace.import_stats()[issue].count;
}

}  // namespace lanescope::format::drawn_activities

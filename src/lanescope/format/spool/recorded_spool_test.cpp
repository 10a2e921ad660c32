// Recordings as recorders wrote them: a piece of one of an H200, tests/data/h200_spool, and one of
// each layout, tests/data/spools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lanescope/codec/spool_layout.h"
#include "lanescope/codec/unpack.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {
namespace {

std::string unpacked(const std::string& path) {
  auto file = codec::open_file(path);
  EXPECT_TRUE(file) << file.error().message;
  auto source = codec::open_unpacked(*std::move(file));
  EXPECT_TRUE(source) << source.error().message;
  std::string bytes;
  std::vector<char> piece(1 << 16);
  while (true) {
    const auto got = (*source)->read(piece);
    EXPECT_TRUE(got);
    if (!got || *got == 0) return bytes;
    bytes.append(piece.data(), *got);
  }
}

struct Slice {
  std::string name, category;
  std::int64_t start_ns, end_ns, external_id, correlation;
  TrackId track;
};

std::vector<Slice> slices(const Trace& trace) {
  std::vector<Slice> all;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const ArgsView args = trace.slice_args(id);
    all.push_back({std::string(trace.text(trace.slices().name[i])),
                   category_kind_name(trace.kind(id)), trace.start_ns(id),
                   trace.start_ns(id) + trace.dur_ns(id),
                   args.integer(ArgKey::kExternalId).value_or(0),
                   args.integer(ArgKey::kCorrelation).value_or(0), trace.slices().track[i]});
  }
  return all;
}

// The chunk of activities holds 2727 records: 909 launches of a call, a kernel and its second half.
// A step launches mm through the driver and add through the runtime, mm first.
TEST(RecordedSpoolTest, EachKernelOfARealRecordingBelongsToItsOperator) {
  const std::string bytes =
      unpacked(LANESCOPE_SOURCE_DIR "/tests/data/h200_spool/matmul_add_64_first_steps.lspool.gz");
  auto trace = read_spool_bytes(bytes, {});
  ASSERT_TRUE(trace) << trace.error().message;
  std::map<std::int64_t, const Slice*> call_of, operator_of;
  std::map<std::string, int> kernels;
  const std::vector<Slice> all = slices(*trace);
  for (const Slice& slice : all) {
    if (slice.category == "cuda_runtime" || slice.category == "cuda_driver")
      call_of[slice.correlation] = &slice;
    if (slice.category == "cpu_op" || slice.category == "user_annotation")
      operator_of[slice.external_id] = &slice;
  }
  for (const Slice& slice : all) {
    if (slice.category != "kernel") continue;
    const bool is_mm = slice.name.starts_with("nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT");
    ++kernels[is_mm ? "mm" : "add"];
    if (!is_mm) {
      EXPECT_TRUE(slice.name.starts_with("void at::native::vectorized_elementwise_kernel<8"));
    }
    const Slice* call = call_of[slice.correlation];
    const Slice* op = operator_of[slice.external_id];
    ASSERT_TRUE(call && op);
    EXPECT_EQ(call->name, is_mm ? "cuLaunchKernelEx" : "cudaLaunchKernel");
    EXPECT_EQ(op->name, is_mm ? "aten::mm" : "aten::add");
    EXPECT_EQ(call->track, op->track);
    EXPECT_GT(call->start_ns, op->start_ns);
    EXPECT_LT(call->end_ns, op->end_ns);
    EXPECT_GT(slice.start_ns, call->start_ns);
    EXPECT_GT(slice.end_ns, slice.start_ns);
    EXPECT_LT(slice.end_ns - slice.start_ns, 10'000);  // 64x64: about two microseconds
  }
  EXPECT_EQ(kernels["mm"], 455);
  EXPECT_EQ(kernels["add"], 454);
}

// tests/data/spools/record_spool.cpp is the program; the counts are worked out from it.
struct Recorded {
  Trace trace;
  std::uint32_t layout = 0;
  std::map<std::string, std::uint64_t> counts;             // slices by name, without the window
  std::map<std::string, std::set<std::string>> by_thread;  // their names, by the thread's name
};

Recorded read_layout(const std::string& name) {
  Recorded found;
  const std::string bytes =
      unpacked(LANESCOPE_SOURCE_DIR "/tests/data/spools/" + name + ".lspool.gz");
  EXPECT_GT(bytes.size(), spool::kHeaderBytes) << name;
  if (bytes.size() <= spool::kHeaderBytes) return found;
  std::memcpy(&found.layout, bytes.data() + offsetof(spool::FileHeader, layout_version), 4);
  auto trace = read_spool_bytes(bytes);
  EXPECT_TRUE(trace) << name << ": " << trace.error().message;
  if (!trace) return found;
  for (const Slice& slice : slices(*trace)) {
    if (slice.name.starts_with("PyTorch Profiler (")) continue;
    ++found.counts[slice.name];
    // "thread 123 (helper)" without its number.
    std::string thread(trace->text(trace->track(slice.track).name));
    thread.erase(0, std::min(thread.find('('), thread.size()));
    found.by_thread[thread].insert(slice.name);
    EXPECT_GE(slice.end_ns, slice.start_ns);
  }
  for (std::size_t i = 0; i < kImportIssueCount; ++i) {
    const ImportIssueInfo& info = import_issue_info(static_cast<ImportIssue>(i));
    if (info.severity == Severity::kNote) continue;
    EXPECT_EQ(trace->import_stats()[static_cast<ImportIssue>(i)].count, 0u)
        << name << ": " << info.name;
  }
  found.trace = *std::move(trace);
  return found;
}

using Counts = std::map<std::string, std::uint64_t>;
constexpr const char* kOddName = "\"odd\" \\ name \xc3\xa9";

TEST(RecordedSpoolTest, ACpuRecordingOfEachLayoutSaysWhatTheProgramDid) {
  for (const std::uint32_t layout : {1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
    const Recorded found = read_layout("layout" + std::to_string(layout) + "_cpu");
    EXPECT_EQ(found.layout, layout);
    EXPECT_EQ(found.counts, (Counts{{"work 0", 1},
                                    {"work 1", 1},
                                    {"work 2", 1},
                                    {"inner", 6},
                                    {"helper work", 2},
                                    {kOddName, 1}}));
    EXPECT_EQ(found.by_thread.size(), 2u);
    EXPECT_EQ(found.by_thread.at("(helper)"), std::set<std::string>{"helper work"});
    EXPECT_EQ(found.trace.metadata_json("program"), "\"record_spool cpu\"");
  }
}

TEST(RecordedSpoolTest, AGpuRecordingOfEachLayoutHasItsLaunchesKernelsAndCopies) {
  for (const std::uint32_t layout : {3u, 4u, 5u, 6u, 7u}) {
    const Recorded found = read_layout("layout" + std::to_string(layout) + "_gpu");
    EXPECT_EQ(found.layout, layout);
    EXPECT_EQ(found.counts.at("launch"), 8u);  // and each once more, above its kernel
    EXPECT_EQ(found.counts.at("inner"), 6u);
    std::map<std::int64_t, const Slice*> call_of;
    const std::vector<Slice> all = slices(found.trace);
    for (const Slice& slice : all)
      if (slice.category == "cuda_runtime") call_of[slice.correlation] = &slice;
    int kernels = 0, copies = 0;
    for (const Slice& slice : all) {
      if (slice.category != "kernel" && slice.category != "gpu_memcpy") continue;
      ASSERT_TRUE(call_of[slice.correlation]) << slice.name;
      if (slice.category == "kernel") {
        ++kernels;
        EXPECT_EQ(slice.name, "gemm");
        EXPECT_EQ(call_of[slice.correlation]->name, "cudaLaunchKernel");
      } else {
        ++copies;
        EXPECT_EQ(slice.correlation, 5);
      }
    }
    EXPECT_EQ(kernels, 4);
    EXPECT_EQ(copies, 1);
    EXPECT_EQ(found.trace.metadata_json("program"), "\"record_spool gpu\"");
  }
}

// 6,000 ticks are older than the two seconds that count; the range around them all is still there,
// from a kept chunk.
TEST(RecordedSpoolTest, ARingOfEachLayoutHoldsItsEndAndWhatWasOpen) {
  for (const std::uint32_t layout : {3u, 4u, 5u, 6u, 7u}) {
    const Recorded found = read_layout("layout" + std::to_string(layout) + "_ring");
    EXPECT_EQ(found.layout, layout);
    EXPECT_EQ(found.counts, (Counts{{"outer", 1}, {"tock", 100}}));
    EXPECT_EQ(found.trace.metadata_json("program"), "\"record_spool ring\"");
  }
}

}  // namespace
}  // namespace lanescope::format

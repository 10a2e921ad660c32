// A piece of a real recording of an H200, tests/data/h200_spool: what CUPTI wrote, read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace lanescope::format

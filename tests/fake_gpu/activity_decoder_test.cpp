// The decoder on buffers that CUPTI filled on an H200 (tests/data/h200_cupti_buffers). What
// must come out is known from the programs: examples/02_cuda_program with 4 iterations, and
// 3 peer copies.
#include "lanescope/record_cupti/activity_decoder.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace lanescope::record_cupti {
namespace {

using spool::ActivityKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint32_t kVersion = 130001;  // of the CUPTI that wrote them

// What the decoder hands over; its functions have no argument of ours.
std::vector<spool::Record> written;
std::vector<std::string> texts;

std::uint32_t write(const void* records, std::uint32_t count) {
  const auto* first = static_cast<const spool::Record*>(records);
  written.insert(written.end(), first, first + count);
  return count;
}
std::uint32_t intern(const char* text, std::size_t size, const char** stored) {
  static std::set<std::string> kept;
  const auto& same = *kept.emplace(text, size).first;
  *stored = same.c_str();
  texts.push_back(same);
  return static_cast<std::uint32_t>(texts.size());
}

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string take(std::size_t size) {
    if (size > bytes_.size() - at_) throw std::runtime_error("the file is too short");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

ApiFilter everything() {
  ApiFilter filter;
  filter.everything = true;
  return filter;
}

class RecordedBuffersTest : public ::testing::Test {
 protected:
  void decode(const std::string& file, ApiFilter filter = everything()) {
    written.clear();
    texts.clear();
    const std::filesystem::path path =
        std::filesystem::path(LANESCOPE_SOURCE_DIR) / "tests/data/h200_cupti_buffers" / file;
    std::ifstream in(path, std::ios::binary);
    ASSERT_TRUE(in) << path;
    Reader reader({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
    ASSERT_EQ(reader.take(8), "CUPTIBUF");
    ASSERT_EQ(reader.number(), kVersion);
    std::vector<std::string> names(reader.number());
    for (std::string& name : names) name = reader.take(reader.number());
    ActivityDecoder decoder(kVersion, write, intern);
    decoder.set_filter(std::move(filter));
    std::uint64_t records = 0;
    for (std::uint32_t left = reader.number(); left > 0; --left) {
      const std::uint32_t size = reader.number(), count = reader.number();
      std::vector<std::uint32_t> offsets(count);
      for (std::uint32_t& offset : offsets) offset = reader.number();
      const std::string bytes = reader.take(size);
      // Records are 8-byte aligned in CUPTI's buffers.
      std::vector<std::uint64_t> aligned((size + 7) / 8);
      std::memcpy(aligned.data(), bytes.data(), size);
      auto* buffer = reinterpret_cast<std::uint8_t*>(aligned.data());
      for (const std::uint32_t offset : offsets) {
        auto* record = reinterpret_cast<CUpti_Activity*>(buffer + offset);
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
          auto* kernel = reinterpret_cast<CUpti_ActivityKernel9*>(record);
          const auto number = reinterpret_cast<std::uintptr_t>(kernel->name);
          ASSERT_LE(number, names.size());
          kernel->name = number == 0 ? nullptr : names[number - 1].c_str();
        }
        decoder.decode(record);
        ++records;
      }
    }
    decoder.flush();
    EXPECT_EQ(decoder.decoded(), records);
    EXPECT_EQ(decoder.unknown(), 0u);
  }

  template <typename T>
  static std::vector<T> all(ActivityKind kind) {
    std::vector<T> found;
    for (const spool::Record& record : written)
      if (spool::activity_kind(record) == kind) found.push_back(spool::activity_as<T>(record));
    return found;
  }
  // The record after the n-th one of a kind.
  template <typename T>
  static T record_after(ActivityKind kind, std::size_t n) {
    for (std::size_t i = 0; i + 1 < written.size(); ++i)
      if (spool::activity_kind(written[i]) == kind && n-- == 0)
        return spool::activity_as<T>(written[i + 1]);
    throw std::runtime_error("no such record");
  }
  static std::set<std::uint32_t> calls() {
    std::set<std::uint32_t> ids;
    for (const auto& call : all<spool::ApiCallRecord>(ActivityKind::kApiCall))
      ids.insert(call.correlation);
    return ids;
  }
};

TEST_F(RecordedBuffersTest, KernelsAreThoseOfTheProgram) {
  decode("cuda_program.bin");
  const auto kernels = all<spool::KernelRecord>(ActivityKind::kKernel);
  ASSERT_EQ(kernels.size(), 20u);  // 4 iterations of scale, add and a graph of 3 adds
  std::map<std::string, int> by_name;
  std::map<std::uint64_t, int> by_node;
  const std::set<std::uint32_t> known = calls();
  std::set<std::uint32_t> streams, of_graphs;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto& kernel = kernels[i];
    const auto more = record_after<spool::KernelMoreRecord>(ActivityKind::kKernel, i);
    ASSERT_EQ(more.kind, static_cast<std::uint8_t>(ActivityKind::kContinued));
    ++by_name[texts.at(kernel.name - 1)];
    EXPECT_LT(kernel.begin_tsc, kernel.end_tsc);
    EXPECT_EQ(kernel.device, 0);
    EXPECT_GT(kernel.registers_per_thread, 0);
    EXPECT_EQ(kernel.static_shared_bytes + more.dynamic_shared_bytes, 0u);
    EXPECT_THAT((std::vector{more.grid_x, more.grid_y, more.grid_z}), ElementsAre(4096, 1, 1));
    EXPECT_THAT((std::vector{more.block_x, more.block_y, kernel.block_z}), ElementsAre(256, 1, 1));
    EXPECT_TRUE(known.contains(kernel.correlation));
    EXPECT_EQ(kernel.graph_id != 0, more.graph_node_id != 0);
    if (kernel.graph_id != 0) {
      ++by_node[more.graph_node_id];
      of_graphs.insert(kernel.correlation);
    }
    streams.insert(kernel.stream);
  }
  EXPECT_THAT(by_name,
              ElementsAre(Pair(HasSubstr("3addEPfPKf"), 16), Pair(HasSubstr("5scaleEPff"), 4)));
  ASSERT_EQ(by_node.size(), 3u);
  for (const auto& [node, count] : by_node) EXPECT_EQ(count, 4) << node;
  EXPECT_EQ(of_graphs.size(), 4u) << "one launch call for the three kernels of each iteration";
  EXPECT_EQ(streams.size(), 1u);
}

TEST_F(RecordedBuffersTest, CopiesAndMemsetsAreThoseOfTheProgram) {
  decode("cuda_program.bin");
  const auto copies = all<spool::MemcpyRecord>(ActivityKind::kMemcpy);
  const std::set<std::uint32_t> known = calls();
  int in = 0, out = 0;
  for (const auto& copy : copies) {
    EXPECT_EQ(copy.bytes, 4 * kMiB);
    EXPECT_LT(copy.begin_tsc, copy.end_tsc);
    EXPECT_TRUE(known.contains(copy.correlation));
    EXPECT_EQ(copy.more, 0);
    if (copy.copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD) {
      ++in;
      EXPECT_EQ(copy.source_memory, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
      EXPECT_EQ(copy.destination_memory, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
      EXPECT_EQ(copy.is_async, 1);
    } else {
      ++out;
      EXPECT_EQ(copy.copy_kind, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
      EXPECT_EQ(copy.destination_memory, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
      EXPECT_EQ(copy.is_async, 0);
    }
  }
  EXPECT_EQ(in, 4);
  EXPECT_EQ(out, 1);
  const auto sets = all<spool::MemsetRecord>(ActivityKind::kMemset);
  ASSERT_EQ(sets.size(), 4u);
  for (const auto& set : sets) {
    EXPECT_EQ(set.bytes, 4 * kMiB);
    EXPECT_EQ(set.value, 0u);
    EXPECT_TRUE(known.contains(set.correlation));
  }
}

// cudaStreamWaitEvent and cudaStreamSynchronize once an iteration, and nothing else waits; what is
// waited for is the event that cudaEventRecord recorded.
TEST_F(RecordedBuffersTest, WaitsKnowWhatTheyWaitFor) {
  if (CUPTI_API_VERSION < 130000) GTEST_SKIP() << "needs CUPTI headers of CUDA 13 or newer";
  decode("cuda_program.bin");
  const auto events = all<spool::CudaEventRecord>(ActivityKind::kCudaEvent);
  ASSERT_EQ(events.size(), 4u);
  std::set<std::uint64_t> recorded;
  for (const auto& event : events) {
    EXPECT_EQ(event.device, 0);
    recorded.insert(event.event_sync_id);
  }
  EXPECT_EQ(recorded.size(), 4u);
  int stream_waits = 0, stream_syncs = 0;
  for (const auto& sync : all<spool::SyncRecord>(ActivityKind::kSync)) {
    EXPECT_LE(sync.begin_tsc, sync.end_tsc);
    EXPECT_EQ(sync.result, 0);
    if (sync.sync_kind == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT) {
      ++stream_waits;
      EXPECT_EQ(sync.event_id, events[0].event_id);
      EXPECT_TRUE(recorded.contains(sync.event_sync_id));
    }
    if (sync.sync_kind == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE) ++stream_syncs;
  }
  EXPECT_EQ(stream_waits, 4);
  EXPECT_EQ(stream_syncs, 4);
  EXPECT_EQ(all<spool::SyncRecord>(ActivityKind::kSync).size(), 8u);
}

// All calls of both domains arrive; the filter leaves those that matter.
TEST_F(RecordedBuffersTest, CallsAreFilteredByTheirNumber) {
  decode("cuda_program.bin");
  EXPECT_EQ(all<spool::ApiCallRecord>(ActivityKind::kApiCall).size(), 246u + 57u);
  ApiFilter launches;
  launches.runtime.resize(1000);
  launches.runtime[CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000] = true;
  decode("cuda_program.bin", launches);
  EXPECT_EQ(all<spool::ApiCallRecord>(ActivityKind::kApiCall).size(), 8u + 3u)
      << "scale and add in each iteration, and the three that were captured";
}

TEST_F(RecordedBuffersTest, PeerCopiesKnowBothDevices) {
  decode("peer_copies.bin");
  const auto copies = all<spool::MemcpyRecord>(ActivityKind::kMemcpy);
  ASSERT_EQ(copies.size(), 3u);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    EXPECT_EQ(copies[i].copy_kind, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
    EXPECT_EQ(copies[i].bytes, kMiB);
    ASSERT_EQ(copies[i].more, 1);
    const auto more = record_after<spool::TransferMoreRecord>(ActivityKind::kMemcpy, i);
    EXPECT_EQ(more.is_peer, 1);
    EXPECT_EQ(more.source_device, 0);
    EXPECT_EQ(more.destination_device, 1);
    EXPECT_NE(more.source_context, more.destination_context);
  }
}

TEST_F(RecordedBuffersTest, OverheadIsTold) {
  decode("cuda_program.bin");
  const auto overhead = all<spool::OverheadRecord>(ActivityKind::kOverhead);
  ASSERT_EQ(overhead.size(), 12u);
  for (const auto& each : overhead) EXPECT_LE(each.begin_tsc, each.end_tsc);
}

}  // namespace
}  // namespace lanescope::record_cupti

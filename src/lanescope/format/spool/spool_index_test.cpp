#include "lanescope/format/spool/spool_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using spool::ChunkHeader;
using spool::Record;
using testing::SpoolSketch;

Record range(std::uint64_t begin) {
  return spool::RangeRecord{.begin_tsc = begin, .end_tsc = begin + 1};
}

// A recording with one shared chunk: small chunks of threads 0, 1 and 0 again, the last one open.
std::string with_shared_chunk() {
  std::string bytes = SpoolSketch().window(1000, 9000).bytes();
  std::string shared(spool::kChunkBytes, '\0');
  const auto add = [&](std::uint32_t place, spool::ChunkKind kind, std::uint32_t thread,
                       std::uint32_t sequence, const std::vector<Record>& records) {
    ChunkHeader header{};
    header.magic = spool::kChunkMagic;
    header.kind = kind;
    header.thread = thread;
    header.sequence = sequence;
    header.place = place;
    header.used = static_cast<std::uint32_t>(place == 0 ? 3 : records.size());
    char* at = shared.data() + place * spool::kSmallChunkBytes;
    std::memcpy(at, static_cast<const void*>(&header), sizeof header);
    if (!records.empty())
      std::memcpy(at + sizeof header, records.data(), records.size() * sizeof(Record));
    header.checksum = spool::chunk_checksum(reinterpret_cast<const std::byte*>(at), header.used,
                                            spool::kSmallChunkBytes);
    header.state = place == 3 ? spool::ChunkState::kOpen : spool::ChunkState::kClosed;
    std::memcpy(at, static_cast<const void*>(&header), sizeof header);
  };
  add(0, spool::ChunkKind::kShared, spool::kNoThread, 0, {});
  add(1, spool::ChunkKind::kRecords, 0, 1,
      std::vector<Record>(spool::kRecordsPerSmallChunk, range(2000)));
  add(2, spool::ChunkKind::kRecords, 1, 1, {range(3000)});
  add(3, spool::ChunkKind::kRecords, 0, 2, {range(4000), range(5000)});
  return bytes + shared;
}

std::size_t shared_at(const std::string& bytes) { return bytes.size() - spool::kChunkBytes; }

struct Read {
  SpoolIndex index;
  ImportStats stats;
  std::vector<std::vector<std::uint64_t>> begins;  // by chunk
};
Read read_indexed(const std::string& bytes) {
  Read result;
  const auto source = spool_bytes_of(bytes);
  result.index = std::move(read_spool_index(*source, false, &result.stats)).value();
  std::vector<std::byte> buffer(spool::kChunkBytes);
  for (const SpoolChunk& chunk : result.index.record_chunks) {
    auto& begins = result.begins.emplace_back();
    for (const Record& record : read_records(*source, chunk, buffer, &result.stats))
      begins.push_back(record.range.begin_tsc);
  }
  return result;
}

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(SpoolIndexTest, SmallChunksAreChunksOfTheirThreads) {
  const Read found = read_indexed(with_shared_chunk());
  ASSERT_THAT(found.index.record_chunks, SizeIs(3));
  EXPECT_EQ(found.index.record_chunks[1].sequence, 2u);
  EXPECT_EQ(found.index.record_chunks[2].thread, 1u);
  EXPECT_THAT(found.begins, ElementsAre(SizeIs(spool::kRecordsPerSmallChunk),
                                        ElementsAre(4000u, 5000u), ElementsAre(3000u)));
  EXPECT_EQ(found.stats[ImportIssue::kOpenChunk].count, 1u);
  EXPECT_EQ(found.stats[ImportIssue::kChecksumMismatch].count, 0u);
  EXPECT_EQ(count_records(found.index.record_chunks), spool::kRecordsPerSmallChunk + 3u);
}

TEST(SpoolIndexTest, ASmallChunkHasAChecksumOfItsOwn) {
  std::string bytes = with_shared_chunk();
  bytes[shared_at(bytes) + 2 * spool::kSmallChunkBytes + spool::kChunkHeaderBytes] ^= 1;
  const Read found = read_indexed(bytes);
  EXPECT_EQ(found.stats[ImportIssue::kChecksumMismatch].count, 1u);
  EXPECT_THAT(found.begins, ElementsAre(SizeIs(18), SizeIs(2), ElementsAre(3001u)));
}

TEST(SpoolIndexTest, ADamagedCountReadsNoFurtherThanTheSmallChunk) {
  std::string bytes = with_shared_chunk();
  const std::uint32_t far = 0xffffff;
  std::memcpy(
      bytes.data() + shared_at(bytes) + 2 * spool::kSmallChunkBytes + offsetof(ChunkHeader, used),
      &far, sizeof far);
  const Read found = read_indexed(bytes);
  EXPECT_THAT(found.begins, ElementsAre(SizeIs(18), SizeIs(2), SizeIs(18)));
  EXPECT_EQ(found.stats[ImportIssue::kChecksumMismatch].count, 1u);
}

TEST(SpoolIndexTest, AFileThatEndsInASharedChunkKeepsWhatIsThere) {
  const std::string bytes = with_shared_chunk();
  const std::size_t third = shared_at(bytes) + 3 * spool::kSmallChunkBytes;
  Read found = read_indexed(bytes.substr(0, third + spool::kChunkHeaderBytes + sizeof(Record) + 5));
  EXPECT_THAT(found.begins, ElementsAre(SizeIs(18), ElementsAre(4000u), ElementsAre(3000u)));
  EXPECT_EQ(found.stats[ImportIssue::kTruncatedFile].count, 1u);
  found = read_indexed(bytes.substr(0, third + 5));
  EXPECT_THAT(found.begins, ElementsAre(SizeIs(18), ElementsAre(3000u)));
}

TEST(SpoolIndexTest, ASmallChunkAtAWrongPlaceIsNone) {
  std::string bytes = with_shared_chunk();
  const std::uint32_t wrong = 7;
  std::memcpy(
      bytes.data() + shared_at(bytes) + 2 * spool::kSmallChunkBytes + offsetof(ChunkHeader, place),
      &wrong, sizeof wrong);
  EXPECT_THAT(read_indexed(bytes).begins, ElementsAre(SizeIs(18), SizeIs(2)));
}

// A schedule that repeats: each stop looks at its own window alone, however many there are.
TEST(SpoolIndexTest, AChunkWhoseHeaderIsDamagedIsCounted) {
  const auto mismatches = [](std::size_t at, std::uint32_t value) {
    std::string bytes = with_shared_chunk();
    std::memcpy(bytes.data() + shared_at(bytes) + at, &value, sizeof value);
    return read_indexed(bytes).stats[ImportIssue::kChecksumMismatch].count;
  };
  EXPECT_EQ(mismatches(offsetof(ChunkHeader, magic), spool::kChunkMagic), 0u);
  EXPECT_EQ(mismatches(offsetof(ChunkHeader, magic), 5), 1u);
  EXPECT_EQ(mismatches(offsetof(ChunkHeader, kind), 8), 1u);
  EXPECT_EQ(mismatches(2 * spool::kSmallChunkBytes + offsetof(ChunkHeader, magic), 5), 1u);
  EXPECT_EQ(mismatches(100 * spool::kSmallChunkBytes, 0), 0u);  // never used
}

TEST(SpoolIndexTest, AStopOfAWindowCostsTheSameInALongRecording) {
  constexpr std::uint32_t kCycles = 5000;  // over several control chunks
  SpoolSketch sketch;
  for (std::uint32_t cycle = 0; cycle < kCycles; ++cycle)
    sketch.window(1000 + 100 * cycle, 1050 + 100 * cycle, cycle);
  sketch.window(1'000'000, 0, kCycles);
  const SpoolIndex index = read_indexed(sketch.bytes()).index;
  ASSERT_EQ(index.windows.size(), kCycles + 1);
  for (std::uint32_t cycle = 0; cycle < kCycles; ++cycle)
    ASSERT_EQ(index.windows[cycle].stop, 1050u + 100 * cycle);
  EXPECT_EQ(index.windows.back().stop, 0u);
  EXPECT_EQ(index.stop_looks, kCycles);
}

TEST(SpoolIndexTest, AStopWithoutAWindowChangesNothingAndOneStopEndsBothOfADoubledCycle) {
  SpoolSketch sketch;
  sketch.window(1000, 0, 3).window(2000, 0, 3).window(2500, 0, 3, 2).window(1500, 1800, 3);
  sketch.window(5000, 6000, 3);  // 3 is stopped already: only this one
  const SpoolIndex index = read_indexed(sketch.bytes()).index;
  std::vector<std::uint64_t> stops;
  for (const SpoolWindow& window : index.windows) stops.push_back(window.stop);
  EXPECT_THAT(stops, ::testing::ElementsAre(1800, 2000, 0, 1800, 6000));
}

}  // namespace
}  // namespace lanescope::format

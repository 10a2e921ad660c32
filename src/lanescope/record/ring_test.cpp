// The parts of a ring by themselves: what is given back, what is kept of it, and control records of
// days. Whole recordings: tests/end_to_end/flight_test.cpp.
#include "lanescope/record/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/record/spool.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record {
namespace {

using spool::ChunkKind;
using spool::Record;
using spool::RecordKind;
using ::testing::ElementsAre;
namespace fs = std::filesystem;

Record range(std::uint64_t begin, std::uint64_t end, std::uint64_t handle = 0) {
  return spool::RangeRecord{.begin_tsc = begin, .end_tsc = end, .handle = handle};
}
Record range_end(std::uint32_t sequence, std::uint32_t slot, std::uint64_t end) {
  return spool::RangeEndRecord{.end_tsc = end, .place = {slot, sequence}};
}
Record end_by_handle(std::uint64_t handle, std::uint64_t end) {
  return spool::EndByHandleRecord{.end_tsc = end, .handle = handle};
}

class RingTest : public ::testing::Test {
 protected:
  RingTest() {
    path_ = fs::temp_directory_path() / ("lanescope_ring_" + std::to_string(getpid()));
    fs::remove(path_);
    file_ = std::move(SpoolFile::create(path_.string(), std::uint64_t{64} << 20)).value();
    ring_.emplace(file_.get(), true);
  }
  ~RingTest() override { fs::remove(path_); }

  // Closes a chunk of these records; its number in the file.
  std::uint32_t close(const std::vector<Record>& records, std::uint64_t now,
                      std::uint32_t thread = 0, std::uint32_t sequence = 1,
                      ChunkKind kind = ChunkKind::kRecords) {
    spool::ChunkHeader* chunk = file_->make_chunk();
    SpoolFile::claim(chunk, kind, thread, sequence);
    std::memcpy(reinterpret_cast<std::byte*>(chunk) + spool::kChunkHeaderBytes, records.data(),
                records.size() * sizeof(Record));
    chunk->used = static_cast<std::uint32_t>(records.size());
    const std::uint32_t number = chunk->number;
    ring_->add(chunk, now);
    file_->close_chunk(chunk);
    return number;
  }
  ChunkKind kind_of(std::uint32_t number) const {
    std::vector<std::byte> bytes(spool::kChunkBytes);
    EXPECT_TRUE(file_->read_chunk(number, bytes.data()));
    ChunkKind kind;
    std::memcpy(&kind, bytes.data() + offsetof(spool::ChunkHeader, kind), sizeof kind);
    return kind;
  }
  bool is_there(std::uint32_t number) const { return kind_of(number) != ChunkKind::kFree; }
  // The records in kKept chunks, by thread and place.
  using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // thread, sequence, slot
  std::map<Place, Record> kept() const {
    std::map<Place, Record> found;
    std::vector<std::byte> bytes(spool::kChunkBytes);
    for (std::uint32_t number = 0; number < file_->chunk_count(); ++number) {
      if (kind_of(number) != ChunkKind::kKept) continue;
      file_->read_chunk(number, bytes.data());
      std::vector<Record> records(spool::kRecordsPerChunk);
      std::memcpy(records.data(), bytes.data() + spool::kChunkHeaderBytes,
                  records.size() * sizeof(Record));
      for (std::size_t i = 0; i + 1 < records.size(); i += 2)
        if (const spool::KeptFromRecord& from = records[i].kept_from;
            from.kind == RecordKind::kKeptFrom)
          found[{from.thread, from.place.sequence, from.place.slot}] = records[i + 1];
    }
    return found;
  }

  fs::path path_;
  std::unique_ptr<SpoolFile> file_;
  std::optional<Ring> ring_;
};

TEST(SpoolFileTest, TheDiskReserveLeavesRoomForARecording) {
  constexpr std::uint64_t kGb = 1'000'000'000;
  const auto reserve = SpoolFile::default_disk_reserve;
  EXPECT_EQ(reserve(1000 * kGb, 500 * kGb), 50 * kGb);  // 5 %
  EXPECT_EQ(reserve(10 * kGb, 9 * kGb), kGb);           // 5 % would be too little
  EXPECT_EQ(reserve(1000 * kGb, 60 * kGb), 30 * kGb);   // half of what is free
  EXPECT_EQ(reserve(60'000'000, 50'000'000), 25'000'000u);
  EXPECT_EQ(reserve(60'000'000, 0), 0u);
}

TEST_F(RingTest, AChunkGoesWhenItsNewestTimeIsTooOldAndItsPlaceIsUsedAgain) {
  ring_->window_opened({1, 0, 1000, 0, 6400});  // 6400 ticks and a 64th: 6500
  const std::uint32_t old = close({range(2000, 3000)}, 3000);
  const std::uint32_t young = close({range(2500, 9000)}, 9000, 0, 2);
  ring_->give_back_old(9500);  // wanted from 3000
  EXPECT_TRUE(is_there(old));
  ring_->give_back_old(9550);  // within a 64th of 6400 after the last look: not looked at
  EXPECT_TRUE(is_there(old));
  ring_->give_back_old(9601);
  EXPECT_FALSE(is_there(old));
  EXPECT_TRUE(is_there(young));
  EXPECT_EQ(close({range(9600, 9601)}, 9601, 0, 3), old);
}

TEST_F(RingTest, TimesOfTheFutureAndUnknownOnesDoNotKeepAChunk) {
  ring_->window_opened({1, 0, 1000, 0, 6400});
  const std::uint32_t ahead = close({range(2000, 99'000)}, 3000);
  spool::KernelRecord kernel{};  // not measured
  kernel.kind = static_cast<std::uint8_t>(spool::ActivityKind::kKernel);
  spool::KernelMoreRecord more{};
  more.kind = static_cast<std::uint8_t>(spool::ActivityKind::kContinued);
  more.graph_node_id = 77'777;         // where other records have a begin
  more.grid_x = more.grid_y = 88'888;  // and an end
  const std::uint32_t device = close({spool::as_record(kernel), spool::as_record(more)}, 3000,
                                     spool::kNoThread, 1, ChunkKind::kActivities);
  ring_->give_back_old(20'000);
  EXPECT_FALSE(is_there(ahead));
  EXPECT_FALSE(is_there(device));
}

TEST_F(RingTest, OpenRangesMoveAndLeaveWithTheirEnds) {
  ring_->window_opened({1, 0, 1000, 0, 6400});
  close({range(2000, 2001), range(2002, 0)}, 3000, 5, 1);
  close({range_end(1, 1, 12'000)}, 12'000, 5, 2);
  ring_->give_back_old(12'000);
  auto found = kept();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ((found[{5, 1, 1}].range.begin_tsc), 2002u);
  ring_->give_back_old(20'000);  // the end is 8000 old
  EXPECT_TRUE(kept().empty());
  EXPECT_EQ(ring_->lost_open_ranges(), 0u);
}

TEST_F(RingTest, EndsByHandleMeetTheirRangeInEitherOrder) {
  ring_->window_opened({1, 0, 1000, 0, 6400});
  close({range(2000, 0, 77)}, 2100, 1, 1);  // goes before its end
  close({end_by_handle(77, 2600)}, 2700, 2, 1);
  close({end_by_handle(78, 3000)}, 3000, 2, 2);  // goes before its range
  const std::uint32_t late = close({range(2500, 0, 78), range(4000, 4001)}, 4001, 3, 1);
  ring_->give_back_old(9000);  // wanted from 2500
  EXPECT_EQ(kept().size(), 1u) << "range 77 without its end";
  ring_->give_back_old(9800);  // wanted from 3300
  auto found = kept();
  ASSERT_EQ(found.size(), 1u) << "the end of 78, whose range is in its chunk";
  EXPECT_EQ(found.begin()->second.end_by_handle.handle, 78u);
  EXPECT_TRUE(is_there(late));
  ring_->give_back_old(11'000);
  EXPECT_FALSE(is_there(late));
  EXPECT_TRUE(kept().empty());
}

TEST_F(RingTest, RangesOfWindowsThatAreOverAreNotKept) {
  ring_->window_opened({1, 0, 1000, 0, 6400});
  close({range(2000, 0)}, 2100, 1, 1);
  ring_->window_closed(1, 2200);
  ring_->window_opened({1, 1, 10'000, 0, 6400});  // the first window is wholly too old now
  ring_->give_back_old(30'000);
  EXPECT_TRUE(kept().empty());
  close({range(30'000, 0)}, 30'000, 1, 2);
  ring_->give_back_old(40'000);
  EXPECT_EQ(kept().size(), 1u);
  ring_->window_closed(1, 41'000);
  ring_->forget(1);
  EXPECT_TRUE(kept().empty());
}

TEST_F(RingTest, NothingGoesAfterTheLastWindowHasClosed) {
  ring_->window_opened({1, 0, 1000, 0, 6400});
  const std::uint32_t number = close({range(2000, 3000)}, 3000);
  ring_->window_closed(1, 3100);
  ring_->give_back_old(1'000'000);
  EXPECT_TRUE(is_there(number));
}

TEST_F(RingTest, ForWantOfRoomTheOldestGoesUnlessAWindowWithoutRingNeedsIt) {
  ring_->window_opened({1, 0, 1000, 0, 64'000});
  ring_->window_opened({2, 0, 2000, 0, 0});  // wants all of it
  ring_->window_closed(2, 3000);
  const std::uint32_t needed = close({range(2500, 2600)}, 2600, 1, 1);
  const std::uint32_t oldest = close({range(3500, 3600)}, 3600, 1, 2);
  const std::uint32_t newest = close({range(4500, 4600)}, 4600, 1, 3);
  EXPECT_EQ(ring_->covered(1, 5000), 4000u);
  EXPECT_TRUE(ring_->give_back_oldest(5000));
  EXPECT_TRUE(is_there(needed));
  EXPECT_FALSE(is_there(oldest));
  EXPECT_EQ(ring_->covered(1, 5000), 1400u);  // whole from 3600 on
  EXPECT_TRUE(ring_->give_back_oldest(5000));
  EXPECT_FALSE(is_there(newest));
  EXPECT_FALSE(ring_->give_back_oldest(5000));
  ring_->forget(2);
  EXPECT_TRUE(ring_->give_back_oldest(5000));
  EXPECT_FALSE(is_there(needed));
}

// A shared chunk stays as long as another thread writes into one of its small chunks.
TEST_F(RingTest, ARangeThatStaysLongerThanItsEndGetsItsEnd) {
  ring_->window_opened({1, 0, 1000, 0, 6400});
  SmallChunks small;
  const auto cut = [&](std::uint32_t thread, const std::vector<Record>& records) {
    spool::ChunkHeader* chunk = small.take([&] { return file_->make_chunk(); });
    SpoolFile::claim(chunk, ChunkKind::kRecords, thread, 1);
    std::memcpy(reinterpret_cast<std::byte*>(chunk) + spool::kChunkHeaderBytes, records.data(),
                records.size() * sizeof(Record));
    chunk->used = static_cast<std::uint32_t>(records.size());
    return chunk;
  };
  const auto close_small = [&](spool::ChunkHeader* chunk) {
    SpoolFile::close_small_chunk(chunk);
    ring_->add_small(chunk);
    return small.release(chunk);
  };
  spool::ChunkHeader* first = cut(5, {range(2000, 2001), range(2002, 0)});
  spool::ChunkHeader* sleeping = cut(6, {range(2003, 0)});
  const std::uint32_t shared = first->number;
  EXPECT_EQ(close_small(first), nullptr);
  const std::uint32_t later = close({range_end(1, 1, 12'000)}, 12'000, 5, 2);
  ring_->give_back_old(20'000);
  EXPECT_FALSE(is_there(later));
  ASSERT_TRUE(is_there(shared));
  EXPECT_TRUE(kept().empty());
  std::vector<std::byte> bytes(spool::kChunkBytes);
  ASSERT_TRUE(file_->read_chunk(shared, bytes.data()));
  const std::byte* place = bytes.data() + spool::kSmallChunkBytes;
  Record ended;
  std::memcpy(static_cast<void*>(&ended), place + spool::kChunkHeaderBytes + sizeof(Record),
              sizeof ended);
  EXPECT_EQ(ended.range.begin_tsc, 2002u);
  EXPECT_EQ(ended.range.end_tsc, 12'000u);
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, place + offsetof(spool::ChunkHeader, checksum), sizeof checksum);
  EXPECT_EQ(checksum, spool::chunk_checksum(place, 2, spool::kSmallChunkBytes));
  // The shared chunk is given back with its last small one; only the range without an end is kept.
  EXPECT_EQ(close_small(sleeping), nullptr) << "there are places left in it";
  spool::ChunkHeader* whole = small.finish();
  ASSERT_NE(whole, nullptr);
  ring_->add(whole, 20'000);
  file_->close_chunk(whole);
  ring_->give_back_old(40'000);
  EXPECT_FALSE(is_there(shared));
  const auto found = kept();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(std::get<0>(found.begin()->first), 6u);
}

TEST_F(RingTest, SmallChunksFillASharedOneAndGiveItBackWhole) {
  SmallChunks small;
  std::uint32_t made = 0;
  const auto make = [&]() -> spool::ChunkHeader* {
    return ++made > 2 ? nullptr : file_->make_chunk();
  };
  std::vector<spool::ChunkHeader*> taken;
  while (spool::ChunkHeader* chunk = small.take(make)) taken.push_back(chunk);
  ASSERT_EQ(taken.size(), 2u * spool::kSmallChunks);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(taken[i]->place, i % spool::kSmallChunks + 1);
    spool::ChunkHeader* whole = small.release(taken[i]);
    EXPECT_EQ(whole != nullptr, (i + 1) % spool::kSmallChunks == 0) << i;
    if (whole) file_->close_chunk(whole);
  }
  EXPECT_EQ(small.finish(), nullptr);
}

TEST_F(RingTest, TooManyOpenRangesAreCounted) {
  ring_->window_opened({1, 0, 1000, 0, 6400});
  constexpr std::uint32_t kRoom = KeptRanges::kMaxChunks * (spool::kRecordsPerChunk / 2);
  std::uint32_t sequence = 0, ranges = 0;
  while (ranges < kRoom + 100) {
    std::vector<Record> records(spool::kRecordsPerChunk, range(2000, 0));
    close(records, 2100, 1, ++sequence);
    ranges += spool::kRecordsPerChunk;
  }
  ring_->give_back_old(1'000'000);
  EXPECT_EQ(kept().size(), kRoom);
  EXPECT_EQ(ring_->lost_open_ranges(), ranges - kRoom);
}

TEST_F(RingTest, ACopyGetsEachChunkOnceAndThoseThatGoFirst) {
  ring_->window_opened({1, 0, 1000, 0, 64'000});
  const std::uint32_t a = close({range(2000, 2001)}, 2001, 1, 1);
  const std::uint32_t b = close({range(3000, 3001)}, 3001, 1, 2);
  const std::uint32_t c = close({range(4000, 4001)}, 4001, 1, 3);
  std::vector<std::uint32_t> copied;
  ring_->start_copy(
      [&](std::uint32_t number) {
        EXPECT_TRUE(is_there(number));
        copied.push_back(number);
      },
      file_->chunk_count(), 5000);
  ring_->copy_chunk(c);
  EXPECT_TRUE(ring_->give_back_oldest(5000));  // a
  ring_->copy_chunk(a);
  ring_->copy_chunk(b);
  EXPECT_TRUE(ring_->give_back_oldest(5000));  // b
  ring_->stop_copy();
  EXPECT_THAT(copied, ElementsAre(c, a, b));
}

TEST_F(RingTest, ControlRecordsOfDaysTakeNoMoreThanTwoChunks) {
  const std::string path = path_.string() + "_control";
  fs::remove(path);
  InternTable texts;
  auto made = Spool::create({.path = path, .max_bytes = 64u << 20, .ready_chunks = 2, .ring = true},
                            &texts);
  ASSERT_TRUE(made) << made.error().message;
  Spool& spool = **made;
  const std::uint64_t rate = spool.file().header().ticks_per_second;
  const std::uint64_t now = ticks();
  spool.ring().window_opened({1, 0, now, 0, rate});
  spool.write_control(spool::MetadataRecord{.key = texts.intern("key")});
  spool::AnchorRecord anchor;
  for (std::uint32_t i = 0; i < 20 * spool::kRecordsPerChunk; ++i) {
    anchor.begin_tsc = i;  // long ago
    spool.write_control(anchor);
  }
  spool.finish(false);
  std::uint32_t chunks = 0, records = 0, kept_metadata = 0;
  std::vector<std::byte> bytes(spool::kChunkBytes);
  for (std::uint32_t number = 0; number < spool.file().chunk_count(); ++number) {
    if (!spool.file().read_chunk(number, bytes.data())) continue;
    std::uint32_t kind = 0, used = 0;
    std::memcpy(&kind, bytes.data() + offsetof(spool::ChunkHeader, kind), sizeof kind);
    std::memcpy(&used, bytes.data() + offsetof(spool::ChunkHeader, used), sizeof used);
    if (kind != static_cast<std::uint32_t>(ChunkKind::kControl)) continue;
    ++chunks;
    records += used;
    std::vector<Record> of_chunk(used);
    std::memcpy(static_cast<void*>(of_chunk.data()), bytes.data() + spool::kChunkHeaderBytes,
                used * sizeof(Record));
    for (const Record& record : of_chunk)
      kept_metadata += record.head.kind == RecordKind::kMetadata;
  }
  EXPECT_LE(chunks, 2u);
  EXPECT_LE(records, 2 * spool::kRecordsPerChunk);
  EXPECT_EQ(kept_metadata, 1u);
  fs::remove(path);
}

}  // namespace
}  // namespace lanescope::record

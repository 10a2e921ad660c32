// Recordings are read by later versions, so the bytes of each kind are written out here by hand: as
// six 64-bit words, of which the third is the 32-bit field, then kind, 8-bit field, 16-bit field.
#include "lanescope/codec/spool_records.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>

namespace lanescope::spool {
namespace {

using Words = std::array<std::uint64_t, 6>;

Words words_of(const Record& record) { return std::bit_cast<Words>(record); }

TEST(SpoolRecordsTest, EachKindHasItsBytes) {
  EXPECT_EQ(words_of(Record()), (Words{}));
  EXPECT_EQ(words_of(RangeRecord{.begin_tsc = 1,
                                 .end_tsc = 2,
                                 .name = 3,
                                 .scope = 4,
                                 .flags = 5,
                                 .sequence_number = 6,
                                 .forward_thread = 7,
                                 .detail = 8,
                                 .handle = 9}),
            (Words{1, 2, 0x0005'04'01'00000003, 6, 0x00000008'00000007, 9}));
  EXPECT_EQ(words_of(FrameRecord{
                .begin_tsc = 1, .end_tsc = 2, .name = 3, .flags = 16, .module = 6, .depth = 7}),
            (Words{1, 2, 0x0010'40'01'00000003, 6, 7, 0}));
  EXPECT_EQ(words_of(RangeEndRecord{.end_tsc = 2, .place = {.slot = 6, .sequence = 7}}),
            (Words{0, 2, 0x0000'00'02'00000000, 0x00000007'00000006, 0, 0}));
  EXPECT_EQ(words_of(EndByHandleRecord{.end_tsc = 2, .handle = 9}),
            (Words{0, 2, 0x0000'00'03'00000000, 0, 0, 9}));
  EXPECT_EQ(words_of(InstantRecord{.begin_tsc = 1, .name = 3, .detail = 8}),
            (Words{1, 0, 0x0000'00'04'00000003, 0, 0x00000008'00000000, 0}));
  EXPECT_EQ(words_of(CallNumbersRecord{.begin_tsc = 1,
                                       .record_function_id = 2,
                                       .name = 3,
                                       .flags = 5,
                                       .seq = -1,
                                       .comms_id = 9}),
            (Words{1, 2, 0x0005'00'07'00000003, 0xffffffff'ffffffff, 0, 9}));
  EXPECT_EQ(words_of(TensorRecord{.begin_tsc = 1,
                                  .implementation = 2,
                                  .operator_name = 3,
                                  .device_type = 1,
                                  .device_index = -1,
                                  .bytes = 6,
                                  .input = 0x00abcdef,
                                  .role = TensorRole::kOptimizerState,
                                  .item = 8,
                                  .address = 9}),
            (Words{1, 2, 0xffff'01'08'00000003, 6, 0x00000008'05abcdef, 9}));
}

TEST(SpoolRecordsTest, AMemoryRecordHasATotalInTwoHalves) {
  MemoryRecord memory{.begin_tsc = 1,
                      .total_allocated = 2,
                      .kind = RecordKind::kOutOfMemory,
                      .device_type = 1,
                      .device_index = 3,
                      .bytes = -2,
                      .address = 9};
  memory.set_total_reserved(0x00000011'00000022);
  EXPECT_EQ(words_of(memory), (Words{1, 2, 0x0003'01'06'00000022, 0xffffffff'fffffffe, 0x11, 9}));
  EXPECT_EQ(memory.total_reserved(), 0x00000011'00000022u);
}

TEST(SpoolRecordsTest, EachKindOfControlAndKeptChunksHasItsBytes) {
  EXPECT_EQ(words_of(KeptFromRecord{.place = {.slot = 6, .sequence = 7}, .thread = 8}),
            (Words{0, 0, 0x0000'00'0f'00000000, 0x00000007'00000006, 8, 0}));
  EXPECT_EQ(
      words_of(AnchorRecord{.begin_tsc = 1, .width_ticks = 2, .monotonic_ns = 6, .realtime_ns = 9}),
      (Words{1, 2, 0x0000'00'10'00000000, 6, 0, 9}));
  EXPECT_EQ(words_of(WindowRecord{.begin_tsc = 1,
                                  .kind = RecordKind::kWindowStop,
                                  .cycle = 6,
                                  .session = 7,
                                  .options = 8,
                                  .last_ns = 9}),
            (Words{1, 0, 0x0000'00'12'00000000, 6, 0x00000008'00000007, 9}));
  EXPECT_EQ(words_of(MetadataRecord{.begin_tsc = 1, .key = 3, .session = 7, .json = 8}),
            (Words{1, 0, 0x0000'00'13'00000003, 0, 0x00000008'00000007, 0}));
  EXPECT_EQ(words_of(NoteRecord{.begin_tsc = 1, .line = 3, .session = 7}),
            (Words{1, 0, 0x0000'00'14'00000003, 0, 7, 0}));
}

TEST(SpoolRecordsTest, AFrameIsARangeThatMayBeReadAsEither) {
  const Record record = FrameRecord{.module = 5, .depth = 3, .handle = 9};
  EXPECT_EQ(record.head.kind, RecordKind::kRange);
  EXPECT_EQ(record.range.scope, kFrameScope);
  EXPECT_EQ(record.range.handle, 9u);
}

}  // namespace
}  // namespace lanescope::spool

#include "lanescope/format/lost_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/perfetto/write_pftrace.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/format/spool/spool_reading_test.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using lanescope::testing::SpoolSketch;
using ::testing::HasSubstr;
using ::testing::Not;

// 42 records of its thread found no room.
std::string recording_with_drops(std::uint64_t dropped = 42) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1, dropped);
  spool.records(0, 1, {spool.range("op", 3000, 4500)});
  return spool.bytes();
}

std::uint64_t lost_records(const Result<Trace>& trace) {
  EXPECT_TRUE(trace);
  return trace ? trace->import_stats()[ImportIssue::kDroppedRecords].count : 0;
}

TEST(LostEntryTest, DroppedRecordsTravelInJsonAndInItsCopies) {
  const Trace recorded = read_recording(recording_with_drops());
  const std::string json = kineto_json_text(recorded);
  EXPECT_THAT(json, HasSubstr("\"lanescope_lost\": {\"dropped-records\": 42}"));
  const auto once = read_trace_bytes(json);
  EXPECT_EQ(lost_records(once), 42u);
  EXPECT_TRUE(once->import_stats().lost_anything());
  EXPECT_FALSE(once->metadata_json("lanescope_lost"));  // an issue, not something to read as text
  const std::string copy = kineto_json_text(*once);
  EXPECT_EQ(copy, json);
  EXPECT_EQ(lost_records(read_trace_bytes(copy)), 42u);
}

TEST(LostEntryTest, TheyTravelInJsonThatIsWrittenInPieces) {
  std::string json;
  KinetoJsonPieces writer = KinetoJsonPieces::create(codec::string_sink(json));
  const auto stats = read_spool_bytes_pieces(
      recording_with_drops(), 1,
      [&](const Trace& piece, std::size_t, std::size_t) { return writer.add(piece); });
  ASSERT_TRUE(stats);
  ASSERT_TRUE(writer.finish(*stats));
  EXPECT_EQ(lost_records(read_trace_bytes(json)), 42u);
}

TEST(LostEntryTest, TheyTravelInPerfettosFormat) {
  const Trace recorded = read_recording(recording_with_drops());
  const auto again = read_trace_bytes(pftrace_bytes(recorded));
  EXPECT_EQ(lost_records(again), 42u);
  EXPECT_EQ(kineto_json_text(*again), kineto_json_text(recorded));
}

TEST(LostEntryTest, AWholeRecordingHasNoEntry) {
  const Trace whole = read_recording(recording_with_drops(0));
  EXPECT_EQ(lost_entry(whole.import_stats()), "");
  EXPECT_THAT(kineto_json_text(whole), Not(HasSubstr("lanescope_lost")));
}

// A cut file is damage of that file: what is written from it is a whole file.
TEST(LostEntryTest, DamageOfTheFileThatWasReadStaysWithThatFile) {
  ImportStats stats;
  stats.count(ImportIssue::kTruncatedFile);
  stats.count(ImportIssue::kOpenRange);
  EXPECT_EQ(lost_entry(stats), "");
  stats.count(ImportIssue::kLostSamples, std::nullopt, 3);
  stats.count(ImportIssue::kDroppedRecords, std::nullopt, ~std::uint64_t{0});
  EXPECT_EQ(lost_entry(stats), "{\"dropped-records\": 9223372036854775807, \"lost-samples\": 3}");
}

TEST(LostEntryTest, WhatIsNotUnderstoodIsCountedAsLost) {
  for (const char* json : {"[]", "{", "{\"dropped-records\": -1}", "{\"dropped-records\": \"1\"}",
                           "{\"truncated-file\": 1}", "{\"dropped-records\": 1e3}"}) {
    ImportStats stats;
    EXPECT_TRUE(take_lost_entry(kLostEntry, json, &stats)) << json;
    EXPECT_EQ(stats[ImportIssue::kMetadataLost].count, 1u) << json;
    EXPECT_EQ(stats[ImportIssue::kDroppedRecords].count, 0u) << json;
  }
  ImportStats stats;
  EXPECT_FALSE(take_lost_entry("lanescope_cost", "{}", &stats));
}

}  // namespace
}  // namespace lanescope::format

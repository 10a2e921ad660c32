// However many threads read a trace, it is the same, byte for byte: whole files, damaged ones, and
// files whose damage lies where another thread has already read on.
#include "lanescope/format/kineto_json/events_ahead.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/index_file/index_helpers_test.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::format {
namespace {

namespace fs = std::filesystem;

// All that a Trace has, its import issues and the numbers of its texts included.
std::string all_of(std::string_view text, unsigned threads, std::uint32_t window_bytes) {
  ReadOptions options;
  options.threads = threads;
  options.window_bytes = window_bytes;
  const auto trace = read_trace_bytes(text, options);
  return trace ? testing_index::index_text(*trace) : trace.error().message;
}

void expect_same(std::string_view text, std::uint32_t window_bytes, std::string_view what) {
  const std::string alone = all_of(text, 1, window_bytes);
  for (const unsigned threads : {2u, 4u, 8u})
    EXPECT_TRUE(all_of(text, threads, window_bytes) == alone)
        << what << ", " << threads << " threads, windows of " << window_bytes;
}

// Events of every phase, with texts, shapes, tracks and categories that come up later and later.
std::string mixed_trace(int rounds) {
  std::string text = "{\"schemaVersion\": 1, \"traceEvents\": [\n";
  for (int i = 0; i < rounds; ++i) {
    const int at = i * 100;
    text += fmt::format(
        R"(  {{"ph": "X", "cat": "cpu_op", "name": "aten::op{0}", "pid": 5, "tid": {1}, "ts": {2}.125, "dur": 50.5,
    "args": {{"External id": {3}, "Input Dims": [[64, {0}], []], "key{4}": "text {0}", "x": 1.5}}}},
  {{"ph": "X", "cat": "kernel", "name": "k{0}", "pid": 0, "tid": 7, "ts": {2}, "dur": 1, "args": {{"correlation": {3}}}}},
  {{"ph": "s", "id": {3}, "pid": 5, "tid": {1}, "ts": {2}, "cat": "ac2g", "name": "ac2g"}},
  {{"ph": "f", "id": {3}, "pid": 0, "tid": 7, "ts": {2}, "cat": "ac2g", "name": "ac2g", "bp": "e"}},
  {{"ph": "C", "name": "memory", "id": {4}, "pid": 5, "ts": {2}, "args": {{"bytes{4}": {3}}}}},
  {{"ph": "B", "cat": "late{4}", "name": "begin", "pid": "p{4}", "tid": "t", "ts": {2}}},
  {{"ph": "E", "pid": "p{4}", "tid": "t", "ts": {5}, "args": {{"end": true}}}},
  {{"ph": "b", "cat": "async", "id": "0x{4}", "name": "a", "pid": 5, "ts": {2}}},
  {{"ph": "e", "cat": "async", "id": "0x{4}", "name": "a", "pid": 5, "ts": {5}}},
  {{"ph": "i", "name": "mark \u00e9", "pid": 5, "tid": {1}, "ts": {2}, "s": "p", "finished": false}},
  {{"ph": "M", "name": "thread_name", "pid": 5, "tid": {1}, "args": {{"name": "thread {1}"}}}},
)",
        i / 7, 5 + i % 3, at, i, i / 40, at + 60);
  }
  text +=
      "  {\"ph\": \"M\", \"name\": \"other\", \"pid\": 5, \"args\": {\"x\": {}}}\n  ],\n"
      "  \"traceName\": \"a.json\"\n}\n";
  return text;
}

TEST(EventsAheadTest, AnyNumberOfThreadsGivesTheSameTrace) {
  const std::string text = mixed_trace(300);
  for (const std::uint32_t window : {700u, 2000u, 10000u}) expect_same(text, window, "mixed");
}

// Counts, not times: the caller waits until another thread has read a piece that it was handed, so
// this fails as soon as the caller reads alone.
TEST(EventsAheadTest, OtherThreadsReadWhatTheyAreHanded) {
  const std::string text = mixed_trace(300);
  constexpr std::uint32_t kWindow = 4000;
  ReadShares shares;
  ReadOptions options;
  options.threads = 3;
  options.window_bytes = kWindow;
  options.shares = &shares;
  options.progress = [&](std::uint64_t done, std::uint64_t) {
    if (done < 10 * kWindow) return;  // the caller reads the begin alone
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (shares.by_others == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  };
  ASSERT_TRUE(read_trace_bytes(text, options));
  EXPECT_GT(shares.by_others, 0u);
}

TEST(EventsAheadTest, OneThreadSharesNothing) {
  ReadShares shares;
  ReadOptions options;
  options.threads = 1;
  options.window_bytes = 4000;
  options.shares = &shares;
  ASSERT_TRUE(read_trace_bytes(mixed_trace(100), options));
  EXPECT_EQ(shares.by_caller + shares.by_others, 0u);
}

TEST(EventsAheadTest, LongTextsAndLongEventsChangeNothing) {
  std::string text = "[\n";
  for (int i = 0; i < 200; ++i)
    text += fmt::format(
        "  {{\"ph\": \"X\", \"name\": \"{}{}\", \"pid\": 1, \"tid\": 1, \"ts\": {}, \"dur\": "
        "1}},\n",
        i, std::string(static_cast<std::size_t>(i * 61 % 5000), 'n'), i);
  expect_same(text, 1000, "a list without an end");
  text.back() = ']';
  expect_same(text, 1000, "a comma before the end");
}

// Each thread learns the shape of events for itself, and counts what is wrong in each of them.
TEST(EventsAheadTest, ATextOfAnotherTypeIsCountedInEachEvent) {
  std::string text = "{\"traceEvents\": [\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format(
        "{}  {{\"ph\": [[\"X\"]], \"cat\": \"cpu_op\", \"name\": \"a\", \"pid\": 5, \"tid\": 5, "
        "\"ts\": {}, \"dur\": 1}}",
        i == 0 ? "" : ",\n", i);
  text += "]}";
  expect_same(text, 128, "a phase that is a list");
  const auto trace = read_trace_bytes(text, ReadOptions{});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->import_stats()[ImportIssue::kWrongType].count, 40u);
}

TEST(EventsAheadTest, DamageAnywhereChangesNothing) {
  const std::string whole = mixed_trace(60);
  std::mt19937 random(20261125);
  const auto below = [&random](std::size_t limit) { return random() % limit; };
  for (int round = 0; round < 300; ++round) {
    std::string text = whole;
    const std::size_t changes = 1 + below(4);
    for (std::size_t i = 0; i < changes; ++i) {
      const std::size_t at = below(text.size());
      switch (below(6)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, 1 + below(300));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), below(300)));
          break;
        case 3:
          text.insert(at, 1, "{}[],\"\\:"[below(8)]);
          break;
        case 4:
          text.insert(
              at, "]\n,{\"ph\": \"X\", \"name\": \"stray\", \"pid\": 1, \"tid\": 1, \"ts\": 1},");
          break;
        default:
          text.resize(at + 1);
      }
    }
    expect_same(text, static_cast<std::uint32_t>(300 + below(3000)),
                fmt::format("round {}", round));
  }
}

TEST(EventsAheadTest, PackedAndCutStreamsChangeNothing) {
  std::string packed;
  auto sink = codec::pack_into(codec::string_sink(packed), codec::Packing::kGzip);
  ASSERT_TRUE(sink && (*sink)->write(mixed_trace(300)) && (*sink)->finish());
  expect_same(packed, 2000, "packed");
  expect_same(std::string_view(packed).substr(0, packed.size() / 2), 2000, "cut");
}

TEST(EventsAheadTest, ShippedTracesAreTheSame) {
  const fs::path folder = fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "data";
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".json.gz") && name != "trace.json") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::string alone = all_of(text, 1, 8192);
    EXPECT_TRUE(all_of(text, 3, 8192) == alone) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 50);
}

}  // namespace
}  // namespace lanescope::format

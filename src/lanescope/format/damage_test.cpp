// Damage of every kind to small traces: nothing crashes, nothing is read twice, and what was
// complete is there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

constexpr int kSlices = 6;

std::string small_trace() {
  std::string text =
      "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU "
      "\\\"x\\\"\"}],\n  \"traceEvents\": [\n";
  for (int i = 0; i < kSlices; ++i) {
    text += fmt::format(R"(  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::\u00e9{0}", "pid": 5, "tid": 5,
    "ts": {0}00.125, "dur": 50.5,
    "args": {{
      "External id": {0},"Input Dims": [[64, 64], []], "k": "v, {{"
    }}
  }},
  {{"ph": "s", "id": {0}, "pid": 5, "tid": 5, "ts": {0}00.5, "cat": "ac2g", "name": "ac2g"}},
  {{"ph": "f", "id": {0}, "pid": 0, "tid": 7, "ts": {0}10, "cat": "ac2g", "name": "ac2g", "bp": "e"}},
)",
                        i);
  }
  text +=
      "  {\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 5, \"tid\": 0, \"args\": {\"name\": "
      "\"python3\"}}\n  ],\n  \"traceName\": \"a.json\"\n}\n";
  return text;
}

std::string packed(const std::string& text, codec::Packing packing) {
  std::string out;
  auto sink = codec::pack_into(codec::string_sink(out), packing);
  EXPECT_TRUE(sink && (*sink)->write(text) && (*sink)->finish());
  return out;
}

std::size_t complete_slices(
    std::string_view text) {  // slices whose text is whole in a prefix of small_trace()
  std::size_t count = 0;
  for (std::size_t at = text.find("v, {\"\n    }\n  }"); at != std::string_view::npos;
       at = text.find("v, {\"\n    }\n  }", at + 1))
    ++count;
  return count;
}

TEST(DamageTest, CutAtEveryByteGivesEveryCompleteEventOrAClearError) {
  const std::string text = small_trace();
  const std::size_t events_at = text.find("\"traceEvents\": [");
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string_view cut = std::string_view(text).substr(0, size);
    const auto trace = read_trace_bytes(cut);
    if (size < events_at + 16) {
      ASSERT_FALSE(trace) << size;
      EXPECT_FALSE(trace.error().message.empty());
      continue;
    }
    ASSERT_TRUE(trace) << size << trace.error().message;
    EXPECT_EQ(trace->slices().size(), complete_slices(cut)) << size;
    const bool whole = size + 1 >= text.size();  // all but the line end
    EXPECT_EQ(trace->import_stats()[ImportIssue::kTruncatedFile].count, whole ? 0u : 1u) << size;
  }
}

TEST(DamageTest, PackedStreamsMayBeCutAtEveryByte) {
  const std::string text = small_trace();
  for (const codec::Packing packing : {codec::Packing::kGzip, codec::Packing::kZstd}) {
    const std::string bytes = packed(text, packing);
    for (std::size_t size = 1; size < bytes.size(); ++size) {
      const auto trace = read_trace_bytes(std::string_view(bytes).substr(0, size));
      if (!trace) {
        EXPECT_FALSE(trace.error().message.empty());
      } else {
        // Only the trailer, and the end of the last block, come after the last bracket.
        const ImportStats& stats = trace->import_stats();
        const bool has_all = stats[ImportIssue::kWrongChecksum].count > 0;
        EXPECT_EQ(stats[ImportIssue::kTruncatedStream].count, has_all ? 0u : 1u) << size;
        EXPECT_EQ(stats.is_truncated(), !has_all) << size;
        if (has_all) {
          EXPECT_EQ(trace->slices().size(), unsigned{kSlices});
        }
        EXPECT_LE(trace->slices().size(), unsigned{kSlices});
      }
    }
  }
}

// A bare array may end after any event, so without its bracket a cut stream may lack some.
TEST(DamageTest, AStreamThatIsCutAfterAnOpenArrayIsCut) {
  const std::string event = R"({"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1})";
  for (const char* end : {"", "]"}) {
    const std::string bytes = packed("[" + event + end, codec::Packing::kGzip);
    const auto trace = read_trace_bytes(std::string_view(bytes).substr(0, bytes.size() - 8));
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->slices().size(), 1u);
    EXPECT_EQ(trace->import_stats().is_truncated(), *end == '\0');
    EXPECT_EQ(trace->import_stats()[ImportIssue::kWrongChecksum].count, *end == '\0' ? 0u : 1u);
  }
}

TEST(DamageTest, BytesMayTurnIntoOthersAnywhere) {
  const std::string text = small_trace();
  const auto whole = read_trace_bytes(text);
  ASSERT_TRUE(whole);
  const std::size_t events_at = text.find("\"traceEvents\": [") + 16;
  for (std::size_t at = 0; at < text.size(); at += 3) {
    for (const char other :
         {'"', '\\', '{', '}', '[', ']', ',', ':', '\0', '\xff', 'x', '9', '\n'}) {
      std::string damaged = text;
      damaged[at] = other;
      const auto trace = read_trace_bytes(damaged);
      if (!trace) {
        EXPECT_LT(at, events_at) << "byte " << at << " to " << int{other} << ": "
                                 << trace.error().message;
        continue;
      }
      // One byte can cost its own event and, where it cuts the array short, later ones; never more
      // appear than were there.
      EXPECT_LE(trace->slices().size(), unsigned{kSlices}) << at;
      if (other != ']' && other != '}' && at > events_at) {
        EXPECT_GE(trace->slices().size(), kSlices - 1u) << "byte " << at << " to " << int{other};
      }
    }
  }
}

TEST(DamageTest, LinesMayBeMissingOrTwice) {
  const std::string text = small_trace();
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  for (std::size_t skip = 4; skip < lines.size(); ++skip) {
    std::string missing, twice;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i != skip) missing += lines[i];
      twice += lines[i];
      if (i == skip) twice += lines[i];
    }
    for (const std::string& damaged : {missing, twice}) {
      const auto trace = read_trace_bytes(damaged);
      ASSERT_TRUE(trace) << skip << trace.error().message;
      EXPECT_GE(trace->slices().size(), kSlices - 2u) << "line " << skip << ": " << lines[skip];
    }
  }
}

// A fixed stretch of what the fuzzer does for hours: seeded, so a failure can be run again.
TEST(DamageTest, RandomMutationsOfSmallTraces) {
  const std::string text = small_trace();
  const std::vector<std::string> seeds{
      text, packed(text, codec::Packing::kGzip), packed(text, codec::Packing::kZstd),
      std::string("[").append(text, text.find("  {\n")), text.substr(0, text.size() / 2)};
  const std::vector<std::string> words{"\"",
                                       "\\",
                                       "{",
                                       "}",
                                       "[",
                                       "]",
                                       ",",
                                       ":",
                                       "null",
                                       "nan",
                                       "-inf",
                                       "1e999",
                                       "\"ph\": \"X\"",
                                       "\"args\": {",
                                       "}, {\"ph\": \"X\"",
                                       "\xf0\x9f",
                                       "\\ud800",
                                       std::string(3, '\0'),
                                       "999999999999999999999",
                                       "]}"};
  std::mt19937 random(20261121);
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = seeds[random() % seeds.size()];
    for (std::size_t edits = 1 + random() % 6; edits > 0 && !damaged.empty(); --edits) {
      const std::size_t at = random() % damaged.size(), other = random() % damaged.size();
      switch (random() % 5) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.insert(at, words[random() % words.size()]);
          break;
        case 2:
          damaged.erase(at, 1 + random() % 40);
          break;
        case 3:
          damaged.insert(at, damaged.substr(other, random() % 200));
          break;
        default:
          damaged.resize(at);
          break;
      }
    }
    const auto trace = read_trace_bytes(damaged);
    if (!trace) {
      EXPECT_FALSE(trace.error().message.empty());
      continue;
    }
    // Whatever was read must be writable, and reading that is clean and says the same.
    const std::string written = kineto_json_text(*trace);
    const auto again = read_trace_bytes(written);
    ASSERT_TRUE(again) << again.error().message << "\nround " << round << "\n" << written;
    EXPECT_EQ(testing::trace_text(*trace), testing::trace_text(*again)) << "round " << round;
    EXPECT_FALSE(again->import_stats().lost_anything()) << "round " << round << "\n" << written;
  }
}

}  // namespace
}  // namespace lanescope::format

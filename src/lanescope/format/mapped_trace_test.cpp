// A trace that lies in a mapped file is the trace that was read: same texts, same JSON, no copy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/model/each_column.h"
#include "lanescope/testing/mapped_trace.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> shipped_traces() {
  std::vector<fs::path> paths;
  const fs::path folder = fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "data";
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".json.gz") || name == "trace.json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void expect_within(std::span<const std::byte> mapping, const Trace& trace) {
  each_column(
      [mapping](const char* name, const auto& column) {
        const auto bytes = std::as_bytes(std::span(column.data(), column.size()));
        EXPECT_GE(bytes.data(), mapping.data()) << name;
        EXPECT_LE(bytes.data() + bytes.size(), mapping.data() + mapping.size()) << name;
      },
      trace.columns());
}

void expect_equal_bytes(const Trace& read, const Trace& mapped) {
  each_column(
      [](const char* name, const auto& a, const auto& b) {
        ASSERT_EQ(a.size(), b.size()) << name;
        if (a.size() > 0) {
          EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])), 0) << name;
        }
      },
      read.columns(), mapped.columns());
}

// Readers see columns only, so equal columns are the same trace to them. What they write of it is
// compared, too, for every eighth trace: it takes most of the time.
TEST(MappedTraceTest, ReadersSeeNoDifferenceToTheTraceThatWasRead) {
  const std::vector<fs::path> paths = shipped_traces();
  ASSERT_GT(paths.size(), 50u);
  std::size_t count = 0, written = 0;
  for (const fs::path& path : paths) {
    std::string json, text;
    testing::MappedTrace mapped;
    const bool is_written = count++ % 8 == 0;
    {
      const auto read = read_trace(path);
      if (!read) continue;  // a JSON file that is no trace
      if (is_written) {
        json = kineto_json_text(*read);
        text = testing::trace_text(*read);
      }
      mapped = testing::map_trace(*read, fs::temp_directory_path());
      expect_equal_bytes(*read, mapped.trace);
      EXPECT_EQ(mapped.trace.strings().size(), read->strings().size());
      EXPECT_EQ(mapped.trace.import_stats().events, read->import_stats().events);
      EXPECT_LE(mapped.trace.memory_bytes(), read->memory_bytes()) << path;
    }  // the memory of the trace that was read is gone
    expect_within(mapped.mapping, mapped.trace);
    if (!is_written) continue;
    EXPECT_EQ(testing::trace_text(mapped.trace), text) << path;
    EXPECT_TRUE(kineto_json_text(mapped.trace) == json) << path;
    ++written;
  }
  EXPECT_GT(written, 5u);
}

TEST(MappedTraceTest, EveryTextIsFoundInTheMapping) {
  const fs::path folder = fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "data" / "h200_mlp_train";
  const auto read = read_trace(folder / "trace.json.gz");
  ASSERT_TRUE(read) << read.error().message;
  const testing::MappedTrace mapped = testing::map_trace(*read, fs::temp_directory_path());
  for (std::uint32_t i = 0; i < read->strings().size(); ++i) {
    const StringId id{i};
    ASSERT_EQ(mapped.trace.text(id), read->text(id));
    ASSERT_EQ(mapped.trace.strings().find(read->text(id)), id);
  }
  EXPECT_EQ(mapped.trace.strings().find("no such text"), kNone<StringId>);
  for (std::uint32_t i = 0; i < read->slices().size(); ++i)
    ASSERT_EQ(mapped.trace.api_call(SliceId{i}).effects(), read->api_call(SliceId{i}).effects());
}

TEST(MappedTraceTest, AnEmptyTraceMapsToo) {
  const testing::MappedTrace mapped = testing::map_trace(Trace(), fs::temp_directory_path());
  EXPECT_EQ(mapped.trace.slices().size(), 0u);
  EXPECT_EQ(mapped.trace.metadata_json("schemaVersion"), std::nullopt);
}

}  // namespace
}  // namespace lanescope::format

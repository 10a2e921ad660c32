// Damaged and hostile indexes: each is refused, or is a trace that every reader can read.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <span>
#include <string>

#include "lanescope/format/index_file/index_helpers_test.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

using testing_index::head_of;
using testing_index::index_text;
using testing_index::read_text;
using testing_index::seal;

// A row of every table. Values are shared once a few dozen events of a kind have had them.
std::string small_index() {
  std::string kernels;
  for (int i = 0; i < 33; ++i)
    kernels += R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": )" +
               std::to_string(30 + i) + R"(, "dur": 1, "args": {"External id": )" +
               std::to_string(60 + i) + R"(, "correlation": )" + std::to_string(100 + i) +
               R"(, "device": 0, "stream": 7}},)";
  const auto trace = read_trace_bytes(
      R"({"schemaVersion": 1, "baseTimeNanoseconds": 7,
  "deviceProperties": [{"id": 0}], "traceEvents": [)" +
      kernels +
      R"({"ph": "X", "cat": "cpu_op", "name": "aten::é", "pid": 5, "tid": 5, "ts": 1, "dur": 9,
   "args": {"External id": 1, "Input Dims": [[2], []], "k": "v", "d": 0.5, "n": 5000000000}},
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 5, "tid": 5, "ts": 0, "dur": 20},
  {"ph": "X", "cat": "user_annotation", "name": "long", "pid": 5, "tid": 5, "ts": 40, "dur": 3e6},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 3, "dur": 1,
   "args": {"correlation": 8}},
  {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2,
   "args": {"correlation": 8, "device": 0, "stream": 7}},
  {"ph": "s", "id": 8, "pid": 5, "tid": 5, "ts": 3, "cat": "ac2g", "name": "ac2g"},
  {"ph": "f", "id": 8, "pid": 0, "tid": 7, "ts": 5, "cat": "ac2g", "name": "ac2g", "bp": "e"},
  {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 5, "tid": 5, "ts": 4, "s": "t",
   "args": {"Bytes": 64}},
  {"ph": "C", "name": "power", "pid": 0, "ts": 4, "args": {"watts": 300.5}},
  {"ph": "M", "name": "process_name", "pid": 5, "tid": 0, "args": {"name": "python"}},
  {"ph": "M", "name": "process_sort_index", "pid": 5, "tid": 0, "args": {"sort_index": 2}},
  {"ph": "M", "name": "other", "pid": 5, "tid": 0, "args": {"x": 1}}]})");
  EXPECT_TRUE(trace);
  // What a layer above keeps is bytes to the format, and damage in them is noticed like any other.
  static constexpr std::array<std::uint64_t, 3> kRows{7, 8, 9};
  static constexpr std::array<char, 5> kTexts{'a', 'b', 'c', 'd', 'e'};
  const std::array<KeptSection, 2> kept{
      KeptSection{"view.rows", sizeof(kRows[0]), std::as_bytes(std::span(kRows))},
      KeptSection{"view.texts", 1, std::as_bytes(std::span(kTexts))}};
  return index_text(*trace, {}, kept);
}

// What every reader of a Trace does: all ids, all texts, all arguments.
void read_everything(const Trace& trace) {
  EXPECT_FALSE(testing::trace_text(trace).empty());
  EXPECT_TRUE(read_trace_bytes(kineto_json_text(trace)));
}

TEST(IndexDamageTest, EveryTableHasARow) {
  for (const IndexSection& section : head_of(small_index()).sections) {
    if (std::string_view(section.name) == "slices.track_high") continue;  // of over 65,536 tracks
    EXPECT_GT(section.row_count, 0u) << section.name;
  }
}

TEST(IndexDamageTest, CutAtEveryByteIsRefused) {
  const std::string text = small_index();
  ASSERT_TRUE(read_text(text));
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto trace = read_text(std::string_view(text).substr(0, size));
    ASSERT_FALSE(trace) << size;
    EXPECT_FALSE(trace.error().message.empty());
  }
  EXPECT_FALSE(read_text(text + '\0'));
}

TEST(IndexDamageTest, EveryChangedByteIsNoticed) {
  std::string text = small_index();
  for (std::size_t at = 0; at < text.size(); ++at) {
    // The source is the caller's to compare.
    if (at >= offsetof(IndexHeader, source) && at < offsetof(IndexHeader, section_count)) continue;
    text[at] = static_cast<char>(text[at] ^ 0x20);
    EXPECT_FALSE(read_text(text)) << at;
    text[at] = static_cast<char>(text[at] ^ 0x20);
  }
}

// Checksums hold, so only the rows' own meaning can tell.
TEST(IndexDamageTest, HostileRowsAreRefusedOrReadable) {
  const std::string whole = small_index();
  std::size_t refused = 0, read = 0;
  for (const std::uint32_t value :
       {0u, 1u, 2u, 0x7fu, 0xffffu, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
    for (const IndexSection& section : head_of(whole).sections) {
      const std::size_t size = section.row_count * section.row_bytes;
      const std::size_t step = std::max<std::size_t>(4, size / 256 / 4 * 4);
      for (std::size_t at = 0; at < size; at += step) {
        std::string text = whole;
        std::memcpy(text.data() + section.offset + at, &value, std::min<std::size_t>(4, size - at));
        seal(text);
        const auto trace = read_text(text);
        trace ? ++read : ++refused;
        if (trace) read_everything(*trace);
      }
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(read, 500u);  // times, numbers of arguments, characters of texts
}

// The kernels' correlation is kept as its difference to External id, their own word 0.
TEST(IndexDamageTest, ADifferenceToNoOwnNumberIsRefused) {
  const std::string whole = small_index();
  std::size_t differences = 0;
  for (const IndexSection& section : head_of(whole).sections) {
    if (std::string_view(section.name) != "args.fields") continue;
    ASSERT_EQ(section.row_bytes, 32u);  // key, type, is shared, base
    for (std::size_t row = 0; row < section.row_count; ++row) {
      const std::size_t base_at = section.offset + row * 32 + 24;
      std::uint64_t base = 0;
      std::memcpy(&base, whole.data() + base_at, sizeof(base));
      if (base == ArgField::kNoBase) continue;
      EXPECT_EQ(base, 0u);
      ++differences;
      for (const std::uint64_t other : {1u, 7u, 0xfffeu, 0x10000u}) {
        std::string text = whole;
        std::memcpy(text.data() + base_at, &other, sizeof(other));
        seal(text);
        EXPECT_FALSE(read_text(text)) << other;
      }
    }
  }
  EXPECT_EQ(differences, 1u);
}

TEST(IndexDamageTest, HostileSectionsAreRefused) {
  const std::string whole = small_index();
  const std::size_t count = head_of(whole).sections.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::size_t field :
         {offsetof(IndexSection, offset), offsetof(IndexSection, row_count),
          offsetof(IndexSection, row_bytes)}) {
      for (const std::uint64_t value :
           {std::uint64_t{0}, std::uint64_t{1} << 32, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
        std::string text = whole;
        std::memcpy(text.data() + sizeof(IndexHeader) + i * sizeof(IndexSection) + field, &value,
                    8);
        if (text == whole) continue;  // a column that has no rows
        seal(text);
        const auto trace = read_text(text);
        EXPECT_FALSE(trace) << i << " " << field << " " << value;
      }
    }
  }
  for (const std::uint32_t sections : {0u, 1u, 31u, 33u, 1000u, 0xffffffffu}) {
    std::string text = whole;
    std::memcpy(text.data() + offsetof(IndexHeader, section_count), &sections, 4);
    EXPECT_FALSE(read_text(text));
    seal(text);
    if (head_of(text).sections.size() != count) {
      EXPECT_FALSE(read_text(text)) << sections;
    }
  }
}

TEST(IndexDamageTest, AnotherVersionBuildOrMachineIsUnsupported) {
  const std::string whole = small_index();
  for (const std::size_t at : {offsetof(IndexHeader, version), offsetof(IndexHeader, byte_order),
                               offsetof(IndexHeader, build)}) {
    std::string text = whole;
    text[at] = static_cast<char>(text[at] + 1);
    const auto trace = read_text(text);
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().code, Errc::kUnsupported);
  }
}

TEST(IndexDamageTest, RandomChangesOfSealedIndexes) {
  const std::string whole = small_index();
  const auto sections = head_of(whole).sections;
  std::mt19937 random(20261125);
  for (int round = 0; round < 5000; ++round) {
    std::string text = whole;
    for (std::size_t edits = 1 + random() % 4; edits > 0; --edits) {
      const IndexSection& section = sections[random() % sections.size()];
      const std::size_t size = section.row_count * section.row_bytes;
      if (size == 0 || random() % 8 == 0)
        text[random() % text.size()] = static_cast<char>(random());
      else
        text[section.offset + random() % size] =
            static_cast<char>(random() % 4 == 0 ? random() : random() % 8);
    }
    seal(text);
    if (const auto trace = read_text(text)) read_everything(*trace);
  }
}

}  // namespace
}  // namespace lanescope::format

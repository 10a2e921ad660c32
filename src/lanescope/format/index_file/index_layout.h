// How an index file is laid out: docs/formats/index_file.md has it byte by byte.
//
//   header       64 bytes
//   sections     64 bytes each: the values, then each column of model/each_column.h, in that order,
//                then what layers above keep (kept_sections.h)
//   rows         of each section, at multiples of 64 bytes, zeros in between
//
// Plain columns are mapped as they are in memory. Rows with padding, bools and optionals lie in the
// file as 64-bit numbers (index_rows.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "lanescope/model/trace_columns.h"

namespace lanescope::format {

inline constexpr char kIndexMagic[8] = {'L', 'S', 'I', 'N', 'D', 'E', 'X', '\n'};
inline constexpr std::uint32_t kIndexVersion = 4;
inline constexpr std::uint32_t kIndexByteOrder = 0x01020304;  // other bytes on other machines
inline constexpr std::uint64_t kIndexAlignment = 64;
inline constexpr std::string_view kIndexEnding = ".lanescope";

// The trace file that an index was made of. Equal values: the file has not changed.
struct IndexSource {
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;    // time of the last change, since 1970
  std::uint64_t fingerprint = 0;  // hash of some of its bytes: describe_source()
  bool operator==(const IndexSource&) const = default;
};

struct IndexHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t byte_order;
  std::uint64_t file_bytes;
  std::uint64_t build;  // index_build()
  IndexSource source;
  std::uint32_t section_count;
  std::uint32_t reserved;  // 0
};
static_assert(sizeof(IndexHeader) == 64 && std::has_unique_object_representations_v<IndexHeader>);

struct IndexSection {
  char name[24];  // "slices.start_ns", zeros after it
  std::uint64_t offset;
  std::uint64_t row_count;
  std::uint64_t row_bytes;
  std::uint64_t checksum;  // hash_bytes() of the rows
  std::uint64_t reserved;  // 0
};
static_assert(sizeof(IndexSection) == 64 && std::has_unique_object_representations_v<IndexSection>);

// The number after the sections: hash_bytes() of the header and of all sections.
using IndexHeadChecksum = std::uint64_t;

constexpr std::uint64_t index_aligned(std::uint64_t offset) {
  return (offset + kIndexAlignment - 1) / kIndexAlignment * kIndexAlignment;
}
// Where the rows of the first section begin.
constexpr std::uint64_t index_head_bytes(std::uint64_t section_count) {
  return index_aligned(sizeof(IndexHeader) + section_count * sizeof(IndexSection) +
                       sizeof(IndexHeadChecksum));
}

// Which build of lanescope made the index: a hash of all sources that decide what a Trace holds
// and how its columns lie in memory. Another build may read a file differently, so it does not use
// the index.
std::uint64_t index_build();

// How the rows of a flow lie in a file, and in memory.
static_assert(sizeof(Flow) == 40 && offsetof(Flow, from_ns) == 0 && offsetof(Flow, to_ns) == 8 &&
              offsetof(Flow, id_value) == 16 && offsetof(Flow, from_track) == 24 &&
              offsetof(Flow, to_track) == 28 && offsetof(Flow, name) == 32 &&
              offsetof(Flow, category) == 36 && offsetof(Flow, id_is_text) == 38 &&
              offsetof(Flow, binds_enclosing) == 39);

}  // namespace lanescope::format

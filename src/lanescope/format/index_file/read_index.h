// Makes a Trace of the bytes of an index file, without copying its columns. An index is never
// trusted: docs/decisions/index_file.md says what is checked, and when.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/format/index_file/kept_sections.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// All bytes of an index file, at a multiple of 64, and what keeps them there. They must not change
// as long as a Trace lies in them.
struct IndexBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

enum class IndexCheck : std::uint8_t {
  kAll,     // every byte by its checksum, every row by its meaning
  kHeader,  // only the header, the sections and the small tables: these very bytes were checked
            // before, and nobody could change them since (index_cache.h)
};

// True: the bytes begin like an index file, of any version.
bool is_index(std::string_view head);

// kCorruptInput: the bytes are damaged, or rows do not fit each other. kUnsupported: an index of
// another version, build or kind of machine. kInvalidArgument: not of `source`. The messages name
// what was found. Cost: kHeader: the small tables (tracks, processes, shapes of arguments); kAll:
// one pass over all bytes, two over names and arguments. Memory: kAll takes 1 bit a text. `kept`:
// gets views of the sections after the columns; their meaning is not checked.
Result<Trace> read_index(const IndexBytes& index, const IndexSource& source, IndexCheck check,
                         std::vector<KeptSection>* kept = nullptr);
// For any source.
Result<Trace> read_index(const IndexBytes& index, IndexCheck check,
                         std::vector<KeptSection>* kept = nullptr);

}  // namespace lanescope::format

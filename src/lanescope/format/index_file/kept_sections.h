// Sections that a layer above made of a trace and keeps in its index, after the columns: the lanes
// of the viewer. The index file returns the same bytes that it was given; the layer checks what
// they mean.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/format/index_file/index_layout.h"

namespace lanescope::format {

struct KeptSection {
  std::string name;  // at most 24 bytes
  std::uint64_t row_bytes = 1;
  std::span<const std::byte> rows;  // at a multiple of 64; without padding that is not written
};

// At most this many; more are damage.
inline constexpr std::size_t kMostKeptSections = 64;

// What a layer found out about a trace: KeptSections::note.
struct KeptNote {
  std::string layer, text;
};

// What an index has besides the columns of its trace.
struct KeptSections {
  // The layer, and the version of what it keeps: "view 1f2e3d4c". Names of its sections begin with
  // its first word.
  std::string layer;
  std::vector<KeptSection> sections;  // empty: the trace was read, or its index has none
  std::shared_ptr<const void> owner;  // of the rows
  // The trace file as it was before it was opened. Nothing: it has no index.
  std::optional<IndexSource> source;
  // The layer checked exactly these bytes before, and said so with remember_checked().
  bool was_checked = false;
  std::function<void()> remember_checked = [] {};
  // What the layer said of exactly these bytes before, with remember_note(); empty: nothing. It is
  // for answers that follow from all columns, and lies next to the index in the user's cache.
  std::string note;
  std::function<void(std::string_view)> remember_note = [](std::string_view) {};
  // Notes of other layers, to be remembered with an index that is written.
  std::vector<KeptNote> notes;
};

}  // namespace lanescope::format

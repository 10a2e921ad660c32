// Lanes as sections of bytes, so that they can lie in an index file next to the columns of the
// trace and need not be made again. docs/formats/index_file.md#lanes describes each section.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/view/lanes.h"

namespace lanescope::view {

struct LaneSection {
  std::string_view name;  // "view.lanes"
  std::uint64_t row_bytes = 0;
  std::span<const std::byte> rows;
};

// The sections of lanes, which must live as long as these are used.
struct KeptLanes {
  std::vector<LaneSection> sections;
  std::vector<std::vector<std::uint64_t>> made;  // rows that no column of the lanes holds
};
// Cost: the small tables and a copy of the counters.
KeptLanes keep_lanes(const Lanes& lanes);

// A value that changes when the same trace would get other lanes: a hash of the sources of view and
// of what it uses above the model.
std::string_view lanes_build();

// True: the sections are exactly those of `lanes`. Use this before sections are trusted for the
// first time, with lanes that were made again from the trace. O(bytes).
bool are_sections_of(std::span<const LaneSection> sections, const Lanes& lanes);

// Makes Lanes whose rows lie in these sections. The caller has checked that the sections belong to
// this trace. Null: the sections have another form. `owner` keeps the bytes. Cost: the small tables.
std::unique_ptr<const Lanes> lanes_from(const Trace& trace, Lanes::GetFacts get_facts,
                                        std::span<const LaneSection> sections,
                                        std::shared_ptr<const void> owner);

}  // namespace lanescope::view

// The lanes of a trace in its index file, so that the next `lanescope view` of it need not make them.
#pragma once
#include <filesystem>
#include <vector>

#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/view/kept_lanes.h"

namespace lanescope::server {

// An empty one, which format::open_indexed() fills in.
format::KeptSections no_kept_view();

// The sections of lanes among those of an index.
std::vector<view::LaneSection> lane_sections_of(const format::KeptSections& kept);

// The lanes of a trace, to be written into its index, and a note of its steps (step_windows.h). Errors: explain::gather_facts(). O(n log n).
Result<format::KeptSections> make_kept_view(const Trace& trace);

// Brings the index of a trace up to date with the lanes that were made from it. Unchecked sections
// are compared with the lanes and noted as checked. Others are written into the index, if there is
// one or open_indexed() would write one. `opened`: as open_indexed() filled it in. Any thread.
void keep_view(const std::filesystem::path& path, const view::Lanes& lanes,
               const format::KeptSections& opened, const format::IndexOptions& options);

}  // namespace lanescope::server

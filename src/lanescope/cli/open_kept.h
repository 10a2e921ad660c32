// Opens a trace as open_trace() does, and gives what its index has beside the columns.
#pragma once
#include <optional>
#include <string>

#include "lanescope/cli/open_trace.h"
#include "lanescope/format/index_file/kept_sections.h"

namespace lanescope::cli {

// `kept`: its layer is given; all else is filled in where the trace has an index.
std::optional<Trace> open_trace_kept(const std::string& file, Output& output, int* code,
                                     format::KeptSections* kept, Damage damage = Damage::kPrinted);

}  // namespace lanescope::cli

// Opens a trace as open_trace() does, and also returns what its index holds besides the columns.
#pragma once
#include <optional>
#include <string>

#include "lanescope/cli/open_trace.h"
#include "lanescope/format/index_file/kept_sections.h"
#include "lanescope/format/index_file/open_indexed.h"

namespace lanescope::cli {

// `kept`: the caller sets its layer. The function fills in the rest if the trace has an index. `at_most` kRead: reads an index, but
// writes none, because the caller writes it later.
std::optional<Trace> open_trace_kept(const std::string& file, Output& output, int* code,
                                     format::KeptSections* kept, Damage damage = Damage::kPrinted,
                                     format::IndexUse at_most = format::IndexUse::kAutomatic);

}  // namespace lanescope::cli

// Opens the trace of every reading subcommand: shows progress, what was lost, and errors
// with a remedy.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/cli/output.h"
#include "lanescope/format/index_file/index_place.h"
#include "lanescope/model/trace.h"

namespace lanescope::cli {

enum class Damage : std::uint8_t { kPrinted, kShownByCaller };

// The file to open for `path`: for a folder the newest trace in it, named in a line on standard
// error (newest_trace.h); else `path`. Nothing: the folder has no trace, and one line said so.
std::optional<std::string> file_of(const std::string& path, Output& output, int* code);

// The error for a path without a file; it names similar files in the folder.
Error missing_file(const std::string& path);

// `path` "-" is standard input; a folder means the newest trace in it, named in a line on standard
// error (newest_trace.h). On failure, one line is printed, and `*code` is the exit code. On
// success, at most two lines on standard error say what was lost and what was repaired.
std::optional<Trace> open_trace(const std::string& path, Output& output, int* code,
                                Damage damage = Damage::kPrinted);

// Prints one line about files of other programs under the names of indexes. The functions above do so
// for the trace that they open.
void complain_of_others(const format::OtherFiles& others, Output& output);

// Printed instead of an empty trace if the times of all events were unreadable. Nothing: the trace
// has events, or nothing was lost.
std::optional<std::string> no_times_text(const Trace& trace, const std::string& path);

// "lost: ..." and "repaired: ..." with counts and first places; up to two lines. `path` is
// for the hint.
std::vector<std::string> damage_lines(const ImportStats& stats, const std::string& path);

}  // namespace lanescope::cli

// Every reading subcommand opens its trace here: progress, what was lost, and errors that name the
// way out.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/cli/output.h"
#include "lanescope/model/trace.h"

namespace lanescope::cli {

enum class Damage : std::uint8_t { kSaid, kShownByCaller };

// `path` "-" is standard input; a folder stands for the newest trace in it, which a line on
// standard error names (newest_trace.h). On failure one line has been printed and `*code` is the
// exit code. On success, what the file lost or what was mended has been said on standard error, at
// most two lines.
std::optional<Trace> open_trace(const std::string& path, Output& output, int* code,
                                Damage damage = Damage::kSaid);

// Said in place of an empty trace whose events all had times that cannot be read; none: something
// of the file is there, or nothing was lost.
std::optional<std::string> no_times_text(const Trace& trace, const std::string& path);

// "lost: ..." and "repaired: ..." with counts and first places; none, one or two lines. `path` is
// for the hint.
std::vector<std::string> damage_lines(const ImportStats& stats, const std::string& path);

}  // namespace lanescope::cli

// Writes a trace for a subcommand: checks the target first, shows progress, prints the result
// in one line.
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/cli/output.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/model/trace.h"

namespace lanescope::cli {

// kInvalidArgument: `path` exists and `force` is not set, is a folder, or is in a folder that does
// not exist. "-" is always fine.
Result<void> check_target(const std::string& path, bool force);

// Writes the format that the ending means, Kineto JSON by default; "-" is standard output. Returns
// the exit code: kOk after "wrote ...", kFailed after one line with the reason.
int save_trace(const Trace& trace, const std::string& path, Output& output,
               format::WriteOptions options = {});

// "wrote trace.json.gz: 1,234 events, 1.2 MB (10.1 MB of JSON)".
void print_written(const format::WriteStats& written, const std::string& path, Output& output);

// Writes a finished text in the same way: first next to the target, then renamed.
int save_text(const std::string& text, const std::string& path, Output& output);
// The two halves of save_text(): write it, and print "wrote why.html: 12.3 kB".
Result<std::uint64_t> write_text_file(const std::string& text, const std::string& path);
void print_text_written(const std::string& path, std::uint64_t bytes, Output& output);

}  // namespace lanescope::cli

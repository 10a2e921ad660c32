// Writing a trace from a subcommand: the target is checked first, progress is shown, the result is
// said in one line.
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/cli/output.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/model/trace.h"

namespace lanescope::cli {

// kInvalidArgument when `path` exists and `force` is not set, is a folder, or lies in a folder that
// does not exist.
// "-" is always fine.
Result<void> check_target(const std::string& path, bool force);

// As Kineto JSON; "-" is standard output. Returns the exit code: kOk after "wrote ...", kFailed
// after one line of why not.
int save_trace(const Trace& trace, const std::string& path, Output& output);

// "wrote trace.json.gz: 1,234 events, 1.2 MB (10.1 MB of JSON)".
void say_written(const format::WriteStats& written, const std::string& path, Output& output);

// A finished text, under the same rules: beside the target first, then renamed.
int save_text(const std::string& text, const std::string& path, Output& output);
// Its two halves: bytes written, or why not; "wrote why.html: 12.3 kB".
Result<std::uint64_t> write_text_file(const std::string& text, const std::string& path);
void say_text_written(const std::string& path, std::uint64_t bytes, Output& output);

}  // namespace lanescope::cli

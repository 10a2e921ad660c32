// The output of `lanescope info` for a trace. If the trace has an index, the output is stored in it,
// so that the next `info` need not read all events.
#pragma once
#include <optional>
#include <string>

#include "lanescope/cli/output.h"
#include "lanescope/model/trace.h"

namespace lanescope::cli {

struct InfoTexts {
  std::string text, json;
};

InfoTexts info_texts(const Trace& trace);

// The output of `info` for the whole trace; `path` as for open_trace(). On failure, prints one line,
// sets `*code` to the exit code and returns nothing.
std::optional<InfoTexts> open_info(const std::string& path, Output& output, int* code);

}  // namespace lanescope::cli

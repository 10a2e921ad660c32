// What `lanescope info` says of a trace. Where the trace has an index, it is remembered with it, so
// that the next one need not walk all events.
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

// What `info` says of the whole trace; `path` as for open_trace(). On failure, one line is printed, and `*code` is the
// exit code.
std::optional<InfoTexts> open_info(const std::string& path, Output& output, int* code);

}  // namespace lanescope::cli

// Kineto and Chrome trace JSON: an object with "traceEvents", or the bare array. Format:
// docs/formats/kineto_json.md.
#pragma once
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/codec/unpack.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::format {

// True if the first character that is not blank is `{`, or is `[` and does not begin a list of numbers.
// Only reading shows whether the text holds a trace.
bool looks_like_kineto_json(std::string_view head);

// Reads `source` to its end and counts damage in the Trace's import_stats(). Text without any trace
// is kCorruptInput, with one line that says what was found. kIo and kLimit come from the source.
// `name` is for messages.
Result<Trace> read_kineto_json(codec::UnpackedSource& source, std::string_view name,
                               const ReadOptions& options);

}  // namespace lanescope::format

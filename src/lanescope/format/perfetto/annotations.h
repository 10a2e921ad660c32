// Debug annotations of a Perfetto event become the arguments of a slice.
#pragma once
#include <string_view>

#include "lanescope/format/perfetto/sequence_state.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// Adds one DebugAnnotation to the arguments that are open in builder.args(). Lists and dictionaries
// become JSON; what is nested deeper than 32 levels is null. Without a value: null.
void add_annotation(std::string_view message, const SequenceState& state, TraceBuilder& builder);

}  // namespace lanescope::format

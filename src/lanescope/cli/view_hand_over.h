// `lanescope view --html` and `--perfetto`: the trace leaves this machine's page.
#pragma once
#include <optional>

#include "lanescope/base/result.h"
#include "lanescope/cli/output.h"
#include "lanescope/cli/view_flags.h"
#include "lanescope/server/saved_page.h"
#include "lanescope/server/trace_state.h"

namespace lanescope::cli {

// --step or --window. Nothing: no range was asked for. kInvalidArgument: there is no such range.
Result<std::optional<server::Span>> asked_span(const ViewFlags& flags,
                                               const server::TraceState& state);

// Both return the exit code. `asked`: nothing: all of the trace, or what of it fits a page.
int save_page(const ViewFlags& flags, const server::TraceState& state,
              const std::optional<server::Span>& asked, Output& output);
// Serves it to Perfetto's page, once.
int hand_to_perfetto(const ViewFlags& flags, const server::TraceState& state,
                     const std::optional<server::Span>& asked, Output& output);

}  // namespace lanescope::cli

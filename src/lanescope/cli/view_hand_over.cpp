#include "lanescope/cli/view_hand_over.h"

#include <fmt/format.h>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/cli/view_browser.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/server/perfetto_server.h"
#include "lanescope/view/crop_trace.h"

namespace lanescope::cli {

Result<std::optional<server::Span>> asked_span(const ViewFlags& flags,
                                               const server::TraceState& state) {
  if (flags.window.empty() && !flags.step) return std::optional<server::Span>();
  LANESCOPE_TRY(const std::optional<view::TraceWindow> window, parse_window(flags.window));
  const std::int64_t origin = state.lanes().origin_ns();
  if (window)
    return std::optional(server::Span{origin + window->start_ns, origin + window->end_ns, false});
  LANESCOPE_TRY(const view::TraceWindow step,
                cli::window_of_step(view::step_windows(state.facts()), *flags.step));
  return std::optional(server::Span{step.start_ns, step.end_ns, false});
}

int save_page(const ViewFlags& flags, const server::TraceState& state,
              const std::optional<server::Span>& asked, Output& output) {
  const server::Span span = asked ? *asked : server::usual_saved_span(state);
  const server::Answer page = server::saved_page(state, span, LANESCOPE_VERSION);
  if (!page) {
    output.complain("view: " + message_of(page.error()));
    return page.error().code == Errc::kUnavailable ? kFailed : kUsage;
  }
  if (!asked && !span.is_whole)
    output.note(
        fmt::format("The trace is long, so the page holds a part of it: {} of {} ms. --step and "
                    "--window choose another.",
                    (span.end_ns - span.start_ns) / 1'000'000,
                    (state.lanes().end_ns() - state.lanes().origin_ns()) / 1'000'000));
  return save_text(*page, flags.html, output);
}

int hand_to_perfetto(const ViewFlags& flags, const server::TraceState& state,
                     const std::optional<server::Span>& asked, Output& output) {
  std::string json;
  if (asked) {
    const auto part =
        view::crop_trace(state.trace(), asked->start_ns, asked->end_ns, view::Edges::kWhole);
    if (!part) {
      output.complain("view: " + message_of(part.error()));
      return kFailed;
    }
    json = format::kineto_json_text(part->trace);
  } else {
    json = format::kineto_json_text(state.trace());
  }
  constexpr std::size_t kMostBytes = std::size_t{512} << 20;
  if (json.size() > kMostBytes) {
    output.complain(
        fmt::format("view: --perfetto hands over at most 512 MB of JSON, and this is {} MB; choose "
                    "a part with --step or --window",
                    json.size() >> 20));
    return kUsage;
  }
  end_on_signals();
  const auto ready = [&](const std::string& link) {
    output.write(link + "\n");
    const bool opened = !flags.no_open && open_browser(link);
    output.note(opened ? "Perfetto's page opens in your browser and reads the trace from this "
                         "machine; it is not uploaded."
                       : "Open the address above in a browser on this machine. Perfetto's page "
                         "reads the trace from here; it is not uploaded.");
    output.note(
        "This ends when it has the trace; Ctrl-C ends it at once. If nothing appears, allow the "
        "page to reach this machine.");
  };
  const Result<bool> fetched = server::serve_to_perfetto(json, ready, is_ending);
  if (!fetched) {
    output.complain("view: --perfetto: " + message_of(fetched.error()));
    return kFailed;
  }
  return kOk;
}

}  // namespace lanescope::cli

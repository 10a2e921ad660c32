// `lanescope view`: opens a page on this machine that shows a trace, served by this program.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <limits>
#include <memory>
#include <thread>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/cli/view_flags.h"
#include "lanescope/record/range.h"
#if LANESCOPE_HAS_VIEW
#include "lanescope/cli/follow_trace.h"
#include "lanescope/cli/open_kept.h"
#include "lanescope/cli/progress.h"
#include "lanescope/cli/view_browser.h"
#include "lanescope/cli/view_hand_over.h"
#include "lanescope/cli/view_keeper.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/profiler/newest_trace.h"
#include "lanescope/server/assets.h"
#include "lanescope/server/http_server.h"
#include "lanescope/server/kept_view.h"
#include "lanescope/server/rank_set.h"
#endif

namespace lanescope::cli {
namespace {

#if LANESCOPE_HAS_VIEW

constexpr std::chrono::milliseconds kCheckEvery{200};
// A page that is reloaded, or a laptop that sleeps for a moment, is not the end.
constexpr std::chrono::seconds kWithoutPage{60};
constexpr std::chrono::milliseconds kLongestEnd{500};  // after Ctrl-C

// `mark`: the file, marked before it is read.
std::optional<Trace> open_marked(const FileMark& mark, bool is_served, Output& output, int* code,
                                 format::KeptSections* kept) {
  // Writing an index before the page would keep its reader waiting, on a busy disk for long: ViewKeeper
  // writes it while the page is looked at.
  if (!mark.is_recording)
    return open_trace_kept(mark.path, output, code, kept, Damage::kPrinted,
                           is_served ? format::IndexUse::kRead : format::IndexUse::kAutomatic);
  // A recording that runs is not damaged.
  Result<Trace> trace = read_unfinished(mark);
  if (trace) return std::move(*trace);
  output.complain("view: " + message_of(trace.error()));
  *code = kUsage;
  return std::nullopt;
}

// As file_of(), with the words for a page that can show every rank.
std::optional<std::string> shown_file_of(const std::string& path, const ViewFlags& flags,
                                         Output& output, int* code) {
  std::error_code failed;
  const bool is_page = flags.html.empty() && !flags.perfetto && flags.b.empty();
  if (!is_page || !std::filesystem::is_directory(path, failed)) return file_of(path, output, code);
  const Result<NewestTrace> newest = newest_trace_in(path, OtherRanks::kInPage);
  if (!newest) {
    output.complain(message_of(newest.error()));
    *code = kUsage;
    return std::nullopt;
  }
  output.complain(newest->line);
  return newest->path;
}

struct Opened {
  FileMark mark;
  format::KeptSections kept = server::no_kept_view();  // of its index
};

std::optional<std::shared_ptr<const server::TraceState>> open_state(const std::string& path,
                                                                    const ViewFlags& flags,
                                                                    Opened* opened, Output& output,
                                                                    int* code) {
  const std::optional<std::string> file = shown_file_of(path, flags, output, code);
  if (!file) return std::nullopt;
  opened->mark = mark_of(*file);
  std::optional<Trace> trace =
      open_marked(opened->mark, flags.html.empty() && !flags.perfetto, output, code, &opened->kept);
  if (!trace) return std::nullopt;
  RecordFunction stage("view: lanes");
  const WaitLine wait(output, fmt::format("finding the lanes, steps and gaps of {:.1f} M events",
                                          static_cast<double>(trace->slices().size()) / 1e6));
  auto state = server::TraceState::make(std::move(*trace), *file, opened->kept);
  if (!state) {
    output.complain("view: " + facts_message_of(state.error()));
    *code = kUsage;
    return std::nullopt;
  }
  return std::move(*state);
}

// The ranks of the run that was opened; nullptr: it has one rank.
std::shared_ptr<server::RankSet> ranks_of(const std::string& folder) {
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed)) return nullptr;
  const Result<NewestTrace> newest = newest_trace_in(folder);
  if (!newest || newest->ranks.empty()) return nullptr;
  std::vector<server::RankPath> ranks;
  for (const auto& [rank, path] : newest->ranks) ranks.push_back({rank, path});
  return std::make_shared<server::RankSet>(folder, std::move(ranks), [](const std::string& path) {
    return format::open_indexed(path, {}, format::IndexUse::kRead);
  });
}

int serve(const ViewFlags& flags, server::Session::Traces traces,
          const std::array<Opened, 2>& opened, Output& output) {
  const FileMark& mark = opened[0].mark;
  const bool is_live = flags.b.empty() && may_grow(flags.a, mark);
  const auto session = std::make_shared<server::Session>(
      traces, LANESCOPE_VERSION, is_live, flags.b.empty() ? ranks_of(flags.a) : nullptr);
  auto http = server::HttpServer::open(
      session, {.port = static_cast<int>(flags.port.value_or(0)), .in_frame = flags.in_frame});
  if (!http) {
    output.complain("view: " + message_of(http.error()));
    return kFailed;
  }
  end_on_signals();
  std::optional<TraceFollower> follower;
  if (is_live) follower.emplace(flags.a, mark, session);
  std::vector<KeptTrace> kept;
  for (std::size_t i = 0; i < traces.size(); ++i)
    kept.push_back({opened[i].mark.path, traces[i], opened[i].kept});
  std::optional<ViewKeeper> keeper(std::in_place, std::move(kept));
  std::promise<void> served;
  std::thread serving([&http, &served] {
    (*http)->run();
    served.set_value();
  });
  announce(**http, !flags.no_open && open_browser((*http)->url()), output);
  while (!is_ending()) {
    std::this_thread::sleep_for(kCheckEvery);
    if (const auto idle = session->time_without_page();
        !flags.keep && idle && *idle > kWithoutPage) {
      output.note(
          "The last page was closed a minute ago, so lanescope view ends (--keep keeps it).");
      break;
    }
  }
  (*http)->stop();
  if (served.get_future().wait_for(kLongestEnd) != std::future_status::ready) {
    // An answer is under way that takes seconds, such as the verdict on millions of events, and nobody
    // reads it any more. Files are whole: the index is waited for.
    keeper.reset();
    std::fflush(nullptr);
    std::_Exit(kOk);
  }
  serving.join();
  return kOk;
}

int run_view(const ViewFlags& flags, Output& output) {
  if (flags.html.empty() && !flags.perfetto && (flags.step || !flags.window.empty())) {
    output.complain("view: expected --step and --window together with --html or --perfetto");
    return kUsage;
  }
  if (!flags.html.empty())
    if (const auto free = check_target(flags.html, flags.force); !free) {
      output.complain("view: --html: " + message_of(free.error()));
      return kUsage;
    }
  if (!flags.perfetto && server::page_assets().empty() && !std::getenv("LANESCOPE_PAGE")) {
    output.complain(
        "view: this lanescope was built without its page, because Node.js was not there. Install "
        "it (Debian: apt-get install nodejs npm) and build again; lanescope explain --html writes "
        "a page without it");
    return kFailed;
  }
  int code = kOk;
  server::Session::Traces traces;
  std::array<Opened, 2> opened;
  for (const std::string* path : {&flags.a, &flags.b}) {
    if (path->empty()) continue;
    auto state = open_state(*path, flags, &opened[traces.size()], output, &code);
    if (!state) return code;
    traces.push_back(std::move(*state));
  }
  const auto span = asked_span(flags, *traces[0]);
  if (!span) {
    output.complain("view: " + message_of(span.error()));
    return kUsage;
  }
  if (!flags.html.empty()) return save_page(flags, *traces[0], *span, output);
  if (flags.perfetto) return hand_to_perfetto(flags, *traces[0], *span, output);
  return serve(flags, std::move(traces), opened, output);
}

#else

int run_view(const ViewFlags&, Output& output) {
  output.complain(
      "view: this lanescope was built without its server. Install cpp-httplib and Node.js (Debian: "
      "apt-get install libcpp-httplib-dev nodejs npm) and build again; lanescope explain --html "
      "writes a page without them");
  return kFailed;
}

#endif

}  // namespace

void add_view_command(CommandLine& line) {
  Command command = line.command(
      "view", "look at a trace in the browser: lanes, gaps, findings; two traces side by side");
  const auto flags = std::make_shared<ViewFlags>();
  command.argument("TRACE", &flags->a, kTraceArgument, {Completes::kFile});
  command.argument("B", &flags->b, "a second trace, to compare with the first", {Completes::kFile})
      .not_required();
  command.number_flag("--port", &flags->port, 1, 65535,
                      "the port on 127.0.0.1 (default: a free one)");
  const Option step =
      command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                          "with --html or --perfetto: this step only");
  const Option window = command.text_flag("--window", &flags->window, "A..B",
                                          "with --html or --perfetto: this part only, in time "
                                          "since the start of the trace: 10ms..12.5ms");
  const Option html = command.text_flag(
      "--html", &flags->html, "OUT.html",
      "write one page that needs nothing else, instead of serving one; - prints it",
      {Completes::kFile});
  command.switch_flag("--force", &flags->force, "overwrite OUT.html").needs(html);
  const Option perfetto =
      command.switch_flag("--perfetto", &flags->perfetto,
                          "hand the trace to ui.perfetto.dev in the browser, from port 9001");
  step.excludes(window);
  html.excludes(perfetto);
  command.switch_flag("--no-open", &flags->no_open,
                      "print the address, and do not start a browser");
  command.switch_flag("--keep", &flags->keep,
                      "keep serving after the last page is closed (default: end a minute later)");
  command.switch_flag("--in-frame", &flags->in_frame,
                      "let pages of this machine, such as a notebook, show it in a frame");
  command.epilogue(R"(Examples:
  lanescope view trace.json.gz                     opens the page; Ctrl-C ends it
  lanescope view traces/                           the newest trace of a folder
  lanescope view before.json.gz after.json.gz      two traces side by side
  lanescope view trace.json.gz --no-open --port 8000
  lanescope view trace.json.gz --html look.html --step 12     one step as a page to send
  lanescope view trace.json.gz --perfetto --window 10ms..60ms

A folder with the traces of several ranks opens the lowest one; the page switches to the others, or shows all of them
with clocks aligned. A folder and a recording that still runs are followed: new steps appear. Nothing leaves this
machine: only programs on it reach the page, and only with the address that is printed.
)");
  command.runs([flags](Output& output) -> int { return run_view(*flags, output); });
}

}  // namespace lanescope::cli

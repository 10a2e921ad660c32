// `lanescope view`: opens a page on this machine that shows a trace, served by this program.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <thread>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/record/range.h"
#if LANESCOPE_HAS_VIEW
#include "lanescope/cli/follow_trace.h"
#include "lanescope/cli/newest_trace.h"
#include "lanescope/cli/open_kept.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/cli/view_keeper.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/server/assets.h"
#include "lanescope/server/http_server.h"
#include "lanescope/server/kept_view.h"
#include "lanescope/server/perfetto_server.h"
#include "lanescope/server/rank_set.h"
#include "lanescope/server/saved_page.h"
#include "lanescope/view/crop_trace.h"
#endif

namespace lanescope::cli {
namespace {

struct ViewFlags {
  std::string a, b, html, window;
  std::optional<std::int64_t> port, step;
  bool no_open = false, keep = false, perfetto = false, force = false, in_frame = false;
};

#if LANESCOPE_HAS_VIEW

constexpr std::chrono::milliseconds kCheckEvery{200};
// A page that is reloaded, or a laptop that sleeps for a moment, is not the end.
constexpr std::chrono::seconds kWithoutPage{60};

std::atomic<bool> ending{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void end_on_signal(int) { ending.store(true, std::memory_order_relaxed); }

// `mark`: the file, marked before it is read.
std::optional<Trace> open_marked(const FileMark& mark, Output& output, int* code,
                                 format::KeptSections* kept) {
  if (!mark.is_recording) return open_trace_kept(mark.path, output, code, kept);
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
  std::optional<Trace> trace = open_marked(opened->mark, output, code, &opened->kept);
  if (!trace) return std::nullopt;
  RecordFunction stage("view: lanes");
  auto state = server::TraceState::make(std::move(*trace), *file, opened->kept);
  if (!state) {
    output.complain("view: " + facts_message_of(state.error()));
    *code = kUsage;
    return std::nullopt;
  }
  return std::move(*state);
}

bool is_remote() {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value != '\0';
  };
  return (is_set("SSH_CONNECTION") || is_set("SSH_TTY")) && !is_set("DISPLAY") &&
         !is_set("WAYLAND_DISPLAY");
}

// Starts the browser and does not wait for it. False: there is none.
bool open_browser(const std::string& url) {
#if defined(__APPLE__)
  constexpr char kOpener[] = "open";
#else
  constexpr char kOpener[] = "xdg-open";
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY")) return false;
#endif
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&quiet, descriptor, "/dev/null", O_RDWR, 0);
  std::string program = kOpener, address = url;
  char* const arguments[] = {program.data(), address.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, kOpener, &quiet, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&quiet);
  return failed == 0;
}

void announce(const server::HttpServer& http, bool opened, Output& output) {
  output.write(fmt::format("{}\n", http.url()));
  if (opened) {
    output.note("The page opens in your browser; the address above opens it again.");
  } else if (is_remote()) {
    const char* user = std::getenv("USER");
    char host[256] = "HOST";
    static_cast<void>(gethostname(host, sizeof host - 1));
    output.note(
        "This machine has no browser. On yours, type the next line, then open the address above "
        "there:");
    output.note(fmt::format("  ssh -N -L {0}:127.0.0.1:{0} {1}{2}{3}", http.port(),
                            user ? user : "", user ? "@" : "", host));
  } else {
    output.note("Open the address above in a browser on this machine.");
  }
  output.note("Ctrl-C ends it.");
}

void end_on_signals() {
  struct sigaction action {};
  action.sa_handler = end_on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

bool is_ending() { return ending.load(std::memory_order_relaxed); }

// Nothing: no range was asked for.
Result<std::optional<server::Span>> asked_span(const ViewFlags& flags,
                                               const server::TraceState& state) {
  if (flags.window.empty() && !flags.step) return std::optional<server::Span>();
  LANESCOPE_TRY(const std::optional<view::TraceWindow> window, parse_window(flags.window));
  const std::int64_t origin = state.lanes().origin_ns();
  if (window)
    return std::optional(server::Span{origin + window->start_ns, origin + window->end_ns, false});
  LANESCOPE_TRY(const view::TraceWindow step, window_of_step(state.facts(), *flags.step));
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
                    "a part with --step or "
                    "--window",
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

// Of the run that was opened; nullptr: it has one rank.
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
  const ViewKeeper keeper(std::move(kept));
  std::thread serving([&http] { (*http)->run(); });
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
        "it (Debian: "
        "apt-get install nodejs npm) and build again; lanescope explain --html writes a page "
        "without it");
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
      "apt-get "
      "install libcpp-httplib-dev nodejs npm) and build again; lanescope explain --html writes a "
      "page without them");
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
      ->required(false);
  command.number_flag("--port", &flags->port, 1, 65535,
                      "the port on 127.0.0.1 (default: a free one)");
  CLI::Option* step =
      command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                          "with --html or --perfetto: this step only");
  CLI::Option* window = command.text_flag("--window", &flags->window, "A..B",
                                          "with --html or --perfetto: this part only, in time "
                                          "since the start of the trace: 10ms..12.5ms");
  CLI::Option* html = command.text_flag(
      "--html", &flags->html, "OUT.html",
      "write one page that needs nothing else, instead of serving one; - prints it",
      {Completes::kFile});
  command.switch_flag("--force", &flags->force, "write over OUT.html when it exists")->needs(html);
  CLI::Option* perfetto =
      command.switch_flag("--perfetto", &flags->perfetto,
                          "hand the trace to ui.perfetto.dev in the browser, from port 9001");
  step->excludes(window);
  html->excludes(perfetto);
  command.switch_flag("--no-open", &flags->no_open,
                      "print the address, and do not start a browser");
  command.switch_flag("--keep", &flags->keep,
                      "go on when the last page was closed (default: end a minute later)");
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

// `lanescope record`: checks everything that can be checked, sets the environment that
// python/lanescope/_inject reads, and becomes the program: process id, signals and exit code are
// the program's own.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/flight_flags.h"
#include "lanescope/cli/python_package.h"
#include "lanescope/cli/text.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

struct RecordFlags {
  std::string folder = "lanescope_traces";
  std::string schedule;
  bool shapes = false, memory = false, stack = false, gzip = false, keep_spool = false,
       children = false, quiet = false;
  FlightFlags flight;
  std::vector<std::string> program;
};

// "wait=1,warmup=1,active=3": the keys of lanescope.schedule, each at most once, active at least 1.
Result<void> check_schedule(std::string_view text) {
  const std::vector<std::string> keys = {"wait",   "warmup",     "active",
                                         "repeat", "skip_first", "skip_first_wait"};
  std::vector<std::string> seen;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const std::size_t equals = part.find('=');
    const std::string key(part.substr(0, equals));
    if (std::find(keys.begin(), keys.end(), key) == keys.end() ||
        equals == std::string_view::npos) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("--schedule expects key=number pairs such as "
                               "wait=1,warmup=1,active=3 with the keys {}; "
                               "found '{}'",
                               joined_or(keys), part)};
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("--schedule expects each key once; found {} twice", key)};
    }
    seen.push_back(key);
    const std::string_view number = part.substr(equals + 1);
    std::int32_t steps = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), steps);
    if (error != std::errc() || end != number.data() + number.size() || steps < 0) {
      return Error{
          Errc::kInvalidArgument,
          fmt::format("--schedule expects a whole number of steps for {}, 0 or more; found '{}'",
                      key, number)};
    }
    if (key == "active" && steps == 0) {
      return Error{Errc::kInvalidArgument,
                   "--schedule expects active=1 or more; with 0 nothing would be recorded"};
    }
    if (part.size() == text.size()) return {};
    text.remove_prefix(part.size() + 1);
  }
}

// Makes the folder now: a full or read-only disk should stop the run before it begins, not after
// hours.
Result<std::string> make_folder(const std::string& name) {
  std::error_code failed;
  fs::create_directories(name, failed);
  if (!failed && !fs::is_directory(name)) failed = std::make_error_code(std::errc::not_a_directory);
  if (!failed && access(name.c_str(), W_OK | X_OK) != 0)
    failed = std::error_code(errno, std::generic_category());
  if (failed) {
    return Error{
        Errc::kIo,
        fmt::format("expected a folder to write results into, found that '{}' cannot be used: {}; "
                    "name another one with -o",
                    name, failed.message())};
  }
  return fs::absolute(name).lexically_normal().string();
}

void set_environment(const RecordFlags& flags, const std::string& folder,
                     const std::string& inject) {
  // What an outer `lanescope record` left must not leak into this one.
  std::vector<std::string> stale;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("LANESCOPE_RECORD")) stale.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : stale) unsetenv(name.c_str());
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
  };
  const auto set_if = [&](bool wanted, const char* name) {
    if (wanted) set(name, "1");
  };
  set("LANESCOPE_RECORD", "1");
  set("LANESCOPE_RECORD_DIR", folder);
  if (!flags.schedule.empty()) set("LANESCOPE_RECORD_SCHEDULE", flags.schedule);
  set_flight_environment(flags.flight);
  set_if(flags.shapes, "LANESCOPE_RECORD_SHAPES");
  set_if(flags.memory, "LANESCOPE_RECORD_MEMORY");
  set_if(flags.stack, "LANESCOPE_RECORD_STACK");
  set_if(flags.gzip, "LANESCOPE_RECORD_GZIP");
  set_if(flags.keep_spool, "LANESCOPE_RECORD_KEEP_SPOOL");
  set_if(flags.children, "LANESCOPE_RECORD_CHILDREN");
  set_if(flags.quiet, "LANESCOPE_RECORD_QUIET");
  const char* before = std::getenv("PYTHONPATH");
  const std::string path = before != nullptr ? before : "";
  set("LANESCOPE_RECORD_PYTHONPATH", path);
  set("PYTHONPATH", path.empty() ? inject : inject + ":" + path);
}

// Does not return when it works.
Result<void> become_program(const RecordFlags& flags) {
  if (flags.program.empty()) {
    return Error{Errc::kInvalidArgument,
                 "expected a program behind --, such as: lanescope record -- python3 train.py"};
  }
  if (!flags.schedule.empty()) LANESCOPE_TRY_VOID(check_schedule(flags.schedule));
  LANESCOPE_TRY_VOID(check_flight_flags(flags.flight, flags.schedule));
  LANESCOPE_TRY(const std::string program, find_program(flags.program.front()));
  LANESCOPE_TRY(const std::string python, python_of(program));
  if (python == program) {
    const std::string flag = isolating_flag({flags.program.begin() + 1, flags.program.end()});
    if (!flag.empty()) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("expected a python that reads PYTHONPATH and start-up files, found "
                               "its flag {}, which "
                               "turns them off; leave it out",
                               flag)};
    }
  }
  LANESCOPE_TRY(const std::string inject, find_inject_folder(python));
  LANESCOPE_TRY(const std::string folder, make_folder(flags.folder));
  set_environment(flags, folder, inject);
  std::vector<std::string> words = flags.program;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return Error{Errc::kInvalidArgument,
               fmt::format("expected a program that starts, found that '{}' does not: {}", program,
                           std::strerror(errno))};
}

}  // namespace

void add_record_command(CommandLine& line) {
  Command command =
      line.command("record", "run a program as it is and record what PyTorch does in it");
  const auto flags = std::make_shared<RecordFlags>();
  command.text_flag("-o,--out", &flags->folder, "DIR",
                    "folder for results; made when missing (default lanescope_traces)",
                    {Completes::kFolder});
  command.text_flag(
      "--schedule", &flags->schedule, "KEYS",
      "record some steps only: wait=1,warmup=1,active=3 with the keys and meanings of "
      "torch.profiler.schedule (default: from the import of torch to the exit)");
  add_flight_flags(command, &flags->flight);
  command.switch_flag("--shapes", &flags->shapes,
                      "record input shapes, types, strides and small concrete inputs");
  command.switch_flag("--memory", &flags->memory, "record every allocation and free");
  command.switch_flag("--stack", &flags->stack,
                      "record the Python lines that operators are called from");
  command.switch_flag("--gzip", &flags->gzip, "write .json.gz in place of .json");
  command.switch_flag("--keep-spool", &flags->keep_spool,
                      "leave the recorder's own files after a clean exit");
  command.switch_flag("--children", &flags->children,
                      "record Python processes that the program starts, too");
  command.switch_flag("--quiet", &flags->quiet, "do not print where the files are");
  command.takes_program(&flags->program);
  command.epilogue(R"(Examples:
  lanescope record -- python3 train.py --epochs 1
  lanescope record -o /scratch/run1 --schedule wait=1,warmup=1,active=3 -- python3 train.py
  lanescope record --shapes --memory -- torchrun --nproc-per-node 2 train.py
  lanescope record --last 10s --slow-step 2x -- python3 train.py

The program itself is not changed. At its exit the folder holds <script>_<pid>.json, which `lanescope table` and Perfetto
open, and the table as <script>_<pid>.txt; under torchrun <script>_rank<RANK>_<pid>.json, one for each rank. What a killed
program leaves there, `lanescope recover` opens.
With --last, `kill -USR2 <pid>` and slow steps leave <script>_<pid>_dump<K>.lspool: a line on stderr says where and why.
Every reading command opens it; at the exit it becomes a .json and a .txt.
The exit code is the program's own; 2 when it could not be started, 1 when its Python has no lanescope package.
)");
  command.runs([flags](Output& output) -> int {
    const Result<void> failed = become_program(*flags);
    output.complain("record: " + message_of(failed.error()));
    return failed.error().code == Errc::kUnavailable ? kFailed : kUsage;
  });
}

}  // namespace lanescope::cli

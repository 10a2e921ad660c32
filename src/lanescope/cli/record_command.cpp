// `lanescope record`: checks what can be checked, sets the environment that
// python/lanescope/_inject and record_cupti/native_recording.h read, and becomes the program:
// process id, signals and exit code are those of the program.
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
#include "lanescope/cli/gpu_injection.h"
#include "lanescope/cli/python_package.h"
#include "lanescope/cli/size_flags.h"
#include "lanescope/cli/text.h"
#include "lanescope/record/recording_name.h"
#include "lanescope/sample/stack_sampler.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

struct RecordFlags {
  std::string folder = "lanescope_traces";
  std::string schedule;
  std::string hardware;    // empty: no hardware lanes
  std::string activities;  // empty: cpu,cuda, without a message if there is no GPU
  bool shapes = false, memory = false, stack = false, all_api = false, json = false, gzip = false,
       keep_spool = false, children = false, quiet = false;
  std::string sample_python;  // a second; empty: none
  FlightFlags flight;
  SizeFlags sizes;
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
                               "wait=1,warmup=1,active=3 with the keys {}; found '{}'",
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

// "100us", "1ms", from 50 us to 100 ms.
Result<void> check_interval(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double us = unit == "us" ? number : unit == "ms" ? number * 1000 : 0;
  if (error == std::errc() && us >= 50 && us <= 100'000) return {};
  return Error{Errc::kInvalidArgument,
               fmt::format("--hardware expects an interval from 50us to 100ms, such as 100us or "
                           "1ms; found '{}'",
                           text)};
}

// Samples a second: 1 to 10,000.
Result<void> check_rate(std::string_view text) {
  std::int64_t rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (error == std::errc() && end == text.data() + text.size() && rate >= 1 &&
      rate <= sample::kMostSamplesPerSecond)
    return {};
  return Error{Errc::kInvalidArgument,
               fmt::format("--sample-python expects 1 to {} samples per second; found '{}'",
                           sample::kMostSamplesPerSecond, text)};
}

struct Activities {
  bool cpu = true, cuda = true;
};

// "cpu,cuda": each at most once.
Result<Activities> parse_activities(std::string_view text) {
  if (text.empty()) return Activities{};
  Activities wanted{.cpu = false, .cuda = false};
  while (true) {
    const std::string_view word = text.substr(0, text.find(','));
    bool* const which = word == "cpu" ? &wanted.cpu : word == "cuda" ? &wanted.cuda : nullptr;
    if (which == nullptr || *which) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("--activities expects cpu, cuda or cpu,cuda; found '{}'{}", word,
                               which != nullptr ? " twice" : "")};
    }
    *which = true;
    if (word.size() == text.size()) return wanted;
    text.remove_prefix(word.size() + 1);
  }
}

// Makes the folder now, so that a full or read-only disk stops the run at once and not after hours.
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
  // Variables of an outer `lanescope record` must not get into this one.
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
  set("LANESCOPE_RECORD_DIR", folder);
  set("LANESCOPE_RECORD_STARTED", record::run_stamp());
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) set("LANESCOPE_RECORD_COMMAND", self);
  if (!flags.activities.empty()) set("LANESCOPE_RECORD_ACTIVITIES", flags.activities);
  if (!flags.schedule.empty()) set("LANESCOPE_RECORD_SCHEDULE", flags.schedule);
  if (!flags.hardware.empty()) set("LANESCOPE_RECORD_HARDWARE", flags.hardware);
  set_flight_environment(flags.flight);
  set_size_environment(flags.sizes);
  set_if(flags.shapes, "LANESCOPE_RECORD_SHAPES");
  set_if(flags.memory, "LANESCOPE_RECORD_MEMORY");
  set_if(flags.stack, "LANESCOPE_RECORD_STACK");
  if (!flags.sample_python.empty()) set("LANESCOPE_RECORD_SAMPLE_PYTHON", flags.sample_python);
  set_if(flags.all_api, "LANESCOPE_RECORD_ALL_API");
  set_if(flags.json, "LANESCOPE_RECORD_JSON");
  set_if(flags.gzip, "LANESCOPE_RECORD_GZIP");
  set_if(flags.keep_spool, "LANESCOPE_RECORD_KEEP_SPOOL");
  set_if(flags.children, "LANESCOPE_RECORD_CHILDREN");
  set_if(flags.quiet, "LANESCOPE_RECORD_QUIET");
  if (inject.empty()) return;
  set("LANESCOPE_RECORD", "1");
  const char* before = std::getenv("PYTHONPATH");
  const std::string path = before != nullptr ? before : "";
  set("LANESCOPE_RECORD_PYTHONPATH", path);
  set("PYTHONPATH", path.empty() ? inject : inject + ":" + path);
}

struct Target {
  std::string path;
  std::vector<std::string> arguments;
  std::string python;      // that runs it; "": none
  bool is_native = false;  // without Python, and not a launcher
};

Result<Target> find_target(const std::vector<std::string>& words) {
  Target target;
  LANESCOPE_TRY(target.path, find_program(words.front()));
  target.arguments.assign(words.begin() + 1, words.end());
  LANESCOPE_TRY(target.python, python_named_by(target.path));
  target.is_native = target.python.empty() && !may_start_python(target.path, target.arguments);
  return target;
}

// The folder lanescope/_inject for the Python that the program is or may start. "": no Python, or
// one without the package, but the GPU work can be recorded without it.
Result<std::string> inject_folder_for(const RecordFlags& flags, const Target& target,
                                      const Activities& activities, const std::string& library,
                                      Output& output) {
  const auto& [program, arguments, own, is_native] = target;
  if (own == program) {
    const std::string flag = isolating_flag(arguments);
    if (!flag.empty()) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("expected a python that reads PYTHONPATH and start-up files, found "
                               "its flag {}, which turns them off; leave it out",
                               flag)};
    }
  }
  if (fs::path(program).filename() == "env" && clears_environment(arguments)) {
    return Error{Errc::kInvalidArgument,
                 "expected a program that gets the environment, found env -i, which clears it, so "
                 "that nothing is recorded; put env before lanescope: env -i ... lanescope record "
                 "-- ..."};
  }
  const Result<std::string> python = own.empty() ? python_of(program) : Result<std::string>(own);
  Result<std::string> inject =
      python ? find_inject_folder(*python) : Result<std::string>(python.error());
  if (!own.empty()) return inject;
  if (!inject && library.empty()) return inject;
  if (!inject && !is_native) {
    output.complain(fmt::format("record: Python programs that '{}' starts are not recorded: {}",
                                program, message_of(inject.error())));
  }
  if (is_native && activities.cuda && library.empty()) {
    output.complain(
        fmt::format("record: the GPU work of '{}' itself is not recorded, only Python "
                    "programs that it starts: this lanescope was built without CUPTI; "
                    "{}",
                    program, kHowToGetCupti));
  } else if (is_native && !flags.schedule.empty()) {
    output.complain(
        fmt::format("record: --schedule counts the steps of Python programs; '{}' is "
                    "recorded from its first use of CUDA to its exit",
                    program));
  } else if (is_native && !flags.flight.slow_step.empty()) {
    output.complain(fmt::format(
        "record: --slow-step watches the steps of Python programs; for '{}', kill -USR2 "
        "makes dumps, from its first use of CUDA on",
        program));
  }
  if (is_native && !flags.hardware.empty()) {
    output.complain(
        fmt::format("record: --hardware samples for Python programs; '{}' is recorded without "
                    "hardware lanes",
                    program));
  }
  if (is_native && !flags.sizes.budget.empty()) {
    output.complain(fmt::format(
        "record: --budget is about PyTorch operators of Python programs; what '{}' does "
        "on the GPU is recorded without one",
        program));
  }
  return inject ? std::move(inject) : std::string();
}

// Does not return on success.
Result<void> become_program(const RecordFlags& flags, Output& output) {
  if (flags.program.empty()) {
    return Error{Errc::kInvalidArgument,
                 "expected a program after --, such as: lanescope record -- python3 train.py"};
  }
  if (!flags.schedule.empty()) LANESCOPE_TRY_VOID(check_schedule(flags.schedule));
  LANESCOPE_TRY_VOID(check_flight_flags(flags.flight, flags.schedule));
  if (!flags.hardware.empty()) LANESCOPE_TRY_VOID(check_interval(flags.hardware));
  if (!flags.hardware.empty() && !flags.flight.last.empty()) {
    return Error{Errc::kInvalidArgument,
                 "--hardware and --last exclude each other: the file of hardware counters keeps "
                 "all samples; leave out one"};
  }
  LANESCOPE_TRY_VOID(check_size_flags(flags.sizes));
  if (!flags.sample_python.empty()) LANESCOPE_TRY_VOID(check_rate(flags.sample_python));
  LANESCOPE_TRY(const Activities activities, parse_activities(flags.activities));
  LANESCOPE_TRY(const Target target, find_target(flags.program));
  const std::string library = activities.cuda ? find_cupti_library() : "";
  LANESCOPE_TRY(const std::string inject,
                inject_folder_for(flags, target, activities, library, output));
  LANESCOPE_TRY(const std::string folder, make_folder(flags.folder));
  set_environment(flags, folder, inject);
  if (!library.empty()) {
    const std::vector<std::string> notes = set_injection(library);
    for (const std::string& note : notes) output.complain("record: " + note);
    const bool has_conditions = !flags.schedule.empty() || !flags.flight.slow_step.empty();
    if (notes.empty() && target.is_native && !has_conditions && !flags.quiet) {
      // Say it now: this process becomes the program.
      output.complain(
          fmt::format("record: '{}' is recorded from its first use of CUDA; if it uses none, "
                      "nothing is written",
                      target.path));
    }
  }
  std::vector<std::string> words = flags.program;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(target.path.c_str(), argv.data());
  return Error{Errc::kInvalidArgument,
               fmt::format("expected a program that starts, found that '{}' does not: {}",
                           target.path, std::strerror(errno))};
}

}  // namespace

void add_record_command(CommandLine& line) {
  Command command =
      line.command("record", "run a program unchanged and record what PyTorch and CUDA do in it");
  const auto flags = std::make_shared<RecordFlags>();
  command.text_flag("-o,--out", &flags->folder, "DIR",
                    "folder for results, made if missing (default lanescope_traces)",
                    {Completes::kFolder});
  command.text_flag("--schedule", &flags->schedule, "KEYS",
                    "record some steps only: wait=1,warmup=1,active=3, with the keys of "
                    "torch.profiler.schedule (default: from the import of torch to the exit)");
  add_flight_flags(command, &flags->flight);
  add_size_flags(command, &flags->sizes);
  command.text_flag("--activities", &flags->activities, "WORDS",
                    "cpu, cuda or cpu,cuda (default: both if there is a GPU)",
                    {Completes::kWords, {"cpu", "cuda", "cpu,cuda"}});
  command
      .text_flag("--hardware", &flags->hardware, "[=TIME]",
                 "sample the GPU's counters (SMs, tensor cores, memory, PCIe) every TIME, and "
                 "clocks, power and temperature (default 100us)")
      .may_lack_value("100us");
  command.switch_flag("--shapes", &flags->shapes,
                      "record input shapes, types, strides and small concrete inputs");
  command.switch_flag("--memory", &flags->memory, "record every allocation and free");
  command.switch_flag("--stack", &flags->stack,
                      "record each Python call, and the lines that operators are called from");
  command
      .text_flag("--sample-python", &flags->sample_python, "N",
                 "take every thread's Python stack about N times a second, 1000 without N, for "
                 "lanescope flame")
      .may_lack_value("1000");
  command.switch_flag("--all-api", &flags->all_api,
                      "record every call of the CUDA runtime and driver, not only those that start "
                      "or wait for work");
  command.switch_flag("--json", &flags->json,
                      "make the .json of recordings over 16 MiB, too; the program's end waits for "
                      "it");
  command.switch_flag("--gzip", &flags->gzip, "write .json.gz instead of .json");
  command.switch_flag("--keep-spool", &flags->keep_spool,
                      "keep the .lspool files after a clean exit");
  command.switch_flag("--children", &flags->children,
                      "record processes that the program starts, too");
  command.switch_flag("--quiet", &flags->quiet, "do not print where the files are");
  command.takes_program(&flags->program);
  command.epilogue(R"(Examples:
  lanescope record -- python3 train.py --epochs 1
  lanescope record -o /scratch/run1 --schedule wait=1,warmup=1,active=3 -- python3 train.py
  lanescope record --shapes --memory -- torchrun --nproc-per-node 2 train.py
  lanescope record --last 10s --slow-step 2x -- python3 train.py
  lanescope record -- ./my_cuda_program --size 4096

Files: the program records into NAME.lspool, which every lanescope command opens. When it ends, another process with
the lowest priority and at most 200 MB of memory makes NAME.json (for Perfetto) and NAME.txt (the table). It does so
for recordings of up to 16 MiB, about 350,000 events. Larger ones stay as they are: --json makes their .json at once,
`lanescope recover` later. `recover` also converts what a killed program left. No file is overwritten.
NAME is <script>_<time>_<host>_<pid>, such as train_20261123T061902Z_node7_4711; under torchrun
<script>_<time>_rank<RANK>_<host>_<pid>, one for each rank. The time is when the run started, in UTC.
With --last, `kill -USR2 <pid>` and slow steps write a dump, NAME_dump<K>.lspool, and a line on stderr that says where
and why. Every reading command opens it. When the program ends, the dump becomes a .json and a .txt, too.
A Python program is recorded from its import of torch, any other from its first use of CUDA; `lanescope doctor` says
whether the GPU can be recorded here.
The exit code is the program's own; 2 if it could not be started, 1 if its Python has no lanescope package.
)");
  command.runs([flags](Output& output) -> int {
    const Result<void> failed = become_program(*flags, output);
    output.complain("record: " + message_of(failed.error()));
    return failed.error().code == Errc::kUnavailable ? kFailed : kUsage;
  });
}

}  // namespace lanescope::cli

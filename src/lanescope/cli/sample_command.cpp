// `lanescope sample`: Python and native stacks of a process that runs, from outside.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/python_flame.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/outside_sampler.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/format/spool/sample_slices.h"
#include "lanescope/report/flame_text.h"
#include "lanescope/report/text_format.h"
#include "lanescope/sample/find_python.h"
#include "lanescope/sample/gil_reader.h"
#include "lanescope/sample/stack_reader.h"
#include "lanescope/sample/stack_sampler.h"
#include "lanescope/sample/waiter_count.h"

namespace lanescope::cli {
namespace {

struct SampleFlags {
  std::optional<std::int64_t> pid, seconds, rate;
  std::string trace, speedscope, svg;
  bool native = false, force = false;
};

volatile std::sig_atomic_t stop_requested = 0;

void note_counts(const Sampled& sampled, std::optional<std::uint32_t> version, Output& output) {
  std::string line = fmt::format(
      "{} samples (about {} were due) of {} threads; {} torn stacks dropped, {} samples failed",
      report::format_count(sampled.times), report::format_count(sampled.due),
      report::format_count(sampled.threads.size()), report::format_count(sampled.torn),
      report::format_count(sampled.lost));
  if (version) line += fmt::format("; Python {}.{}", *version >> 8, *version & 0xff);
  output.note(line);
  if (sampled.times > 0)
    output.note(
        fmt::format("a share of a thread's time is an estimate, with a standard error of at "
                    "most {:.1f} % if it was there all the time",
                    report::largest_share_error(sampled.times)));
}

Result<Trace> trace_of(const Sampled& sampled, pid_t pid, std::int64_t period_ns, bool has_python) {
  TraceBuilder builder;
  std::vector<std::vector<format::SampleFrame>> stacks(sampled.number_of_stack.size());
  for (const auto& [frames, number] : sampled.number_of_stack)
    for (const auto& [function, line] : frames)
      stacks[number].push_back({builder.intern(function), static_cast<std::uint32_t>(line)});
  format::SampleSlices slices(builder);
  Scalar process;
  process.number = pid;
  builder.set_process_name(process, builder.intern(has_python ? "python" : "process"));
  if (has_python) builder.add_metadata("lanescope_python_lock", sampled.lock.json());
  for (const auto& [thread, one] : sampled.threads) {
    slices.begin_thread(process, static_cast<std::int64_t>(thread), one.name);
    for (const SampledRun& run : one.runs)
      slices.add({.first_ns = run.first_ns,
                  .last_ns = run.last_ns,
                  .period_ns = period_ns,
                  .samples = run.samples,
                  .frames = stacks[run.stack]});
    slices.end_thread();
  }
  return std::move(builder).finish();
}

// The targets that must not exist yet.
Result<void> check_targets(const SampleFlags& flags) {
  for (const std::string* const target : {&flags.trace, &flags.speedscope, &flags.svg})
    if (!target->empty()) LANESCOPE_TRY_VOID(check_target(*target, flags.force));
  return {};
}

int write_results(const SampleFlags& flags, const Trace& trace, Output& output) {
  const auto flame = analysis::compute_python_flame(trace);
  if (!flame) {
    output.complain(fmt::format("sample: expected {} that runs, found none in that time",
                                flags.native ? "code" : "Python code"));
    return kFailed;
  }
  int code = kOk;
  if (!flags.trace.empty()) code = save_trace(trace, flags.trace, output);
  if (code == kOk && !flags.speedscope.empty())
    code = save_text(report::flame_speedscope(trace, *flame), flags.speedscope, output);
  if (code == kOk && !flags.svg.empty())
    code = save_text(
        report::flame_svg(
            trace, *flame,
            fmt::format("{} of process {}", flags.native ? "Stacks" : "Python stacks", *flags.pid)),
        flags.svg, output);
  if (flags.trace.empty() && flags.speedscope.empty() && flags.svg.empty())
    output.write(report::flame_folded(trace, *flame));
  return code;
}

struct Interpreter {
  sample::PythonLayout layout;
  std::uint64_t runtime = 0, address = 0;
};

Result<Interpreter> find_interpreter(sample::RunningProcess& memory, pid_t pid) {
  LANESCOPE_TRY(const sample::FoundPython found, sample::find_python(pid, memory));
  Interpreter interpreter;
  interpreter.runtime = found.runtime;
  LANESCOPE_TRY(interpreter.layout, sample::find_layout(memory, found.runtime, found.version_hex));
  interpreter.address = sample::first_interpreter(memory, interpreter.layout, found.runtime);
  if (interpreter.address == 0)
    return Error{Errc::kUnavailable,
                 fmt::format("expected a Python that has started, found none yet in process {}; "
                             "try again",
                             pid)};
  return interpreter;
}

// What native frames say about themselves.
void note_native(const Sampled& sampled, const sample_native::NativeStacks& native,
                 Output& output) {
  const sample_native::NativeStacks::Counts& counts = native.counts();
  output.note(
      fmt::format("native frames in {} of {} samples; {} stacks of threads that waited, {} of "
                  "threads that ran; not known: {} woke up meanwhile, {} ran and were not seen",
                  sampled.with_native, sampled.samples, counts.waiting, counts.running,
                  counts.moved, counts.unseen));
  if (const int refusal = native.timer_refusal(); refusal != 0)
    output.note(
        fmt::format("threads that run have no native frames, because the kernel refused its timer "
                    "(perf_event_open: {}); run as root, set /proc/sys/kernel/perf_event_paranoid "
                    "to 2 or less, or allow the call in the container",
                    std::strerror(refusal)));
  if (!sample_native::NativeUnwinder::is_built_in())
    output.note("callers of native functions are not known: lanescope was built without libdw");
}

int run_sample(const SampleFlags& flags, Output& output) {
  if (!flags.pid) {
    output.complain("sample: expected --pid, the process to sample; `ps` lists them");
    return kUsage;
  }
  const auto pid = static_cast<pid_t>(*flags.pid);
  if (const Result<void> fit = check_targets(flags); !fit) {
    output.complain("sample: " + message_of(fit.error()));
    return kUsage;
  }
  const std::int64_t rate = flags.rate.value_or(1000);
  sample::RunningProcess memory(pid);
  std::optional<sample_native::NativeStacks> native;
  if (flags.native) {
    native.emplace(pid, memory, 1'000'000'000 / rate);
    if (const Result<void> fit = native->begin(); !fit) {
      output.complain("sample: " + message_of(fit.error()));
      return kFailed;
    }
  }
  const Result<Interpreter> interpreter = find_interpreter(memory, pid);
  if (!interpreter && !native) {
    const bool is_there = ::kill(pid, 0) == 0;
    output.complain("sample: " + message_of(interpreter.error()) +
                    (is_there ? "; --native shows the native functions of any program" : ""));
    return kFailed;
  }
  std::optional<sample::StackReader> reader;
  std::optional<sample::GilReader> lock;
  if (interpreter) {
    reader.emplace(memory, interpreter->layout, interpreter->address, 0);
    lock.emplace(memory, interpreter->layout, interpreter->runtime, interpreter->address,
                 sample::find_waiter_count(pid));
  } else {
    output.note("without Python frames: " + interpreter.error().message);
  }
  std::signal(SIGINT, [](int) { stop_requested = 1; });
  OutsideSampler sampler(reader ? &*reader : nullptr, lock ? &*lock : nullptr,
                         native ? &*native : nullptr, rate);
  const Sampled sampled = sampler.run(pid, flags.seconds.value_or(10), stop_requested);
  std::signal(SIGINT, SIG_DFL);
  note_counts(sampled, interpreter ? std::optional(interpreter->layout.version) : std::nullopt,
              output);
  for (const std::string& line : sampled.lock.lines()) output.note(line);
  if (native) note_native(sampled, *native, output);
  if (sampled.is_full)
    output.complain(
        "sample: ended early, because there is no memory for more changes of stacks; "
        "take a lower --rate");
  const Result<Trace> trace =
      trace_of(sampled, pid, sampler.period_ns(), static_cast<bool>(interpreter));
  if (!trace) {
    output.complain("sample: " + message_of(trace.error()));
    return kFailed;
  }
  return write_results(flags, *trace, output);
}

}  // namespace

void add_sample_command(CommandLine& line) {
  Command command =
      line.command("sample", "sample the stacks of a process that runs, from outside");
  const auto flags = std::make_shared<SampleFlags>();
  command.number_flag("-p,--pid", &flags->pid, 1, std::numeric_limits<pid_t>::max(), "the process");
  command.number_flag("--seconds", &flags->seconds, 1, 86'400,
                      "how long (default 10); Ctrl-C ends it earlier");
  command.number_flag("--rate", &flags->rate, 1, sample::kMostSamplesPerSecond,
                      "samples per second, on average (default 1000)");
  command.switch_flag("--native", &flags->native,
                      "also native functions, and threads and programs without Python");
  command.text_flag("-o,--out", &flags->trace, "FILE",
                    "write a trace with a lane for each thread: .json, .json.gz or .json.zst",
                    {Completes::kFile});
  command.text_flag("--speedscope", &flags->speedscope, "FILE",
                    "write a file for https://www.speedscope.app", {Completes::kFile});
  command.text_flag("--svg", &flags->svg, "FILE", "write a flame graph as a picture",
                    {Completes::kFile});
  command.switch_flag("-f,--force", &flags->force, "overwrite existing files");
  command.epilogue(R"(Examples:
  lanescope sample --pid 4711 --seconds 10 --svg flame.svg
  lanescope sample --pid 4711 -o now.json.gz && lanescope view now.json.gz
  lanescope sample --pid 4711 --native --svg flame.svg

The process is neither stopped nor changed. It must be CPython 3.9 to 3.15, or any program with --native. Reading it needs
the right to trace it (the same user, or root). Without -o, --speedscope and --svg it prints folded stacks:
"outermost;...;innermost samples".
Stacks of threads that wait count as well.
)");
  command.runs([flags](Output& output) { return run_sample(*flags, output); });
}

}  // namespace lanescope::cli

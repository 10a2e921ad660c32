// `lanescope sample`: Python stacks of a process that runs, from outside.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/analysis/python_flame.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/lock_shares.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/format/spool/sample_slices.h"
#include "lanescope/report/flame_text.h"
#include "lanescope/sample/find_python.h"
#include "lanescope/sample/gil_reader.h"
#include "lanescope/sample/stack_reader.h"
#include "lanescope/sample/stack_sampler.h"
#include "lanescope/sample/waiter_count.h"

namespace lanescope::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct SampleFlags {
  std::optional<std::int64_t> pid, seconds, rate;
  std::string trace, speedscope, svg;
  bool force = false;
};

constexpr std::size_t kMostRuns = 4 << 20;  // 100 to 200 MB

struct Run {
  std::int64_t first_ns = 0, last_ns = 0, samples = 0;
  std::size_t stack = 0;  // index in Sampled::stacks
};

// What was seen, by thread.
struct Sampled {
  std::map<std::vector<std::pair<std::string, int>>, std::size_t> number_of_stack;
  std::map<std::uint64_t, std::vector<Run>> threads;
  std::size_t runs = 0;
  std::uint64_t times = 0, due = 0, torn = 0, lost = 0;
  LockShares lock;
  bool is_full = false;
};

volatile std::sig_atomic_t stop_requested = 0;

class OutsideSampler {
 public:
  OutsideSampler(sample::StackReader& reader, sample::GilReader& lock, std::int64_t per_second)
      : reader_(reader), lock_(lock), period_(1'000'000'000 / per_second) {}

  Sampled run(pid_t pid, std::int64_t seconds) {
    const auto began = Clock::now();
    auto next = began;
    while (stop_requested == 0 && !out_.is_full &&
           Clock::now() - began < std::chrono::seconds(seconds)) {
      take(std::chrono::nanoseconds(Clock::now() - began).count());
      if (::kill(pid, 0) != 0 && errno == ESRCH) break;
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      next += period_ / 2 + period_ * static_cast<std::int64_t>(random_ >> 44) / (1 << 20);
      next = std::max(next, Clock::now());
      std::this_thread::sleep_until(next);
    }
    out_.due = static_cast<std::uint64_t>((Clock::now() - began) / period_);
    out_.torn = reader_.counts().torn;
    out_.lost = reader_.counts().lost_samples + reader_.counts().lost_threads;
    return std::move(out_);
  }
  std::int64_t period_ns() const { return period_.count(); }

 private:
  void take(std::int64_t now_ns) {
    ++out_.times;
    const std::vector<sample::SampledStack>& stacks = reader_.sample(0, lock_.pieces());
    out_.lock.add(lock_.state(), stacks, reader_);
    for (const sample::SampledStack& stack : stacks) {
      if (stack.frames.empty()) continue;
      const std::size_t number = number_of(stack);
      std::vector<Run>& runs = out_.threads[stack.thread];
      if (!runs.empty() && runs.back().stack == number &&
          now_ns - runs.back().last_ns <= 4 * period_.count()) {
        runs.back().last_ns = now_ns;
        ++runs.back().samples;
        continue;
      }
      if (++out_.runs > kMostRuns) {
        out_.is_full = true;
        return;
      }
      runs.push_back({now_ns, now_ns, 1, number});
    }
  }
  std::size_t number_of(const sample::SampledStack& stack) {
    std::vector<std::pair<std::string, int>> frames;
    if (stack.is_cut) frames.emplace_back("(deeper frames left out)", 0);
    for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
      const sample::SampledFunction& function = reader_.function(frame->function);
      frames.emplace_back(
          fmt::format("{}({}): {}", function.file, function.first_line, function.name),
          frame->line);
    }
    return out_.number_of_stack.try_emplace(std::move(frames), out_.number_of_stack.size())
        .first->second;
  }

  sample::StackReader& reader_;
  sample::GilReader& lock_;
  const std::chrono::nanoseconds period_;
  std::uint64_t random_ = 0x9e3779b97f4a7c15u;
  Sampled out_;
};

Result<Trace> trace_of(const Sampled& sampled, pid_t pid, std::int64_t period_ns) {
  TraceBuilder builder;
  std::vector<std::vector<format::SampleFrame>> stacks(sampled.number_of_stack.size());
  for (const auto& [frames, number] : sampled.number_of_stack)
    for (const auto& [function, line] : frames)
      stacks[number].push_back({builder.intern(function), static_cast<std::uint32_t>(line)});
  format::SampleSlices slices(builder);
  Scalar process;
  process.number = pid;
  builder.set_process_name(process, builder.intern("python"));
  builder.add_metadata("lanescope_python_lock", sampled.lock.json());
  for (const auto& [thread, runs] : sampled.threads) {
    slices.begin_thread(process, static_cast<std::int64_t>(thread), "");
    for (const Run& run : runs)
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
    output.complain("sample: expected Python code that runs, found none in that time");
    return kFailed;
  }
  int code = kOk;
  if (!flags.trace.empty()) code = save_trace(trace, flags.trace, output);
  if (code == kOk && !flags.speedscope.empty())
    code = save_text(report::flame_speedscope(trace, *flame), flags.speedscope, output);
  if (code == kOk && !flags.svg.empty())
    code = save_text(
        report::flame_svg(trace, *flame, fmt::format("Python stacks of process {}", *flags.pid)),
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
  sample::RunningProcess memory(pid);
  const Result<Interpreter> interpreter = find_interpreter(memory, pid);
  if (!interpreter) {
    output.complain("sample: " + message_of(interpreter.error()));
    return kFailed;
  }
  std::signal(SIGINT, [](int) { stop_requested = 1; });
  const sample::PythonLayout& layout = interpreter->layout;
  sample::StackReader reader(memory, layout, interpreter->address, 0);
  sample::GilReader lock(memory, layout, interpreter->runtime, interpreter->address,
                         sample::find_waiter_count(pid));
  OutsideSampler sampler(reader, lock, flags.rate.value_or(1000));
  const Sampled sampled = sampler.run(pid, flags.seconds.value_or(10));
  std::signal(SIGINT, SIG_DFL);
  output.note(fmt::format(
      "{} times (about {} were due), {} threads, {} torn stacks dropped, {} times unreadable; "
      "Python {}.{}",
      sampled.times, sampled.due, sampled.threads.size(), sampled.torn, sampled.lost,
      layout.version >> 8, layout.version & 0xff));
  for (const std::string& line : sampled.lock.lines()) output.note(line);
  if (sampled.is_full)
    output.complain(
        "sample: ended early, because there is no memory for more changes of stacks; "
        "take a lower --rate");
  const Result<Trace> trace = trace_of(sampled, pid, sampler.period_ns());
  if (!trace) {
    output.complain("sample: " + message_of(trace.error()));
    return kFailed;
  }
  return write_results(flags, *trace, output);
}

}  // namespace

void add_sample_command(CommandLine& line) {
  Command command =
      line.command("sample", "sample the Python stacks of a process that runs, from outside");
  const auto flags = std::make_shared<SampleFlags>();
  command.number_flag("-p,--pid", &flags->pid, 1, std::numeric_limits<pid_t>::max(), "the process");
  command.number_flag("--seconds", &flags->seconds, 1, 86'400,
                      "how long (default 10); Ctrl-C ends it earlier");
  command.number_flag("--rate", &flags->rate, 1, sample::kMostSamplesPerSecond,
                      "samples a second, in the mean (default 1000)");
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

The process is neither stopped nor changed. It must be CPython 3.9 to 3.15; reading it needs the right to trace it (the
same user, or root). Without -o, --speedscope and --svg it prints folded stacks: "outermost;...;innermost samples".
Stacks of threads that wait count as well.
)");
  command.runs([flags](Output& output) { return run_sample(*flags, output); });
}

}  // namespace lanescope::cli

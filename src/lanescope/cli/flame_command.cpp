// `lanescope flame`: where the time of Python code went.
#include <memory>
#include <optional>
#include <string>

#include "lanescope/analysis/python_flame.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/report/flame_text.h"

namespace lanescope::cli {
namespace {

struct FlameFlags {
  PartFlags part;
  std::string path, speedscope, svg;
  std::optional<std::int64_t> thread, step;
  bool gpu_idle = false, calls = false, force = false;
};

std::string title_of(const FlameFlags& flags, analysis::FlameSource source) {
  std::string title =
      source == analysis::FlameSource::kCpuProfile ? "JavaScript stacks" : "Python stacks";
  if (flags.gpu_idle) title += " while the GPU was idle";
  if (flags.step) title += ", step " + std::to_string(*flags.step);
  if (flags.thread) title += ", thread " + std::to_string(*flags.thread);
  return title + ": " + flags.path;
}

int run_flame(const FlameFlags& flags, Output& output) {
  for (const std::string* const target : {&flags.speedscope, &flags.svg}) {
    if (target->empty()) continue;
    if (const Result<void> fits = check_target(*target, flags.force); !fits) {
      output.complain("flame: " + message_of(fits.error()));
      return kUsage;
    }
  }
  int code = kOk;
  const std::optional<Trace> trace =
      open_part(flags.path, flags.part, "flame", view::Edges::kCut, output, &code);
  if (!trace) return code;
  analysis::FlameOptions options;
  if (flags.calls) options.source = analysis::FlameSource::kCalls;
  options.thread = flags.thread;
  options.step = flags.step;
  options.gpu_idle = flags.gpu_idle;
  const Result<analysis::PythonFlame> flame = analysis::compute_python_flame(*trace, options);
  if (!flame) {
    output.complain("flame: " + message_of(flame.error()));
    return kUsage;
  }
  output.note(report::flame_summary(*flame));
  if (flags.speedscope.empty() && flags.svg.empty())
    output.write(report::flame_folded(*trace, *flame));
  if (!flags.speedscope.empty())
    code = save_text(report::flame_speedscope(*trace, *flame), flags.speedscope, output);
  if (code == kOk && !flags.svg.empty())
    code = save_text(report::flame_svg(*trace, *flame, title_of(flags, flame->source)), flags.svg,
                     output);
  return code;
}

}  // namespace

void add_flame_command(CommandLine& line) {
  Command command = line.command("flame",
                                 "where the time of Python code went: folded stacks, "
                                 "speedscope, a flame graph");
  const auto flags = std::make_shared<FlameFlags>();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  command.switch_flag("--gpu-idle", &flags->gpu_idle,
                      "only while no GPU ran anything, between the first and the last GPU work");
  const Option step = command.number_flag("--step", &flags->step, 0, kMost,
                                          "only inside the step with this number");
  add_window_flag(command, &flags->part, step);
  command.number_flag("--thread", &flags->thread, 0, kMost, "only this thread (its OS number)");
  command.switch_flag("--calls", &flags->calls,
                      "recorded calls (--stack, with_stack), also where the trace has samples");
  command.text_flag("--speedscope", &flags->speedscope, "FILE",
                    "write a file for https://www.speedscope.app", {Completes::kFile});
  command.text_flag("--svg", &flags->svg, "FILE", "write a flame graph as a picture",
                    {Completes::kFile});
  command.switch_flag("-f,--force", &flags->force, "overwrite existing files");
  command.epilogue(R"(Examples:
  lanescope record --sample-python -- python3 train.py
  lanescope flame traces --svg flame.svg
  lanescope flame trace.json.gz --gpu-idle --svg idle.svg
  lanescope flame trace.json.gz --step 12 | sort -k2 -n -t' ' | tail

Without --speedscope and --svg it prints folded stacks: "outermost;...;innermost N", N in samples,
or in microseconds of self time for recorded calls and for CPU profiles of JavaScript. All threads
count together. The numbers: docs/definitions/python_samples.md.
)");
  command.runs([flags](Output& output) { return run_flame(*flags, output); });
}

}  // namespace lanescope::cli

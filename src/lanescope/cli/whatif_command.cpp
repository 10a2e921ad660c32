// `lanescope whatif`: what a step would take after a change, by replay of its dependencies.
#include <fmt/format.h>

#include <limits>
#include <memory>

#include "lanescope/analysis/gaps.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/explain/facts.h"
#include "lanescope/record/range.h"
#include "lanescope/report/whatif_text.h"

namespace lanescope::cli {
namespace {

struct WhatifFlags {
  std::string path;
  std::vector<std::string> changes;
  std::optional<std::int64_t> step;
  bool json = false, critical_path = false;
};

// Why the trace cannot be replayed; nothing: it can.
std::optional<std::string> lacks(const explain::Facts& facts) {
  if (!facts.main_device)
    return "expected GPU work in the trace, found none; record with GPU activities";
  const analysis::DeviceTimeline& device = facts.device().timeline;
  if (!device.has_launches())
    return fmt::format(
        "expected the launch calls of the GPU work, found those of {} of {}; record with "
        "CPU and GPU activities",
        device.launched_count, device.work.size());
  if (facts.selection.steady.empty()) return "expected a whole step, found none; record more steps";
  if (facts.selection.lacks_gpu_work)
    return "expected the GPU work of each step, but part of it was not recorded; record fewer "
           "steps";
  return std::nullopt;
}

simulate::Simulation simulation_of(const Trace& trace, const explain::Facts& facts) {
  std::vector<const analysis::DeviceTimeline*> devices;
  for (const explain::DeviceFacts& device : facts.devices) devices.push_back(&device.timeline);
  const analysis::HostTimeline host(trace);
  const TrackId main = facts.steps.marked
                           ? trace.slices().track[raw(facts.steps.steps.front().slice)]
                           : analysis::main_launch_thread(trace, facts.links);
  return simulate::simulate({trace, facts.links, host, facts.steps, facts.selection.steady, devices,
                             *facts.main_device, main},
                            facts.nesting, facts.device().windows);
}

int run_whatif(const WhatifFlags& flags, Output& output) {
  const auto fail = [&](int code, const std::string& message) {
    output.complain("whatif: " + message);
    return code;
  };
  std::vector<simulate::Change> changes;
  for (const std::string& text : flags.changes) {
    auto change = simulate::parse_change(text);
    if (!change) return fail(kUsage, "--change: " + message_of(change.error()));
    changes.push_back(*std::move(change));
  }
  int code = kOk;
  const std::optional<Trace> trace = open_trace(flags.path, output, &code);
  if (!trace) return code;
  RecordFunction stage("whatif: facts");
  const Result<explain::Facts> facts = explain::gather_facts(*trace, {.step = flags.step});
  stage.end();
  if (!facts) return fail(kUsage, facts_message_of(facts.error()));
  if (const auto reason = lacks(*facts)) return fail(kFailed, *reason);
  RecordFunction graph_stage("whatif: graph");
  const simulate::Simulation simulation = simulation_of(*trace, *facts);
  graph_stage.end();

  RecordFunction replay_stage("whatif: replay");
  std::optional<simulate::Prediction> prediction;
  std::vector<simulate::Candidate> candidates;
  if (!changes.empty()) {
    auto predicted = simulate::predict(simulation, changes);
    if (!predicted) return fail(kUsage, message_of(predicted.error()));
    prediction = *std::move(predicted);
  } else if (!flags.critical_path) {
    candidates = simulate::try_changes(simulation);
  }
  replay_stage.end();
  if (flags.json)
    output.write(report::whatif_json(*facts, simulation, prediction ? &*prediction : nullptr,
                                     changes, candidates));
  else if (flags.critical_path)
    output.write(report::critical_path_text(*facts, simulation));
  else if (prediction)
    output.write(report::whatif_text(*facts, simulation, *prediction, changes));
  else
    output.write(report::whatif_table_text(*facts, simulation, candidates));
  return kOk;
}

}  // namespace

void add_whatif_command(CommandLine& line) {
  Command command = line.command("whatif", "what would a step take after a change?");
  const auto flags = std::make_shared<WhatifFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  CLI::Option* change =
      command.app().add_option("--change", flags->changes,
                               "a change to predict, repeated for several together (default: the "
                               "usual changes, each alone)");
  change->option_text("CHANGE")->expected(1)->take_all();
  command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                      "use only this ProfilerStep (default: all but the first)");
  CLI::Option* path =
      command.switch_flag("--critical-path", &flags->critical_path,
                          "what the recorded step's time is spent on along its critical path");
  command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  path->excludes(change);
  command.epilogue(R"(Changes:
  speed NAME 2x         GPU work of that kernel or operator takes half its time
  cpu 1.5x              Python, operators and calls on the CPU take 1/1.5 of their time
  remove NAME           that kernel, operator or range is gone, with what it launches
  remove-sync [NAME]    the CPU does not wait for the GPU (in that call, operator or range)
  no-profiler [US]      each recorded event costs the program that many microseconds less
  cuda-graph            one launch a step
  pin [GB/S]            copies from pageable memory come from pinned memory
  overlap-copies        copies between CPU and GPU run on a stream of their own

NAME is a whole name; when no event has that name, all that contain it are meant.

Examples:
  lanescope whatif trace.json.gz                             the usual changes, best first
  lanescope whatif trace.json.gz --change "speed aten::mm 2x"
  lanescope whatif trace.json.gz --change remove-sync --change "cpu 1.5x"
  lanescope whatif trace.json.gz --critical-path

docs/definitions/whatif.md says what each change assumes and how sure a prediction is.
)");
  command.runs([flags](Output& output) -> int { return run_whatif(*flags, output); });
}

}  // namespace lanescope::cli

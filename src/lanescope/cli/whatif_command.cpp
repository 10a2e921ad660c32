// `lanescope whatif`: what a step would take after a change, by replay of its dependencies.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/rules/elementwise_chains.h"
#include "lanescope/record/range.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/whatif_text.h"
#include "lanescope/simulate/simulated_trace.h"

namespace lanescope::cli {
namespace {

struct WhatifFlags {
  PartFlags part;
  std::string path;
  std::vector<std::string> changes;
  std::optional<std::int64_t> step;
  std::string out;
  bool json = false, critical_path = false, force = false;
};

// A cost that the user names replaces the estimated one.
simulate::Base base_of(const std::vector<simulate::Change>& changes) {
  for (const simulate::Change& change : changes)
    if (change.kind == simulate::ChangeKind::kNoProfiler && change.number)
      return simulate::Base::kRecorded;
  return simulate::Base::kUnprofiled;
}

// The operators of a chain, one way to write them: "aten::mul,add" is "mul, add".
std::string chain_text_of(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (part.starts_with("aten::")) part.remove_prefix(6);
    out += (out.empty() ? "" : ", ") + std::string(part);
  }
  return out;
}

// 'fuse CHAIN' means a chain as explain prints it, or its number: 'fuse chain 1'. Leaves other names as they are.
void find_chains(std::span<const explain::rules::FusableChain> chains,
                 std::vector<simulate::Change>& changes) {
  for (simulate::Change& change : changes) {
    if (change.kind != simulate::ChangeKind::kFuse) continue;
    const std::string text = chain_text_of(change.name);
    for (std::size_t i = 0; i < chains.size(); ++i)
      if (text == chains[i].text || text == fmt::format("chain {}", i + 1))
        change.chains = chains[i].kernels;
  }
}

std::string largest_chains_text(const explain::Facts& facts,
                                std::span<const explain::rules::FusableChain> chains) {
  if (chains.empty()) return ". explain finds no chain of elementwise kernels here";
  std::string out = ". The largest chains that explain finds: ";
  for (std::size_t i = 0; i < chains.size() && i < 3; ++i)
    out += fmt::format("{}'fuse {}' (at most {} a step)", i == 0 ? "" : ", ", chains[i].text,
                       report::format_time_ns(facts.per_step(chains[i].saved_ns)));
  return out;
}

bool is_fuse(const simulate::Change& change) { return change.kind == simulate::ChangeKind::kFuse; }

int write_simulated(const WhatifFlags& flags, const simulate::Simulation& simulation,
                    const std::vector<simulate::Change>& changes, Output& output) {
  RecordFunction stage("whatif: trace");
  const auto edges = simulate::changed_edges(simulation, changes, base_of(changes));
  std::string texts;
  for (const simulate::Change& change : changes) texts += (texts.empty() ? "" : "; ") + change.text;
  const auto made = edges
                        ? simulate::simulated_trace(
                              *simulation.graph, simulate::replay(*simulation.graph, *edges), texts)
                        : Result<Trace>(edges.error());
  if (made) return save_trace(*made, flags.out, output);
  output.complain("whatif: --out: " + message_of(made.error()));
  return kUsage;
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
  if (!flags.out.empty())
    if (const auto free = check_target(flags.out, flags.force); !free)
      return fail(kUsage, "--out: " + message_of(free.error()));
  int code = kOk;
  const std::optional<Trace> trace =
      open_part(flags.path, flags.part, "whatif", view::Edges::kCut, output, &code);
  if (!trace) return code;
  RecordFunction stage("whatif: facts");
  const Result<explain::Facts> facts = explain::gather_facts(*trace, {.step = flags.step});
  stage.end();
  if (!facts) return fail(kUsage, facts_message_of(facts.error()));
  if (const auto reason = explain::why_not_replayed(*facts)) return fail(kFailed, *reason);
  RecordFunction graph_stage("whatif: graph");
  const simulate::Simulation simulation = explain::simulation_of(*facts);
  graph_stage.end();

  const bool fuses = std::any_of(changes.begin(), changes.end(), is_fuse);
  const auto chains =
      fuses ? explain::rules::fusable_chains(*facts) : std::vector<explain::rules::FusableChain>{};
  find_chains(chains, changes);
  RecordFunction replay_stage("whatif: replay");
  std::optional<simulate::Prediction> prediction;
  std::vector<simulate::Candidate> candidates;
  std::optional<report::CriticalPathReport> path;
  if (!changes.empty()) {
    auto predicted = simulate::predict(simulation, changes, base_of(changes));
    if (!predicted) {
      const bool is_of_fuse = predicted.error().message.find("'fuse ") != std::string::npos;
      return fail(kUsage, message_of(predicted.error()) +
                              (is_of_fuse ? largest_chains_text(*facts, chains) : ""));
    }
    prediction = *std::move(predicted);
  } else if (flags.critical_path) {
    path = report::critical_path_report(*facts, simulation);
  } else {
    candidates = simulate::try_changes(simulation);
  }
  replay_stage.end();
  if (!flags.out.empty()) return write_simulated(flags, simulation, changes, output);
  if (flags.json)
    output.write(report::whatif_json(*facts, simulation, prediction ? &*prediction : nullptr,
                                     changes, candidates, path ? &*path : nullptr));
  else if (path)
    output.write(report::critical_path_text(*facts, simulation, *path));
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
  const Option change = command.repeated_flag("--change", &flags->changes, "CHANGE",
                                              "a change to predict; repeat the flag to combine "
                                              "several (default: the usual changes, each alone)");
  const Option step =
      command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                          "use only this ProfilerStep (default: all but the first)");
  add_window_flag(command, &flags->part, step);
  const Option path =
      command.switch_flag("--critical-path", &flags->critical_path,
                          "the chain of work that decides how long the recorded step takes, and "
                          "how much longer the rest may take");
  const Option json =
      command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  const Option out = command.text_flag(
      "--out", &flags->out, "OUT.json.gz",
      "write the predicted trace, which opens like any other; needs --change", {Completes::kFile});
  command.switch_flag("--force", &flags->force, "overwrite OUT.json.gz").needs(out);
  path.excludes(change);
  out.needs(change).excludes(json);
  command.epilogue(R"(Changes:
  speed NAME 2x         GPU work of that kernel or operator takes half its time
  cpu 1.5x              Python, operators and calls on the CPU take 1/1.5 of their time
  remove NAME           that kernel, operator or range is gone, with what it launches
  remove-sync [NAME]    the CPU does not wait for the GPU (in that call, operator or range)
  no-profiler [US]      without the cost of recording: an estimate, or US microseconds per event
  cuda-graph            one launch per step
  pin [GB/S]            copies from pageable memory come from pinned memory. Without a rate:
                        that of the trace's pinned copies, else assumed from the GPU's link
  overlap-copies        copies between CPU and GPU run on a stream of their own
  fuse NAME             kernels in a row of each occurrence become one
  fuse CHAIN            so do chains that explain prints: 'fuse mul, add, tanh', 'fuse chain 1'
  gpu 1.5x, gpu NAME    all kernels faster, or as on another GPU (rough)
  copies 2x             copies take half their time
  communication 2x      collectives take half their time
  loader 2x             waiting for the DataLoader takes half its time
  workers 8 [from 2]    so many DataLoader workers
  batch 2x              a step does twice the work (rough)

NAME is a whole name, or a kernel's readable one. If no event has it, it means all events whose
name contains it.

Examples:
  lanescope whatif trace.json.gz                             the usual changes, best first
  lanescope whatif trace.json.gz --change "speed aten::mm 2x"
  lanescope whatif trace.json.gz --change remove-sync --change "cpu 1.5x"
  lanescope whatif trace.json.gz --change cuda-graph --out after.json.gz
  lanescope whatif trace.json.gz --critical-path

docs/definitions/whatif.md says what each change assumes and how sure a prediction is.
)");
  command.runs([flags](Output& output) -> int { return run_whatif(*flags, output); });
}

}  // namespace lanescope::cli

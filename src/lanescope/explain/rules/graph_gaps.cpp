// CUDA graphs are in use, and the GPU waits for the CPU between their replays.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lanescope/analysis/graph_replays.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::GraphReplay;
using analysis::IdleCause;
using analysis::Window;

namespace {

struct GraphGaps {
  std::vector<Window> between;  // replays
  std::int64_t idle_ns = 0;
  std::int64_t most_ns = 0;
  std::int64_t in_launches_ns =
      0;  // of idle_ns: while the CPU is in the call that launches the next replay
  SliceId launch_after_most = kNone<SliceId>;
  std::uint64_t replays = 0;   // in the steady steps
  std::uint64_t captures = 0;  // of new graphs, in the steady steps
  SliceId capture = kNone<SliceId>;
};

void find_captures(const Facts& facts, GraphGaps& found) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  for (const SliceId id : slices_starting_with(facts, "cudaStreamBeginCapture"))
    if (is_api_call(trace.kind(id)) && inside(windows, trace.start_ns(id))) {
      ++found.captures;
      found.capture = id;
    }
}

// A capture in every second step or more.
bool captures_again(const Facts& facts, const GraphGaps& found) {
  return found.captures * 2 >= std::max<std::size_t>(2, facts.selection.steady.size());
}

void tell_captures(const Facts& facts, const GraphGaps& found, Finding& finding) {
  append(finding.verdict, say(facts, " {} new [graph is|graphs are] captured [in {} steps].",
                              {count(found.captures), count(facts.selection.steady.size())}));
  Sentence line = say("the last capture");
  add_line(facts, found.capture, line);
  finding.evidence.insert(finding.evidence.begin(), {found.capture, std::move(line)});
  finding.try_next = {
      "a graph fits one set of shapes: pad inputs to a few sizes, capture a graph for each once, "
      "and keep them",
      "a capture and its instantiation cost as much as many steps; they belong before the loop"};
  finding.brief = say(facts, "A CUDA graph is captured again, {} [time|times] [in {} steps]",
                      {count(found.captures), count(facts.selection.steady.size())});
  finding.action = say("Pad inputs to a few sizes; capture a graph for each once, and keep it");
}

std::optional<GraphGaps> measure_graph_gaps(const Facts& facts) {
  const auto replays = analysis::find_graph_replays(*facts.trace, facts.links);
  std::vector<Window> between;
  std::int64_t idle_ns = 0, most_ns = 0, in_launches_ns = 0;
  const GraphReplay* after_most = nullptr;
  std::int64_t end_ns = 0;
  for (std::size_t i = 0; i < replays.size(); ++i) {
    if (i > 0 && replays[i].start_ns > end_ns && inside(facts.steady_windows, end_ns)) {
      const Window gap{end_ns, replays[i].start_ns};
      const IdleTimes times = idle_within_steady(facts, gap);
      const std::int64_t waiting = times[static_cast<std::size_t>(IdleCause::kHostLate)] +
                                   times[static_cast<std::size_t>(IdleCause::kAfterSync)] +
                                   times[static_cast<std::size_t>(IdleCause::kLaunchLatency)];
      between.push_back(gap);
      idle_ns += waiting;
      if (const SliceId launch = replays[i].launch; launch != kNone<SliceId>)
        in_launches_ns +=
            std::clamp<std::int64_t>(std::min(gap.end_ns, facts.trace->end_ns(launch)) -
                                         std::max(gap.start_ns, facts.trace->start_ns(launch)),
                                     0, waiting);
      if (waiting > most_ns) {
        most_ns = waiting;
        after_most = &replays[i];
      }
    }
    end_ns = std::max(end_ns, replays[i].end_ns);
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (between.size() < 2 || !after_most || share_of(idle_ns, wall_ns) < 0.05) return std::nullopt;
  GraphGaps found{.between = std::move(between),
                  .idle_ns = idle_ns,
                  .most_ns = most_ns,
                  .in_launches_ns = in_launches_ns,
                  .launch_after_most = after_most->launch};
  found.replays = static_cast<std::uint64_t>(std::count_if(
      replays.begin(), replays.end(),
      [&](const GraphReplay& replay) { return inside(facts.steady_windows, replay.start_ns); }));
  find_captures(facts, found);
  return found;
}

Finding tell_graph_gaps(const Facts& facts, const GraphGaps& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "CUDA graphs are in use, but between their replays the GPU waits {} [per "
                        "step] ({}) for the CPU.",
                        {ns(facts.per_step(found.idle_ns)), ratio(found.idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(found.idle_ns);
  finding.at_stake_ratio = share_of(found.idle_ns, wall_ns);
  finding.arithmetic.push_back(say(facts,
                                   "{} [gap|gaps] between replays, the longest wait in one is {}",
                                   {count(found.between.size()), ns(found.most_ns)}));
  finding.evidence.push_back(
      {found.launch_after_most, say("the replay that ended the longest wait")});
  add_host_evidence(
      facts, host_shares(facts, parts_within(host_late_stretches(facts), found.between)), finding);
  finding.try_next = {
      "prepare the next replay while this one runs: inputs on a side stream, sampling and "
      "scheduling without waiting for the result",
      "capture more in one graph: sampling, the copies into its inputs, several steps"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.between.size();
  finding.sample_noun = "gap";
  finding.brief = say("The GPU waits for the CPU between CUDA graph replays");
  finding.action = say("Prepare the next replay while this one runs, or capture more in one graph");
  if (found.in_launches_ns * 3 > found.idle_ns) {
    finding.try_next = {
        "the CPU is still launching the next graph: capture several graphs, or several steps, as "
        "one, and fewer kernels"};
    finding.action = say("Launching a graph takes longer than its work: capture more in one graph");
    // One replay a step: there is nothing to join.
    if (facts.steps.marked && found.replays <= facts.selection.steady.size()) {
      finding.try_next = {
          "the CPU is still launching the graph: fewer and longer kernels, fused before the "
          "capture"};
      finding.action =
          say("Fuse kernels before the capture: a graph of fewer nodes is launched faster");
    }
    finding.arithmetic.push_back(
        say(facts, "{} [per step] of it the CPU is in the call that launches the next replay",
            {ns(facts.per_step(found.in_launches_ns))}));
  }
  if (captures_again(facts, found)) tell_captures(facts, found, finding);
  return finding;
}

}  // namespace

extern constinit const Rule graph_gaps_rule = {
    .id = "graph-gaps",
    .question = "does the GPU wait between replays of a CUDA graph?",
    .order = 730,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_graph_gaps, tell_graph_gaps>,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules

// CUDA graphs are in use, and the GPU waits for the CPU between their replays.
#include <optional>

#include "lanescope/analysis/graph_replays.h"
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
  SliceId launch_after_most = kNone<SliceId>;
};

std::optional<GraphGaps> measure_graph_gaps(const Facts& facts) {
  const auto replays = analysis::find_graph_replays(*facts.trace, facts.links);
  std::vector<Window> between;
  std::int64_t idle_ns = 0, most_ns = 0;
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
      if (waiting > most_ns) {
        most_ns = waiting;
        after_most = &replays[i];
      }
    }
    end_ns = std::max(end_ns, replays[i].end_ns);
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (between.size() < 2 || !after_most || share_of(idle_ns, wall_ns) < 0.05) return std::nullopt;
  return GraphGaps{.between = std::move(between),
                   .idle_ns = idle_ns,
                   .most_ns = most_ns,
                   .launch_after_most = after_most->launch};
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
  return finding;
}

}  // namespace

extern constinit const Rule graph_gaps_rule = {
    .id = "graph-gaps",
    .question = "does the GPU wait between replays of a CUDA graph?",
    .order = 730,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_graph_gaps, tell_graph_gaps>,
};

}  // namespace lanescope::explain::rules

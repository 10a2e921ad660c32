// Most kernels come out of graph replays: the trace does not name their operators.
#include <optional>

#include "lanescope/analysis/graph_replays.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::GraphReplay;

namespace {

struct GraphKernels {
  std::uint64_t kernels = 0;
  std::uint64_t replayed = 0;
  std::size_t replay_count = 0;
  std::vector<analysis::BorrowedName> names;
  std::int64_t all_ns = 0;
  std::int64_t borrowed_ns = 0;
  std::int64_t generated_ns = 0;
};

std::optional<GraphKernels> measure_collapsed_graph(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto replays = analysis::find_graph_replays(trace, facts.links);
  if (replays.empty()) return std::nullopt;
  std::uint64_t kernels = 0, replayed = 0;
  for (const DeviceWork& work : facts.device().timeline.work)
    kernels += trace.kind(work.slice) == CategoryKind::kKernel ? 1 : 0;
  for (const GraphReplay& replay : replays) replayed += replay.kernel_count;
  if (replayed * 2 < kernels || replayed == 0) return std::nullopt;
  auto names = analysis::borrow_operator_names(trace, facts.links, replays);
  std::int64_t all_ns = 0, borrowed_ns = 0, generated_ns = 0;
  for (const auto& entry : names) {
    all_ns += entry.gpu_ns;
    if (!entry.op.empty())
      borrowed_ns += entry.gpu_ns;
    else if (trace.text(entry.kernel).starts_with("triton_"))
      generated_ns += entry.gpu_ns;
  }
  return GraphKernels{.kernels = kernels,
                      .replayed = replayed,
                      .replay_count = replays.size(),
                      .names = std::move(names),
                      .all_ns = all_ns,
                      .borrowed_ns = borrowed_ns,
                      .generated_ns = generated_ns};
}

Finding tell_collapsed_graph(const Facts& facts, const GraphKernels& found) {
  const Trace& trace = *facts.trace;
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict = say(
      facts,
      "{} of {} [kernel|kernels] ran in CUDA graphs (replays: {}): the trace names their graph, "
      "but not their operators, shapes or lines, so numbers per operator do not include them.",
      {count(found.replayed), count(found.kernels), count(found.replay_count)});
  finding.at_stake_ns = 0;
  if (found.borrowed_ns > 0)
    finding.arithmetic.push_back(
        say("{} of their GPU time is in kernels that an operator outside of the graph also "
            "launched, with the same grid and block: the graph's kernels come from that operator",
            {ratio(found.borrowed_ns, found.all_ns)}));
  else
    finding.arithmetic.push_back(
        say("no operator outside of the graphs launched one of these kernels with the same grid "
            "and block"));
  if (found.generated_ns > 0)
    finding.arithmetic.push_back(
        say("{} is in generated kernels, whose own names list their operators",
            {ratio(found.generated_ns, found.all_ns)}));
  std::size_t shown = 0;
  for (const auto& entry : found.names) {
    if (shown == 3) break;
    if (entry.op.empty() && shown == 2 && found.borrowed_ns > 0) continue;
    ++shown;
    finding.evidence.push_back(
        {entry.example, entry.op.empty()
                            ? say("{} x{}, {}", {kernel(trace.text(entry.kernel)),
                                                 count(entry.run_count), ns(entry.gpu_ns)})
                            : say("{} x{}, {}: {} elsewhere",
                                  {kernel(trace.text(entry.kernel)), count(entry.run_count),
                                   ns(entry.gpu_ns), name(entry.op)})});
  }
  finding.try_next = {
      "record one step without the graph in the same trace: equal kernels then get their "
      "operators' names"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = found.replay_count;
  finding.sample_noun = "replay";
  return finding;
}

}  // namespace

extern constinit const Rule collapsed_graph_rule = {
    .id = "collapsed-graph",
    .question = "which operators do a CUDA graph's kernels come from?",
    .order = 890,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_collapsed_graph, tell_collapsed_graph>,
};

}  // namespace lanescope::explain::rules

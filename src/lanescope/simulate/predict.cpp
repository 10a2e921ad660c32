#include "lanescope/simulate/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/base/share_work.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/simulate/recording_cost.h"

namespace lanescope::simulate {
namespace {

// How much of the fitted cost of recording is taken out: less, as fitted, more.
constexpr double kShares[] = {1.0, 0.4, kMostRecording};

// Edges and their replay. Large: each next replay uses the memory of the last one.
struct Scratch {
  std::vector<Edge> edges;
  Replay replay;
};

// `result`: a replay with these edges, or with shorter ones: pieces of the path are as long as replayed.
Outcome outcome_of_replay(const StepGraph& graph, std::span<const Edge> edges, const Replay& result,
                          PathOwners owners) {
  Outcome outcome;
  outcome.step_ns = step_ns(graph, result);
  outcome.busy_ns = busy_ns_per_step(graph, result);
  outcome.path = critical_path(graph, edges, result, owners);
  outcome.limit = limit_of(outcome.path);
  return outcome;
}

Outcome outcome_of(const StepGraph& graph, std::span<const Edge> edges, Replay& result,
                   PathOwners owners) {
  replay_into(graph, edges, result);
  return outcome_of_replay(graph, edges, result, owners);
}

double ratio(std::int64_t now, std::int64_t was) {
  return was == 0 ? 0 : static_cast<double>(now - was) / static_cast<double>(was);
}

// The length of a step, replayed with scratch.edges.
std::int64_t replayed_step_ns(const StepGraph& graph, Scratch& scratch) {
  replay_into(graph, scratch.edges, scratch.replay);
  return step_ns(graph, scratch.replay);
}

Identity identity_of(const GraphInput& input, const Outcome& recorded,
                     std::span<const analysis::Window> windows) {
  Identity identity;
  analysis::IntervalUnion busy;
  for (const analysis::DeviceWork& work : input.devices[input.main_device]->work)
    busy.add(work.start_ns, work.end_ns);
  busy.finish();
  std::vector<std::int64_t> lengths;
  for (const std::size_t step : input.steady) {
    lengths.push_back(windows[step].length_ns());
    identity.recorded_busy_ns +=
        busy.length_within_ns(windows[step].start_ns, windows[step].end_ns);
  }
  if (!lengths.empty()) identity.recorded_busy_ns /= static_cast<std::int64_t>(lengths.size());
  identity.recorded_ns = analysis::median_of_steps(std::move(lengths));
  identity.replayed_ns = recorded.step_ns;
  identity.replayed_busy_ns = recorded.busy_ns;
  return identity;
}

std::int64_t launches_per_step(const StepGraph& graph, const GraphInput& input,
                               std::span<const analysis::Window> windows) {
  std::vector<analysis::Window> steady;
  for (const std::size_t step : input.steady) steady.push_back(windows[step]);
  const auto launches =
      std::count_if(graph.works.begin(), graph.works.end(), [&](const GpuWork& work) {
        return work.on_main_device &&
               analysis::is_inside(steady, graph.trace->start_ns(work.slice));
      });
  return launches / static_cast<std::int64_t>(std::max<std::size_t>(1, steady.size()));
}

std::int64_t unprofiled_step_ns(const StepGraph& graph, double share, Replay& replay) {
  replay_without_recording(graph, share, replay);
  return step_ns(graph, replay);
}

// Changes are applied in an order of their own, so that theirs does not matter: no-profiler
// subtracts, so it comes before what multiplies; a graph asks which waits are left.
Result<void> apply_all(const Simulation& simulation, std::span<const Change> changes, Base base,
                       double share, std::vector<Edge>& edges, Prediction* prediction) {
  std::vector<const Change*> order;
  for (const Change& change : changes) order.push_back(&change);
  const auto place = [](ChangeKind kind) {
    return kind == ChangeKind::kNoProfiler  ? 0
           : kind == ChangeKind::kCudaGraph ? 100
                                            : 1 + static_cast<int>(kind);
  };
  sort_rows(order.begin(), order.end(), [&](const Change* a, const Change* b) {
    return std::pair(place(a->kind), a->text) < std::pair(place(b->kind), b->text);
  });
  edges = simulation.graph->edges;
  if (base == Base::kUnprofiled) take_out_recording(*simulation.graph, edges, share);
  for (const Change* change : order) {
    // The base has it already.
    if (base == Base::kUnprofiled && change->kind == ChangeKind::kNoProfiler) continue;
    LANESCOPE_TRY(Applied applied,
                  apply_change(*simulation.graph, *simulation.nesting, *change, edges));
    if (!prediction) continue;
    for (std::string& note : applied.notes)
      prediction->notes.push_back(change->text + ": " + std::move(note));
    if (!applied.assumed.empty()) prediction->assumed = std::move(applied.assumed);
  }
  return {};
}

// The three kernels of the main device with the longest time in total. By readable names: variants of one kernel count as one.
std::vector<std::string> longest_kernels(const StepGraph& graph) {
  std::map<std::string, std::int64_t> times;
  std::unordered_map<std::uint32_t, std::int64_t> raw_times;  // by raw name
  for (const GpuWork& work : graph.works)
    if (work.on_main_device && graph.trace->kind(work.slice) == CategoryKind::kKernel)
      raw_times[raw(graph.trace->slices().name[raw(work.slice)])] +=
          graph.trace->dur_ns(work.slice);
  for (const auto& [name, time_ns] : raw_times)
    times[names::readable_kernel_name(graph.trace->text(StringId{name}))] += time_ns;
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (auto& [name, time] : times) sorted.emplace_back(-time, name);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sorted.size() && i < 3; ++i) names.push_back(sorted[i].second);
  return names;
}

double ns_per_step(const CriticalPath& path, std::int64_t time_ns) {
  return static_cast<double>(time_ns) / static_cast<double>(std::max<std::size_t>(path.steps, 1));
}

double cpu_ns_per_step(const CriticalPath& path) {
  return ns_per_step(
      path, path.of(PathKind::kHost) + path.of(PathKind::kCall) + path.of(PathKind::kData));
}

}  // namespace

std::int64_t steps_without_profiler_ns(const StepGraph& graph) {
  Replay replay;
  replay_without_recording(graph, kShares[0], replay);
  return steady_ns(graph, replay);
}

double Identity::error_ratio() const { return ratio(replayed_ns, recorded_ns); }
double Identity::slack_ratio() const { return ratio(without_slack_ns, recorded_ns); }

bool Prediction::is_unsure() const {
  const double spread = high_ratio - low_ratio;
  return spread > 0.4 || (spread > 0.02 && low_ratio * 2 < high_ratio);
}

std::int64_t Unprofiled::recording_error_ns() const {
  const std::int64_t half_ns = std::abs(longest_ns - shortest_ns) / 2;
  const bool is_of_many = launches >= kManyLaunches &&
                          cpu_ns_per_step(outcome.path) >=
                              kLeastOnCpu * ns_per_step(outcome.path, outcome.path.total_ns);
  return is_of_many ? static_cast<std::int64_t>(static_cast<double>(half_ns) * kErrorOfManyLaunches)
                    : half_ns;
}

std::int64_t Unprofiled::cpu_error_ns() const {
  return static_cast<std::int64_t>(std::hypot(static_cast<double>(recording_error_ns()),
                                              kCpuSpeedError * cpu_ns_per_step(outcome.path)));
}

std::int64_t Unprofiled::error_ns() const {
  const double rest_ns =
      ns_per_step(outcome.path, outcome.path.total_ns) - cpu_ns_per_step(outcome.path);
  return static_cast<std::int64_t>(
      std::hypot(static_cast<double>(cpu_error_ns()), kGpuSpeedError * rest_ns));
}

bool Simulation::explains_step() const { return std::abs(identity.slack_ratio()) < 0.1; }

Simulation simulate(std::shared_ptr<const StepGraph> graph, const GraphInput& input,
                    const analysis::SliceNesting& nesting,
                    std::span<const analysis::Window> windows, unsigned threads,
                    PathOwners owners) {
  Simulation simulation;
  simulation.graph = std::move(graph);
  simulation.nesting = &nesting;
  simulation.owners = owners;
  const StepGraph& made = *simulation.graph;
  Outcome& recorded = simulation.recorded;
  Unprofiled& unprofiled = simulation.unprofiled;
  std::int64_t without_slack_ns = 0;
  // The two with a path take longest.
  const std::function<void(Replay&)> replays[] = {
      [&](Replay& replay) { recorded = outcome_of(made, made.edges, replay, owners); },
      [&](Replay& replay) {
        replay_without_recording(made, kShares[0], replay);
        unprofiled.outcome = outcome_of_replay(made, made.edges, replay, owners);
      },
      [&](Replay& replay) { unprofiled.longest_ns = unprofiled_step_ns(made, kShares[1], replay); },
      [&](Replay& replay) {
        unprofiled.shortest_ns = unprofiled_step_ns(made, kShares[2], replay);
      },
      [&](Replay& replay) {
        replay_without_slack(made, replay);
        without_slack_ns = step_ns(made, replay);
      }};
  const std::size_t workers = std::min<std::size_t>(std::max(threads, 1u), std::size(replays));
  share_work(workers, static_cast<unsigned>(workers), [&](std::size_t worker) {
    Replay replay;
    for (std::size_t i = worker; i < std::size(replays); i += workers) replays[i](replay);
  });
  simulation.identity = identity_of(input, recorded, windows);
  simulation.identity.without_slack_ns = without_slack_ns;
  unprofiled.launches = launches_per_step(made, input, windows);
  return simulation;
}

Result<std::vector<Edge>> changed_edges(const Simulation& simulation,
                                        std::span<const Change> changes, Base base) {
  std::vector<Edge> edges;
  LANESCOPE_TRY_VOID(apply_all(simulation, changes, base, 1.0, edges, nullptr));
  return edges;
}

Result<Prediction> predict(const Simulation& simulation, std::span<const Change> changes,
                           Base base) {
  Prediction prediction;
  prediction.before =
      base == Base::kUnprofiled ? simulation.unprofiled.outcome : simulation.recorded;
  Scratch scratch;
  {
    LANESCOPE_TRY_VOID(
        apply_all(simulation, changes, base, kShares[0], scratch.edges, &prediction));
    prediction.after =
        outcome_of(*simulation.graph, scratch.edges, scratch.replay, simulation.owners);
  }
  prediction.low_gain_ns = prediction.high_gain_ns = prediction.gain_ns();
  prediction.low_ratio = prediction.high_ratio =
      -ratio(prediction.after.step_ns, prediction.before.step_ns);
  // Where recording delays neither step, the two ends are the same.
  const bool is_certain =
      simulation.unprofiled.recording_error_ns() * 100 < simulation.unprofiled.outcome.step_ns &&
      prediction.after.limit != Limit::kCpu;
  if (base == Base::kRecorded || is_certain) return prediction;
  const std::pair<double, std::int64_t> ends[] = {{kShares[1], simulation.unprofiled.longest_ns},
                                                  {kShares[2], simulation.unprofiled.shortest_ns}};
  for (const auto& [share, before_ns] : ends) {
    LANESCOPE_TRY_VOID(apply_all(simulation, changes, base, share, scratch.edges, nullptr));
    const std::int64_t gain = before_ns - replayed_step_ns(*simulation.graph, scratch);
    prediction.low_gain_ns = std::min(prediction.low_gain_ns, gain);
    prediction.high_gain_ns = std::max(prediction.high_gain_ns, gain);
    prediction.low_ratio = std::min(prediction.low_ratio, -ratio(before_ns - gain, before_ns));
    prediction.high_ratio = std::max(prediction.high_ratio, -ratio(before_ns - gain, before_ns));
  }
  return prediction;
}

std::vector<Candidate> try_changes(const Simulation& simulation) {
  std::vector<std::string> texts = {"remove-sync",     "cuda-graph", "pin",
                                    "overlap-copies",  "workers 4",  "cpu 2x",
                                    "communication 2x"};
  for (const std::string& name : longest_kernels(*simulation.graph))
    texts.push_back(fmt::format("speed {} 2x", name));
  std::vector<Candidate> candidates;
  for (const std::string& text : texts) {
    auto change = parse_change(text);
    if (!change) continue;
    auto prediction = predict(simulation, {&*change, 1}, Base::kUnprofiled);
    if (!prediction || prediction->is_unsure() ||
        prediction->gain_ns() * 100 < prediction->before.step_ns)
      continue;
    candidates.push_back({*std::move(change), *std::move(prediction)});
  }
  sort_rows(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.prediction.gain_ns() > b.prediction.gain_ns();
  });
  return candidates;
}

}  // namespace lanescope::simulate

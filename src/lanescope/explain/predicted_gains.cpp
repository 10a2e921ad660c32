#include "lanescope/explain/predicted_gains.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/memory_watch.h"
#include "lanescope/base/share_work.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/do_first.h"
#include "lanescope/explain/rule.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/explain/shared_graph.h"
#include "lanescope/explain/step_path.h"

namespace lanescope::explain {
namespace {

using simulate::PathKind;

constexpr std::size_t kMostPredictions = 8;
constexpr double kMostFactor = 100;
// Times of a trace are rounded to about a nanosecond, and no launch takes less: what is shorter is no step of a program.
constexpr std::int64_t kLeastStepNs = 1'000;

Fix fix_of(const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  return rule ? rule->fix : Fix::kNone;
}

// A fix of the GPU's work, of which a replay removes all. One of the CPU's often spares more than the replay removes.
bool is_of_gpu(const Finding& finding) {
  const Fix fix = fix_of(finding);
  return finding.spared_calls.empty() && (fix == Fix::kGpu || fix == Fix::kCommunication ||
                                          fix == Fix::kPin || fix == Fix::kOverlapCopies);
}

bool keeps_number_of_kernels(const Finding* finding) {
  const Rule* rule = find_rule(finding->rule);
  return rule && rule->keeps_kernels && is_of_gpu(*finding);
}

// The fix spares code that takes long enough, without an event, for recording to cost next to nothing of it. Of shorter pieces
// nobody knows how much of their time is the profiler's.
bool knows_spared_time(const Finding& finding) {
  constexpr std::int64_t kLeastPieceNs = 100'000;  // on average
  std::int64_t time_ns = 0;
  for (const analysis::Window& window : finding.spared_windows) time_ns += window.length_ns();
  return time_ns > 0 &&
         time_ns >= kLeastPieceNs * static_cast<std::int64_t>(finding.spared_windows.size());
}

simulate::Change removal_of_windows(const Finding& finding) {
  simulate::Change removal;
  removal.kind = simulate::ChangeKind::kRemove;
  removal.text = "time of " + finding.rule;
  removal.thread = finding.spared_thread;
  removal.windows = finding.spared_windows;
  return removal;
}

// How many times faster `total_ns` is without `saved_ns`.
double factor_without(std::int64_t saved_ns, std::int64_t total_ns) {
  if (total_ns <= 0 || saved_ns <= 0) return 1;
  const double rest = static_cast<double>(total_ns - saved_ns);
  return std::clamp(rest <= 0 ? kMostFactor : static_cast<double>(total_ns) / rest, 1.0,
                    kMostFactor);
}

std::int64_t mean_of_path_ns(const simulate::CriticalPath& path) {
  return path.total_ns / static_cast<std::int64_t>(std::max<std::size_t>(path.steps, 1));
}

// Is the mean of the steps more than a tenth above their median?
bool are_uneven(const simulate::Simulation& simulation) {
  return wide(mean_of_path_ns(simulation.recorded.path)) * 10 >
         wide(simulation.recorded.step_ns) * 11;
}

// How long the busiest stream of the main device works, in all steady steps.
std::int64_t longest_stream_ns(const Facts& facts, const simulate::Simulation& simulation) {
  std::span<const simulate::Edge> edges = simulation.graph->edges;
  std::vector<simulate::Edge> without_recording;
  // Recording makes only the work of CUDA graphs longer.
  if (!simulation.graph->graph_launches.empty()) {
    without_recording = simulation.graph->edges;
    simulate::take_out_recording(*simulation.graph, without_recording);
    edges = without_recording;
  }
  std::map<TrackId, std::int64_t> times;
  for (const simulate::GpuWork& work : simulation.graph->works)
    if (work.on_main_device && work.work_edge != simulate::kNoIndex &&
        inside(facts.steady_windows, facts.trace->start_ns(work.slice)))
      times[facts.trace->slices().track[raw(work.slice)]] += edges[work.work_edge].weight_ns;
  std::int64_t longest_ns = 0;
  for (const auto& [stream, time_ns] : times) longest_ns = std::max(longest_ns, time_ns);
  return longest_ns;
}

// How long the GPU waits, in all steady steps, while the CPU is in one piece of code without an event for a millisecond or more.
// Recording costs some microseconds an event, so next to nothing of that time is the profiler's.
std::int64_t waiting_for_long_code_ns(const Facts& facts) {
  constexpr std::int64_t kLongCodeNs = 1'000'000;
  if (!facts.host) return 0;
  std::int64_t total_ns = 0;
  analysis::HostReader host(*facts.host);
  for (const HostStretch& stretch : host_late_stretches(facts))
    host.visit(stretch.thread, stretch.start_ns, stretch.end_ns,
               [&](SliceId, std::int64_t from_ns, std::int64_t to_ns) {
                 if (to_ns - from_ns >= kLongCodeNs) total_ns += to_ns - from_ns;
               });
  return total_ns;
}

void use_mean(const simulate::Simulation& simulation, std::int64_t unprofiled_ns, StepBase& base) {
  const double longer = static_cast<double>(unprofiled_ns) /
                        static_cast<double>(std::max<std::int64_t>(1, base.step_ns));
  const auto as_much_longer = [&](std::int64_t error_ns) {
    return static_cast<std::int64_t>(static_cast<double>(error_ns) * longer);
  };
  base = {mean_of_path_ns(simulation.recorded.path), unprofiled_ns, as_much_longer(base.error_ns),
          as_much_longer(base.cpu_error_ns)};
}

// Puts a sentence about the step's limit right after the headline's own: the notes about steps come after both.
void insert_before_notes(Explanation& explanation, const Sentence& more) {
  Sentence& headline = explanation.headline;
  Sentence notes;
  notes.pattern = headline.pattern.substr(explanation.notes_from);
  notes.values.assign(
      headline.values.begin() + static_cast<std::ptrdiff_t>(explanation.note_values_from),
      headline.values.end());
  headline.pattern.resize(explanation.notes_from);
  headline.values.resize(explanation.note_values_from);
  append(headline, more);
  append(headline, notes);
}

// Recording slows the CPU and not the GPU. If a step is CPU-bound only because of this, the headline and its
// finding say what bounds the step without recording. Headlines of no single limit are corrected, too: the table below says what
// the GPU works without the profiler.
void correct_cpu_bound(const Facts& facts, const GainModel& gains, Explanation& explanation) {
  const StepBase& base = gains.base();
  const std::int64_t busy_ns = gains.busy_ns(), mean_ns = gains.mean_step_ns();
  // Copies and collectives alone on the GPU are no work that keeps it busy: a stream of their own would hide them.
  const auto& part = facts.wall.partition;
  const bool computes =
      (part.exposed_copy_ns + part.exposed_communication_ns) * 10 < part.busy_ns();
  Sentence& headline = explanation.headline;
  if (!is_gpu_bound_without_profiler(gains)) {
    // Two thirds of the step or less are no limit, however large the error of the prediction is.
    if (!is_gpu_bound(busy_ns, mean_ns - base.cpu_error_ns) || busy_ns * 3 <= mean_ns * 2 ||
        !computes ||
        (headline.limit != LimitWords::kCpuBound && headline.limit != LimitWords::kNoSingle))
      return;
    insert_before_notes(
        explanation,
        say(facts, " Without the profiler [a step takes] {} +- {}: it may be GPU-bound.",
            {linked(ns(base.step_ns), shows::kStep), linked(ns(base.error_ns), shows::kStep)}));
    replace_limit(headline, headline.limit == LimitWords::kCpuBound
                                ? say("CPU-bound with the profiler:")
                                : say("No single limit with the profiler:"));
    explanation.headline_has_base = true;
    return;
  }
  const Sentence start = say(
      facts,
      "GPU-bound without the profiler: [a step then takes] about {} +- {}, and the GPU works {} of "
      "it. In the recording,",
      {linked(ns(base.step_ns), shows::kStep), linked(ns(base.error_ns), shows::kStep),
       linked(ns(std::min(busy_ns, base.step_ns)), shows::kBusy)});
  const auto correct = [&](Sentence& sentence) {
    if (sentence.limit == LimitWords::kCpuBound || computes) replace_limit(sentence, start);
  };
  const bool had_limit = headline.limit != LimitWords::kNone;
  correct(headline);
  explanation.headline_has_base = had_limit && headline.limit == LimitWords::kNone;
  for (Finding& finding : explanation.findings)
    if (finding.kind == FindingKind::kBound) correct(finding.verdict);
}

}  // namespace

bool is_nearly_all_gpu_work(std::int64_t busy_ns, const StepBase& base) {
  return busy_ns * 20 >= base.step_ns * 19;
}

bool is_gpu_bound_without_profiler(const GainModel& gains) {
  // Half of the error is the margin. Of 92 such steps that were also timed, 24 do not pass it; in the others the GPU worked for
  // 80 % of the timed step or more, in all 92 for 61 % or more (docs/measurements/whatif.md).
  return is_gpu_bound(gains.busy_ns(), gains.mean_step_ns() + gains.base().cpu_error_ns / 2);
}

bool is_of_cpu(const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  if (!rule) return false;
  return rule->fix == Fix::kCpu || rule->fix == Fix::kCudaGraph || rule->fix == Fix::kRemoveSync ||
         rule->fix == Fix::kLoader || rule->stake_is_waiting;
}

std::optional<std::string> why_not_replayed(const Facts& facts) {
  if (facts.vendor)
    return fmt::format(
        "expected kernels and copies of a GPU with their launch calls, found the rows of the {}. "
        "For those it is not defined yet which call launched them and what waits for them. "
        "`lanescope explain` tells what is known of them",
        facts.vendor->name);
  if (!facts.main_device)
    return "expected GPU work in the trace, found none; record with GPU activities "
           "(ProfilerActivity.CUDA)";
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

simulate::Simulation simulation_of(const Facts& facts, simulate::PathOwners owners) {
  // Two replays at a time take twice the memory of one: not of large traces, nor where a group limits it.
  constexpr std::size_t kSmallTrace = 20'000, kLargeTrace = 20'000'000;  // slices
  const std::size_t slices = facts.trace->slices().size();
  const bool takes_one = slices < kSmallTrace || slices >= kLargeTrace || MemoryWatch::of_process();
  const unsigned threads = facts.threads == 0 ? takes_one ? 1 : usual_threads() : facts.threads;
  const GraphSource source(facts);
  return simulate::simulate(step_graph(facts), source.input(), facts.nesting,
                            facts.device().windows, threads, owners);
}

std::shared_ptr<const GainModel> GainModel::of(const Facts& facts) {
  if (why_not_replayed(facts) || facts.trace->import_stats().is_truncated()) return nullptr;
  auto model = std::make_shared<GainModel>();
  model->simulation_ = simulation_of(facts, simulate::PathOwners::kLeftOut);
  const simulate::Simulation& simulation = model->simulation_;
  if (!simulation.explains_step()) return nullptr;
  model->base_ = {simulation.recorded.step_ns, simulation.unprofiled.outcome.step_ns,
                  simulation.unprofiled.error_ns(), simulation.unprofiled.cpu_error_ns()};
  if (are_uneven(simulation)) use_mean(simulation, model->mean_step_ns(), model->base_);
  if (model->base_.step_ns < kLeastStepNs) return nullptr;
  if (const std::int64_t long_ns = waiting_for_long_code_ns(facts); long_ns > 0)
    model->keep_waiting(facts.per_step(long_ns));
  model->longest_stream_ns_ = facts.per_step(longest_stream_ns(facts, simulation));
  model->between_queued_ns_ =
      facts.per_step(facts.wall.idle_by(analysis::IdleCause::kBetweenQueued));
  const simulate::CriticalPath& path = simulation.recorded.path;
  const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(path.steps, 1));
  model->host_path_ns_ = (path.of(PathKind::kHost) + path.of(PathKind::kCall)) / steps;
  model->loader_ns_ = path.of(PathKind::kData) / steps;
  bool pageable[2] = {}, pinned[2] = {};  // from the GPU, to it
  for (const simulate::GpuWork& work : simulation.graph->works) {
    const std::string_view label = facts.trace->name(work.slice);
    const int to_device = simulate::is_copy_to_device(label) ? 1 : 0;
    const bool is_rated = facts.trace->slice_args(work.slice).integer(ArgKey::kBytes).value_or(0) >=
                          simulate::kLeastRatedCopyBytes;
    if (is_rated && label.find("Pageable") != std::string_view::npos) pageable[to_device] = true;
    if (is_rated && label.find("Pinned") != std::string_view::npos) pinned[to_device] = true;
    if (!work.on_main_device || !inside(facts.steady_windows, facts.trace->start_ns(work.slice)))
      continue;
    const std::int64_t time_ns = facts.trace->dur_ns(work.slice);
    if (work.work == analysis::WorkClass::kCompute) model->compute_ns_ += time_ns;
    if (work.work == analysis::WorkClass::kCommunication) model->communication_ns_ += time_ns;
  }
  model->knows_pinned_rate_ = (pinned[0] || !pageable[0]) && (pinned[1] || !pageable[1]);
  model->compute_ns_ = facts.per_step(model->compute_ns_);
  model->communication_ns_ = facts.per_step(model->communication_ns_);
  return model;
}

// A replay with a faster CPU begins long code earlier, while the GPU has still work: but how much faster is an estimate.
void GainModel::keep_waiting(std::int64_t waiting_ns) {
  least_step_ns_ = std::min(base_.recorded_ns, busy_ns() + waiting_ns);
  base_.step_ns = std::max(base_.step_ns, least_step_ns_);
}

// The GPU's work stays when the CPU is faster. Where launches stay, so do the pauses between queued work. Without a wait, work
// of several streams may run at once. Other fixes may take the whole step.
std::int64_t GainModel::rest_without(const Finding& finding) const {
  if (!is_of_cpu(finding)) return 0;
  const Rule* rule = find_rule(finding.rule);
  if (rule->fix == Fix::kRemoveSync) return std::min(busy_ns(), longest_stream_ns_);
  const bool keeps_launches = rule->fix == Fix::kCpu || rule->stake_is_waiting;
  return std::max<std::int64_t>(0, busy_ns() - finding.gone_work_ns) +
         (keeps_launches ? between_queued_ns_ : 0);
}

std::int64_t GainModel::at_most_ns(const Finding& finding) const {
  std::int64_t most_ns = base_.step_ns - rest_without(finding);
  if (finding.most_ratio < 1)
    most_ns = std::min(most_ns, static_cast<std::int64_t>(finding.most_ratio *
                                                          static_cast<double>(base_.step_ns)));
  const Rule* rule = find_rule(finding.rule);
  // If calls no longer run, the GPU is spared at most all of its waiting.
  if (rule && rule->fix == Fix::kCalls)
    most_ns = std::min(most_ns, finding.at_stake_ns - finding.waiting_ns +
                                    std::max<std::int64_t>(0, most_ns - busy_ns()));
  if (rule && rule->is_about_single_steps)
    most_ns = std::min(most_ns, replayed_mean_ns() - simulation_.unprofiled.outcome.step_ns);
  if (finding.gain.state != Gain::State::kPredicted && finding.gain.most_ns >= 0)
    most_ns = std::min(most_ns, finding.gain.most_ns);
  return std::clamp<std::int64_t>(finding.at_stake_ns, 0, std::max<std::int64_t>(0, most_ns));
}

std::int64_t GainModel::most_of(std::span<const Finding* const> findings) const {
  std::int64_t of_cpu_ns = 0, of_others_ns = 0, rest_ns = base_.step_ns;
  for (const Finding* finding : findings) {
    (is_of_cpu(*finding) ? of_cpu_ns : of_others_ns) += at_most_ns(*finding);
    if (is_of_cpu(*finding)) rest_ns = std::min(rest_ns, rest_without(*finding));
  }
  of_cpu_ns = std::min(of_cpu_ns, std::max<std::int64_t>(0, base_.step_ns - rest_ns));
  return std::min(base_.step_ns, of_cpu_ns + of_others_ns);
}

std::int64_t GainModel::shown_ns(const Finding& finding) const {
  return finding.gain.state == Gain::State::kPredicted || finding.gain.spread_ns > 0
             ? finding.gain.gain_ns
             : at_most_ns(finding);
}

simulate::Change GainModel::removal_of_waits(const Finding& finding) const {
  simulate::Change removal;
  removal.kind = simulate::ChangeKind::kRemoveSync;
  removal.text = "remove-sync";
  removal.slices = finding.spared_waits;
  return removal;
}

std::optional<simulate::Prediction> GainModel::predict(
    std::span<const simulate::Change> changes) const {
  if (changes.empty()) return std::nullopt;
  auto prediction = simulate::predict(simulation_, changes, simulate::Base::kUnprofiled);
  return prediction ? std::optional(*std::move(prediction)) : std::nullopt;
}

// What a wait costs is not the idleness after it: in a step of many launches most of that stays, because the CPU is as late
// without the wait. A replay shows what goes.
Gain GainModel::gain_of(const Finding& finding) const {
  const Finding* const one[] = {&finding};
  const std::vector<simulate::Change> changes = changes_for(finding);
  std::optional<simulate::Prediction> prediction = predict(changes);
  Gain gain = prediction ? gain_from(*prediction, one) : Gain();
  if (fix_of(finding) != Fix::kRemoveSync || gain.state == Gain::State::kPredicted) return gain;
  const bool is_without_waits =
      changes.size() == 1 && changes.front().kind == simulate::ChangeKind::kRemoveSync;
  if (!is_without_waits) {
    const simulate::Change removal = removal_of_waits(finding);
    prediction = predict({&removal, 1});
  }
  gain.most_ns = -1;
  if (!prediction) return gain;
  // Where steps are uneven, the gain of the mean step counts, too.
  const std::int64_t mean_gain_ns =
      mean_of_path_ns(prediction->before.path) - mean_of_path_ns(prediction->after.path);
  gain.most_ns = std::max({prediction->high_gain_ns, mean_gain_ns, finding.own_cost_ns});
  return gain;
}

std::vector<simulate::Change> GainModel::changes_for(const Finding& finding) const {
  // If steps are uneven, a replay predicts the median step, but a gain is that of all steps.
  if (finding.kind != FindingKind::kCost || are_uneven(simulation_)) return {};
  if (!finding.spared_calls.empty()) {
    simulate::Change removal;
    removal.kind = simulate::ChangeKind::kRemove;
    removal.text = "calls of " + finding.rule;
    removal.slices = finding.spared_calls;
    if (finding.spared_windows.empty()) return {std::move(removal)};
    return {std::move(removal), removal_of_windows(finding)};
  }
  if (knows_spared_time(finding)) return {removal_of_windows(finding)};
  if (fix_of(finding) == Fix::kRemoveSync) return {removal_of_waits(finding)};
  std::vector<simulate::Change> changes;
  for (const std::string& text : change_texts(finding)) {
    auto change = simulate::parse_change(text);
    if (!change) return {};
    change->has_fewer_kernels =
        fix_of(finding) == Fix::kCalls && change->kind == simulate::ChangeKind::kGpu;
    if (change->has_fewer_kernels) change->text += ", fewer kernels";
    changes.push_back(*std::move(change));
  }
  return changes;
}

std::vector<std::string> GainModel::change_texts(const Finding& finding) const {
  const auto faster = [](const char* what, std::int64_t saved_ns, std::int64_t total_ns) {
    return fmt::format("{} {:.4f}x", what, factor_without(saved_ns, total_ns));
  };
  const std::int64_t saved_ns = finding.at_stake_ns;
  switch (fix_of(finding)) {
    case Fix::kNone:
      return {};
    case Fix::kGpu:
      return {faster("gpu", std::max(saved_ns, finding.gpu_saved_ns), compute_ns_)};
    case Fix::kCpu:
      return {faster("cpu", saved_ns, host_path_ns_)};
    case Fix::kCalls:
      return {faster("gpu", saved_ns - finding.waiting_ns, compute_ns_),
              faster("cpu", finding.waiting_ns, host_path_ns_)};
    case Fix::kCommunication:
      return {faster("communication", saved_ns, communication_ns_)};
    case Fix::kLoader:
      return {faster("loader", saved_ns, loader_ns_)};
    case Fix::kRemoveSync:
      return {"remove-sync"};
    case Fix::kCudaGraph:
      return {"cuda-graph"};
    case Fix::kPin:
      // Without one pinned copy in the trace, it is unknown how fast such copies are here.
      if (!knows_pinned_rate_) return {};
      return {"pin"};
    case Fix::kOverlapCopies:
      return {"overlap-copies"};
  }
  return {};
}

Gain GainModel::gain_of(std::span<const Finding* const> findings) const {
  std::vector<simulate::Change> changes;
  for (const Finding* finding : findings) {
    std::vector<simulate::Change> its = changes_for(*finding);
    if (its.empty()) return {};
    for (simulate::Change& change : its) {
      const bool known = std::any_of(changes.begin(), changes.end(),
                                     [&](const auto& each) { return each.text == change.text; });
      if (!known) changes.push_back(std::move(change));
    }
  }
  const auto prediction = predict(changes);
  return prediction ? gain_from(*prediction, findings) : Gain();
}

Gain GainModel::gain_from(const simulate::Prediction& prediction,
                          std::span<const Finding* const> findings) const {
  Gain gain;
  // A gain that may be worth it is unsure, not nothing.
  const double least_ns = kLeastGain * static_cast<double>(base_.step_ns);
  const bool may_gain =
      static_cast<double>(prediction.gain_ns()) < least_ns && prediction.high_ratio >= kLeastGain;
  gain.state = prediction.is_unsure() || may_gain ? Gain::State::kUnsure : Gain::State::kPredicted;
  const std::int64_t most_ns = most_of(findings);
  gain.gain_ns = std::clamp<std::int64_t>(prediction.gain_ns(), 0, most_ns);
  // Without these calls nothing is left of them: a fix that replaces them gains no more.
  const auto is_whole_removal = [](const Finding* each) {
    return each->gain_is_bound && !each->spared_calls.empty();
  };
  if (std::all_of(findings.begin(), findings.end(),
                  [&](const Finding* each) { return is_of_gpu(*each) || is_whole_removal(each); }))
    gain.most_ns = std::clamp<std::int64_t>(prediction.high_gain_ns, 0, most_ns);
  // The CPU leaves less than the most, and how much less is known better than to within itself.
  const std::int64_t spread_ns = (prediction.high_gain_ns - prediction.low_gain_ns) / 2;
  if (gain.state == Gain::State::kUnsure && static_cast<double>(gain.gain_ns) >= least_ns &&
      gain.gain_ns * 5 <= gain.most_ns * 4 && spread_ns < gain.gain_ns &&
      std::all_of(findings.begin(), findings.end(), keeps_number_of_kernels))
    gain.spread_ns = spread_ns;
  const bool is_bound = std::any_of(findings.begin(), findings.end(), [](const Finding* each) {
    const Rule* rule = find_rule(each->rule);
    return each->gain_is_bound || (rule && rule->fix_is_bound);
  });
  // What gains nothing at most gains nothing.
  if (is_bound && gain.state == Gain::State::kPredicted &&
      static_cast<double>(gain.gain_ns) >= least_ns)
    gain.state = Gain::State::kNone;
  gain.then_bound_by = simulate::limit_name(prediction.after.limit);
  return gain;
}

namespace {

// run_rules() has put the costs next to each other, by what is at stake in the recording.
void order_costs_by_gain(Explanation& explanation) {
  const auto is_cost = [](const Finding& finding) { return finding.kind == FindingKind::kCost; };
  auto& findings = explanation.findings;
  const auto begin = std::find_if(findings.begin(), findings.end(), is_cost);
  const auto end = std::find_if_not(begin, findings.end(), is_cost);
  sort_rows(begin, end, [&](const Finding& a, const Finding& b) {
    return explanation.gains->shown_ns(a) > explanation.gains->shown_ns(b);
  });
}

// `threads`: as RuleOptions.
void use_gains(const Facts& facts, std::shared_ptr<const GainModel> gains, unsigned threads,
               Explanation& explanation) {
  explanation.gains = std::move(gains);
  if (!explanation.gains) return;
  correct_cpu_bound(facts, *explanation.gains, explanation);
  std::vector<Finding*> costs;
  for (Finding& finding : explanation.findings)
    if (finding.kind == FindingKind::kCost && finding.at_stake_ratio >= kLeastGain &&
        costs.size() < kMostPredictions)
      costs.push_back(&finding);
  share_work(costs.size(), threads,
             [&](std::size_t i) { costs[i]->gain = explanation.gains->gain_of(*costs[i]); });
  order_costs_by_gain(explanation);
}

}  // namespace

void predict_gains(const Facts& facts, Explanation& explanation) {
  use_gains(facts, GainModel::of(facts), 1, explanation);
}

Result<Explanation> run_rules_and_gains(const Facts& facts, const RuleOptions& options) {
  // For a large trace, the replay and the rules together would take too much memory at once.
  constexpr std::size_t kSmallTrace = 20'000, kLargeTrace = 20'000'000;  // slices
  const std::size_t slices = facts.trace->slices().size();
  const unsigned threads = options.threads != 0 ? options.threads : usual_threads();
  const bool is_shared =
      threads > 1 && (options.threads != 0 || slices >= kSmallTrace) && slices < kLargeTrace;
  std::shared_ptr<const GainModel> gains;
  std::optional<Result<Explanation>> explanation;
  std::optional<KeptGraph> kept;
  if (is_shared) kept.emplace(facts);
  share_work(is_shared ? 2 : 0, 2, [&](std::size_t piece) {
    if (piece == 0)
      gains = GainModel::of(facts);
    else
      explanation = run_rules(facts, options);
  });
  if (!is_shared) {
    explanation = run_rules(facts, options);
    if (*explanation) gains = GainModel::of(facts);
  }
  if (*explanation) use_gains(facts, std::move(gains), is_shared ? threads : 1, **explanation);
  return *std::move(explanation);
}

}  // namespace lanescope::explain

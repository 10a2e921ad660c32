// Models of one kind that are trained one after the other, each with a backward pass and an optimizer step of its own: an ensemble
// of critics in a list.
//
// Problem: ten updates of one model (epochs on one batch) are equal rounds, too, and each needs the weights that the one before it
// made. The trace does not show which weights a round has. Idea: an ensemble is also called as one, for a target or for the loss of
// something else: a loop of as many rounds, with the layers of an update and no update in it, whose results are put together
// (aten::stack, aten::cat). Example: 10 x (linear relu linear) -> stack, then 10 x (linear relu linear, mse_loss, Adam.step).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/analysis/repeats.h"
#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/rules/call_symbols.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/needs.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Repeat;
using analysis::Window;

namespace {

constexpr double kLeastUpdatesShare = 0.1;
constexpr std::uint32_t kFewestUpdates = 3;
constexpr std::size_t kFewestModelLayers = 2;  // of a model
constexpr std::size_t kMostLayersText = 256;   // calls from its first layer to its last
constexpr std::size_t kMostUpdateText =
    4096;  // calls of an update; comparing takes the product of both at most
constexpr std::size_t kMostForwards = 16;  // loops that are compared with one loop of updates

struct CallLoop {
  const CallSequence* calls = nullptr;
  Repeat repeat;
  SliceId call(std::size_t round, std::size_t place) const {
    return (*calls)[repeat.first + round * repeat.round_size() + place];
  }
  Window whole(const Trace& trace) const {
    return {trace.start_ns(call(0, 0)), trace.end_ns((*calls)[repeat.end - 1])};
  }
};

std::size_t updates_in(const Facts& facts, const Window& window) {
  const std::vector<std::int64_t>& starts = optimizer_steps_ns(facts);
  return static_cast<std::size_t>(std::lower_bound(starts.begin(), starts.end(), window.end_ns) -
                                  std::lower_bound(starts.begin(), starts.end(), window.start_ns));
}

bool has_an_update_in_each(const Facts& facts, const CallLoop& loop) {
  const Trace& trace = *facts.trace;
  for (std::uint32_t round = 0; round < loop.repeat.rounds; ++round) {
    const std::int64_t end_ns = round + 1 < loop.repeat.rounds
                                    ? trace.start_ns(loop.call(round + 1, 0))
                                    : loop.whole(trace).end_ns;
    if (updates_in(facts, {trace.start_ns(loop.call(round, 0)), end_ns}) != 1) return false;
  }
  return true;
}

// What an agent draws or chooses makes the next round's input.
bool draws_a_value(std::string_view op) {
  static constexpr std::string_view kDrawing[] = {
      "aten::argmax",  "aten::multinomial", "aten::topk",      "aten::sort",
      "aten::item",    "aten::normal_",     "aten::bernoulli", "aten::exponential_",
      "aten::nonzero", "aten::uniform_"};
  return std::find(std::begin(kDrawing), std::end(kDrawing), op) != std::end(kDrawing) ||
         op.ends_with("_cell");
}

// The calls of a round from its first layer to its last; empty: fewer than two layers, or a value is drawn.
std::vector<std::string_view> layers_of(const Trace& trace, const CallLoop& loop) {
  std::vector<std::string_view> names;
  std::size_t layers = 0, end = 0;
  for (std::uint32_t place = 0; place < loop.repeat.round_size(); ++place) {
    const std::string_view op = trace.name(loop.call(0, place));
    if (draws_a_value(op)) return {};
    const bool is_layer = is_layer_operator(op);
    if (names.empty() && !is_layer) continue;
    names.push_back(op);
    if (!is_layer) continue;
    ++layers;
    end = names.size();
    if (end > kMostLayersText) return {};
  }
  names.resize(end);
  return layers < kFewestModelLayers ? std::vector<std::string_view>{} : names;
}

// All models of the loop run without an update, and their results are put together.
bool calls_all_models(const Facts& facts, const CallLoop& updates, const CallLoop& forward) {
  const Trace& trace = *facts.trace;
  if (forward.repeat.rounds != updates.repeat.rounds ||
      updates_in(facts, forward.whole(trace)) > 0 || forward.repeat.end >= forward.calls->size())
    return false;
  const std::string_view next = trace.name((*forward.calls)[forward.repeat.end]);
  if (next != "aten::stack" && next != "aten::cat") return false;
  const std::vector<std::string_view> layers = layers_of(trace, forward);
  if (layers.empty()) return false;
  std::vector<std::string_view> update;
  for (std::uint32_t place = 0; place < updates.repeat.round_size(); ++place)
    update.push_back(trace.name(updates.call(0, place)));
  return std::search(update.begin(), update.end(), layers.begin(), layers.end()) != update.end();
}

struct EqualUpdates {
  std::uint64_t rounds = 0, updates = 0;  // of the longest loop; of all
  std::int64_t waiting_ns = 0;            // in all rounds but the first of each loop
  std::vector<SliceId> work;              // launched in them
  SliceId first = kNone<SliceId>, forward = kNone<SliceId>;
};

void add_later_rounds(const Trace& trace, const CallLoop& loop, std::vector<Window>& later) {
  later.push_back({trace.start_ns(loop.call(1, 0)), loop.whole(trace).end_ns});
}

void add_sequence(const Facts& facts, const CallSequence& calls, EqualUpdates& found,
                  std::vector<Window>& later) {
  const Trace& trace = *facts.trace;
  if (calls.empty() || updates_in(facts, {trace.start_ns(calls.front()),
                                          trace.end_ns(calls.back())}) < kFewestUpdates)
    return;
  const auto no_shapes = [](std::string_view) { return false; };
  const std::vector<Repeat> repeats = analysis::find_repeats(call_symbols(trace, calls, no_shapes));
  std::vector<CallLoop> updates, forwards;
  for (const Repeat& repeat : repeats) {
    if (repeat.rounds < kFewestUpdates) continue;
    const CallLoop loop{&calls, repeat};
    if (updates_in(facts, loop.whole(trace)) == 0)
      forwards.push_back(loop);
    else if (repeat.round_size() <= kMostUpdateText && has_an_update_in_each(facts, loop))
      updates.push_back(loop);
  }
  for (const CallLoop& loop : updates) {
    std::size_t compared = 0;
    bool is_ensemble = false;
    for (const CallLoop& forward : forwards) {
      if (forward.repeat.rounds != loop.repeat.rounds || compared == kMostForwards) continue;
      ++compared;
      if (!calls_all_models(facts, loop, forward)) continue;
      is_ensemble = true;
      found.forward = forward.call(0, 0);
      add_later_rounds(trace, forward, later);
    }
    if (!is_ensemble) continue;
    add_later_rounds(trace, loop, later);
    found.updates += loop.repeat.rounds;
    if (loop.repeat.rounds <= found.rounds) continue;
    found.rounds = loop.repeat.rounds;
    found.first = loop.call(0, 0);
  }
}

std::optional<EqualUpdates> measure_equal_updates(const Facts& facts) {
  EqualUpdates found;
  std::vector<Window> later;
  for (const CallSequence& calls : call_sequences(facts)) add_sequence(facts, calls, found, later);
  if (found.rounds == 0) return std::nullopt;
  later = joined(std::move(later));
  found.waiting_ns = lost_in(facts, steady_parts(facts, later)).waiting_for_cpu_ns;
  if (share_of(found.waiting_ns, facts.steady_wall_ns()) < kLeastUpdatesShare) return std::nullopt;
  for (const analysis::DeviceWork* each : steady_work_launched_in(facts, later))
    found.work.push_back(each->slice);
  return found;
}

Finding tell_equal_updates(const Facts& facts, const EqualUpdates& found) {
  Finding finding;
  finding.brief =
      say("{} models of one kind are trained one after the other, each with a backward pass and an "
          "optimizer step",
          {count(found.rounds)});
  finding.verdict = finding.brief;
  append(finding.verdict,
         say(facts, ": in all rounds but one the GPU waits {} [per step] for the CPU.",
             {ns(facts.per_step(found.waiting_ns))}));
  finding.at_stake_ns = facts.per_step(found.waiting_ns);
  finding.at_stake_ratio = share_of(found.waiting_ns, facts.steady_wall_ns());
  finding.waiting_ns = finding.at_stake_ns;
  finding.all_work = found.work;
  finding.arithmetic.push_back(say(
      "rounds with an optimizer step each are updates of several models, not of one: as many "
      "rounds with the same layers and no update are put together by aten::stack or aten::cat"));
  finding.arithmetic.push_back(
      say("counted: the GPU's waits for the CPU in all rounds but the first; the GPU's own work "
          "counts as unchanged, though one large product often takes less than many small ones"));
  finding.evidence.push_back(called_at(facts, found.first, say("the first call of a round")));
  finding.evidence.push_back(
      called_at(facts, found.forward, say("here all models run and none is updated")));
  finding.try_next = {
      "stack the models' weights (torch.func.stack_module_state) and call all of them with "
      "torch.func.vmap, or write each layer as torch.baddbmm over a dimension of models",
      "add up their losses: one backward pass gives each model its own gradients, because no "
      "weight is shared; and one optimizer over the stacked weights updates all",
      "where each model reads a batch of its own, stack the batches, too"};
  finding.action = say(
      "Train them as one: torch.func.stack_module_state and vmap (or torch.baddbmm), the sum of "
      "their losses, one optimizer");
  finding.confidence = facts.confidence();
  finding.sample_count = found.updates;
  finding.sample_noun = "update";
  const std::int64_t waiting_ns = finding.waiting_ns;
  finding.explains = {{"looped-calls", waiting_ns},     {"equal-rounds", waiting_ns},
                      {"equal-products", waiting_ns},   {"tiny-kernels", waiting_ns},
                      {"same-calls-twice", waiting_ns}, {"repeated-backward", waiting_ns}};
  return finding;
}

}  // namespace

extern constinit const Rule equal_updates_rule = {
    .id = "equal-updates",
    .question = "are models of one kind trained one after the other?",
    .meant_by = "ensemble critics members optimizers vmap stack",
    .order = 116,
    .needs = {need::kGpuWork, need::kLaunchCalls, need::kMarkedSteps},
    .run = measure_and_tell<measure_equal_updates, tell_equal_updates>,
    .fix = Fix::kCalls,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules

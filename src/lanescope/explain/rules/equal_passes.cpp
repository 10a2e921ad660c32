// Equal passes of a simulation that run one after the other: a price, and again with each input a little larger.
//
// Problem: steps of a simulation are equal rounds, too, and each needs the state that the one before it left; so do steps of an
// optimizer or of a diffusion model, which draw random numbers as well. Idea: a pass makes its own state (aten::zeros, aten::ones
// and the like), then has a loop that draws random numbers in each round, and then brings a value to the CPU. It has no layers of a
// model and chooses nothing. Example: 4 x (repeat ones zeros, 52 x (randn matmul exp add), mean item).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/analysis/repeats.h"
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

constexpr double kLeastEqualPassesShare = 0.1;
constexpr std::uint32_t kFewestPasses = 3, kFewestDrawingRounds = 8;
constexpr std::size_t kFewestFactories = 2;

bool is_drawing(std::string_view op) {
  static constexpr std::string_view kDrawing[] = {
      "aten::randn",      "aten::rand",       "aten::normal_",   "aten::uniform_",
      "aten::normal",     "aten::randn_like", "aten::rand_like", "aten::bernoulli",
      "aten::bernoulli_", "aten::poisson"};
  return std::find(std::begin(kDrawing), std::end(kDrawing), op) != std::end(kDrawing);
}

// A model's rounds, or rounds of a search, which begin where the one before them ended.
bool is_of_model_or_search(std::string_view op) {
  static constexpr std::string_view kNames[] = {
      "aten::linear", "aten::addmm",  "aten::embedding",   "aten::topk",       "aten::sort",
      "aten::argmax", "aten::argmin", "aten::multinomial", "aten::is_nonzero", "aten::lstm"};
  return std::find(std::begin(kNames), std::end(kNames), op) != std::end(kNames) ||
         op.starts_with("aten::conv") || op.ends_with("_norm") || op.ends_with("_cell") ||
         op.find("attention") != op.npos;
}

struct EqualPasses {
  std::uint64_t loops = 0, passes = 0, calls = 0,
                draws = 0;                  // passes, calls, draws: of the longest
  std::int64_t waiting_ns = 0, gpu_ns = 0;  // in all passes but the first
  std::vector<SliceId> work;                // launched in them
  SliceId first = kNone<SliceId>, draw = kNone<SliceId>;
};

// The first draw of the first pass; kNone: these rounds are no such passes. `drawing`: where the loop that draws lies.
SliceId draw_of_pass(const Trace& trace, const CallSequence& calls, const Repeat& passes,
                     const Repeat& drawing) {
  std::size_t factories = 0;
  bool reads = false;
  SliceId draw = kNone<SliceId>;
  for (std::uint32_t i = passes.first; i < passes.first + passes.round_size(); ++i) {
    const std::string_view op = trace.name(calls[i]);
    if (is_of_model_or_search(op)) return kNone<SliceId>;
    if (i < drawing.first) factories += is_factory(op) && !is_drawing(op) ? 1 : 0;
    if (i >= drawing.end) reads = reads || op == "aten::item";
    if (draw == kNone<SliceId> && i >= drawing.first && i < drawing.end && is_drawing(op))
      draw = calls[i];
  }
  return factories >= kFewestFactories && reads ? draw : kNone<SliceId>;
}

void add_passes(const Facts& facts, const CallSequence& calls, EqualPasses& found,
                std::vector<Window>& later) {
  const Trace& trace = *facts.trace;
  if (std::none_of(calls.begin(), calls.end(),
                   [&](SliceId call) { return is_drawing(trace.name(call)); }))
    return;
  const auto no_shapes = [](std::string_view) { return false; };
  const std::vector<Repeat> repeats = analysis::find_repeats(call_symbols(trace, calls, no_shapes));
  const std::vector<std::int64_t>& updates = optimizer_steps_ns(facts);
  // Loops inside come before those around them; a loop around is looked at once, with the first loop that draws in it.
  std::vector<bool> done(repeats.size(), false);
  for (const Repeat& drawing : repeats) {
    if (drawing.parent == Repeat::kNoRepeat || done[drawing.parent] ||
        drawing.rounds < kFewestDrawingRounds)
      continue;
    const Repeat& passes = repeats[drawing.parent];
    const bool is_in_first = drawing.end <= passes.first + passes.round_size();
    if (!is_in_first || passes.rounds < kFewestPasses ||
        std::none_of(calls.begin() + drawing.first,
                     calls.begin() + drawing.first + drawing.round_size(),
                     [&](SliceId call) { return is_drawing(trace.name(call)); }))
      continue;
    done[drawing.parent] = true;
    const Window whole{trace.start_ns(calls[passes.first]), trace.end_ns(calls[passes.end - 1])};
    const auto update = std::lower_bound(updates.begin(), updates.end(), whole.start_ns);
    if (update != updates.end() && *update < whole.end_ns) continue;
    const SliceId draw = draw_of_pass(trace, calls, passes, drawing);
    if (draw == kNone<SliceId>) continue;
    ++found.loops;
    later.push_back({trace.start_ns(calls[passes.first + passes.round_size()]), whole.end_ns});
    if (std::uint64_t{passes.rounds} * passes.round_size() <= found.passes * found.calls) continue;
    found.passes = passes.rounds;
    found.calls = passes.round_size();
    found.draws = drawing.rounds;
    found.first = calls[passes.first];
    found.draw = draw;
  }
}

std::optional<EqualPasses> measure_equal_passes(const Facts& facts) {
  EqualPasses found;
  std::vector<Window> later;
  for (const CallSequence& calls : call_sequences(facts)) add_passes(facts, calls, found, later);
  if (found.loops == 0) return std::nullopt;
  later = joined(std::move(later));
  const std::vector<const analysis::DeviceWork*> work = steady_work_launched_in(facts, later);
  for (const analysis::DeviceWork* each : work) found.work.push_back(each->slice);
  found.gpu_ns = union_ns(work);
  found.waiting_ns = lost_in(facts, steady_parts(facts, later)).waiting_for_cpu_ns;
  if (share_of(found.waiting_ns + found.gpu_ns, facts.steady_wall_ns()) < kLeastEqualPassesShare)
    return std::nullopt;
  return found;
}

Finding tell_equal_passes(const Facts& facts, const EqualPasses& found) {
  const std::int64_t cost_ns = found.waiting_ns + found.gpu_ns;
  Finding finding;
  finding.brief =
      say("{} equal passes of {} calls run one after the other; each draws random numbers {} times",
          {count(found.passes), count(found.calls), count(found.draws)});
  finding.verdict = finding.brief;
  append(finding.verdict,
         say(facts,
             ": all passes but one take {} of the GPU's work [per step], and the GPU waits {} for "
             "the CPU in them.",
             {ns(facts.per_step(found.gpu_ns)), ns(facts.per_step(found.waiting_ns))}));
  finding.at_stake_ns = facts.per_step(cost_ns);
  finding.at_stake_ratio = share_of(cost_ns, facts.steady_wall_ns());
  finding.waiting_ns = facts.per_step(found.waiting_ns);
  finding.all_work = found.work;
  finding.arithmetic.push_back(
      say("counted: the GPU's work and its waits for the CPU in all passes but the first. This is "
          "the limit where all passes use the same random numbers and differ in little that "
          "follows from them; with other numbers in each pass, only the waits can go"));
  finding.evidence.push_back(called_at(facts, found.first, say("the first call of a pass")));
  finding.evidence.push_back(called_at(facts, found.draw, say("the first random numbers")));
  finding.try_next = {
      "give what differs between the passes one more dimension, or use torch.func.vmap: one call "
      "then does what each pass calls",
      "where all passes begin with the same seed: draw the numbers once, and what follows from "
      "them alone once, too",
      "where a pass needs the result of the one before it: torch.compile its body"};
  finding.action =
      say("If no pass needs the one before it: run all as one more dimension (or torch.func.vmap); "
          "with the same seed in each, draw once");
  finding.confidence = Confidence::kMedium;
  finding.sample_count = found.passes;
  finding.sample_noun = "pass";
  finding.explains = {{"looped-calls", finding.at_stake_ns}, {"equal-rounds", finding.at_stake_ns}};
  return finding;
}

}  // namespace

extern constinit const Rule equal_passes_rule = {
    .id = "equal-passes",
    .question = "do equal passes of a simulation run one after the other?",
    .meant_by = "monte carlo simulation seed bump passes vmap",
    .order = 117,
    .needs = {need::kGpuWork, need::kLaunchCalls, need::kMarkedSteps},
    .run = measure_and_tell<measure_equal_passes, tell_equal_passes>,
    .fix = Fix::kCalls,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules

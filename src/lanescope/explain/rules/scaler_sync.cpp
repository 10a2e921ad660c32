// GradScaler.step and clip_grad_norm_ may ask the GPU for a number before the optimizer runs.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/loop_remedies.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/norm_rounds.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {

using analysis::IdleCause;
using analysis::IdlePart;
using analysis::Phase;
using analysis::Window;

namespace {

struct ScalerSync {
  enum class Reader : std::uint8_t { kScaler, kNorm, kNorms, kEachNorm } reader = Reader::kNorm;
  std::size_t waits = 0;
  std::int64_t idle_ns = 0;
  std::int64_t waited_ns = 0;
  SliceId longest = kNone<SliceId>;
  NormRounds rounds;  // before optimizer steps; empty: no loop over norms
  std::int64_t rounds_ns = 0;
};

// The rounds before optimizer steps alone.
NormRounds rounds_in(const Facts& facts, const std::vector<Window>& spans) {
  const NormRounds& all = norm_rounds(facts);
  NormRounds found;
  for (const Window& window : all.windows)
    if (inside(spans, window.start_ns)) found.windows.push_back(window);
  for (const SliceId call : all.spared)
    if (inside(spans, facts.trace->start_ns(call))) found.spared.push_back(call);
  if (found.windows.size() == all.windows.size()) found.rounds = all.rounds;
  return found;
}

// One norm for each gradient of a step?
bool is_one_for_each_gradient(const Facts& facts, const NormRounds& rounds) {
  const std::uint64_t gradients = gradients_of_a_step(facts),
                      norms = rounds.rounds / step_count(facts);
  return gradients > 0 && norms <= gradients + 1 && gradients <= norms + 1;
}

// How many waits have a norm between the wait before and themselves: a loop that reads each norm.
std::size_t waits_after_own_norm(const Trace& trace, const std::set<std::uint32_t>& waits,
                                 const std::vector<std::int64_t>& norms) {
  std::vector<std::int64_t> starts;
  for (const std::uint32_t wait : waits) starts.push_back(trace.start_ns(SliceId{wait}));
  sort_rows(starts.begin(), starts.end(),
            [](const std::int64_t a, const std::int64_t b) { return a < b; });
  std::size_t result = 0;
  auto norm = norms.begin();
  for (const std::int64_t start : starts) {
    const auto after = std::lower_bound(norm, norms.end(), start);
    if (after != norm) ++result;
    norm = after;
  }
  return result;
}

struct PhaseMark {
  std::int64_t time_ns;
  enum class Kind : std::uint8_t { kScaler, kNorm, kBackward, kEnd } kind;
};

// In order of time.
std::vector<PhaseMark> phase_marks(const Facts& facts) {
  using Kind = PhaseMark::Kind;
  const Trace& trace = *facts.trace;
  const auto& phases = training_phases(facts);
  std::vector<PhaseMark> marks;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_front_end(trace.kind(id))) continue;
    const std::string_view label = trace.name(id);
    if (names::is_optimizer_step(label))
      marks.push_back({trace.start_ns(id), Kind::kEnd});
    else if (phases[i] == Phase::kBackward)
      marks.push_back({trace.start_ns(id), Kind::kBackward});
    else if (label.starts_with("aten::_amp_foreach_non_finite_check"))
      marks.push_back({trace.start_ns(id), Kind::kScaler});
    else if ((label == "aten::_foreach_norm" || label == "aten::linalg_vector_norm") &&
             phases[i] == Phase::kOther)
      marks.push_back({trace.start_ns(id), Kind::kNorm});
  }
  sort_rows(marks.begin(), marks.end(),
            [](const PhaseMark& a, const PhaseMark& b) { return a.time_ns < b.time_ns; });
  return marks;
}

std::optional<ScalerSync> measure_scaler_sync(const Facts& facts) {
  using Kind = PhaseMark::Kind;
  const Trace& trace = *facts.trace;
  // From the first check or norm after the backward pass to the optimizer's start.
  std::vector<bool> by_scaler;
  std::vector<Window> spans;
  std::vector<std::int64_t> norms;
  std::int64_t from = 0;
  bool open = false, checked = false;
  for (const PhaseMark& mark : phase_marks(facts)) {
    if (mark.kind == Kind::kNorm) norms.push_back(mark.time_ns);
    if (mark.kind == Kind::kEnd && open) {
      spans.push_back({from, mark.time_ns});
      by_scaler.push_back(checked);
    }
    if (mark.kind == Kind::kEnd || mark.kind == Kind::kBackward) {
      open = checked = false;
      continue;
    }
    if (!open) from = mark.time_ns;
    open = true;
    checked = checked || mark.kind == Kind::kScaler;
  }
  if (spans.empty()) return std::nullopt;
  std::int64_t idle_ns = 0, waited_ns = 0;
  std::set<std::uint32_t> waits;
  SliceId longest = kNone<SliceId>;
  bool scaler = false;
  for (const IdlePart& part : facts.device().gaps.parts) {
    if (part.cause != IdleCause::kAfterSync || part.blame == kNone<SliceId> ||
        !inside(facts.steady_windows, part.start_ns) || !inside(spans, trace.start_ns(part.blame)))
      continue;
    const std::int64_t start = trace.start_ns(part.blame);
    const auto after = std::upper_bound(
        spans.begin(), spans.end(), start,
        [](std::int64_t time, const Window& span) { return time < span.start_ns; });
    scaler = scaler || by_scaler[static_cast<std::size_t>(after - spans.begin()) - 1];
    idle_ns += part.end_ns - part.start_ns;
    if (!waits.insert(raw(part.blame)).second) continue;
    waited_ns += trace.dur_ns(part.blame);
    if (longest == kNone<SliceId> || trace.dur_ns(part.blame) > trace.dur_ns(longest))
      longest = part.blame;
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  // Without the waits the CPU runs ahead, but only the time of the GPU's work can hide it.
  idle_ns = std::min(idle_ns, facts.wall.partition.busy_ns());
  // The scaler and clip_grad_norm_ read one number each. More are a loop: over the gradients' norms
  // (the scaler may add one a step), or over something that belongs to host-sync.
  const std::size_t steps = facts.selection.steady.size();
  const bool many = waits.size() > 2 * steps;
  const std::size_t own = many ? waits_after_own_norm(trace, waits, norms) : 0;
  NormRounds rounds;
  if (own >= 4 * steps && own + steps >= waits.size()) rounds = rounds_in(facts, spans);
  const bool each = !rounds.windows.empty();
  if (many && !each && !scaler) return std::nullopt;
  if (waits.empty() || share_of(idle_ns, wall_ns) < 0.01) return std::nullopt;
  using Reader = ScalerSync::Reader;
  ScalerSync found{
      scaler ? Reader::kScaler : Reader::kNorm, waits.size(), idle_ns, waited_ns, longest, {}};
  if (!each) return found;
  found.rounds = std::move(rounds);
  found.rounds_ns = cost_of_norm_rounds(facts, found.rounds);
  found.reader = is_one_for_each_gradient(facts, found.rounds) ? Reader::kEachNorm : Reader::kNorms;
  return found;
}

struct ReaderTexts {
  const char* subject;
  const char* try_next;
  const char* action;
};

ReaderTexts texts_of(const ScalerSync::Reader reader) {
  switch (reader) {
    case ScalerSync::Reader::kScaler:
      return {"The gradient scaler",
              "use bf16, which needs no gradient scaler; with fp16 use an optimizer with "
              "fused=True, which checks on the GPU",
              "Use bf16 without a scaler, or an optimizer with fused=True"};
    case ScalerSync::Reader::kEachNorm:
      return {"Code that reads the norm of each gradient",
              "call torch.nn.utils.clip_grad_norm_(parameters, limit): it takes all norms at once "
              "and clips without a wait; log the norm that it returns every n steps",
              "Call torch.nn.utils.clip_grad_norm_: it takes all norms at once, without a wait"};
    case ScalerSync::Reader::kNorms:
      return {"Code that reads norms one by one",
              "take the norms of a list in one call, stack them, and read one number: "
              "torch.stack(torch._foreach_norm(tensors)).square().sum().sqrt().item(); for the "
              "norm of all gradients torch.nn.utils.clip_grad_norm_ does so and returns it",
              "Take all norms in one call, torch._foreach_norm(list); stack them, and read once"};
    case ScalerSync::Reader::kNorm:
      break;
  }
  return {"Code that reads a gradient norm",
          "call clip_grad_norm_(..., error_if_nonfinite=False, foreach=True), which needs no wait; "
          "log the norm every n steps",
          "Call clip_grad_norm_(error_if_nonfinite=False); log the norm every n steps"};
}

Finding tell_scaler_sync(const Facts& facts, const ScalerSync& measured) {
  const auto& [reader, waits, idle_ns, waited_ns, longest, rounds, rounds_ns] = measured;
  const ReaderTexts texts = texts_of(reader);
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict = say(
      facts,
      "{} asks the GPU for a number before each optimizer step: {} [wait|waits] in the steady "
      "steps, after which the GPU is idle for {} [per step] ({}).",
      {text(texts.subject), count(waits), ns(facts.per_step(idle_ns)), ratio(idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(idle_ns);
  finding.at_stake_ratio = share_of(idle_ns, wall_ns);
  finding.arithmetic.push_back(say(facts,
                                   "without the waits the CPU would run ahead and work while the "
                                   "GPU is busy; the waits themselves take {} [per step]",
                                   {ns(facts.per_step(waited_ns))}));
  // One call for all norms spares the other rounds with all that they call and launch, not only their waits.
  if (!rounds.spared.empty()) {
    finding.spared_calls = rounds.spared;
    finding.own_cost_ns = facts.per_step(rounds_ns);
    finding.at_stake_ns = facts.per_step(std::max(rounds_ns, idle_ns));
    finding.at_stake_ratio = share_of(std::max(rounds_ns, idle_ns), wall_ns);
    finding.arithmetic.push_back(say(
        facts,
        "{} rounds [per step] take a norm and read it. All of them but the first cost {}: their "
        "GPU work, and the GPU's idle time from one to the next",
        {count(rounds.rounds / step_count(facts)), ns(facts.per_step(rounds_ns))}));
  }
  finding.evidence.push_back(called_at(facts, longest, say("the longest of these waits")));
  finding.try_next = {texts.try_next};
  finding.confidence = facts.confidence();
  finding.sample_count = waits;
  finding.sample_noun = "wait";
  finding.explains.push_back({"host-sync", finding.at_stake_ns});
  finding.action = say(texts.action);
  finding.brief = say("{} waits for the GPU before each optimizer step", {text(texts.subject)});
  return finding;
}

}  // namespace

extern constinit const Rule scaler_sync_rule = {
    .id = "scaler-sync",
    .question = "does the gradient scaler or clipping wait for the GPU?",
    .order = 810,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_scaler_sync, tell_scaler_sync>,
    .is_regression = true,
    .fix = Fix::kRemoveSync,
};

}  // namespace lanescope::explain::rules

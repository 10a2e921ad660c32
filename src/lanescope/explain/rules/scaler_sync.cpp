// GradScaler.step and clip_grad_norm_ may ask the GPU for a number before the optimizer runs.
#include <algorithm>
#include <optional>
#include <set>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::IdleCause;
using analysis::IdlePart;
using analysis::Phase;
using analysis::Window;

namespace {

struct ScalerSync {
  bool scaler = false;
  std::size_t waits = 0;
  std::int64_t idle_ns = 0;
  std::int64_t waited_ns = 0;
  SliceId longest = kNone<SliceId>;
};

std::optional<ScalerSync> measure_scaler_sync(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& phases = training_phases(facts);
  struct Mark {
    std::int64_t time_ns;
    enum class Kind : std::uint8_t { kScaler, kNorm, kBackward, kEnd } kind;
  };
  std::vector<Mark> marks;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_front_end(trace.kind(id))) continue;
    const std::string_view label = trace.name(id);
    if (label.starts_with("Optimizer.step#"))
      marks.push_back({trace.start_ns(id), Mark::Kind::kEnd});
    else if (phases[i] == Phase::kBackward)
      marks.push_back({trace.start_ns(id), Mark::Kind::kBackward});
    else if (label.starts_with("aten::_amp_foreach_non_finite_check"))
      marks.push_back({trace.start_ns(id), Mark::Kind::kScaler});
    else if ((label == "aten::_foreach_norm" || label == "aten::linalg_vector_norm") &&
             phases[i] == Phase::kOther)
      marks.push_back({trace.start_ns(id), Mark::Kind::kNorm});
  }
  sort_rows(marks.begin(), marks.end(),
            [](const Mark& a, const Mark& b) { return a.time_ns < b.time_ns; });
  // From the first check or norm after the backward pass to the optimizer's start.
  std::vector<bool> by_scaler;
  std::vector<Window> spans;
  std::int64_t from = 0;
  bool open = false, checked = false;
  for (const Mark& mark : marks) {
    if (mark.kind == Mark::Kind::kEnd && open) {
      spans.push_back({from, mark.time_ns});
      by_scaler.push_back(checked);
    }
    if (mark.kind == Mark::Kind::kEnd || mark.kind == Mark::Kind::kBackward) {
      open = checked = false;
      continue;
    }
    if (!open) from = mark.time_ns;
    open = true;
    checked = checked || mark.kind == Mark::Kind::kScaler;
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
  // clip_grad_norm_ reads one number; a loop of .item() over the gradients belongs to host-sync.
  if (!scaler && waits.size() > 2 * facts.selection.steady.size()) return std::nullopt;
  if (waits.empty() || share_of(idle_ns, wall_ns) < 0.01) return std::nullopt;
  return ScalerSync{scaler, waits.size(), idle_ns, waited_ns, longest};
}

Finding tell_scaler_sync(const Facts& facts, const ScalerSync& measured) {
  const auto& [scaler, waits, idle_ns, waited_ns, longest] = measured;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "{} asks the GPU for a number before each optimizer step: {} [wait|waits] "
                        "in the steady steps, after which the GPU is idle for {} [per step] ({}).",
                        {text(scaler ? "The gradient scaler" : "Code that reads a gradient norm"),
                         count(waits), ns(facts.per_step(idle_ns)), ratio(idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(idle_ns);
  finding.at_stake_ratio = share_of(idle_ns, wall_ns);
  finding.arithmetic.push_back(say(facts,
                                   "without the waits the CPU would run ahead and work while the "
                                   "GPU is busy; the waits themselves take {} [per step]",
                                   {ns(facts.per_step(waited_ns))}));
  finding.evidence.push_back(called_at(facts, longest, say("the longest of these waits")));
  finding.try_next = {scaler ? "use bf16, which needs no gradient scaler; with fp16 use an "
                               "optimizer with fused=True, which checks on the GPU"
                             : "call clip_grad_norm_(..., error_if_nonfinite=False, foreach=True), "
                               "which needs no wait; log the norm every n steps"};
  finding.confidence = facts.confidence();
  finding.sample_count = waits;
  finding.sample_noun = "wait";
  finding.explains.push_back({"host-sync", finding.at_stake_ns});
  finding.action =
      scaler ? say("Use bf16 without a scaler, or an optimizer with fused=True")
             : say("Call clip_grad_norm_(error_if_nonfinite=False); log the norm every n steps");
  finding.brief = say("{} waits for the GPU before each optimizer step",
                      {text(scaler ? "The gradient scaler" : "Code that reads a gradient norm")});
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

// zero_grad writes zeros and the backward pass adds to them; with None neither would be needed.
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Phase;

namespace {

struct ZeroGradFills {
  PhaseWork work;
  std::size_t additions = 0;
  std::int64_t fill_ns = 0;
  std::int64_t add_ns = 0;
  std::int64_t waiting_ns = 0;
};

Measurement<ZeroGradFills> measure_zero_grad_fills(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& phases = training_phases(facts);
  const PhaseWork work = work_of(facts, phases, Phase::kZeroGrad);
  if (!work.any_range)
    return trains(facts) ? Measurement<ZeroGradFills>(NotChecked{
                               "optimizer.zero_grad() inside the recorded steps (its range; "
                               "model.zero_grad() has none)"})
                         : Quiet{};
  if (work.works.empty()) return Quiet{};
  // Autograd adds to a gradient that exists; if it is None, the new gradient takes its place.
  std::vector<const DeviceWork*> adds;
  for (const DeviceWork* each : steady_work(facts)) {
    const SliceId op = facts.links.op_of[raw(each->slice)];
    if (op != kNone<SliceId> && trace.name(op) == "aten::add_" &&
        ancestor_named(facts, op, "torch::autograd::AccumulateGrad") != kNone<SliceId>)
      adds.push_back(each);
  }
  const std::int64_t fill_ns = union_ns(work.works), add_ns = union_ns(adds);
  const WaitTime wait =
      waiting_while(facts, [&](SliceId slice) { return phases[raw(slice)] == Phase::kZeroGrad; });
  const std::int64_t saved_ns = fill_ns + add_ns + wait.time_ns;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (is_thin(facts) || share_of(saved_ns, wall_ns) < 0.01) return Quiet{};
  return ZeroGradFills{work, adds.size(), fill_ns, add_ns, wait.time_ns};
}

Finding tell_zero_grad_fills(const Facts& facts, const ZeroGradFills& measured) {
  const auto& [work, additions, fill_ns, add_ns, waiting_ns] = measured;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const std::uint64_t steps = steps_of(facts);
  const std::int64_t saved_ns = fill_ns + add_ns + waiting_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "zero_grad fills the gradients with zeros: {} [fill|fills] [per step] "
                        "({}), {} [addition|additions] onto those zeros in the backward pass ({})",
                        {count(work.works.size() / steps), ns(facts.per_step(fill_ns)),
                         count(additions / steps), ns(facts.per_step(add_ns))});
  const std::int64_t waits = facts.per_step(waiting_ns);
  finding.verdict.pattern += waits > 0 ? ", and the GPU waits {} meanwhile." : ".";
  if (waits > 0) finding.verdict.values.push_back(ns(waits));
  finding.at_stake_ns = facts.per_step(saved_ns);
  finding.at_stake_ratio = share_of(saved_ns, wall_ns);
  Sentence sum = sum_of({{"fills", facts.per_step(fill_ns)},
                         {"additions", facts.per_step(add_ns)},
                         {"waits", waits}});
  sum.pattern =
      "with set_to_none=True there is nothing to fill, and the first gradient is stored instead of "
      "added: " +
      sum.pattern;
  append(sum, say(facts, " [per step] at most"));
  finding.arithmetic.push_back(std::move(sum));
  add_ops(work, finding);
  finding.try_next = {
      "call zero_grad(set_to_none=True), torch's default since 2.0; gradients that are accumulated "
      "over several backward passes are still added"};
  finding.confidence = facts.confidence();
  finding.sample_count = work.works.size();
  finding.sample_noun = "fill";
  finding.brief = say("zero_grad() fills gradients with zeros");
  finding.action = say("Call zero_grad(set_to_none=True), torch's default since 2.0");
  return finding;
}

}  // namespace

extern constinit const Rule zero_grad_fills_rule = {
    .id = "zero-grad-fills",
    .question = "does zero_grad fill gradients with zeros?",
    .order = 770,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_zero_grad_fills, tell_zero_grad_fills>,
    .is_regression = true,
};

}  // namespace lanescope::explain::rules

// torch.autograd.set_detect_anomaly(True): every backward node looks for NaN and waits for the GPU.
#include <algorithm>
#include <optional>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
constexpr std::uint64_t kFewestNodes = 4;  // of a step; one may look for NaN on its own

struct AnomalyChecks {
  std::uint64_t nodes = 0, checked = 0, checks = 0;
  std::int64_t idle_ns = 0, busy_ns = 0;
  SliceId first = kNone<SliceId>;
};

// The check of one gradient: aten::isnan, aten::any, then the value comes to the CPU.
bool is_part_of_check(std::string_view op) {
  return op == "aten::isnan" || op == "aten::any" || op == "aten::is_nonzero" || op == "aten::item";
}

std::optional<AnomalyChecks> measure_anomaly_mode(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  AnomalyChecks found;
  std::vector<SliceId> parts, checked;
  const auto is_of_check = [](std::string_view name) {
    return name.starts_with(kEvaluate) || is_part_of_check(name);
  };
  for (const SliceId id : slices_named(facts, is_of_check)) {
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(cpu_windows, trace.start_ns(id)))
      continue;
    const std::string_view op = trace.name(id);
    if (op.starts_with(kEvaluate)) ++found.nodes;
    if (!is_part_of_check(op)) continue;
    const SliceId node = ancestor_named(facts, facts.nesting.parent[raw(id)], kEvaluate);
    if (node == kNone<SliceId>) continue;
    parts.push_back(id);
    if (op != "aten::isnan") continue;
    ++found.checks;
    checked.push_back(node);
    if (found.first == kNone<SliceId>) found.first = node;
  }
  std::sort(checked.begin(), checked.end());
  checked.erase(std::unique(checked.begin(), checked.end()), checked.end());
  found.checked = checked.size();
  const auto steps = step_count(facts);
  // A program that looks for NaN itself does so in few places; the mode does it everywhere.
  if (found.checked < kFewestNodes * steps || found.checked * 3 < found.nodes) return std::nullopt;
  std::vector<Window> windows;
  for (const SliceId part : parts) windows.push_back({trace.start_ns(part), trace.end_ns(part)});
  std::vector<const DeviceWork*> works;
  for (const DeviceWork* work : steady_work(facts))
    if (ancestor_where(facts, facts.links.op_of[raw(work->slice)], is_part_of_check) !=
        kNone<SliceId>)
      works.push_back(work);
  found.idle_ns = device_idle_during(facts, std::move(windows));
  found.busy_ns = union_ns(works);
  return found;
}

Finding tell_anomaly_mode(const Facts& facts, const AnomalyChecks& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const std::int64_t waiting_ns = facts.waiting_for_cpu_ns();
  const std::int64_t at_stake_ns =
      std::min(wall_ns, std::max(found.idle_ns, waiting_ns) + found.busy_ns);
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict = say(
      facts,
      "Autograd's anomaly detection is on: {} of {} backward nodes [per step] look for NaN in "
      "their gradients and wait for the answer; during these checks the GPU is idle for {} [per "
      "step] ({}).",
      {count(found.checked / steps), count(found.nodes / steps), ns(facts.per_step(found.idle_ns)),
       ratio(found.idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(at_stake_ns);
  finding.at_stake_ratio = share_of(at_stake_ns, wall_ns);
  finding.arithmetic.push_back(say(
      facts,
      "the mode also stores a Python stack for each operator of the forward pass and keeps the CPU "
      "from running ahead, so all of the GPU's waits for the CPU are at stake, {} [per step], and "
      "the work of the checks, {}",
      {ns(facts.per_step(std::max(found.idle_ns, waiting_ns))),
       ns(facts.per_step(found.busy_ns))}));
  finding.evidence.push_back(
      {found.first, say(facts, "{} [check|checks]: aten::isnan, aten::any and a read of the value",
                        {count(found.checks)})});
  finding.try_next = {
      "remove torch.autograd.set_detect_anomaly(True) and detect_anomaly(); turn it on only to "
      "find the operator that makes a NaN",
      "check the loss alone: torch.isfinite(loss) every n steps"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.checks;
  finding.sample_noun = "check";
  for (const char* covered : {"host-sync", "tiny-kernels", "graph-opportunity", "gpu-idle"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("Autograd's anomaly detection is on: each backward node waits for the GPU");
  finding.action = say("Remove torch.autograd.set_detect_anomaly(True)");
  return finding;
}

}  // namespace

extern constinit const Rule anomaly_mode_rule = {
    .id = "anomaly-mode",
    .question = "is autograd's anomaly detection on?",
    .meant_by = "anomaly nan backward",
    .order = 76,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_anomaly_mode, tell_anomaly_mode>,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules

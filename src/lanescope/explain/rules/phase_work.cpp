#include "lanescope/explain/rules/phase_work.h"

#include <algorithm>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/enclosing_facts.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/device_time.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Phase;

namespace {

bool is_multi_tensor(std::string_view kernel, std::string_view op) {
  return kernel.find("multi_tensor_apply") != std::string_view::npos ||
         op.find("_foreach_") != std::string_view::npos ||
         op.find("_fused_") != std::string_view::npos || kernel.starts_with("triton_");
}

}  // namespace

PhaseWork work_of(const Facts& facts, const std::vector<Phase>& phases, Phase phase) {
  const Trace& trace = *facts.trace;
  PhaseWork found;
  found.any_range = std::find(phases.begin(), phases.end(), phase) != phases.end();
  for (const DeviceWork* work : steady_work(facts)) {
    if (phases[raw(work->slice)] != phase || work->work == analysis::WorkClass::kCommunication)
      continue;
    found.works.push_back(work);
    const SliceId op = facts.links.op_of[raw(work->slice)];
    const std::string_view label = op == kNone<SliceId> ? "" : trace.name(op);
    if (trace.kind(work->slice) == CategoryKind::kKernel &&
        is_multi_tensor(trace.name(work->slice), label))
      ++found.multi_tensor;
    OpCount& entry = found.ops[std::string(label)];
    ++entry.kernels;
    entry.gpu_ns += work->end_ns - work->start_ns;
    if (entry.longest == kNone<SliceId> ||
        work->end_ns - work->start_ns > trace.dur_ns(entry.longest))
      entry.longest = work->slice;
  }
  return found;
}

void add_ops(const PhaseWork& work, Finding& finding) {
  std::vector<std::pair<std::string, OpCount>> ranked(work.ops.begin(), work.ops.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.gpu_ns > b.second.gpu_ns; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    Sentence line = say("{} x{}: {} of GPU time",
                        {name(ranked[i].first.empty() ? "no operator" : ranked[i].first),
                         count(ranked[i].second.kernels), ns(ranked[i].second.gpu_ns)});
    finding.evidence.push_back({ranked[i].second.longest, std::move(line)});
  }
}

std::uint64_t steps_of(const Facts& facts) { return step_count(facts); }

bool trains(const Facts& facts, const std::vector<analysis::Window>* windows) {
  const Trace& trace = *facts.trace;
  const auto& phases = training_phases(facts);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (const SliceId id{i}; (phases[i] == Phase::kBackward || phases[i] == Phase::kOptimizer) &&
                             !is_device_work(trace.kind(id)) &&
                             (!windows || inside(*windows, trace.start_ns(id))))
      return true;
  return false;
}

}  // namespace lanescope::explain::rules

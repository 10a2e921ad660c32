#include "lanescope/explain/rules/step_state.h"

#include <algorithm>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/arithmetic.h"
#include "lanescope/explain/rules/gloo_waits.h"

namespace lanescope::explain::rules {

namespace {

// NCCL and RCCL move memory of GPUs only.
bool ran_gpu_collectives(const Facts& facts) {
  for (const SliceId id : slices_starting_with(facts, "nccl:"))
    if (is_front_end(facts.trace->kind(id))) return true;
  return false;
}

}  // namespace

bool used_gpu(const Facts& facts) {
  return !facts.kernel_launches.calls.empty() ||
         (!facts.main_device && ran_gpu_collectives(facts)) ||
         std::any_of(
             facts.memory.devices.begin(), facts.memory.devices.end(),
             [](const auto& device) { return device.is_accelerator() && !device.samples.empty(); });
}

bool has_launches(const Facts& facts) {
  return facts.main_device && facts.device().timeline.has_launches();
}

bool is_thin(const Facts& facts) {
  std::size_t works = 0;
  for (const auto& work : facts.device().timeline.work) {
    works += inside(facts.steady_windows, work.start_ns) ? 1 : 0;
    if (works == 2) break;
  }
  return works < 2 || facts.wall.partition.wall_ns < 20'000;
}

bool is_end_of_loop(const Facts& facts) {
  constexpr std::int64_t kShortNs = 1'000'000;
  constexpr std::size_t kFewOperators = 8;
  if (facts.main_device || !facts.cpu || !facts.steps.marked || facts.steps.steps.size() != 1 ||
      facts.steady_wall_ns() >= kShortNs)
    return false;
  const Trace& trace = *facts.trace;
  const analysis::StepRange& step = facts.steps.steps.front();
  std::size_t operators = 0;
  std::int64_t skipped_until_ns = 0;
  const Track& track = trace.track(facts.cpu->thread);
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) < std::max(skipped_until_ns, step.cpu_start_ns) ||
        trace.start_ns(id) >= step.cpu_end_ns)
      continue;
    const bool is_operator = trace.kind(id) == CategoryKind::kCpuOp;
    if (is_operator || trace.name(id).starts_with("enumerate(DataLoader)#"))
      skipped_until_ns = trace.end_ns(id);
    operators += is_operator;
  }
  return operators < kFewOperators;
}

const analysis::Gap* find_edge_gap(const Facts& facts) {
  if (!facts.main_device || facts.wall.partition.idle_ns == 0) return nullptr;
  const auto& work = facts.device().timeline.work;
  // "Next to the first work": at most one hundredth of the work, and at least one piece, lies
  // before.
  const auto& last_early = work[std::min(work.size() - 1, work.size() / 100)];
  for (const analysis::Gap& gap : facts.device().gaps.gaps) {
    if (gap.start_ns > last_early.end_ns) break;
    if (!inside(facts.steady_windows, gap.start_ns) ||
        (gap.end_ns - gap.start_ns) * 2 < facts.wall.partition.idle_ns)
      continue;
    std::int64_t waiting = 0;
    for (const analysis::IdlePart& part : facts.device().gaps.parts_of(gap))
      if (part.cause == analysis::IdleCause::kWaiting) waiting += part.end_ns - part.start_ns;
    if (waiting > 1'000'000 && waiting * 2 > gap.end_ns - gap.start_ns) return &gap;
  }
  return nullptr;
}

bool is_host_bound(const Facts& facts) {
  if (!facts.main_device || !has_launches(facts) || is_thin(facts)) return false;
  const auto& launches = facts.launches;
  const double waiting =
      share_of(waiting_for_cpu_without_gloo_ns(facts), facts.wall.partition.wall_ns);
  return waiting > 0.5 || (waiting > 0.3 && launches.empty_queue_count * 2 > launches.linked_count);
}

}  // namespace lanescope::explain::rules

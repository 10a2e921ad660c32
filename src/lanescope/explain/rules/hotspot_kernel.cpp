// One kernel takes a large part of the GPU's time.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

struct KernelTotal {
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0;
  SliceId longest = kNone<SliceId>;
};

struct HotspotKernel {
  KernelTotal hottest;
  std::string_view hottest_name;
  std::int64_t all_ns = 0;
};

std::optional<HotspotKernel> measure_hotspot_kernel(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& part = facts.wall.partition;
  std::unordered_map<std::uint32_t, KernelTotal> by_name;
  std::int64_t all_ns = 0;
  for (const DeviceWork& work : facts.device().timeline.work) {
    if (work.work != WorkClass::kCompute || !inside(facts.steady_windows, work.start_ns)) continue;
    KernelTotal& kernel = by_name[raw(trace.slices().name[raw(work.slice)])];
    const std::int64_t dur_ns = work.end_ns - work.start_ns;
    ++kernel.calls;
    kernel.total_ns += dur_ns;
    all_ns += dur_ns;
    if (kernel.longest == kNone<SliceId> || dur_ns > trace.dur_ns(kernel.longest))
      kernel.longest = work.slice;
  }
  const KernelTotal* hottest = nullptr;
  std::string_view hottest_name;
  for (const auto& [label, kernel] : by_name) {
    const std::string_view text_of = trace.text(StringId{label});
    if (!hottest || kernel.total_ns > hottest->total_ns ||
        (kernel.total_ns == hottest->total_ns && text_of < hottest_name)) {
      hottest = &kernel;
      hottest_name = text_of;
    }
  }
  // If the step waits for something else, the longest kernel is no answer.
  if (!hottest || by_name.size() < 2 || share_of(hottest->total_ns, all_ns) < 0.4 ||
      share_of(part.compute_ns, part.wall_ns) < 0.5)
    return std::nullopt;
  return HotspotKernel{*hottest, hottest_name, all_ns};
}

Finding tell_hotspot_kernel(const Facts& facts, const HotspotKernel& measured) {
  const Trace& trace = *facts.trace;
  const auto& [hottest, hottest_name, all_ns] = measured;
  const auto& part = facts.wall.partition;
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict =
      say(facts, "One kernel is {} of the compute time: {}, {} [call|calls], {} [per step].",
          {ratio(hottest.total_ns, all_ns), kernel(hottest_name), count(hottest.calls),
           ns(facts.per_step(hottest.total_ns))});
  finding.at_stake_ns = std::min(facts.per_step(hottest.total_ns), facts.per_step(part.compute_ns));
  finding.at_stake_ratio = share_of(finding.at_stake_ns, facts.per_step(part.wall_ns));
  Evidence evidence{hottest.longest, say("its longest call")};
  if (const SliceId op = facts.links.op_of[raw(hottest.longest)]; op != kNone<SliceId>)
    evidence.text = say("its longest call, launched by {}", {name(trace.name(op))});
  finding.evidence.push_back(std::move(evidence));
  finding.try_next = {
      "start with this kernel: a faster implementation, a smaller shape or a lower precision"};
  finding.confidence = facts.confidence();
  finding.sample_count = hottest.calls;
  finding.sample_noun = "call";
  return finding;
}

}  // namespace

extern constinit const Rule hotspot_kernel_rule = {
    .id = "hotspot-kernel",
    .question = "does one kernel take a large part of the GPU time?",
    .meant_by = "biggest slowest longest expensive layer",
    .order = 140,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_hotspot_kernel, tell_hotspot_kernel>,
};

}  // namespace lanescope::explain::rules

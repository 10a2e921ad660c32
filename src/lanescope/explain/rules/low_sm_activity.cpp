// Hardware counters say that many SMs have nothing to do while kernels run.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/hardware.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLow = 0.5;

struct LowActivity {
  double active = 0;
  std::uint64_t sample_count = 0;
  std::vector<KernelUse> least;  // with most unused time first, at most three
};

// The use of all kernels of the steady steps together. Samples with other work, such as copies and
// communication, do not count.
analysis::HardwareUse use_of_all_kernels(const Facts& facts,
                                         const analysis::HardwareSamples& samples) {
  constexpr std::uint32_t kKernels = 0, kOther = 1;
  std::vector<analysis::MeasuredPiece> pieces;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const bool counts =
        work.work == analysis::WorkClass::kCompute && inside(facts.steady_windows, work.start_ns);
    pieces.push_back({work.start_ns, work.end_ns, counts ? kKernels : kOther});
  }
  return analysis::measure_use(samples, pieces, 1).front();
}

double unused_ns(const KernelUse& kernel) {
  return (1 - kernel.use.sm_active_ratio.value_or(1)) * static_cast<double>(kernel.group.total_ns);
}

Measurement<LowActivity> measure_low_sm_activity(const Facts& facts) {
  const auto samples =
      analysis::find_hardware_samples(*facts.trace, facts.device().timeline.device);
  if (!samples || samples->sm_active.empty()) return NotChecked{need::kRecordHardware};
  const analysis::HardwareUse use = use_of_all_kernels(facts, *samples);
  if (!use.sm_active_ratio || use.sample_count < kFewestVerdictSamples)
    return NotChecked{need::kMoreSamples};
  // The samples must cover so much of the kernels' time that one odd kernel does not decide.
  if (use.sampled_ns * 4 < facts.wall.partition.compute_ns) return NotChecked{need::kMoreSamples};
  if (*use.sm_active_ratio >= kLow) return Quiet{};
  LowActivity found{*use.sm_active_ratio, use.sample_count, {}};
  if (auto measured = measure_kernels(facts)) {
    found.least = std::move(measured->kernels);
    std::erase_if(found.least, [](const KernelUse& kernel) {
      return kernel.use.sm_active_ratio.value_or(1) >= kLow;
    });
    sort_rows(found.least.begin(), found.least.end(),
              [](const KernelUse& a, const KernelUse& b) { return unused_ns(a) > unused_ns(b); });
    if (found.least.size() > 3) found.least.resize(3);
  }
  return found;
}

Finding tell_low_sm_activity(const Facts& facts, const LowActivity& found) {
  const std::int64_t compute_ns = facts.wall.partition.compute_ns;
  const auto unused =
      static_cast<std::int64_t>((1 - found.active) * static_cast<double>(compute_ns));
  const Value active = ratio(std::llround(found.active * 1000), 1000);
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict =
      say("Measured: while kernels ran, an SM had work in only about {} of its cycles (mean of all "
          "SMs, {} samples): the kernels are too small for this GPU, or few run at a time.",
          {active, count(found.sample_count)});
  finding.arithmetic.push_back(
      say(facts, "{} of kernels [per step] x (1 - {}) = {} in which an SM was unused",
          {ns(facts.per_step(compute_ns)), active, ns(facts.per_step(unused))}));
  add_kernel_uses(facts, found.least, &analysis::HardwareUse::sm_active_ratio, "the SMs' cycles",
                  &finding);
  finding.at_stake_ns = facts.per_step(unused);
  finding.at_stake_ratio = wall_share(facts, unused);
  finding.brief = say("While kernels run, SMs work only about {} of the time", {active});
  finding.try_next = {
      "give each kernel more blocks: a larger batch, fewer and larger operators, or several small "
      "kernels at the same time (streams, a CUDA graph with branches)"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.sample_count;
  finding.sample_noun = "sample";
  return finding;
}

}  // namespace

extern constinit const Rule low_sm_activity_rule = {
    .id = "low-sm-activity",
    .question = "do hardware counters show that many SMs are unused while kernels run?",
    .meant_by = "measured sm activity utilization",
    .order = 586,
    .needs = {need::kGpuWork, need::kHardware},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_low_sm_activity, tell_low_sm_activity>,
};

}  // namespace lanescope::explain::rules

#include "lanescope/explain/rules/hardware.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/arithmetic.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {

std::optional<MeasuredKernels> measure_kernels(const Facts& facts) {
  const auto& timeline = facts.device().timeline;
  const auto groups =
      analysis::compute_kernel_groups(*facts.trace, facts.links, timeline, facts.steady_windows);
  const auto uses = analysis::measure_kernel_groups(*facts.trace, facts.links, timeline, groups);
  if (uses.empty()) return std::nullopt;
  MeasuredKernels measured;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].work != analysis::WorkClass::kCompute) continue;
    measured.all_ns += groups[i].total_ns;
    if (uses[i].sample_count < analysis::kFewestHardwareSamples) continue;
    measured.measured_ns += groups[i].total_ns;
    measured.sample_count += uses[i].sample_count;
    measured.kernels.push_back({groups[i], uses[i]});
  }
  return measured;
}

KernelsAbove kernels_above(const MeasuredKernels& measured, UseNumber number, double limit) {
  KernelsAbove found;
  double weighted = 0;
  for (const KernelUse& kernel : measured.kernels) {
    const std::optional<double> value = kernel.use.*number;
    if (!value || *value < limit) continue;
    found.time_ns += kernel.group.total_ns;
    found.sample_count += kernel.use.sample_count;
    found.calls += kernel.group.count;
    weighted += *value * static_cast<double>(kernel.group.total_ns);
    if (found.largest.size() < 3) found.largest.push_back(kernel);
  }
  if (found.time_ns > 0) found.mean = weighted / static_cast<double>(found.time_ns);
  return found;
}

bool has_enough_samples(const MeasuredKernels& measured) {
  return measured.sample_count >= kFewestVerdictSamples &&
         measured.measured_ns >= measured.all_ns / 2;
}

Measurement<MeasuredLimit> measure_limit(const Facts& facts, UseNumber number, double limit) {
  const auto measured = measure_kernels(facts);
  if (!measured) return NotChecked{need::kRecordHardware};
  if (!has_enough_samples(*measured)) return NotChecked{need::kMoreSamples};
  const auto above = kernels_above(*measured, number, limit);
  if (above.time_ns * 2 < measured->measured_ns || above.sample_count < kFewestVerdictSamples)
    return Quiet{};
  return MeasuredLimit{above, measured->measured_ns, measured->all_ns};
}

Finding limit_finding(const Facts& facts, const MeasuredLimit& found) {
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.at_stake_ns = facts.per_step(found.above.time_ns);
  finding.at_stake_ratio = wall_share(facts, found.above.time_ns);
  finding.confidence = facts.confidence();
  finding.sample_count = found.above.sample_count;
  finding.sample_noun = "sample";
  return finding;
}

void add_kernel_uses(const Facts& facts, const std::vector<KernelUse>& kernels, UseNumber number,
                     const char* of_what, Finding* finding) {
  for (const KernelUse& each : kernels) {
    Sentence line = say(facts, "{}: {} [call|calls], {} [per step], about {} of ",
                        {kernel(facts.trace->name(each.group.median_call)), count(each.group.count),
                         ns(facts.per_step(each.group.total_ns)),
                         ratio(std::llround((each.use.*number).value_or(0) * 1000), 1000)});
    append(line, say(std::string(of_what) + " from {} samples", {count(each.use.sample_count)}));
    finding->evidence.push_back({each.group.median_call, std::move(line)});
  }
}

std::vector<SampleSpan> sample_spans(const analysis::HardwareSeries& series,
                                     std::int64_t interval_ns) {
  std::vector<SampleSpan> spans;
  for (std::size_t i = 0; i + 1 < series.start_ns.size(); ++i) {
    const std::int64_t length = series.start_ns[i + 1] - series.start_ns[i];
    if (length > 0 && length <= interval_ns * 3 / 2)
      spans.push_back({series.start_ns[i], series.start_ns[i + 1], series.value[i]});
  }
  return spans;
}

namespace need {
bool has_hardware(const Facts& facts) {
  return std::any_of(
      facts.trace->metadata().begin(), facts.trace->metadata().end(),
      [&](const Metadata& entry) { return facts.trace->text(entry.key) == "lanescope_hardware"; });
}
}  // namespace need

}  // namespace lanescope::explain::rules

// PCIe or NVLink carries nearly all that it can.
#include <algorithm>
#include <cmath>
#include <optional>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/hardware.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kNearLinkPeak = 0.8;
constexpr double kLeastFullLinkShare = 0.1;  // of the steady wall

struct LinkSeries {
  const char* name;
  const char* words;
  double analysis::HardwareLanes::*peak;
};
constexpr LinkSeries kLinks[] = {
    {"PCIe read", "PCIe, from the host to the GPU",
     &analysis::HardwareLanes::pcie_peak_bytes_per_second},
    {"PCIe write", "PCIe, from the GPU to the host",
     &analysis::HardwareLanes::pcie_peak_bytes_per_second},
    {"NVLink receive", "NVLink, to this GPU",
     &analysis::HardwareLanes::nvlink_peak_bytes_per_second},
    {"NVLink send", "NVLink, from this GPU",
     &analysis::HardwareLanes::nvlink_peak_bytes_per_second},
};

struct FullLink {
  const LinkSeries* link = nullptr;
  std::uint64_t full_samples = 0, samples = 0;  // inside steady steps
  std::int64_t full_ns = 0;
  double bytes = 0;  // in the full samples
  double peak = 0;   // bytes per second
};

FullLink measure_link(const Facts& facts, const analysis::HardwareLanes& lanes,
                      const LinkSeries& link) {
  FullLink found{.link = &link, .peak = lanes.*link.peak};
  const analysis::HardwareSeries* series = lanes.find(link.name);
  if (!series || series->unit != "GB/s" || found.peak <= 0) return found;
  for (const SampleSpan& sample : sample_spans(*series, lanes.interval_ns)) {
    if (!inside(facts.steady_windows, sample.start_ns)) continue;
    ++found.samples;
    if (sample.value * 1e9 < kNearLinkPeak * found.peak) continue;
    ++found.full_samples;
    found.full_ns += sample.end_ns - sample.start_ns;
    found.bytes += sample.value * static_cast<double>(sample.end_ns - sample.start_ns);
  }
  return found;
}

Measurement<FullLink> measure_full_link(const Facts& facts) {
  const auto lanes = analysis::find_hardware_lanes(*facts.trace, facts.device().timeline.device);
  if (!lanes) return NotChecked{need::kRecordHardware};
  std::optional<FullLink> fullest;
  bool any = false;
  for (const LinkSeries& link : kLinks) {
    const FullLink found = measure_link(facts, *lanes, link);
    any |= found.samples >= kFewestVerdictSamples;
    if (found.full_samples < kFewestVerdictSamples) continue;
    if (!fullest || found.full_ns > fullest->full_ns) fullest = found;
  }
  if (!any)
    return NotChecked{
        "20 samples of PCIe or NVLink in the steady steps and the link's peak rate (record "
        "--hardware)"};
  if (!fullest || share_of(fullest->full_ns, facts.wall.partition.wall_ns) < kLeastFullLinkShare)
    return Quiet{};
  return *fullest;
}

Finding tell_full_link(const Facts& facts, const FullLink& found) {
  const std::int64_t full_ns = std::min(found.full_ns, facts.wall.partition.wall_ns);
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict =
      say("{} is full for about {} of the steady time ({} of {} samples): it carries at least 80 % "
          "of its peak.",
          {text(found.link->words), ratio(full_ns, facts.wall.partition.wall_ns),
           count(found.full_samples), count(found.samples)});
  const double rate = found.full_ns > 0 ? found.bytes / static_cast<double>(found.full_ns) : 0;
  finding.arithmetic.push_back(
      say("in these samples {} per second, of {} that the link can carry in this direction",
          {bytes(std::llround(rate * 1e9)), bytes(std::llround(std::min(found.peak, 9e18)))}));
  finding.at_stake_ns = facts.per_step(full_ns);
  finding.at_stake_ratio = wall_share(facts, full_ns);
  finding.brief = say("{} is full for about {} of the time",
                      {text(found.link->words), ratio(full_ns, facts.wall.partition.wall_ns)});
  finding.try_next = {
      std::string_view(found.link->name).starts_with("PCIe")
          ? "move less over PCIe: keep data on the GPU, copy smaller types (uint8 images), copy "
            "each batch once"
          : "move less over NVLink: larger buckets do not help; fewer or smaller messages do "
            "(bf16 gradients, fewer tensor-parallel ranks)"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.full_samples;
  finding.sample_noun = "sample";
  return finding;
}

}  // namespace

extern constinit const Rule full_link_rule = {
    .id = "full-link",
    .question = "do hardware counters show that PCIe or NVLink is full?",
    .meant_by = "pcie nvlink saturated link",
    .order = 592,
    .needs = {need::kGpuWork, need::kHardware},
    .run = measure_and_tell<measure_full_link, tell_full_link>,
};

}  // namespace lanescope::explain::rules

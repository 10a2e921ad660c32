// Hardware counters say that most kernels move bytes nearly as fast as the GPU's memory can.
#include <cmath>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/hardware.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kNearPeak = 0.6;

Measurement<MeasuredLimit> measure_measured_memory(const Facts& facts) {
  return measure_limit(facts, &analysis::HardwareUse::dram_peak_ratio, kNearPeak);
}

Finding tell_measured_memory(const Facts& facts, const MeasuredLimit& found) {
  const Value share = ratio(found.above.time_ns, found.all_ns),
              mean = ratio(std::llround(found.above.mean * 1000), 1000);
  Finding finding = limit_finding(facts, found);
  finding.verdict =
      say("Measured: kernels with about {} of the kernels' time read and write the GPU's memory at "
          "{} of its peak; they are limited by memory.",
          {share, mean});
  finding.arithmetic.push_back(
      say(facts,
          "{} [per step] in kernels at 60 % of the memory's peak or more, of {} in kernels with "
          "enough samples and {} in all kernels",
          {ns(facts.per_step(found.above.time_ns)), ns(facts.per_step(found.measured_ns)),
           ns(facts.per_step(found.all_ns))}));
  const auto& roofline = kernel_facts(facts).roofline;
  const auto& by_shapes = roofline.of(analysis::RooflineClass::kMemory);
  if (roofline.has_shapes && roofline.busy_ns > 0)
    finding.arithmetic.push_back(
        say("the model from shapes, without the counters: {} of the kernels' time is limited by "
            "memory, and reaches {} of the bandwidth",
            {ratio(by_shapes.time_ns, roofline.busy_ns),
             ratio(std::llround(by_shapes.floor_ns), by_shapes.time_ns)}));
  add_kernel_uses(facts, found.above.largest, &analysis::HardwareUse::dram_peak_ratio,
                  "the memory's peak", &finding);
  finding.try_next = {
      "move fewer bytes: fusion, a smaller type, a larger batch where weights are read again and "
      "again"};
  return finding;
}

}  // namespace

extern constinit const Rule measured_memory_rule = {
    .id = "measured-memory",
    .question = "do hardware counters show the memory near its peak?",
    .meant_by = "measured bandwidth",
    .order = 582,
    .needs = {need::kGpuWork, need::kHardware},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_measured_memory, tell_measured_memory>,
};

}  // namespace lanescope::explain::rules

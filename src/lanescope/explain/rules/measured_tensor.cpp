// Hardware counters say that most kernels keep the tensor cores busy.
#include <cmath>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/hardware.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kBusy = 0.6;

Measurement<MeasuredLimit> measure_measured_tensor(const Facts& facts) {
  return measure_limit(facts, &analysis::HardwareUse::tensor_active_ratio, kBusy);
}

Finding tell_measured_tensor(const Facts& facts, const MeasuredLimit& found) {
  Finding finding = limit_finding(facts, found);
  finding.verdict =
      say("Measured: kernels with about {} of the kernels' time keep the tensor cores busy for {} "
          "of their cycles; they are limited by the tensor cores.",
          {ratio(found.above.time_ns, found.all_ns),
           ratio(std::llround(found.above.mean * 1000), 1000)});
  finding.arithmetic.push_back(
      say(facts,
          "{} [per step] in kernels whose tensor cores work 60 % of the cycles or more, of {} in "
          "kernels with enough samples and {} in all kernels",
          {ns(facts.per_step(found.above.time_ns)), ns(facts.per_step(found.measured_ns)),
           ns(facts.per_step(found.all_ns))}));
  const auto& roofline = kernel_facts(facts).roofline;
  const auto& by_shapes = roofline.of(analysis::RooflineClass::kCompute);
  if (roofline.has_shapes && roofline.busy_ns > 0)
    finding.arithmetic.push_back(
        say("the model from shapes, without the counters: {} of the kernels' time is limited by "
            "compute, and reaches {} of the peak rate",
            {ratio(by_shapes.time_ns, roofline.busy_ns),
             ratio(std::llround(by_shapes.floor_ns), by_shapes.time_ns)}));
  add_kernel_uses(facts, found.above.largest, &analysis::HardwareUse::tensor_active_ratio,
                  "the tensor cores' cycles", &finding);
  finding.try_next = {
      "less arithmetic makes these kernels shorter: a smaller type (FP8 where the GPU has it), "
      "fewer operations, sparsity",
      "on Hopper, see that the kernels are made for it: older instructions (mma.sync) keep the "
      "tensor cores busy at two thirds of the peak rate"};
  return finding;
}

}  // namespace

extern constinit const Rule measured_tensor_rule = {
    .id = "measured-tensor",
    .question = "do hardware counters show the tensor cores near their peak?",
    .meant_by = "measured tensorcore",
    .order = 584,
    .needs = {need::kGpuWork, need::kHardware},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_measured_tensor, tell_measured_tensor>,
};

}  // namespace lanescope::explain::rules

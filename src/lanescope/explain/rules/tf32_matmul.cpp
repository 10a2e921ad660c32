// A model computes in float32 throughout: its products and convolutions run on the tensor cores, but as TF32, of which these do half as
// many operations as of bfloat16. All that is stored has twice the bytes, too.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "lanescope/explain/enclosing_facts.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/batch_advice.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

// Less is not what limits the step, and 16 bits are no use to Fourier transforms, say.
constexpr double kLeastTf32Share = 0.25;  // of all compute
constexpr double kMostHalfShare = 0.1;    // of the time in TF32: the program uses autocast already
constexpr double kLeastTf32Gain = 0.05;   // of a step

struct Tf32Kernels {
  Savings matrix;    // products and convolutions in TF32
  Savings all;       // these, and other kernels whose input is float32
  double ratio = 0;  // peak of bfloat16 / peak of TF32
};

bool is_float32(std::string_view type) { return type == "f32" || type == "tf32"; }

Measurement<Tf32Kernels> measure_tf32_matmul(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  const GpuSpec* spec = kernels.roofline.spec;
  if (!spec || !spec->peak.tf32 || !spec->peak.bf16 || *spec->peak.bf16 <= *spec->peak.tf32 ||
      kernels.roofline.device.name.find("AMD") != std::string::npos || !works_on_batch(facts))
    return Quiet{};
  Tf32Kernels found;
  found.ratio = *spec->peak.bf16 / *spec->peak.tf32;
  const auto& phases = training_phases(facts);
  Savings all_compute;
  std::int64_t half_ns = 0, tf32_ns = 0;
  for (const KernelCall& kernel : kernels.kernels) {
    all_compute.add(kernel, 0);
    const std::string_view type = kernel.input_type();
    const bool is_matrix = kernel.is_gemm() || kernel.is_convolution();
    if (is_matrix && (type == "bf16" || type == "f16")) half_ns += kernel.dur_ns();
    if (!is_float32(type) || phases[raw(kernel.slice)] == analysis::Phase::kOptimizer) continue;
    if (is_matrix && kernel.matrix_units != analysis::MatrixUnits::kUsed) continue;  // fp32-matmul
    // Half of the bytes, or the operations of the faster type.
    const double left = is_matrix ? 1 / found.ratio : 0.5;
    const auto saved_ns =
        kernel.dur_ns() - std::llround(left * static_cast<double>(kernel.dur_ns()));
    found.all.add(kernel, saved_ns);
    if (!is_matrix) continue;
    found.matrix.add(kernel, saved_ns);
    tf32_ns += kernel.dur_ns();
  }
  found.all.finish();
  found.matrix.finish();
  all_compute.finish();
  if (share_of(found.matrix.time_ns(), all_compute.time_ns()) < kLeastTf32Share ||
      static_cast<double>(half_ns) > kMostHalfShare * static_cast<double>(tf32_ns) ||
      wall_share(facts, found.all.saved_ns()) < kLeastTf32Gain)
    return Quiet{};
  return found;
}

Finding tell_tf32_matmul(const Facts& facts, const Tf32Kernels& found) {
  Finding finding;
  finding.verdict = say(
      facts,
      "Products and convolutions run in TF32: {} [kernel|kernels], {} of [a step's] {}. In "
      "bfloat16 the tensor cores do {} times as many operations, and tensors have half the bytes.",
      {count(found.matrix.calls()), ns(facts.per_step(found.matrix.time_ns())),
       ns(facts.per_step(facts.wall.partition.wall_ns)),
       factor(std::llround(found.ratio * 1000), 1000)});
  finding.arithmetic.push_back(
      say(facts,
          "kernels on float32 outside of the optimizer take {} [per step]; with 16 bits at best "
          "{} of it is left of products and convolutions, and half of the rest. Casts take a part "
          "of the gain",
          {ns(facts.per_step(found.all.time_ns())),
           ratio(std::llround(1e6 / found.ratio), 1'000'000)}));
  rate_finding(facts, found.all, finding);
  finding.gain_is_bound = true;
  finding.is_about_all_work = true;
  finding.evidence.push_back(longest_of(facts, found.matrix.longest()));
  const bool is_training = trains(facts);
  finding.try_next = {
      is_training
          ? "run the forward pass and the loss under torch.autocast(\"cuda\", torch.bfloat16): "
            "weights stay float32, no gradient scaler is needed; compare the losses of some "
            "hundred steps"
          : "convert the model and its inputs once: model.to(torch.bfloat16); compare some results "
            "with those of float32",
      "leave it as it is where 8 bits of mantissa are too few for the result, as in simulations or "
      "derivatives of high order"};
  finding.brief = say("Matrix work runs in float32 (TF32); bfloat16 has {} times its rate",
                      {factor(std::llround(found.ratio * 1000), 1000)});
  finding.action = is_training
                       ? say("If results allow it: torch.autocast(\"cuda\", torch.bfloat16)")
                       : say("If results allow it: model.to(torch.bfloat16), and its inputs");
  return finding;
}

}  // namespace

extern constinit const Rule tf32_matmul_rule = {
    .id = "tf32-matmul",
    .question = "does a model run in float32 where bfloat16 would be faster?",
    .meant_by = "mixed precision amp autocast bf16 bfloat16 half tf32",
    .order = 489,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_tf32_matmul, tell_tf32_matmul>,
    .fix = Fix::kGpu,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules

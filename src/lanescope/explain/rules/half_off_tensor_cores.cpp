// Half-precision matmuls and convolutions whose kernels do not use the tensor cores.
#include <algorithm>
#include <cmath>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct HalfKernels {
  Savings kernels;
  std::uint64_t unaligned = 0;
  std::uint64_t with_shape = 0;
};

Measurement<HalfKernels> measure_half_off_tensor_cores(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  const auto major = kernels.roofline.device.compute_major;
  if (major && *major < 7) return Quiet{};
  Savings savings;
  std::uint64_t unaligned = 0, with_shape = 0;
  for (const KernelCall& kernel : kernels.kernels) {
    const std::string_view type = kernel.input_type();
    if (kernel.matrix_units != analysis::MatrixUnits::kNotUsed || (type != "f16" && type != "bf16"))
      continue;
    if ((!kernel.is_gemm() && !kernel.is_convolution()) || kernel.name->operation == "GEMV")
      continue;
    double floor_ns = 0;
    if (kernel.call && kernel.call->kernel == kernel.slice) {
      const auto& gemm = kernel.work->gemm;
      if (gemm && (gemm->m == 1 || gemm->n == 1)) continue;  // a vector: limited by memory
      floor_ns = kernel.call->floor_ns();
      if (gemm) {
        ++with_shape;
        unaligned += gemm->n % 8 != 0 || gemm->k % 8 != 0 ? 1 : 0;
      }
    }
    savings.add(kernel, kernel.dur_ns() - std::llround(std::min(floor_ns, 1e18)));
  }
  savings.finish();
  if (savings.calls() == 0 || wall_share(facts, savings.saved_ns()) < 0.02) return Quiet{};
  if (!major)
    return NotChecked{"what GPU it was (deviceProperties), to know whether it has tensor cores"};
  return HalfKernels{
      .kernels = std::move(savings), .unaligned = unaligned, .with_shape = with_shape};
}

Finding tell_half_off_tensor_cores(const Facts& facts, const HalfKernels& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "Half-precision matrix work does not use the tensor cores: {} [kernel|kernels], {} [per "
          "step].",
          {count(found.kernels.calls()), ns(facts.per_step(found.kernels.time_ns()))});
  if (found.with_shape > 0)
    finding.arithmetic.push_back(
        say(facts, "{} of {} [matmul has|matmuls have] a size that is not a multiple of 8",
            {count(found.unaligned), count(found.with_shape)}));
  rate_finding(facts, found.kernels, finding);
  finding.evidence.push_back(longest_of(facts, found.kernels.longest()));
  const std::string_view longest_name = facts.trace->name(found.kernels.longest());
  if (longest_name.find("depthwise") != longest_name.npos)
    finding.try_next = {
        "use cuDNN's kernel (torch.backends.cudnn.enabled) or a generated one (torch.compile): a "
        "depthwise convolution does few operations per byte"};
  else
    finding.try_next = {"make sizes and strides multiples of 8 elements (16 bytes)",
                        "make inputs contiguous; use channels_last for convolutions"};
  finding.explains.push_back({"slow-gemm", finding.at_stake_ns});
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.brief = say("Half-precision matrix work runs without tensor cores");
  return finding;
}

}  // namespace

extern constinit const Rule half_off_tensor_cores_rule = {
    .id = "half-off-tensor-cores",
    .question = "do half-precision matmuls run without tensor cores?",
    .meant_by = "tensorcore",
    .order = 500,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_half_off_tensor_cores, tell_half_off_tensor_cores>,
    .is_regression = true,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules

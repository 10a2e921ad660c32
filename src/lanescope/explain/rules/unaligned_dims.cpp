// Matmuls whose rows do not begin at multiples of 16 bytes, which the fast kernels need.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

std::int64_t elements_in_16_bytes(std::string_view type) {
  if (type == "f16" || type == "bf16") return 8;
  if (type.starts_with("f8") || type == "i8") return 16;
  return type == "f32" ? 4 : 0;
}

// The first row length of A, B or C that is no multiple, or 0.
std::int64_t unaligned_length(const analysis::OperatorWork& work) {
  const std::int64_t wanted = elements_in_16_bytes(work.type);
  if (wanted == 0) return 0;
  for (const std::int64_t length : work.gemm->leading)
    if (length > 1 && length % wanted != 0) return length;
  return 0;
}

struct UnalignedDims {
  Savings found;
  const analysis::RooflineCall* longest = nullptr;
  std::int64_t length = 0;
  std::optional<double> best_aligned;
};

Measurement<UnalignedDims> measure_unaligned_dims(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  // What aligned matmuls of the same type reach in this program.
  std::map<std::string_view, double> best;
  for (const KernelCall& kernel : kernels.kernels)
    if (kernel.is_gemm() && kernel.call && kernel.call->kernel == kernel.slice &&
        kernel.call->kind != analysis::RooflineClass::kShort && unaligned_length(*kernel.work) == 0)
      best[kernel.work->type] = std::max(best[kernel.work->type], kernel.call->achieved_ratio());
  Savings found;
  std::int64_t length = 0, longest_ns = 0;
  const analysis::RooflineCall* longest = nullptr;
  for (const KernelCall& kernel : kernels.kernels) {
    if (!kernel.is_gemm() || !kernel.call || kernel.call->kernel != kernel.slice ||
        kernel.call->kind == analysis::RooflineClass::kShort || !kernel.is_alone)
      continue;
    const std::int64_t odd = unaligned_length(*kernel.work);
    const double achieved = kernel.call->achieved_ratio();
    const auto neighbour = best.find(kernel.work->type);
    const double expected = neighbour == best.end() ? 1 : neighbour->second;
    // As fast as the others, so the size does no harm.
    if (odd == 0 || achieved > 0.5 || achieved > 0.75 * expected) continue;
    const auto dur = static_cast<double>(kernel.dur_ns());
    found.add(kernel, std::llround(dur * (1 - achieved / expected)));
    if (kernel.dur_ns() > longest_ns) {
      longest_ns = kernel.dur_ns();
      longest = kernel.call;
      length = odd;
    }
  }
  found.finish();
  if (!longest && !gemms_are_known(kernels)) return NotChecked{kNeedsGemmShapes};
  if (!longest || wall_share(facts, found.saved_ns()) < 0.02) return Quiet{};
  const auto& type = kernels.roofline.works[longest->work].type;
  std::optional<double> best_aligned;
  if (const auto neighbour = best.find(type); neighbour != best.end())
    best_aligned = neighbour->second;
  return UnalignedDims{std::move(found), longest, length, best_aligned};
}

Finding tell_unaligned_dims(const Facts& facts, const UnalignedDims& measured) {
  const auto& [found, longest, length, best_aligned] = measured;
  const auto& work = kernel_facts(facts).roofline.works[longest->work];
  Finding finding;
  finding.verdict = say(facts,
                        "Matmuls have sizes that tensor cores are slow at: {} [call|calls], {} "
                        "[per step]; the longest has rows of {} {} elements.",
                        {count(found.calls()), ns(facts.per_step(found.time_ns())),
                         count(static_cast<std::uint64_t>(length)), name(work.type)});
  finding.arithmetic.push_back(say("the longest ([{} x {}] by [{} x {}]) reached {} of the roof",
                                   {count(static_cast<std::uint64_t>(work.gemm->m)),
                                    count(static_cast<std::uint64_t>(work.gemm->k)),
                                    count(static_cast<std::uint64_t>(work.gemm->k)),
                                    count(static_cast<std::uint64_t>(work.gemm->n)),
                                    ratio(std::llround(longest->achieved_ratio() * 1000), 1000)}));
  if (best_aligned)
    finding.arithmetic.push_back(say("aligned matmuls of the same type reached up to {}",
                                     {ratio(std::llround(*best_aligned * 1000), 1000)}));
  rate_finding(facts, found, finding);
  finding.evidence.push_back(longest_of(facts, found.longest()));
  finding.try_next = {
      "pad the size to a multiple of 8 (16-bit types), 16 (8-bit), 4 (float32); for a "
      "vocabulary 64 or 128"};
  finding.explains.push_back({"slow-gemm", finding.at_stake_ns});
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.brief = say("Matmul sizes do not fit the tensor cores: rows of {} {} elements",
                      {count(static_cast<std::uint64_t>(length)), name(work.type)});
  finding.action = say("Pad sizes to a multiple of 8 (16-bit types), 16 (8-bit) or 4 (float32)");
  return finding;
}

}  // namespace

extern constinit const Rule unaligned_dims_rule = {
    .id = "unaligned-dims",
    .question = "do matmuls have sizes that tensor cores are slow at?",
    .meant_by = "tensorcore",
    .order = 510,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .then_needs = {need::kShapes, need::kPeakRates},
    .run = measure_and_tell<measure_unaligned_dims, tell_unaligned_dims>,
    .fix = Fix::kGpu,
    .keeps_kernels = true,
};

}  // namespace lanescope::explain::rules

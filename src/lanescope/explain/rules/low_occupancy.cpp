// Memory-bound kernels for which registers or shared memory allow less than a quarter of the warps.
#include <cmath>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::RooflineClass;

namespace {

struct LowOccupancy {
  Savings found;
  const KernelCall* longest = nullptr;
  analysis::LaunchShape longest_shape;
};

Measurement<LowOccupancy> measure_low_occupancy(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  Savings found;
  const KernelCall* longest = nullptr;
  analysis::LaunchShape longest_shape;
  bool has_grids = false, has_candidates = false;
  for (const KernelCall& kernel : kernels.kernels) {
    if (!kernel.call || kernel.call->kernel != kernel.slice || !kernel.is_alone ||
        kernel.call->kind != RooflineClass::kMemory || kernel.dur_ns() < 10'000)
      continue;
    // Matrix kernels are designed to run with few warps.
    if (kernel.is_gemm() || kernel.is_convolution() || kernel.is_attention()) continue;
    const auto shape = kernels.shape(*facts.trace, kernel);
    has_candidates = true;
    has_grids |= shape.has_value();
    if (!shape || !shape->occupancy || shape->occupancy->theoretical_ratio >= 0.25) continue;
    const std::string& limit = shape->occupancy->limit;
    if (limit.find("registers") == std::string::npos && limit.find("shared") == std::string::npos)
      continue;
    if (kernel.call->achieved_ratio() >= 0.5) continue;  // fast in spite of it
    found.add(kernel, kernel.dur_ns() - std::llround(kernel.call->floor_ns()));
    if (!longest || kernel.dur_ns() > longest->dur_ns()) {
      longest = &kernel;
      longest_shape = *shape;
    }
  }
  if (has_candidates && !has_grids) return NotChecked{kNeedsGrids};
  found.finish();
  if (!longest || wall_share(facts, found.saved_ns()) < 0.02) return Quiet{};
  return LowOccupancy{std::move(found), longest, std::move(longest_shape)};
}

Finding tell_low_occupancy(const Facts& facts, const LowOccupancy& measured) {
  const auto& [found, longest, longest_shape] = measured;
  Finding finding;
  finding.verdict = say(facts,
                        "Memory-bound kernels run with few warps: {} [call|calls], {} [per step], "
                        "limited to less than a quarter of the possible warps by {}.",
                        {count(found.calls()), ns(facts.per_step(found.time_ns())),
                         text(longest_shape.occupancy->limit)});
  finding.arithmetic.push_back(
      say(facts,
          "the longest: {} [thread|threads] a block, {} [block|blocks] at once on a "
          "multiprocessor, {} of its warps, {} of the memory roof",
          {count(static_cast<std::uint64_t>(longest_shape.block_threads)),
           count(static_cast<std::uint64_t>(longest_shape.occupancy->resident_blocks)),
           ratio(std::llround(longest_shape.occupancy->theoretical_ratio * 1000), 1000),
           ratio(std::llround(longest->call->achieved_ratio() * 1000), 1000)}));
  rate_finding(facts, found, finding);
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.evidence.push_back(
      {longest->slice, say("the longest, {}", {kernel(facts.trace->name(longest->slice))})});
  const std::string_view limit = longest_shape.occupancy->limit;
  finding.try_next = {
      limit.find("register") != limit.npos
          ? "use launch bounds or a smaller tile, if the kernel is yours"
          : "use less shared memory per block, or more threads per block, if the kernel is yours",
      "try another implementation of the operator, or torch.compile"};
  finding.brief = say("Memory-bound kernels run with too few warps, limited by {}",
                      {text(longest_shape.occupancy->limit)});
  return finding;
}

}  // namespace

extern constinit const Rule low_occupancy_rule = {
    .id = "low-occupancy",
    .question = "do registers or shared memory keep memory-bound kernels from hiding latency?",
    .order = 570,
    .needs = {need::kGpuWork},
    .only_if = kernels_decide,
    .then_needs = {need::kShapes, need::kPeakBandwidth},
    .run = measure_and_tell<measure_low_occupancy, tell_low_occupancy>,
};

}  // namespace lanescope::explain::rules

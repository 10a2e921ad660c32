// The GPU is busy with operators that move bytes as fast as its memory can.
#include <algorithm>
#include <cmath>
#include <optional>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::RooflineClass;

namespace {

bool computes_half_the_time(const Facts& facts) {
  const auto& part = facts.wall.partition;
  return kernels_decide(facts) && part.compute_ns * 2 >= part.wall_ns;
}

constexpr Need kMostlyKnownOperators = {[](const Facts& facts) {
                                          const auto& roofline = kernel_facts(facts).roofline;
                                          return roofline.of(RooflineClass::kUnknown).time_ns * 2 <=
                                                 roofline.busy_ns;
                                        },
                                        kNeedsOperators};

struct MemoryRoof {
  analysis::RooflineTotals memory;
  double achieved = 0;
  SliceId longest = kNone<SliceId>;
  std::int64_t wide_ns = 0;  // of calls on elements of 4 bytes or more
};

std::optional<MemoryRoof> measure_memory_roof(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  const auto& roofline = kernels.roofline;
  const auto& memory = roofline.of(RooflineClass::kMemory);
  const double achieved =
      memory.time_ns > 0 ? memory.floor_ns / static_cast<double>(memory.time_ns) : 0;
  if (memory.time_ns * 2 < roofline.busy_ns || achieved < 0.6) return std::nullopt;
  const analysis::RooflineCall* longest = nullptr;
  std::int64_t wide_ns = 0;
  for (const auto& call : roofline.calls) {
    if (call.kind != RooflineClass::kMemory) continue;
    if (!longest || call.time_ns > longest->time_ns) longest = &call;
    const std::string_view type = roofline.works[call.work].type;
    if (type == "f32" || type == "f64") wide_ns += call.time_ns;
  }
  return MemoryRoof{memory, achieved, longest->kernel, wide_ns};
}

Finding tell_memory_roof(const Facts& facts, const MemoryRoof& measured) {
  const auto& [memory, achieved, longest, wide_ns] = measured;
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict =
      say("The GPU is limited by its memory: {} of its time goes to operators that do little more "
          "than move data, at {} of the bandwidth.",
          {ratio(memory.time_ns, kernel_facts(facts).roofline.busy_ns),
           ratio(std::llround(std::min(achieved, 1.0) * 1000), 1000)});
  finding.arithmetic.push_back(
      say(facts, "{} [call reads and writes|calls read and write] at least {} in {}",
          {count(memory.calls), bytes(std::llround(std::min(memory.bytes, 9e18))),
           ns(memory.time_ns)}));
  finding.at_stake_ns = facts.per_step(memory.time_ns);
  finding.at_stake_ratio = wall_share(facts, memory.time_ns);
  finding.evidence.push_back(longest_of(facts, longest));
  finding.try_next = {
      launch_mode_of(facts) == LaunchMode::kEager
          ? "make fewer passes over the data: fusion (torch.compile), in-place operators"
          : "make fewer passes over the data: larger compiled regions, in-place operators",
      wide_ns * 2 > memory.time_ns
          ? "move fewer bytes: bf16 instead of float32, smaller activations"
          : "move fewer bytes: smaller activations"};
  finding.confidence = facts.confidence();
  finding.sample_count = memory.calls;
  finding.sample_noun = "call";
  return finding;
}

}  // namespace

extern constinit const Rule memory_roof_rule = {
    .id = "memory-roof",
    .question = "is the GPU limited by its memory bandwidth?",
    .order = 580,
    .needs = {need::kGpuWork},
    .only_if = computes_half_the_time,
    .then_needs = {need::kShapes, need::kPeakBandwidth, kMostlyKnownOperators},
    .run = measure_and_tell<measure_memory_roof, tell_memory_roof>,
};

}  // namespace lanescope::explain::rules

// The caching allocator holds much more from the driver than tensors take at their peak.
#include <optional>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::MemoryDevice;

namespace {

constexpr Need kPoolTotals = {[](const Facts& facts) {
                                return main_memory(facts)->has_totals &&
                                       main_memory(facts)->has_reserved;
                              },
                              "the allocator's totals (profile_memory=True with a newer torch)"};

struct MemoryFragmentation {
  analysis::MemorySample peak;
  std::int64_t unused = 0;
  std::int64_t grown = 0;
  std::int64_t free_when_grown = 0;
  std::uint64_t times = 0;
};

std::optional<MemoryFragmentation> measure_memory_fragmentation(const Facts& facts) {
  const MemoryDevice* device = main_memory(facts);
  // The pool grew during the recording though it had as much free memory as it asked for. A pool
  // that is merely large may have been larger needed before the recording.
  std::int64_t free_when_grown = 0, grown = 0;
  std::uint64_t times = 0;
  for (std::size_t i = 1; i < device->samples.size(); ++i) {
    const auto& before = device->samples[i - 1];
    const auto& now = device->samples[i];
    if (now.bytes <= 0 || now.reserved <= before.reserved) continue;
    const std::int64_t unused = before.reserved - before.allocated;
    if (unused < now.bytes) continue;
    ++times;
    grown = analysis::add_bytes(grown, now.reserved - before.reserved);
    free_when_grown = std::max(free_when_grown, unused);
  }
  const auto& peak = device->samples[device->peak];
  const std::int64_t unused = peak.reserved - peak.allocated;
  if (times == 0 || share_of(unused, peak.reserved) < 0.2 || unused < (std::int64_t{256} << 20))
    return std::nullopt;
  return MemoryFragmentation{peak, unused, grown, free_when_grown, times};
}

Finding tell_memory_fragmentation(const Facts& facts, const MemoryFragmentation& measured) {
  const auto& [peak, unused, grown, free_when_grown, times] = measured;
  Finding finding;
  finding.kind = FindingKind::kMemory;
  finding.verdict =
      say("The allocator's memory is fragmented: at the peak it held {} and tensors took {} of it "
          "({} unused), and still it asked the driver for more.",
          {bytes(peak.reserved), bytes(peak.allocated), ratio(unused, peak.reserved)});
  finding.arithmetic.push_back(
      say(facts,
          "{} [time|times] it took new memory, {} in all, for blocks that were smaller "
          "than what it had free (up to {})",
          {count(times), bytes(grown), bytes(free_when_grown)}));
  finding.try_next = {"set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                      "keep shapes the same from step to step; allocate the largest ones first"};
  finding.confidence = times >= 5 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = times;
  finding.sample_noun = "allocation";
  return finding;
}

}  // namespace

extern constinit const Rule memory_fragmentation_rule = {
    .id = "memory-fragmentation",
    .question = "does the allocator hold much more than tensors take?",
    .meant_by = "oom fragment",
    .order = 380,
    .needs = {need::kMemoryRecords, need::kGpuMemoryRecords, kPoolTotals},
    .run = measure_and_tell<measure_memory_fragmentation, tell_memory_fragmentation>,
};

}  // namespace lanescope::explain::rules

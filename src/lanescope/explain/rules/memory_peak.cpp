// The peak of GPU memory: is it short and made of temporaries?
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::MemoryBlock;
using analysis::MemoryDevice;
using analysis::MemoryShare;

namespace {

constexpr Need kAddressesAndTotals = {
    [](const Facts& facts) {
      return main_memory(facts)->has_blocks && main_memory(facts)->has_totals;
    },
    "addresses and totals of memory records (profile_memory=True, newer torch)"};

struct MemoryPeak {
  std::int64_t short_bytes = 0;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::int64_t step_ns = 0;
  std::vector<MemoryShare> shares;
};

std::optional<MemoryPeak> measure_memory_peak(const Facts& facts) {
  const MemoryDevice* device = main_memory(facts);
  const auto& samples = device->samples;
  const auto& peak = samples[device->peak];
  // A peak is short if it lasts a twentieth of its step or less.
  std::int64_t step_ns = samples.back().time_ns - samples.front().time_ns;
  for (const auto& step : analysis::compute_memory_steps(*facts.trace, *device))
    if (peak.time_ns >= step.start_ns && peak.time_ns < step.end_ns)
      step_ns = step.end_ns - step.start_ns;
  std::int64_t short_bytes = 0, first_ns = peak.time_ns, last_ns = peak.time_ns;
  std::map<std::uint32_t, MemoryShare> by_owner;
  for (const MemoryBlock& block : device->blocks) {
    if (block.before_recording || block.first > device->peak || !block.last ||
        *block.last <= device->peak)
      continue;
    const std::int64_t from = samples[block.first].time_ns, until = samples[*block.last].time_ns;
    if (wide(until - from) * 20 > step_ns) continue;
    short_bytes = analysis::add_bytes(short_bytes, block.bytes);
    first_ns = std::min(first_ns, from);
    last_ns = std::max(last_ns, until);
    MemoryShare& share = by_owner[block.owner];
    share.owner = block.owner;
    share.bytes = analysis::add_bytes(share.bytes, block.bytes);
    ++share.blocks;
  }
  if (peak.allocated < (std::int64_t{256} << 20) || share_of(short_bytes, peak.allocated) < 0.3)
    return std::nullopt;
  std::vector<MemoryShare> shares;
  for (const auto& [owner, share] : by_owner) shares.push_back(share);
  sort_rows(shares.begin(), shares.end(),
            [](const MemoryShare& a, const MemoryShare& b) { return a.bytes > b.bytes; });
  return MemoryPeak{short_bytes, first_ns, last_ns, step_ns, std::move(shares)};
}

Finding tell_memory_peak(const Facts& facts, const MemoryPeak& measured) {
  const auto& [short_bytes, first_ns, last_ns, step_ns, shares] = measured;
  const MemoryDevice* device = main_memory(facts);
  const auto& peak = device->samples[device->peak];
  Finding finding;
  finding.kind = FindingKind::kMemory;
  finding.verdict =
      say("The peak of {}, {}, is short: {} of it ({}) are blocks that exist for less than a "
          "twentieth of a step.",
          {text(memory_name(*device)), bytes(peak.allocated), bytes(short_bytes),
           ratio(short_bytes, peak.allocated)});
  finding.arithmetic.push_back(
      say("these blocks exist for {} of CPU time around the peak, in a step (or recording) of {}; "
          "without them {} would be allocated there",
          {ns(last_ns - first_ns), ns(step_ns), bytes(peak.allocated - short_bytes)}));
  add_owners(facts, shares, finding);
  finding.try_next = {
      "compute these in pieces (chunks of the batch or of the vocabulary), in place, or in one "
      "fused kernel",
      "run lanescope memory TRACE to list all that was allocated at the peak"};
  finding.confidence = Confidence::kMedium;
  finding.sample_count = device->samples.size();
  finding.sample_noun = "record";
  return finding;
}

}  // namespace

extern constinit const Rule memory_peak_rule = {
    .id = "memory-peak",
    .question = "is the peak of GPU memory made of temporaries?",
    .meant_by = "oom memory vram",
    .order = 390,
    .needs = {need::kMemoryRecords, kAddressesAndTotals},
    .run = measure_and_tell<measure_memory_peak, tell_memory_peak>,
};

}  // namespace lanescope::explain::rules

// The allocator holds nearly all of the GPU's memory, or ran out of it.
#include <algorithm>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::MemoryDevice;

namespace {

struct MemoryLimit {
  const MemoryDevice* device = nullptr;
  std::uint64_t failures = 0;
  std::int64_t asked = 0;
  std::int64_t used = 0;
  std::int64_t most = 0;
};

Measurement<MemoryLimit> measure_memory_limit(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::uint64_t failures = 0;
  std::int64_t asked = 0;
  for (std::size_t i = 0; i < trace.instants().size(); ++i) {
    if (trace.text(trace.instants().name[i]) != "[OutOfMemory]") continue;
    ++failures;
    asked = std::max(
        asked, trace.args(trace.instants().args[i]).integer(ArgKey::kMemoryBytes).value_or(0));
  }
  const MemoryDevice* device = main_memory(facts);
  if (device && !device->is_accelerator()) device = nullptr;
  if (!device && failures == 0)
    return NotChecked{facts.memory.devices.empty() ? need::kMemoryRecords.missing
                                                   : need::kGpuMemoryRecords.missing};
  const std::int64_t most = device ? device_memory_bytes(facts, device->id) : 0;
  const std::int64_t used =
      !device ? 0
              : std::max(device->peak_reserved,
                         device->has_totals ? device->samples[device->peak].allocated : 0);
  if (failures == 0 && most == 0)
    return NotChecked{"the size of the device's memory (deviceProperties in the trace)"};
  if (failures == 0 && used == 0)
    return NotChecked{"the allocator's totals (profile_memory=True with a newer torch)"};
  const bool is_near = most > 0 && share_of(used, most) > 0.9;
  if (failures == 0 && !is_near) return Quiet{};
  return MemoryLimit{device, failures, asked, used, most};
}

Finding tell_memory_limit(const Facts& facts, const MemoryLimit& measured) {
  const auto& [device, failures, asked, used, most] = measured;
  Finding finding;
  finding.kind = FindingKind::kMemory;
  if (failures > 0)
    finding.verdict = say(facts,
                          "GPU memory ran out {} [time|times] while it was recorded; the "
                          "largest request that failed was {}.",
                          {count(failures), bytes(asked)});
  else
    finding.verdict = say("GPU memory is nearly full: the allocator held up to {} of {} ({}).",
                          {bytes(used), bytes(most), ratio(used, most)});
  if (device) {
    const auto& peak = device->samples[device->peak];
    finding.arithmetic.push_back(
        say("tensors took up to {}, of which {} were there before the recording",
            {bytes(peak.allocated), bytes(device->allocated_at_start())}));
    if (device->has_blocks)
      add_owners(facts, analysis::memory_held(*device, device->peak).shares, finding);
  }
  finding.try_next = {
      "use activation checkpointing, a smaller micro-batch, or lower precision for the largest "
      "tensors at the peak",
      "run lanescope memory TRACE to list what was allocated at the peak"};
  finding.brief = failures > 0
                      ? say(facts, "GPU memory ran out {} [time|times]", {count(failures)})
                      : say("GPU memory is nearly full: {} of {}", {bytes(used), bytes(most)});
  finding.action = say("Checkpoint activations, or use a smaller micro-batch or lower precision");
  finding.confidence = Confidence::kHigh;
  finding.sample_count = failures > 0 ? failures : device->samples.size();
  finding.sample_noun = failures > 0 ? "failure" : "record";
  return finding;
}

}  // namespace

extern constinit const Rule memory_limit_rule = {
    .id = "memory-limit",
    .question = "is GPU memory nearly full?",
    .meant_by = "oom memory vram bigger",
    .order = 370,
    .run = measure_and_tell<measure_memory_limit, tell_memory_limit>,
};

}  // namespace lanescope::explain::rules

// The allocator holds nearly all of the GPU's memory, or ran out of it.
#include <algorithm>

#include "lanescope/explain/memory_end.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::MemoryDevice;

namespace {

// If at least this share of the peak was there before the recording, the recorded steps do not fill
// the memory.
constexpr double kBeforeRatio = 0.9;

struct MemoryLimit {
  const MemoryDevice* device = nullptr;
  std::uint64_t failures = 0;
  std::int64_t asked = 0;
  std::int64_t used = 0;
  std::int64_t most = 0;
  bool is_from_before = false;
};

// Tensors, or what the allocator held for them. Its total is known from the first record on.
std::int64_t held_at_start(const MemoryDevice& device) {
  const auto& first = device.samples.front();
  // If this record grew the pool, it does not say by how much, so only the tensors are known.
  const bool grew = first.bytes > 0 && first.reserved == first.allocated;
  return std::max(device.allocated_at_start(), grew ? 0 : first.reserved);
}

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
  const auto [used, most] = use_of_memory(facts);
  if (failures == 0 && most == 0)
    return NotChecked{"the size of the device's memory (deviceProperties in the trace)"};
  if (failures == 0 && used == 0)
    return NotChecked{"the allocator's totals (profile_memory=True with a newer torch)"};
  const bool is_near = most > 0 && share_of(used, most) > 0.9;
  if (failures == 0 && !is_near && !has_memory_to_the_end(facts))
    return NotChecked{kMemoryToTheEnd};
  if (failures == 0 && !is_near) return Quiet{};
  const bool is_from_before =
      failures == 0 && device->has_totals && share_of(held_at_start(*device), used) >= kBeforeRatio;
  return MemoryLimit{device, failures, asked, used, most, is_from_before};
}

// Weights, optimizer states and caches, or memory that the program reserves in advance. The records
// do not say which. What the steps allocate does not fill the memory.
void tell_memory_from_before(const MemoryLimit& measured, Finding& finding) {
  finding.arithmetic.push_back(
      say("held when the recording began: {}, {} of the most that was held",
          {bytes(held_at_start(*measured.device)),
           ratio(held_at_start(*measured.device), measured.used)}));
  finding.try_next = {
      "change nothing if the program takes its memory ahead, as inference servers do for their "
      "key-value cache",
      "otherwise look at what is allocated before the loop: record from the start of the program, "
      "with profile_memory=True"};
  finding.brief = say("GPU memory is nearly full, and was before the recording: {} of {}",
                      {bytes(measured.used), bytes(measured.most)});
  finding.action =
      say("Change nothing if the program takes its memory ahead; else look at what it loads");
}

Finding tell_memory_limit(const Facts& facts, const MemoryLimit& measured) {
  const auto& [device, failures, asked, used, most, is_from_before] = measured;
  Finding finding;
  finding.kind = FindingKind::kMemory;
  finding.confidence = Confidence::kHigh;
  finding.sample_count = failures > 0 ? failures : device->samples.size();
  finding.sample_noun = failures > 0 ? "failure" : "record";
  if (failures > 0)
    finding.verdict = asked > 0
                          ? say(facts,
                                "GPU memory ran out {} [time|times] while it was recorded; the "
                                "largest request that failed was {}.",
                                {count(failures), bytes(asked)})
                          : say(facts, "GPU memory ran out {} [time|times] while it was recorded.",
                                {count(failures)});
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
  if (is_from_before) {
    tell_memory_from_before(measured, finding);
    return finding;
  }
  finding.try_next = {
      "use activation checkpointing, a smaller micro-batch, or lower precision for the largest "
      "tensors at the peak",
      "run lanescope memory TRACE to list what was allocated at the peak"};
  finding.brief = failures > 0
                      ? say(facts, "GPU memory ran out {} [time|times]", {count(failures)})
                      : say("GPU memory is nearly full: {} of {}", {bytes(used), bytes(most)});
  finding.action = say("Checkpoint activations, or use a smaller micro-batch or lower precision");
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

#include <algorithm>

#include "lanescope/explain/rules/rules.h"
#include "lanescope/model/gpu_device.h"

namespace lanescope::explain::rules {

using analysis::MemoryDevice;
using analysis::MemoryOwner;
using analysis::MemoryShare;

const MemoryDevice* main_memory(const Facts& facts) {
  const MemoryDevice* most = nullptr;
  for (const MemoryDevice& device : facts.memory.devices) {
    const bool is_better =
        !most || device.is_accelerator() > most->is_accelerator() ||
        (device.is_accelerator() == most->is_accelerator() &&
         device.samples[device.peak].allocated > most->samples[most->peak].allocated);
    if (is_better) most = &device;
  }
  return most;
}

const char* memory_name(const MemoryDevice& device) {
  return device.is_accelerator() ? "GPU memory" : "CPU memory";
}

std::int64_t device_memory_bytes(const Facts& facts, std::int64_t device) {
  for (const char* key : {"deviceProperties", "computeProperties"}) {
    const auto json = facts.trace->metadata_json(key);
    if (!json) continue;
    for (const GpuDevice& gpu : parse_gpu_devices(*json))
      if (gpu.id == device) return std::max<std::int64_t>(0, gpu.memory_bytes.value_or(0));
  }
  return 0;
}

MemoryUse use_of_memory(const Facts& facts) {
  const MemoryDevice* device = main_memory(facts);
  if (!device || !device->is_accelerator()) return {};
  return {std::max(device->peak_reserved,
                   device->has_totals ? device->samples[device->peak].allocated : 0),
          device_memory_bytes(facts, device->id)};
}

Sentence owner_sentence(const Facts& facts, const MemoryShare& share) {
  const MemoryOwner& owner = facts.memory.owners[share.owner];
  Sentence sentence =
      say(facts, "{} in {} [block|blocks]: ", {bytes(share.bytes), count(share.blocks)});
  const auto part = [&](const char* pattern, StringId id) {
    sentence.pattern += pattern;
    sentence.values.push_back(name(facts.trace->text(id)));
  };
  if (owner.op == kNone<StringId>)
    sentence.pattern += "outside any operator";
  else
    part("{}", owner.op);
  if (owner.annotation != kNone<StringId>) part(" in {}", owner.annotation);
  if (owner.frame != kNone<StringId>) part(", {}", owner.frame);
  return sentence;
}

void add_owners(const Facts& facts, const std::vector<MemoryShare>& shares, Finding& finding) {
  for (std::size_t i = 0; i < shares.size() && i < 4; ++i)
    finding.evidence.push_back({kNone<SliceId>, owner_sentence(facts, shares[i])});
}

}  // namespace lanescope::explain::rules

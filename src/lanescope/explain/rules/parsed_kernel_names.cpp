#include "lanescope/explain/rules/parsed_kernel_names.h"

#include "lanescope/explain/facts_memo.h"

namespace lanescope::explain::rules {

KernelNames::Parsed KernelNames::parse(const Facts& facts) {
  const Trace& trace = *facts.trace;
  Parsed parsed;
  for (const DeviceFacts& device : facts.devices)
    for (const analysis::DeviceWork& work : device.timeline.work) {
      const StringId name = trace.slices().name[raw(work.slice)];
      const auto [entry, is_new] = parsed.try_emplace(raw(name));
      if (is_new && name != kNone<StringId>)
        entry->second = names::parse_kernel_name(trace.text(name));
    }
  return parsed;
}

KernelNames::KernelNames(const Facts& facts)
    : trace_(*facts.trace), parsed_(made_once<KernelNames::parse>(facts)) {}

const names::KernelName& KernelNames::of(SliceId work) const {
  static const names::KernelName kNameless;
  const auto name = parsed_.find(raw(trace_.slices().name[raw(work)]));
  return name == parsed_.end() ? kNameless : name->second;
}

}  // namespace lanescope::explain::rules

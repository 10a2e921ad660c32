#include "lanescope/explain/rules/parsed_kernel_names.h"

namespace lanescope::explain::rules {

const names::KernelName& KernelNames::of(SliceId kernel) {
  const StringId name = trace_.slices().name[raw(kernel)];
  static const names::KernelName kNameless;
  if (name == kNone<StringId>) return kNameless;
  if (by_string_.empty()) by_string_.resize(trace_.strings().size());
  auto& known = by_string_[raw(name)];
  if (!known)
    known = std::make_unique<names::KernelName>(names::parse_kernel_name(trace_.text(name)));
  return *known;
}

}  // namespace lanescope::explain::rules

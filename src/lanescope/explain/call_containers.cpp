#include "lanescope/explain/call_containers.h"

#include <algorithm>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain {
namespace {

// Ranges of the program, and those of torch that its users know.
bool is_range(std::string_view label) {
  return is_own_range(label) || is_loader(label) || analysis::is_compiled_region(label);
}

}  // namespace

bool is_loader(std::string_view label) { return label.starts_with("enumerate(DataLoader)"); }

bool is_container(std::string_view op) {
  return op.find("::") == std::string_view::npos && op.find("Backward") == std::string_view::npos &&
         op != "detach" && op != "to";
}

OwnerKind CallContainers::kind(SliceId slice) {
  // Deep stacks repeat few names.
  const auto key = std::pair(raw(trace_.slices().name[raw(slice)]), trace_.kind(slice));
  const auto [entry, is_new] = kinds_.try_emplace(key, OwnerKind::kStep);
  if (is_new) entry->second = find_kind(slice);
  return entry->second;
}

OwnerKind CallContainers::find_kind(SliceId slice) const {
  const std::string_view name = trace_.name(slice);
  switch (trace_.kind(slice)) {
    case CategoryKind::kPythonFunction: {
      const names::PythonFrame* const frame = frames_.find(trace_.slices().name[raw(slice)]);
      if (frame && frame->is_module) return OwnerKind::kModule;
      return frame && frame->is_of_program() ? OwnerKind::kLine : OwnerKind::kStep;
    }
    case CategoryKind::kUserAnnotation:
      return is_range(name) ? OwnerKind::kRange : OwnerKind::kStep;
    case CategoryKind::kCpuOp:
      return is_container(name) && is_range(name) ? OwnerKind::kRange : OwnerKind::kStep;
    default:
      return OwnerKind::kStep;
  }
}

std::string CallContainers::label(SliceId slice, OwnerKind kind) const {
  const std::string_view name = trace_.name(slice);
  if (kind == OwnerKind::kModule) return module_class(name);
  return kind == OwnerKind::kLine ? short_line(name) : std::string(name);
}

std::vector<SliceId> CallContainers::around(SliceId slice) {
  std::vector<SliceId> found;
  for (; slice != kNone<SliceId>; slice = nesting_.parent[raw(slice)])
    if (kind(slice) != OwnerKind::kStep) found.push_back(slice);
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace lanescope::explain

#include "lanescope/simulate/name_pattern.h"

#include <algorithm>
#include <cctype>

#include "lanescope/names/kernel_name.h"

namespace lanescope::simulate {

bool contains_text(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

NamePattern::NamePattern(const Trace& trace, const std::string& pattern) {
  std::unordered_set<std::uint32_t> seen, kernels;
  for (std::size_t i = 0; i < trace.slices().size(); ++i) {
    const StringId name = trace.slices().name[i];
    if (!seen.insert(raw(name)).second) continue;
    if (trace.kind(SliceId{static_cast<std::uint32_t>(i)}) == CategoryKind::kKernel)
      kernels.insert(raw(name));
    const std::string_view text = trace.text(name);
    if (text == pattern) equal_.insert(raw(name));
    if (contains_text(text, pattern)) close_.insert(raw(name));
  }
  if (!equal_.empty()) return;
  for (const std::uint32_t name : kernels)
    if (names::readable_kernel_name(trace.text(StringId{name})) == pattern) equal_.insert(name);
}

bool NamePattern::fits(const Trace& trace, SliceId slice) const {
  const std::uint32_t name = raw(trace.slices().name[raw(slice)]);
  return equal_.empty() ? close_.contains(name) : equal_.contains(name);
}

namespace {

// Adds what is inside of slices that fit.
void spread_inwards(const ChangedGraph& changed, std::vector<bool>& fits) {
  for (std::uint32_t i = 0; i < fits.size(); ++i) {
    if (fits[i]) continue;
    const SliceId parent = changed.nesting.parent[i];
    if (parent != kNone<SliceId>)
      fits[i] = fits[raw(parent)];
    else if (is_api_call(changed.trace.kind(SliceId{i})))
      if (const SliceId op = changed.graph.links->op_of[i]; op != kNone<SliceId> && raw(op) < i)
        fits[i] = fits[raw(op)];
  }
}

}  // namespace

std::vector<bool> slices_inside(const ChangedGraph& changed, const NamePattern& pattern) {
  std::vector<bool> fits(changed.trace.slices().size());
  for (std::uint32_t i = 0; i < fits.size(); ++i) fits[i] = pattern.fits(changed.trace, SliceId{i});
  spread_inwards(changed, fits);
  return fits;
}

std::vector<bool> slices_inside(const ChangedGraph& changed) {
  if (changed.change.slices.empty())
    return slices_inside(changed, NamePattern(changed.trace, changed.change.name));
  std::vector<bool> fits(changed.trace.slices().size());
  for (const SliceId slice : changed.change.slices) fits[raw(slice)] = true;
  spread_inwards(changed, fits);
  return fits;
}

bool work_fits(const ChangedGraph& changed, const GpuWork& work, const std::vector<bool>& fits) {
  if (fits[raw(work.slice)]) return true;
  const SliceId op = changed.graph.links->op_of[raw(work.slice)];
  return (work.launch != kNone<SliceId> && fits[raw(work.launch)]) ||
         (op != kNone<SliceId> && fits[raw(op)]);
}

}  // namespace lanescope::simulate

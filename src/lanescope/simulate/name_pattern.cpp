#include "lanescope/simulate/name_pattern.h"

#include <algorithm>
#include <cctype>

namespace lanescope::simulate {

bool contains_text(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

NamePattern::NamePattern(const Trace& trace, const std::string& pattern) {
  std::unordered_set<std::uint32_t> seen;
  for (std::size_t i = 0; i < trace.slices().size(); ++i) {
    const StringId name = trace.slices().name[i];
    if (!seen.insert(raw(name)).second) continue;
    const std::string_view text = trace.text(name);
    if (text == pattern) equal_.insert(raw(name));
    if (contains_text(text, pattern)) close_.insert(raw(name));
  }
}

bool NamePattern::fits(const Trace& trace, SliceId slice) const {
  const std::uint32_t name = raw(trace.slices().name[raw(slice)]);
  return equal_.empty() ? close_.contains(name) : equal_.contains(name);
}

std::vector<bool> slices_inside(const ChangedGraph& changed, const NamePattern& pattern) {
  std::vector<bool> fits(changed.trace.slices().size());
  for (std::uint32_t i = 0; i < fits.size(); ++i) {
    const SliceId parent = changed.nesting.parent[i];
    fits[i] =
        pattern.fits(changed.trace, SliceId{i}) || (parent != kNone<SliceId> && fits[raw(parent)]);
    if (fits[i] || parent != kNone<SliceId>) continue;
    if (is_api_call(changed.trace.kind(SliceId{i})))
      if (const SliceId op = changed.graph.links->op_of[i]; op != kNone<SliceId> && raw(op) < i)
        fits[i] = fits[raw(op)];
  }
  return fits;
}

bool work_fits(const ChangedGraph& changed, const GpuWork& work, const std::vector<bool>& fits) {
  if (fits[raw(work.slice)]) return true;
  const SliceId op = changed.graph.links->op_of[raw(work.slice)];
  return (work.launch != kNone<SliceId> && fits[raw(work.launch)]) ||
         (op != kNone<SliceId> && fits[raw(op)]);
}

}  // namespace lanescope::simulate

#include "lanescope/explain/named_slices.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "lanescope/explain/facts_memo.h"

namespace lanescope::explain {
namespace {

// Of each different name its slices, in order of id.
struct SlicesByName {
  struct Name {
    std::string_view text;
    std::uint32_t first = 0, count = 0;  // in `slices`
  };
  std::vector<Name> names;
  std::vector<SliceId> slices;
};

SlicesByName sort_by_name(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto ids = trace.slices().name;
  std::vector<std::uint32_t> next(trace.strings().size(), 0);  // by StringId: at first how many
  for (const StringId id : ids)
    if (raw(id) < next.size()) ++next[raw(id)];
  SlicesByName sorted;
  std::uint32_t end = 0;
  for (std::uint32_t id = 0; id < next.size(); ++id) {
    if (next[id] == 0) continue;
    sorted.names.push_back({trace.text(StringId{id}), end, next[id]});
    end += next[id];
    next[id] = sorted.names.back().first;
  }
  sorted.slices.resize(end);
  for (std::uint32_t i = 0; i < ids.size(); ++i)
    if (raw(ids[i]) < next.size()) sorted.slices[next[raw(ids[i])]++] = SliceId{i};
  return sorted;
}

template <typename Test>
std::vector<SliceId> find(const Facts& facts, Test test) {
  const auto& sorted = made_once<sort_by_name>(facts);
  std::vector<SliceId> found;
  std::size_t names = 0;
  for (const SlicesByName::Name& name : sorted.names) {
    if (!test(name.text)) continue;
    const auto first = sorted.slices.begin() + name.first;
    found.insert(found.end(), first, first + name.count);
    ++names;
  }
  if (names > 1) std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<SliceId> slices_named(const Facts& facts, NameTest test) { return find(facts, test); }

std::vector<SliceId> slices_named(const Facts& facts, std::string_view name) {
  return find(facts, [&](std::string_view each) { return each == name; });
}

std::vector<SliceId> slices_starting_with(const Facts& facts, std::string_view prefix) {
  return find(facts, [&](std::string_view each) { return each.starts_with(prefix); });
}

bool any_named(const Facts& facts, NameTest test) {
  const std::vector<SlicesByName::Name>& names = made_once<sort_by_name>(facts).names;
  return std::any_of(names.begin(), names.end(), [&](const auto& name) { return test(name.text); });
}

}  // namespace lanescope::explain

#include "lanescope/view/kept_categories.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace lanescope::view {
namespace {

bool is_named(const Trace& trace, const Category& category, std::string_view name) {
  return (category.text != kNone<StringId> && trace.text(category.text) == name) ||
         name == category_kind_name(category.kind);
}

// Of slices and marks, in order of the alphabet.
std::string names_in(const Trace& trace) {
  std::vector<bool> has(trace.categories().size());
  for (const CategoryId category : trace.slices().category) has[raw(category)] = true;
  for (const CategoryId category : trace.instants().category) has[raw(category)] = true;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < has.size(); ++i) {
    const Category& category = trace.categories()[i];
    if (has[i])
      names.insert(category.text != kNone<StringId> ? trace.text(category.text)
                                                    : category_kind_name(category.kind));
  }
  return names.empty() ? "no category" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<std::vector<bool>> kept_categories(const Trace& trace, const std::string& names) {
  std::vector<bool> kept(trace.categories().size());
  for (std::size_t from = 0; from <= names.size();) {
    const std::size_t comma = std::min(names.find(',', from), names.size());
    const std::string_view name = std::string_view(names).substr(from, comma - from);
    bool is_known = false;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (is_named(trace, trace.categories()[i], name)) kept[i] = is_known = true;
    if (!is_known)
      return Error{Errc::kInvalidArgument,
                   fmt::format("category expects names with commas between them; the trace has {}; "
                               "found '{}'",
                               names_in(trace), name)};
    from = comma + 1;
  }
  return kept;
}

}  // namespace lanescope::view

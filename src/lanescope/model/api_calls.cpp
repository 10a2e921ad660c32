#include "lanescope/model/api_calls.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "lanescope/model/api_call_rows.h"

namespace lanescope {
namespace {

using api_call_rows::Group;
using api_call_rows::kGroups;

struct CallRow {
  std::string_view name;  // a stem, or a whole name if `runtime` is known
  ApiEffects effects = 0;
  ApiRuntime runtime = ApiRuntime::kUnknown;
};

// Calls each(name) for the names of a group.
template <typename Each>
constexpr void each_call_name(const Group& group, Each each) {
  const std::string_view separator = group.runtime == ApiRuntime::kMtia ? ", " : " ";
  for (std::string_view rest = group.names; !rest.empty();) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    each(rest.substr(0, end));
    rest.remove_prefix(std::min(end + separator.size(), rest.size()));
  }
}

constexpr std::size_t kCallCount = [] {
  std::size_t count = 0;
  for (const Group& group : kGroups) each_call_name(group, [&](std::string_view) { ++count; });
  return count;
}();

constexpr auto kCalls = [] {
  std::array<CallRow, kCallCount> rows;
  std::size_t count = 0;
  for (const Group& group : kGroups)
    each_call_name(group, [&](std::string_view name) {
      rows[count++] = {name, group.effects, group.runtime};
    });
  std::sort(rows.begin(), rows.end(),
            [](const CallRow& a, const CallRow& b) { return a.name < b.name; });
  return rows;
}();
static_assert(std::adjacent_find(kCalls.begin(), kCalls.end(),
                                 [](const CallRow& a, const CallRow& b) {
                                   return a.name == b.name;
                                 }) == kCalls.end(),
              "a call is in two groups");

const CallRow* find_call_row(std::string_view name) {
  const auto row =
      std::lower_bound(kCalls.begin(), kCalls.end(), name,
                       [](const CallRow& each, std::string_view text) { return each.name < text; });
  return row != kCalls.end() && row->name == name ? &*row : nullptr;
}

struct CallPrefix {
  std::string_view text;
  ApiRuntime runtime;
};
constexpr CallPrefix kCallPrefixes[] = {
    {"cuda", ApiRuntime::kCudaRuntime}, {"__cuda", ApiRuntime::kCudaRuntime},
    {"cu", ApiRuntime::kCudaDriver},    {"cu64", ApiRuntime::kCudaDriver},
    {"hip", ApiRuntime::kHip},          {"__hip", ApiRuntime::kHip},
    {"musa", ApiRuntime::kMusa},        {"mu", ApiRuntime::kMusa}};

constexpr bool is_version_digit(char c) { return c >= '0' && c <= '9'; }

// CUPTI adds versions ("_v3020") and the kind of default stream ("_ptsz", "_ptds"), HIP "_spt".
std::string_view without_api_suffixes(std::string_view name) {
  for (;;) {
    const std::size_t at = name.rfind('_');
    if (at == std::string_view::npos) return name;
    const std::string_view end = name.substr(at + 1);
    const bool is_version = end.size() > 1 && end[0] == 'v' &&
                            std::all_of(end.begin() + 1, end.end(), is_version_digit);
    if (!is_version && end != "ptsz" && end != "ptds" && end != "spt") return name;
    name = name.substr(0, at);
  }
}

}  // namespace

ApiName split_api_name(std::string_view name) {
  for (const CallPrefix& prefix : kCallPrefixes) {
    if (!name.starts_with(prefix.text)) continue;
    const std::string_view rest = name.substr(prefix.text.size());
    if (!rest.empty() && rest[0] >= 'A' && rest[0] <= 'Z')
      return {prefix.runtime, without_api_suffixes(rest)};
  }
  return {};
}

ApiCall find_api_call(std::string_view name) {
  const ApiName parts = split_api_name(name);
  if (parts.runtime != ApiRuntime::kUnknown) {
    const CallRow* row = find_call_row(parts.stem);
    return row && row->runtime == ApiRuntime::kUnknown ? ApiCall(row->effects, parts.runtime)
                                                       : ApiCall();
  }
  const CallRow* row = find_call_row(name);
  return row && row->runtime != ApiRuntime::kUnknown ? ApiCall(row->effects, row->runtime)
                                                     : ApiCall();
}

}  // namespace lanescope

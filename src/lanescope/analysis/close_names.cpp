#include "lanescope/analysis/close_names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace lanescope::analysis {
namespace {

constexpr std::size_t kLongestName = 200;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Insertions, deletions and replacements that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t k = 1; k <= b.size(); ++k) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      diagonal = row[k];
      row[k] = std::min({replaced, row[k] + 1, row[k - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> find_close_names(std::string_view text,
                                          const std::vector<std::string_view>& names,
                                          std::size_t most) {
  if (text.size() > kLongestName) return {};
  const std::string wanted = lower(text);
  std::vector<std::pair<std::size_t, std::string>> ranked;  // fewer is closer
  for (const std::string_view name : names) {
    if (name.size() > kLongestName) continue;
    const std::string candidate = lower(name);
    if (!wanted.empty() && candidate.find(wanted) != candidate.npos) {
      ranked.emplace_back(candidate.size() - wanted.size(), std::string(name));
    } else if (const std::size_t distance = edit_distance(wanted, candidate);
               distance * 3 <= std::max(wanted.size(), candidate.size())) {
      ranked.emplace_back(kLongestName + distance, std::string(name));
    }
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  std::vector<std::string> close;
  for (std::size_t i = 0; i < std::min(most, ranked.size()); ++i) close.push_back(ranked[i].second);
  return close;
}

}  // namespace lanescope::analysis

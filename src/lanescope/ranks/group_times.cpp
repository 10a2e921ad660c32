#include "lanescope/ranks/group_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "lanescope/base/sort_rows.h"

namespace lanescope::ranks {
namespace {

bool is_described(const MatchedGroup& group) {
  return !group.description.empty() && group.description != "undefined";
}

// Ranks and size of a purpose without a description.
struct Purpose {
  std::uint32_t number = 0;
  std::int64_t size = 0;
  std::set<std::uint32_t> ranks;
};

}  // namespace

bool is_plain_name(const std::string& name) {
  constexpr std::size_t kLongest = 40;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' ||
                  letter == '-' || letter == '.' || letter == ':';
         });
}

std::string groups_name(const GroupTimes& groups) {
  const std::string of = groups.size > 0 ? fmt::format("{} ranks", groups.size) : "";
  const std::string how_many =
      groups.groups == 1 ? of
                         : fmt::format("{} groups{}", groups.groups, of.empty() ? "" : " of " + of);
  const std::string name = !is_plain_name(groups.name) ? std::string("a group")
                           : groups.is_described       ? groups.name
                                                       : "group " + groups.name;
  return how_many.empty() ? name : fmt::format("{} ({})", name, how_many);
}

std::vector<std::uint32_t> find_purposes(const Matching& matching) {
  std::vector<std::uint32_t> order(matching.groups.size()), purposes(matching.groups.size(), 0);
  std::iota(order.begin(), order.end(), 0u);
  // Names are numbers, mostly: 2 before 10.
  sort_rows(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::string &x = matching.groups[a].name, &y = matching.groups[b].name;
    return std::pair(x.size(), std::string_view(x)) < std::pair(y.size(), std::string_view(y));
  });
  std::map<std::string, std::uint32_t> by_description;
  std::vector<Purpose> others;
  std::uint32_t count = 0;
  for (const std::uint32_t index : order) {
    const MatchedGroup& group = matching.groups[index];
    if (is_described(group)) {
      const auto [found, is_new] = by_description.try_emplace(group.description, count);
      count += is_new ? 1 : 0;
      purposes[index] = found->second;
      continue;
    }
    auto fits = std::find_if(others.begin(), others.end(), [&](const Purpose& purpose) {
      return purpose.size == group.size &&
             std::none_of(group.ranks.begin(), group.ranks.end(),
                          [&](std::uint32_t rank) { return purpose.ranks.contains(rank); });
    });
    if (fits == others.end()) {
      others.push_back({count++, group.size, {}});
      fits = std::prev(others.end());
    }
    fits->ranks.insert(group.ranks.begin(), group.ranks.end());
    purposes[index] = fits->number;
  }
  return purposes;
}

std::vector<GroupTimes> sum_groups(const Matching& matching, std::span<const GroupStep> rows,
                                   std::uint64_t rank_steps) {
  const std::vector<std::uint32_t> purposes = find_purposes(matching);
  struct Sum {
    GroupTimes times;
    std::set<std::uint32_t> groups;
    std::set<std::pair<std::uint32_t, std::int32_t>> rank_steps;
  };
  std::map<std::uint32_t, Sum> sums;
  for (const GroupStep& row : rows) {
    Sum& sum = sums[purposes[row.group]];
    sum.times.calls += row.calls;
    add_time(sum.times.exposed_ns, row.exposed_ns);
    add_time(sum.times.exposed_wait_ns, row.exposed_wait_ns);
    sum.groups.insert(row.group);
    sum.rank_steps.emplace(row.rank, row.step);
  }
  std::vector<GroupTimes> out;
  for (auto& [purpose, sum] : sums) {
    GroupTimes& times = sum.times;
    const MatchedGroup& first = matching.groups[*sum.groups.begin()];
    times.is_described = is_described(first);
    times.name = times.is_described ? first.description : first.name;
    times.groups = sum.groups.size();
    times.size = first.size;
    for (const std::uint32_t group : sum.groups)
      if (matching.groups[group].size != first.size) times.size = 0;
    times.calls /= std::max<std::size_t>(1, sum.rank_steps.size());
    const auto by = static_cast<std::int64_t>(std::max<std::uint64_t>(1, rank_steps));
    times.exposed_ns /= by;
    times.exposed_wait_ns = std::min(times.exposed_wait_ns / by, times.exposed_ns);
    out.push_back(std::move(times));
  }
  sort_rows(out.begin(), out.end(), [](const GroupTimes& a, const GroupTimes& b) {
    return a.transfer_ns() > b.transfer_ns();
  });
  return out;
}

}  // namespace lanescope::ranks

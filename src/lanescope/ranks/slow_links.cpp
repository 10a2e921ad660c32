#include "lanescope/ranks/slow_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lanescope/ranks/group_times.h"
#include "lanescope/ranks/roster.h"

namespace lanescope::ranks {
namespace {

constexpr double kSlowLink = 0.7;    // of the usual bandwidth
constexpr double kLeastCost = 0.02;  // of a step: what the usual bandwidth would save
constexpr std::size_t kLeastGroups = 3;

struct SlowLinks {
  std::vector<std::uint32_t> purposes;       // of the job's groups
  std::set<std::uint32_t> slow, others;      // groups
  double slowest = 0, usual_of_slowest = 0;  // bytes per second
};

double mean_step_ns(const Job& job) {
  double sum = 0;
  for (const RankTimes& times : job.times) sum += static_cast<double>(times.wall_ns);
  return sum / static_cast<double>(std::max<std::size_t>(1, job.times.size()));
}

// What the calls of this kind take longer in a step than with the usual bandwidth.
double lost_ns(const Job& job, const CollectiveRate& rate, double usual) {
  const auto steps = static_cast<double>(std::max<std::size_t>(1, job.steps.size()));
  return static_cast<double>(rate.together_ns) * static_cast<double>(rate.count) / steps *
         (1 - rate.bus_bandwidth / usual);
}

// Groups of one purpose and size that run the same collective should be equally fast. Pairs within a host and pairs
// across hosts serve different purposes.
SlowLinks find_slow_links(const Job& job) {
  SlowLinks found;
  found.purposes = find_purposes(job.matching);
  std::map<std::tuple<std::uint32_t, std::string, std::int64_t>, std::vector<const CollectiveRate*>>
      alike;
  for (const CollectiveRate& rate : job.rates)
    if (rate.bus_bandwidth > 0)
      alike[{found.purposes[rate.group], rate.kind, job.matching.groups[rate.group].size}]
          .push_back(&rate);
  const double step_ns = mean_step_ns(job);
  for (auto& [key, rates] : alike) {
    if (rates.size() < kLeastGroups) continue;
    std::vector<double> speeds;
    for (const CollectiveRate* rate : rates) speeds.push_back(rate->bus_bandwidth);
    std::sort(speeds.begin(), speeds.end());
    const double usual = speeds[speeds.size() / 2];
    for (const CollectiveRate* rate : rates) {
      if (rate->bus_bandwidth >= kSlowLink * usual ||
          lost_ns(job, *rate, usual) < kLeastCost * step_ns) {
        found.others.insert(rate->group);
        continue;
      }
      found.slow.insert(rate->group);
      if (found.slowest > 0 &&
          rate->bus_bandwidth / usual >= found.slowest / found.usual_of_slowest)
        continue;
      found.slowest = rate->bus_bandwidth;
      found.usual_of_slowest = usual;
    }
  }
  for (const std::uint32_t group : found.slow) found.others.erase(group);
  return found;
}

std::set<std::string> hosts_of(const Job& job, std::uint32_t group) {
  std::set<std::string> hosts;
  for (const std::uint32_t rank : job.matching.groups[group].ranks)
    hosts.insert(job.ranks[rank].host_name);
  return hosts;
}

// The host of which every slow group has a rank, and no other group of their purposes. Pairs within a host say nothing of its
// network card. Empty: there is none, there are several, or a rank of these groups does not name its host.
std::string common_host(const Job& job, const SlowLinks& links) {
  std::set<std::uint32_t> slow_purposes;
  std::set<std::string> common = hosts_of(job, *links.slow.begin());
  for (const std::uint32_t group : links.slow) {
    const std::set<std::string> hosts = hosts_of(job, group);
    if (hosts.contains("")) return {};
    std::erase_if(common, [&](const std::string& host) { return !hosts.contains(host); });
    slow_purposes.insert(links.purposes[group]);
  }
  for (const std::uint32_t group : links.others) {
    if (!slow_purposes.contains(links.purposes[group])) continue;
    const std::set<std::string> hosts = hosts_of(job, group);
    if (hosts.contains("")) return {};
    std::erase_if(common, [&](const std::string& host) { return hosts.contains(host); });
  }
  return common.size() == 1 && is_plain_name(*common.begin()) ? *common.begin() : std::string();
}

}  // namespace

std::string slow_links_text(const Job& job) {
  const SlowLinks links = find_slow_links(job);
  if (links.slow.empty()) return {};
  std::set<std::int64_t> ranks;
  for (const std::uint32_t group : links.slow)
    for (const std::uint32_t rank : job.matching.groups[group].ranks)
      ranks.insert(job.numbers[rank]);
  const std::string host = common_host(job, links);
  return fmt::format(
      "The network between ranks {} is slow: {:.2f} GB/s of bus bandwidth while all of a group are "
      "present, where most groups of that size reach {:.2f} for the same collective. {}",
      ranks_text({ranks.begin(), ranks.end()}), links.slowest / 1e9, links.usual_of_slowest / 1e9,
      host.empty() ? "Look at the link, the network card and the placement of these ranks."
                   : fmt::format("Every slow group has a rank on host {}, and no other group of "
                                 "that kind has: look at that host's links and network card.",
                                 host));
}

}  // namespace lanescope::ranks

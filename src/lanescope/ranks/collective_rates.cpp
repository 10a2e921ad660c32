#include "lanescope/ranks/collective_rates.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "lanescope/analysis/steps.h"

namespace lanescope::ranks {
namespace {

using analysis::lower_median;

// nccl-tests, doc/PERFORMANCE.md: bus bandwidth = algorithm bandwidth times this; 0: not defined there.
double bus_factor(std::string name, std::size_t ranks) {
  std::erase(name, '_');
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  const auto n = static_cast<double>(ranks);
  if (has("allreduce")) return 2 * (n - 1) / n;
  if (has("allgather") || has("reducescatter") || has("alltoall")) return (n - 1) / n;
  return 0;
}

struct Samples {
  std::vector<std::int64_t> together, wait;
  std::size_t members = 0;
  std::int64_t error_ns = 0;
  bool whole = true;  // all ranks of the group are there
};

}  // namespace

Presence presence_of(std::span<const RankSummary> ranks, const MatchedCollective& collective,
                     std::span<const RankClock> clocks) {
  Presence out;
  std::size_t known = 0;
  for (const CollectiveMember& member : collective.members) {
    const RankClock& clock = clocks[member.rank];
    if (!clock.known || clock.contradicts) continue;
    const CollectiveRecord& call = ranks[member.rank].collectives[member.call];
    const std::int64_t start = clock.aligned(call.start_ns), end = clock.aligned(call.end_ns);
    if (known == 0) {
      out.first_arrival_ns = out.last_arrival_ns = out.last_but_one_ns = start;
      out.first_departure_ns = end;
      out.last_rank = member.rank;
    } else if (start > out.last_arrival_ns) {
      out.last_but_one_ns = out.last_arrival_ns;
      out.last_arrival_ns = start;
      out.last_rank = member.rank;
    } else if (known == 1 || start > out.last_but_one_ns) {
      out.last_but_one_ns = start;
    }
    out.first_arrival_ns = std::min(out.first_arrival_ns, start);
    out.first_departure_ns = std::min(out.first_departure_ns, end);
    ++known;
  }
  out.valid = known > 1;
  return out;
}

std::vector<CollectiveRate> compute_collective_rates(std::span<const RankSummary> ranks,
                                                     const Matching& matching,
                                                     std::span<const RankClock> clocks) {
  std::map<std::pair<std::uint32_t, std::string>, Samples> samples;
  std::map<std::pair<std::uint32_t, std::string>, const CollectiveKind*> kinds;
  for (const MatchedCollective& collective : matching.collectives) {
    if (!collective.blocking) continue;
    const Presence presence = presence_of(ranks, collective, clocks);
    if (!presence.valid) continue;
    const CollectiveMember& first = collective.members.front();
    const RankSummary& rank = ranks[first.rank];
    const CollectiveKind& kind = rank.kinds[rank.collectives[first.call].kind];
    const std::pair key(collective.group, kind_text(kind));
    Samples& into = samples[key];
    kinds[key] = &kind;
    into.together.push_back(
        std::max<std::int64_t>(0, presence.first_departure_ns - presence.last_arrival_ns));
    into.wait.push_back(presence.last_arrival_ns - presence.first_arrival_ns);
    into.members = collective.members.size();
    for (const CollectiveMember& member : collective.members)
      into.error_ns = std::max(into.error_ns, clocks[member.rank].error_ns);
    const std::int64_t size = matching.groups[collective.group].size;
    into.whole &= size == static_cast<std::int64_t>(collective.members.size());
  }
  std::vector<CollectiveRate> out;
  for (auto& [key, values] : samples) {
    const CollectiveKind& kind = *kinds[key];
    CollectiveRate rate;
    rate.group = key.first;
    rate.kind = key.second;
    rate.bytes = kind.bytes;
    rate.count = values.together.size();
    rate.together_ns = lower_median(values.together);
    rate.wait_ns = lower_median(values.wait);
    const double factor = bus_factor(kind.name, values.members);
    if (values.whole && kind.bytes > 0 && factor > 0 && rate.together_ns > 2 * values.error_ns) {
      rate.algorithm_bandwidth =
          static_cast<double>(kind.bytes) * 1e9 / static_cast<double>(rate.together_ns);
      rate.bus_bandwidth = rate.algorithm_bandwidth * factor;
    }
    out.push_back(std::move(rate));
  }
  std::stable_sort(out.begin(), out.end(), [](const CollectiveRate& a, const CollectiveRate& b) {
    const auto total = [](const CollectiveRate& rate) {
      return static_cast<double>(rate.together_ns) * static_cast<double>(rate.count);
    };
    return a.group != b.group ? a.group < b.group : total(a) > total(b);
  });
  return out;
}

}  // namespace lanescope::ranks

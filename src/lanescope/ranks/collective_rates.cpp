#include "lanescope/ranks/collective_rates.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lanescope/analysis/collective_calls.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/message.h"

namespace lanescope::ranks {
namespace {

using analysis::lower_median;

// All collectives of one group whose kinds read alike.
struct Samples {
  std::vector<std::int64_t> together, wait;
  std::uint32_t kind = UINT32_MAX;  // the first one
  std::int64_t error_ns = 0;
  bool whole = true;  // all ranks of the group are there
};
using SamplesByKind = std::map<std::pair<std::uint32_t, std::string>, Samples>;

std::string write(const SamplesByKind& samples) {
  MessageWriter out;
  for (const auto& [key, values] : samples)
    out.put(key.first)
        .put_text(key.second)
        .put_rows(values.together)
        .put_rows(values.wait)
        .put(values.kind)
        .put(values.error_ns)
        .put(values.whole);
  return out.finish();
}

void read(std::string_view message, SamplesByKind& into) {
  for (MessageReader in(message); !in.at_end();) {
    const auto group = in.get<std::uint32_t>();
    Samples& values = into[{group, std::string(in.get_text())}];
    for (const std::int64_t each : in.get_rows<std::int64_t>()) values.together.push_back(each);
    for (const std::int64_t each : in.get_rows<std::int64_t>()) values.wait.push_back(each);
    values.kind = std::min(values.kind, in.get<std::uint32_t>());
    values.error_ns = std::max(values.error_ns, in.get<std::int64_t>());
    values.whole &= in.get<bool>();
  }
}

// The error of the differences between these ranks' clocks, in ns. Ranks of one host have one clock, however unsure it is.
std::int64_t clock_error(const MatchedCollective& collective, std::span<const RankClock> clocks) {
  const std::uint32_t host = clocks[collective.members.front().rank].host;
  std::int64_t error = kLeastClockErrorNs;
  bool is_one_host = host != 0;
  for (const CollectiveMember& member : collective.members) {
    error = std::max(error, clocks[member.rank].error_ns);
    is_one_host = is_one_host && clocks[member.rank].host == host;
  }
  return is_one_host ? kLeastClockErrorNs : error;
}

SamplesByKind samples_of(const Matching& matching, std::span<const RankClock> clocks) {
  SamplesByKind samples;
  for (const MatchedCollective& collective : matching.collectives) {
    if (!collective.blocking) continue;
    const Presence presence = presence_of(collective, clocks);
    if (!presence.valid) continue;
    const std::uint32_t kind = collective.members.front().kind;
    Samples& into = samples[{collective.group, kind_text(matching.kinds[kind])}];
    into.kind = std::min(into.kind, kind);
    into.together.push_back(
        std::max<std::int64_t>(0, presence.first_departure_ns - presence.last_arrival_ns));
    into.wait.push_back(presence.last_arrival_ns - presence.first_arrival_ns);
    into.error_ns = std::max(into.error_ns, clock_error(collective, clocks));
    const std::int64_t size = matching.groups[collective.group].size;
    into.whole &= size == static_cast<std::int64_t>(collective.members.size());
  }
  return samples;
}

}  // namespace

Presence presence_of(const MatchedCollective& collective, std::span<const RankClock> clocks) {
  Presence out;
  std::size_t known = 0;
  for (const CollectiveMember& member : collective.members) {
    const RankClock& clock = clocks[member.rank];
    if (!clock.known || clock.contradicts) continue;
    const std::int64_t start = clock.aligned(member.start_ns), end = clock.aligned(member.end_ns);
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

std::vector<CollectiveRate> compute_collective_rates(const Matching& matching,
                                                     std::span<const RankClock> clocks,
                                                     Communicator& workers) {
  SamplesByKind samples = samples_of(matching, clocks);
  if (workers.workers() > 1) {
    const std::vector<std::string> messages = workers.gather(write(samples));
    samples.clear();
    for (const std::string& message : messages) read(message, samples);
  }
  std::vector<CollectiveRate> out;
  for (auto& [key, values] : samples) {
    const CollectiveKind& kind = matching.kinds[values.kind];
    CollectiveRate rate;
    rate.group = key.first;
    rate.kind = key.second;
    rate.bytes = kind.bytes;
    rate.count = values.together.size();
    rate.together_ns = lower_median(values.together);
    rate.wait_ns = lower_median(values.wait);
    const double factor = analysis::bus_factor(kind.name, matching.groups[key.first].size);
    if (values.whole && kind.bytes > 0 && factor > 0 && rate.together_ns > 2 * values.error_ns) {
      rate.algorithm_bandwidth =
          static_cast<double>(kind.bytes) * 1e9 / static_cast<double>(rate.together_ns);
      rate.bus_bandwidth = rate.algorithm_bandwidth * factor;
    }
    out.push_back(std::move(rate));
  }
  sort_rows(out.begin(), out.end(), [](const CollectiveRate& a, const CollectiveRate& b) {
    const auto total = [](const CollectiveRate& rate) {
      return static_cast<double>(rate.together_ns) * static_cast<double>(rate.count);
    };
    return a.group != b.group ? a.group < b.group : total(a) > total(b);
  });
  return out;
}

}  // namespace lanescope::ranks

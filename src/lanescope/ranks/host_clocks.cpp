#include "lanescope/ranks/host_clocks.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>

#include "lanescope/analysis/steps.h"

namespace lanescope::ranks {
namespace {

// Many machines have this name.
bool names_a_host(const std::string& host) { return !host.empty() && host != "localhost"; }

// One number a host; 0: unknown.
std::vector<std::uint32_t> host_numbers(const std::vector<std::string>& hosts,
                                        Communicator& workers) {
  std::vector<std::uint32_t> numbers;
  if (workers.worker() == 0) {
    std::map<std::string, std::uint32_t> known;
    for (const std::string& host : hosts)
      numbers.push_back(
          names_a_host(host)
              ? known.try_emplace(host, static_cast<std::uint32_t>(known.size() + 1)).first->second
              : 0);
  }
  const std::string bytes = workers.broadcast(bytes_of(numbers));
  numbers.clear();
  append_rows(bytes, numbers);
  return numbers;
}

bool agrees(const RankClock& clock, bool on_cpu, std::int64_t offset_ns) {
  if (!clock.known || clock.contradicts || clock.drift != 0) return false;
  if (clock.samples > 0 && !clock.by_pairs &&
      (offset_ns < clock.lowest_ns || offset_ns > clock.highest_ns))
    return false;
  if (on_cpu && clock.samples > 0 && !clock.by_pairs) return true;
  return std::abs(clock.offset_ns - offset_ns) <= clock.error_ns;
}

void share(std::uint32_t host, const std::vector<std::size_t>& ranks,
           const std::vector<bool>& on_cpu, std::vector<RankClock>& clocks) {
  const bool has_reference = ranks.front() == 0;
  std::vector<std::int64_t> offsets;
  std::int64_t error = INT64_MAX;
  for (const std::size_t rank : ranks) {
    offsets.push_back(clocks[rank].offset_ns);
    error = std::min(error, clocks[rank].error_ns);
  }
  const std::int64_t offset = has_reference ? 0 : analysis::lower_median(std::move(offsets));
  error = has_reference ? kLeastClockErrorNs : std::max(kLeastClockErrorNs, error);
  for (const std::size_t rank : ranks)
    if (rank != 0 && !agrees(clocks[rank], on_cpu[rank], offset)) return;
  for (const std::size_t rank : ranks) {
    clocks[rank].host = host;
    if (rank == 0) continue;
    clocks[rank].shift_ns += offset - clocks[rank].offset_ns;
    clocks[rank].offset_ns = offset;
    clocks[rank].error_ns = std::min(clocks[rank].error_ns, error);
  }
}

}  // namespace

void share_host_clocks(const std::vector<std::string>& hosts, const std::vector<bool>& on_cpu,
                       Communicator& workers, std::vector<RankClock>& clocks) {
  std::map<std::uint32_t, std::vector<std::size_t>> ranks;
  const std::vector<std::uint32_t> numbers = host_numbers(hosts, workers);
  for (std::size_t rank = 0; rank < numbers.size() && rank < clocks.size(); ++rank)
    if (numbers[rank] != 0) ranks[numbers[rank]].push_back(rank);
  for (const auto& [host, members] : ranks)
    if (members.size() > 1) share(host, members, on_cpu, clocks);
}

}  // namespace lanescope::ranks

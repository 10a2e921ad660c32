// How fast collectives were while all ranks took part, with the definitions of nccl-tests.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lanescope/ranks/clock_offsets.h"
#include "lanescope/ranks/match_collectives.h"

namespace lanescope::ranks {

// All collectives of one kind in one group. Medians. docs/definitions/ranks.md#bandwidth.
struct CollectiveRate {
  std::uint32_t group = 0;  // index into Matching::groups
  std::string kind;         // kind_text()
  std::int64_t bytes = -1;  // -1: unknown
  std::uint64_t count = 0;
  std::int64_t together_ns = 0;  // from the last arrival to the first departure
  std::int64_t wait_ns = 0;      // from the first arrival to the last
  // Bytes a second; 0: unknown, because sizes or ranks are missing, or `together` is shorter than the
  // clocks' error.
  double algorithm_bandwidth = 0, bus_bandwidth = 0;
};

// On worker 0, by group, then total time, most first. Every worker calls it. O(calls).
std::vector<CollectiveRate> compute_collective_rates(const Matching& matching,
                                                     std::span<const RankClock> clocks,
                                                     Communicator& workers);

// Arrivals and departures of one collective on the reference's clock; valid: two clocks are known.
struct Presence {
  bool valid = false;
  std::int64_t first_arrival_ns = 0, last_arrival_ns = 0, first_departure_ns = 0;
  std::uint32_t last_rank = 0;       // who arrived last
  std::int64_t last_but_one_ns = 0;  // when the last other rank arrived
};
Presence presence_of(const MatchedCollective& collective, std::span<const RankClock> clocks);

}  // namespace lanescope::ranks

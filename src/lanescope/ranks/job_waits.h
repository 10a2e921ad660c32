// Who waited for whom in the matched collectives, once the clocks are known.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/ranks/clock_offsets.h"
#include "lanescope/ranks/communicator.h"
#include "lanescope/ranks/group_times.h"
#include "lanescope/ranks/match_collectives.h"

namespace lanescope::ranks {

// Exposed waits in sends and receives. They need no clock: both sides leave together, so the side
// that came first waits for as long as its call is longer. docs/definitions/ranks.md#pipelines.
struct StageWaits {
  std::int64_t first_ns = 0;    // up to the end of the rank's first receive of the step
  std::int64_t between_ns = 0;  // then, up to its last receive
  std::int64_t last_ns = 0;     // in that and later
  std::uint64_t receives = 0;   // of the step
  std::int64_t total_ns() const { return first_ns + between_ns + last_ns; }
};

// How long a rank waited in a step, and how late it was. docs/definitions/ranks.md#waits.
struct StepWait {
  std::uint32_t rank = 0;
  std::int32_t step = -1;    // index into RankSummary::steps
  std::int64_t late_ns = 0;  // the largest start after the median start of all; at least 0
  std::int64_t wait_ns = 0, exposed_wait_ns = 0;
  StageWaits stage;  // the part of exposed_wait_ns in sends and receives
};

// When one rank was in a collective: since the first rank's arrival.
struct Arrival {
  std::uint32_t rank = 0;  // place among the job's ranks
  std::int64_t start_ns = 0, length_ns = 0;
};
inline constexpr std::size_t kMostArrivals = 8;

// One collective that ranks waited in.
struct JobCollective {
  std::uint32_t group = 0, kind = 0;       // indices into Matching::groups and Matching::kinds
  std::uint32_t last_rank = 0, ranks = 0;  // who came last; how many took part
  std::int64_t step = -1, sequence = -1;
  std::int64_t spread_ns = 0;        // from the first arrival to the last
  std::int64_t together_ns = 0;      // from the last arrival to the first departure; at least 0
  std::int64_t exposed_wait_ns = 0;  // of all ranks together
  std::int64_t error_ns = 0;         // the largest error of its ranks' clocks
  std::uint32_t shown = 0;           // of `arrivals`: the first three ranks and the last ones
  std::array<Arrival, kMostArrivals> arrivals{};
};
inline constexpr std::size_t kMostCritical = 16;

struct JobWaits {
  std::vector<std::uint64_t>
      last_arrivals;                    // one per rank: collectives at which it came last, alone
  std::vector<StepWait> steps;          // by rank and step
  std::vector<GroupStep> groups;        // rows of equal keys may come more than once
  std::vector<JobCollective> critical;  // most exposed wait first; at most kMostCritical
};

// The result is on worker 0. Every worker calls it. O(calls) on each.
JobWaits compute_waits(const JobLayout& layout, const Matching& matching,
                       std::span<const RankClock> clocks, Communicator& workers);

}  // namespace lanescope::ranks

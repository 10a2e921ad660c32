// Problem: the stages of a pipeline may have no collective in common. Idea: data is not received before its
// sending has begun. So a receive's end bounds the offset of two clocks from one side, and a receive in
// the other direction bounds it from the other side: between the two it must lie. Within that, a send and
// its receive end nearly together; which of the two sides ends first is the same in both directions, so the
// mean of both is free of it.
//
// Example: receives on rank 1 end 1010 us later than their sends on rank 0, and sends of rank 1 end 990 us
// later than their receives on rank 0. Offset: 1000 us.
#include "lanescope/ranks/clock_pairs.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/clock_samples.h"

namespace lanescope::ranks {
namespace {

// One send and its receive, as the rank of the unknown clock sees it. Travels to that rank's home.
struct PairRow {
  std::uint32_t rank = 0, other = 0;
  std::uint32_t call = 0;
  std::uint32_t sends = 0;       // 1: `rank` is the sender
  std::int64_t apart_ns = 0;     // how much later than the other side it ended
  std::int64_t bound_ns = 0;     // the shift is at most this (receiver), or at least this (sender)
  std::int64_t together_ns = 0;  // the shorter of both lengths
};

struct LinkedClock {
  std::uint32_t rank = 0;
  RankClock clock;
};

struct PairEnd {
  std::int64_t apart_ns = 0, together_ns = 0;  // as PairRow's
};
struct Direction {
  std::vector<PairEnd> ends;
  std::int64_t bound_ns = 0;
};

// From the rows of one rank with one other. Nothing: they send in one direction only.
std::optional<RankClock> fit(const std::vector<PairRow>& rows, const RankClock& other) {
  Direction in, out;  // the rank receives; it sends
  for (const PairRow& row : rows) {
    Direction& of = row.sends ? out : in;
    of.bound_ns = of.ends.empty() ? row.bound_ns
                  : row.sends     ? std::max(of.bound_ns, row.bound_ns)
                                  : std::min(of.bound_ns, row.bound_ns);
    of.ends.push_back({row.apart_ns, row.together_ns});
  }
  if (in.ends.empty() || out.ends.empty()) return std::nullopt;
  keep_shortest(in.ends);
  keep_shortest(out.ends);
  const std::int64_t received = median_of(in.ends, &PairEnd::apart_ns),
                     sent = median_of(out.ends, &PairEnd::apart_ns);
  RankClock clock;
  clock.known = clock.by_pairs = true;
  clock.samples = rows.size();
  clock.contradicts = out.bound_ns > in.bound_ns;
  clock.shift_ns = sent + (received - sent) / 2;
  // Both are turned into offsets by the caller.
  clock.lowest_ns = out.bound_ns;
  clock.highest_ns = in.bound_ns;
  const std::int64_t together = std::max(in.ends.back().together_ns, out.ends.back().together_ns);
  clock.error_ns =
      std::max(kLeastClockErrorNs, together / kLeavingShare) + std::abs(received - sent) / 2 +
      static_cast<std::int64_t>(std::max(spread_apart(in.ends), spread_apart(out.ends)));
  if (!clock.contradicts) {
    clock.shift_ns = std::clamp(clock.shift_ns, clock.lowest_ns, clock.highest_ns);
    clock.error_ns =
        std::min(clock.error_ns, std::max({kLeastClockErrorNs, clock.highest_ns - clock.shift_ns,
                                           clock.shift_ns - clock.lowest_ns}));
  }
  clock.error_ns += other.error_ns;
  return clock;
}

class PairLinker {
 public:
  PairLinker(const JobLayout& layout, const Matching& matching, Communicator& workers,
             std::vector<RankClock>* clocks)
      : layout_(layout), matching_(matching), workers_(workers), clocks_(*clocks) {}

  void run() {
    while (link_neighbours()) {
    }
  }

 private:
  std::vector<std::vector<PairRow>> rows_to_send() const {
    std::vector<std::vector<PairRow>> to(workers_.workers());
    for (const MatchedCollective& pair : matching_.collectives) {
      if (!pair.one_way || pair.members.size() != 2) continue;
      for (const std::size_t at : {0u, 1u}) {
        const CollectiveMember& member = pair.members[at];
        const CollectiveMember& other = pair.members[1 - at];
        const RankClock& known = clocks_[other.rank];
        if (clocks_[member.rank].known || !known.known || known.contradicts) continue;
        const std::int64_t start = known.aligned(other.start_ns), end = known.aligned(other.end_ns);
        const bool sends = at == 0;
        to[layout_.home[member.rank]].push_back(
            {member.rank, other.rank, member.call, sends, member.end_ns - end,
             sends ? member.start_ns - end : member.end_ns - start,
             std::min(member.end_ns - member.start_ns, end - start)});
      }
    }
    return to;
  }

  // True: at least one rank more is known, on all workers.
  bool link_neighbours() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<PairRow>> rows;
    for (const PairRow& row : exchange_rows(workers_, rows_to_send()))
      rows[{row.rank, row.other}].push_back(row);
    std::map<std::uint32_t, RankClock> best;  // of the neighbour with most calls
    for (auto& [key, of_pair] : rows) {
      sort_rows(of_pair.begin(), of_pair.end(), [](const PairRow& a, const PairRow& b) {
        return std::pair(a.call, a.sends) < std::pair(b.call, b.sends);
      });
      const auto clock = fit(of_pair, clocks_[key.second]);
      if (!clock) continue;
      const auto [known, is_new] = best.try_emplace(key.first, *clock);
      if (!is_new && clock->samples > known->second.samples) known->second = *clock;
    }
    std::vector<LinkedClock> own;
    for (const auto& [rank, clock] : best) own.push_back({rank, clock});
    bool grew = false;
    for (const LinkedClock& each : share_rows(workers_, std::move(own))) {
      RankClock clock = each.clock;
      clock.offset_ns =
          clock_offset_ns(layout_.origin_ns[each.rank], layout_.origin_ns[0], clock.shift_ns);
      clock.lowest_ns += clock.offset_ns - clock.shift_ns;
      clock.highest_ns += clock.offset_ns - clock.shift_ns;
      clocks_[each.rank] = clock;
      grew = true;
    }
    return grew;
  }

  const JobLayout& layout_;
  const Matching& matching_;
  Communicator& workers_;
  std::vector<RankClock>& clocks_;
};

}  // namespace

void link_clocks_by_pairs(const JobLayout& layout, const Matching& matching, Communicator& workers,
                          std::vector<RankClock>* clocks) {
  PairLinker(layout, matching, workers, clocks).run();
}

}  // namespace lanescope::ranks

#include "lanescope/ranks/job_waits.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/collective_rates.h"

namespace lanescope::ranks {
namespace {

bool is_more_critical(const JobCollective& a, const JobCollective& b) {
  const auto order = [](const JobCollective& c) {
    return std::tuple(-c.exposed_wait_ns, -c.spread_ns, c.group, c.step, c.sequence, c.kind,
                      c.last_rank, c.together_ns);
  };
  return order(a) < order(b);
}

class WaitFinder {
 public:
  WaitFinder(const JobLayout& layout, std::span<const RankClock> clocks)
      : layout_(layout), clocks_(clocks), last_arrivals_(clocks.size()) {}

  void add(const MatchedCollective& collective) {
    for (const CollectiveMember& member : collective.members)
      if (member.step >= 0) {
        GroupStep& sum = group_step(member, collective.group);
        ++sum.calls;
        add_time(sum.exposed_ns, member.exposed_ns);
      }
    if (!collective.blocking && !collective.one_way) return;
    if (collective.one_way) add_pair(collective);
    const Presence presence = presence_of(collective, clocks_);
    if (!presence.valid) return;
    JobCollective found;
    found.group = collective.group;
    found.kind = collective.members.front().kind;
    found.last_rank = presence.last_rank;
    found.ranks = static_cast<std::uint32_t>(collective.members.size());
    found.step = collective.step;
    found.sequence = collective.sequence;
    found.spread_ns = presence.last_arrival_ns - presence.first_arrival_ns;
    found.together_ns =
        std::max<std::int64_t>(0, presence.first_departure_ns - presence.last_arrival_ns);
    for (const CollectiveMember& member : collective.members)
      found.error_ns = std::max(found.error_ns, clocks_[member.rank].error_ns);
    if (presence.last_arrival_ns - presence.last_but_one_ns > found.error_ns)
      ++last_arrivals_[presence.last_rank];
    if (collective.blocking) add_lateness(collective);
    for (const CollectiveMember& member : collective.members) {
      const std::int64_t wait =
          collective.one_way ? pair_wait(collective, member).second : add_wait(member, presence);
      found.exposed_wait_ns += wait;
      if (member.step >= 0) add_time(group_step(member, collective.group).exposed_wait_ns, wait);
    }
    if (found.exposed_wait_ns > 0) {
      add_arrivals(collective, presence.first_arrival_ns, found);
      critical_.push_back(found);
    }
    if (critical_.size() >= 4 * kMostCritical) keep_critical();
  }

  JobWaits finish(Communicator& workers) {
    JobWaits out;
    out.last_arrivals.assign(clocks_.size(), 0);
    for (const std::string& message : workers.gather(bytes_of(last_arrivals_))) {
      std::vector<std::uint64_t> rows;
      append_rows(message, rows);
      for (std::size_t i = 0; i < rows.size(); ++i) out.last_arrivals[i] += rows[i];
    }
    keep_critical();
    critical_ = gather_rows(workers, std::move(critical_));
    keep_critical();
    out.critical = std::move(critical_);
    // First united at the home of each rank, so that worker 0 gets each step of a rank once.
    std::vector<std::vector<StepWait>> to(workers.workers());
    for (const auto& [key, wait] : waits_) to[layout_.home[wait.rank]].push_back(wait);
    waits_.clear();
    for (const StepWait& wait : exchange_rows(workers, std::move(to))) unite(wait);
    add_stage_waits(exchange_rows(workers, pairs_by_home(workers)));
    std::vector<StepWait> own;
    for (const auto& [key, wait] : waits_) own.push_back(wait);
    out.steps = gather_rows(workers, std::move(own));
    std::vector<GroupStep> groups;
    for (const auto& [key, row] : groups_) groups.push_back(row);
    out.groups = gather_rows(workers, std::move(groups));
    return out;
  }

 private:
  GroupStep& group_step(const CollectiveMember& member, std::uint32_t group) {
    GroupStep& row = groups_[{member.rank, group, member.step}];
    row.rank = member.rank;
    row.group = group;
    row.step = member.step;
    return row;
  }

  StepWait& wait_of(std::uint32_t rank, std::int32_t step) {
    StepWait& wait = waits_[{rank, step}];
    wait.rank = rank;
    wait.step = step;
    return wait;
  }

  void unite(const StepWait& more) {
    StepWait& wait = wait_of(more.rank, more.step);
    wait.late_ns = std::max(wait.late_ns, more.late_ns);
    wait.wait_ns += more.wait_ns;
    wait.exposed_wait_ns += more.exposed_wait_ns;
  }

  // A rank that is late at one collective of a step is late, also if the others' waiting is hidden.
  void add_lateness(const MatchedCollective& collective) {
    std::vector<std::int64_t> starts;
    for (const CollectiveMember& member : collective.members)
      if (const RankClock& clock = clocks_[member.rank]; clock.known && !clock.contradicts)
        starts.push_back(clock.aligned(member.start_ns));
    const std::int64_t usual = analysis::lower_median(std::move(starts));
    for (const CollectiveMember& member : collective.members) {
      const RankClock& clock = clocks_[member.rank];
      if (member.step < 0 || !clock.known || clock.contradicts) continue;
      StepWait& wait = wait_of(member.rank, member.step);
      wait.late_ns = std::max(wait.late_ns, clock.aligned(member.start_ns) - usual);
    }
  }

  // The device waits from its arrival to the last one; what then follows is the transfer. Only the
  // total of the time in which nothing computed is known, so the transfer counts as exposed first:
  // the wait is never overstated. Returns the exposed wait.
  std::int64_t add_wait(const CollectiveMember& member, const Presence& presence) {
    const RankClock& clock = clocks_[member.rank];
    if (member.step < 0 || !clock.known || clock.contradicts) return 0;
    const std::int64_t start = clock.aligned(member.start_ns),
                       length = member.end_ns - member.start_ns;
    const std::int64_t wait = std::clamp<std::int64_t>(presence.last_arrival_ns - start, 0, length);
    const std::int64_t exposed =
        std::clamp<std::int64_t>(member.exposed_ns - (length - wait), 0, wait);
    StepWait& sum = wait_of(member.rank, member.step);
    sum.wait_ns += wait;
    sum.exposed_wait_ns += exposed;
    return exposed;
  }

  void add_arrivals(const MatchedCollective& collective, std::int64_t first_ns,
                    JobCollective& found) const {
    std::vector<Arrival> all;
    for (const CollectiveMember& member : collective.members)
      if (const RankClock& clock = clocks_[member.rank]; clock.known && !clock.contradicts)
        all.push_back({member.rank, clock.aligned(member.start_ns) - first_ns,
                       clock.aligned(member.end_ns) - clock.aligned(member.start_ns)});
    sort_rows(all.begin(), all.end(), [](const Arrival& a, const Arrival& b) {
      return std::pair(a.start_ns, a.rank) < std::pair(b.start_ns, b.rank);
    });
    if (all.size() > kMostArrivals) all.erase(all.begin() + 3, all.end() - (kMostArrivals - 3));
    found.shown = static_cast<std::uint32_t>(all.size());
    std::copy(all.begin(), all.end(), found.arrivals.begin());
  }

  // The wait of one side, and the exposed part of it: the transfer counts as exposed first.
  static std::pair<std::int64_t, std::int64_t> pair_wait(const MatchedCollective& pair,
                                                         const CollectiveMember& member) {
    std::int64_t together = INT64_MAX;
    for (const CollectiveMember& each : pair.members)
      together = std::min(together, each.end_ns - each.start_ns);
    const std::int64_t wait = std::max<std::int64_t>(0, member.end_ns - member.start_ns - together);
    return {wait, std::clamp<std::int64_t>(member.exposed_ns - together, 0, wait)};
  }

  // Which receive is a rank's first in a step is known at its home.
  struct PairRow {
    std::uint32_t rank = 0, call = 0;
    std::int32_t step = -1;
    std::uint32_t is_receive = 0;
    std::int64_t wait_ns = 0, exposed_ns = 0;
    auto order() const { return std::tuple(rank, step, call); }
  };

  void add_pair(const MatchedCollective& pair) {
    for (const CollectiveMember& member : pair.members) {
      if (member.step < 0) continue;
      const auto [wait, exposed] = pair_wait(pair, member);
      pairs_.push_back({member.rank, member.call, member.step,
                        &member == &pair.members.front() ? 0u : 1u, wait, exposed});
    }
  }

  std::vector<std::vector<PairRow>> pairs_by_home(Communicator& workers) {
    std::vector<std::vector<PairRow>> to(workers.workers());
    for (const PairRow& row : pairs_) to[layout_.home[row.rank]].push_back(row);
    pairs_.clear();
    return to;
  }

  void add_stage_waits(std::vector<PairRow> rows) {
    sort_rows(rows.begin(), rows.end(),
              [](const PairRow& a, const PairRow& b) { return a.order() < b.order(); });
    for (std::size_t first = 0; first < rows.size();) {
      std::size_t end = first, first_receive = SIZE_MAX, last_receive = SIZE_MAX;
      StepWait& sum = wait_of(rows[first].rank, rows[first].step);
      for (; end < rows.size() && rows[end].rank == sum.rank && rows[end].step == sum.step; ++end) {
        if (rows[end].is_receive == 0) continue;
        ++sum.stage.receives;
        if (first_receive == SIZE_MAX) first_receive = end;
        last_receive = end;
      }
      for (std::size_t i = first; i < end; ++i) {
        sum.wait_ns += rows[i].wait_ns;
        sum.exposed_wait_ns += rows[i].exposed_ns;
        if (i <= first_receive)
          sum.stage.first_ns += rows[i].exposed_ns;
        else if (i < last_receive)
          sum.stage.between_ns += rows[i].exposed_ns;
        else
          sum.stage.last_ns += rows[i].exposed_ns;
      }
      first = end;
    }
  }

  void keep_critical() {
    const std::size_t count = std::min(critical_.size(), kMostCritical);
    std::partial_sort(critical_.begin(), critical_.begin() + static_cast<std::ptrdiff_t>(count),
                      critical_.end(), is_more_critical);
    critical_.resize(count);
  }

  const JobLayout& layout_;
  std::span<const RankClock> clocks_;
  std::vector<std::uint64_t> last_arrivals_;
  std::map<std::pair<std::uint32_t, std::int32_t>, StepWait> waits_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>, GroupStep> groups_;
  std::vector<JobCollective> critical_;
  std::vector<PairRow> pairs_;
};

}  // namespace

JobWaits compute_waits(const JobLayout& layout, const Matching& matching,
                       std::span<const RankClock> clocks, Communicator& workers) {
  WaitFinder finder(layout, clocks);
  for (const MatchedCollective& collective : matching.collectives) finder.add(collective);
  return finder.finish(workers);
}

}  // namespace lanescope::ranks

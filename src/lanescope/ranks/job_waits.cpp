#include "lanescope/ranks/job_waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "lanescope/analysis/steps.h"
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
    if (!collective.blocking && !collective.one_way) return;
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
    for (const CollectiveMember& member : collective.members)
      if (!collective.one_way || member.rank != collective.members.front().rank)
        found.exposed_wait_ns += add_wait(member, presence);
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
    std::vector<StepWait> own;
    for (const auto& [key, wait] : waits_) own.push_back(wait);
    out.steps = gather_rows(workers, std::move(own));
    return out;
  }

 private:
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
    std::sort(all.begin(), all.end(), [](const Arrival& a, const Arrival& b) {
      return std::pair(a.start_ns, a.rank) < std::pair(b.start_ns, b.rank);
    });
    if (all.size() > kMostArrivals) all.erase(all.begin() + 3, all.end() - (kMostArrivals - 3));
    found.shown = static_cast<std::uint32_t>(all.size());
    std::copy(all.begin(), all.end(), found.arrivals.begin());
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
  std::vector<JobCollective> critical_;
};

}  // namespace

JobWaits compute_waits(const JobLayout& layout, const Matching& matching,
                       std::span<const RankClock> clocks, Communicator& workers) {
  WaitFinder finder(layout, clocks);
  for (const MatchedCollective& collective : matching.collectives) finder.add(collective);
  return finder.finish(workers);
}

}  // namespace lanescope::ranks

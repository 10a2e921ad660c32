#include "lanescope/analysis/busy_periods.h"

#include <numeric>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/base/share_work.h"

namespace lanescope::analysis {

void BusyPeriods::cut_before(std::int64_t time_ns) {
  const auto kept =
      std::partition_point(periods_.begin(), periods_.end(),
                           [time_ns](const Period& period) { return period.second <= time_ns; });
  periods_.erase(periods_.begin(), kept);
  if (!periods_.empty()) periods_.front().first = std::max(periods_.front().first, time_ns);
}

void BusyPeriods::finish() {
  before_.reserve(periods_.size());
  std::int64_t sum_ns = 0;
  for (const auto& [start_ns, end_ns] : periods_) {
    before_.push_back(sum_ns);
    sum_ns += end_ns - start_ns;
  }
}

std::int64_t BusyPeriods::length_ns() const {
  std::int64_t sum_ns = 0;
  for (const auto& [start_ns, end_ns] : periods_) sum_ns += end_ns - start_ns;
  return sum_ns;
}

std::int64_t BusyPeriods::up_to_ns(std::int64_t time_ns, std::size_t& place) const {
  constexpr std::size_t kMostSteps = 8;
  const auto begins = [&](std::size_t i) { return periods_[i].first <= time_ns; };
  std::size_t after = place;  // how many periods begin until then
  const std::size_t last = std::min(place + kMostSteps, periods_.size());
  while (after < last && begins(after)) ++after;
  const bool is_found =
      (after == periods_.size() || !begins(after)) && (after == 0 || begins(after - 1));
  if (!is_found) {
    const auto found =
        std::partition_point(periods_.begin(), periods_.end(),
                             [&](const auto& period) { return period.first <= time_ns; });
    after = static_cast<std::size_t>(found - periods_.begin());
  }
  place = after;
  if (after == 0) return 0;
  const auto& [start_ns, end_ns] = periods_[after - 1];
  return before_[after - 1] + std::min(time_ns, end_ns) - start_ns;
}

void BusyTrack::add(BusyPeriods& block) {
  if (!blocks_.empty()) block.cut_before(blocks_.back()->periods().back().second);
  if (block.empty()) return;
  blocks_.push_back(&block);
  first_ns_.push_back(block.periods().front().first);
  before_.push_back(length_ns_);
  length_ns_ += block.length_ns();
}

std::size_t BusyTrack::block_at(std::int64_t time_ns) const {
  const auto after = std::upper_bound(first_ns_.begin(), first_ns_.end(), time_ns);
  return after == first_ns_.begin() ? 0 : static_cast<std::size_t>(after - first_ns_.begin()) - 1;
}

std::int64_t BusyTrack::up_to_ns(std::int64_t time_ns, BusyPlace& place) const {
  if (blocks_.empty() || time_ns < first_ns_.front()) return 0;
  const bool is_found = first_ns_[place.block] <= time_ns &&
                        (place.block + 1 == blocks_.size() || first_ns_[place.block + 1] > time_ns);
  if (!is_found) place = {block_at(time_ns), 0};
  return before_[place.block] + blocks_[place.block]->up_to_ns(time_ns, place.period);
}

std::int64_t BusyTrack::within_ns(std::int64_t start_ns, std::int64_t end_ns,
                                  BusyPlace& place) const {
  if (end_ns <= start_ns) return 0;
  const std::int64_t before_ns = up_to_ns(start_ns, place);
  BusyPlace end_place = place;  // windows may contain each other, so the next one looks from here
  return up_to_ns(end_ns, end_place) - before_ns;
}

// Windows between the beginnings of blocks do not know of each other.
std::int64_t busy_length_ns(std::span<const BusyTrack* const> tracks, unsigned threads) {
  if (tracks.size() == 1) return tracks.front()->length_ns();
  std::vector<std::int64_t> limits;
  std::int64_t last_ns = 0;
  for (const BusyTrack* track : tracks)
    for (const BusyPeriods* block : track->blocks()) {
      const auto periods = block->periods();
      last_ns = limits.empty() ? periods.back().second : std::max(last_ns, periods.back().second);
      limits.push_back(periods.front().first);
    }
  if (limits.empty()) return 0;
  limits.push_back(last_ns);
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  std::vector<std::int64_t> lengths_ns(limits.size() - 1, 0);
  share_work(lengths_ns.size(), threads, [&](std::size_t i) {
    IntervalUnion busy;
    for (const BusyTrack* track : tracks)
      track->each_within(limits[i], limits[i + 1], [&](std::int64_t start_ns, std::int64_t end_ns) {
        busy.add(start_ns, end_ns);
      });
    busy.finish();
    lengths_ns[i] = busy.length_ns();
  });
  return std::accumulate(lengths_ns.begin(), lengths_ns.end(), std::int64_t{0});
}

}  // namespace lanescope::analysis

// Problem: each rank writes times of its own clock. Idea: nobody leaves a blocking collective before
// the last rank has arrived, and then all leave at nearly the same moment. So the ends of a collective,
// compared over many collectives, give the offset of two clocks; how unequally ranks leave limits how
// exact it is. What is certain is only an interval: a rank's start is before every other rank's end.
//
// Example: rank 1's ends are later than rank 0's by 1004, 1002 and 1003 us; the collectives took
// 160 us after the last arrival. Offset: 1003 us, error: 160 / 8 = 20 us and a little for the spread.
#include "lanescope/ranks/clock_offsets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "lanescope/analysis/steps.h"

namespace lanescope::ranks {
namespace {

using analysis::lower_median;

// Ranks leave a collective one after the other while the last pieces travel. Measured on rings of
// four GPUs: 5 to 13 % of the time in which all are present (docs/measurements/ranks.md).
constexpr std::int64_t kLeavingShare = 8;
constexpr std::int64_t kLeastErrorNs = 5'000;
constexpr std::int64_t kDriftWindowNs = 5'000'000'000;
constexpr std::size_t kDriftSamples = 16, kMostDriftSamples = 64;
constexpr int kRefinements = 3;

struct Sample {
  std::uint32_t collective = 0;  // index into Matching::collectives
  std::int64_t start_ns = 0, end_ns = 0;
};

class OffsetFinder {
 public:
  OffsetFinder(std::span<const RankSummary> ranks, const Matching& matching)
      : ranks_(ranks), matching_(matching), clocks_(ranks.size()), samples_(ranks.size()) {
    for (std::uint32_t i = 0; i < matching.collectives.size(); ++i) {
      if (!matching.collectives[i].blocking) continue;
      for (const CollectiveMember& member : matching.collectives[i].members) {
        const CollectiveRecord& call = ranks[member.rank].collectives[member.call];
        samples_[member.rank].push_back({i, call.start_ns, call.end_ns});
      }
    }
  }

  std::vector<RankClock> run() {
    if (clocks_.empty()) return {};
    clocks_[0].known = true;
    spread();
    for (int i = 0; i < kRefinements; ++i) refine();
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank) fit_drift(rank);
    find_presence();
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank) judge(rank);
    return std::move(clocks_);
  }

 private:
  const CollectiveRecord& record(const CollectiveMember& member) const {
    return ranks_[member.rank].collectives[member.call];
  }

  // Of each collective, the median end of the members whose clocks are known.
  void find_common_ends() {
    common_.assign(matching_.collectives.size(), {});
    std::vector<std::int64_t> ends;
    for (std::size_t i = 0; i < common_.size(); ++i) {
      if (!matching_.collectives[i].blocking) continue;
      ends.clear();
      for (const CollectiveMember& member : matching_.collectives[i].members)
        if (clocks_[member.rank].known)
          ends.push_back(clocks_[member.rank].aligned(record(member).end_ns));
      if (!ends.empty()) common_[i] = lower_median(ends);
    }
  }

  std::vector<std::int64_t> differences(std::size_t rank) const {
    std::vector<std::int64_t> out;
    for (const Sample& sample : samples_[rank])
      if (const auto& end = common_[sample.collective]) out.push_back(sample.end_ns - *end);
    return out;
  }

  // From the reference to ranks that share a collective with a known one, until none is left.
  void spread() {
    for (bool grew = true; grew;) {
      grew = false;
      find_common_ends();
      std::vector<std::pair<std::size_t, std::int64_t>> found;
      for (std::size_t rank = 0; rank < clocks_.size(); ++rank) {
        if (clocks_[rank].known) continue;
        auto values = differences(rank);
        if (!values.empty()) found.emplace_back(rank, lower_median(std::move(values)));
      }
      for (const auto& [rank, shift] : found) {
        clocks_[rank].known = true;
        clocks_[rank].shift_ns = shift;
        grew = true;
      }
    }
  }

  // With all ranks known, each is compared with the median of all instead of with the reference
  // alone, whose own way of leaving would be in every offset.
  void refine() {
    find_common_ends();
    std::vector<std::int64_t> shifts(clocks_.size());
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank)
      shifts[rank] = clocks_[rank].known && !samples_[rank].empty()
                         ? lower_median(differences(rank))
                         : clocks_[rank].shift_ns;
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank)
      if (clocks_[rank].known) clocks_[rank].shift_ns = shifts[rank] - shifts[0];
  }

  // The slope of the differences over time, when it explains more than the spread around it.
  void fit_drift(std::size_t rank) {
    RankClock& clock = clocks_[rank];
    const auto& samples = samples_[rank];
    if (rank == 0 || !clock.known || samples.size() < kDriftSamples) return;
    std::vector<std::pair<std::int64_t, std::int64_t>> points;
    const std::size_t each = (samples.size() + kMostDriftSamples - 1) / kMostDriftSamples;
    for (std::size_t i = 0; i < samples.size(); i += each)
      for (const CollectiveMember& member : matching_.collectives[samples[i].collective].members)
        if (member.rank == 0)
          points.emplace_back(samples[i].end_ns, samples[i].end_ns - record(member).end_ns);
    if (points.size() < kDriftSamples) return;
    const std::int64_t span = points.back().first - points.front().first;
    if (span < kDriftWindowNs) return;
    std::vector<double> slopes;
    for (std::size_t i = 0; i < points.size(); ++i)
      for (std::size_t j = i + 1; j < points.size(); ++j)
        if (points[j].first > points[i].first)
          slopes.push_back(static_cast<double>(points[j].second - points[i].second) /
                           static_cast<double>(points[j].first - points[i].first));
    if (slopes.empty()) return;
    const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
    std::nth_element(slopes.begin(), middle, slopes.end());
    const double slope = *middle;
    const std::int64_t center = points.front().first + span / 2;
    std::vector<std::int64_t> levels, before, after;
    for (const auto& [time, value] : points) {
      const auto gained =
          static_cast<std::int64_t>(std::llround(slope * static_cast<double>(time - center)));
      levels.push_back(value - gained);
    }
    const std::int64_t level = lower_median(levels);
    for (std::size_t i = 0; i < points.size(); ++i) {
      before.push_back(std::abs(points[i].second - clock.shift_ns));
      after.push_back(std::abs(levels[i] - level));
    }
    if (std::abs(slope) > 0.01 || lower_median(after) * 2 >= lower_median(before)) return;
    clock.drift = slope;
    clock.middle_ns = center;
    clock.shift_ns = level;
  }

  // Of each blocking collective: the last two arrivals, the first two departures.
  struct Presence {
    std::int64_t last = kNever, last_but_one = kNever;
    std::int64_t first = kForever, first_but_one = kForever;
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
    static constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
  };
  void find_presence() {
    find_common_ends();
    presence_.resize(matching_.collectives.size());
    for (std::size_t i = 0; i < matching_.collectives.size(); ++i) {
      Presence& presence = presence_[i];
      for (const CollectiveMember& member : matching_.collectives[i].members) {
        if (!clocks_[member.rank].known) continue;
        const std::int64_t start = clocks_[member.rank].aligned(record(member).start_ns),
                           end = clocks_[member.rank].aligned(record(member).end_ns);
        presence.last_but_one = std::max(presence.last_but_one, std::min(presence.last, start));
        presence.last = std::max(presence.last, start);
        presence.first_but_one = std::min(presence.first_but_one, std::max(presence.first, end));
        presence.first = std::min(presence.first, end);
      }
    }
  }

  void judge(std::size_t rank) {
    RankClock& clock = clocks_[rank];
    if (!clock.known) return;
    std::int64_t origin = 0;
    if (__builtin_sub_overflow(ranks_[rank].origin_ns, ranks_[0].origin_ns, &origin) ||
        __builtin_add_overflow(origin, clock.shift_ns, &clock.offset_ns))
      clock.offset_ns = clock.shift_ns;
    if (rank == 0) return;
    std::int64_t lowest = Presence::kNever, highest = Presence::kForever;
    std::vector<std::int64_t> apart, together;
    for (const Sample& sample : samples_[rank]) {
      const Presence& presence = presence_[sample.collective];
      const std::int64_t start = clock.aligned(sample.start_ns), end = clock.aligned(sample.end_ns);
      const std::int64_t last = start == presence.last ? presence.last_but_one : presence.last;
      const std::int64_t first = end == presence.first ? presence.first_but_one : presence.first;
      if (last == Presence::kNever || first == Presence::kForever) continue;
      highest = std::min(highest, end - last);   // it left after the others had arrived
      lowest = std::max(lowest, start - first);  // it arrived before the others left
      if (const auto& common = common_[sample.collective]) apart.push_back(end - *common);
      together.push_back(std::max<std::int64_t>(0, presence.first - presence.last));
    }
    clock.samples = apart.size();
    if (apart.empty()) return;
    clock.lowest_ns = clock.offset_ns + lowest;
    clock.highest_ns = clock.offset_ns + highest;
    clock.contradicts = lowest > highest;
    // Around its own median: what is the same in all collectives is no spread.
    const std::int64_t usual = lower_median(apart);
    for (std::int64_t& each : apart) each = std::abs(each - usual);
    const double spread = 3 * 1.4826 * static_cast<double>(lower_median(apart)) /
                          std::sqrt(static_cast<double>(apart.size()));
    clock.error_ns = std::max(kLeastErrorNs, lower_median(together) / kLeavingShare) +
                     static_cast<std::int64_t>(spread);
    if (!clock.contradicts)
      clock.error_ns = std::min(clock.error_ns, std::max({kLeastErrorNs, highest, -lowest}));
  }

  std::span<const RankSummary> ranks_;
  const Matching& matching_;
  std::vector<RankClock> clocks_;
  std::vector<std::vector<Sample>> samples_;
  std::vector<Presence> presence_;
  std::vector<std::optional<std::int64_t>> common_;
};

}  // namespace

std::int64_t RankClock::aligned(std::int64_t time_ns) const {
  const std::int64_t moved = time_ns - shift_ns;
  if (drift == 0) return moved;
  return moved -
         static_cast<std::int64_t>(std::llround(drift * static_cast<double>(time_ns - middle_ns)));
}

std::vector<RankClock> compute_clock_offsets(std::span<const RankSummary> ranks,
                                             const Matching& matching) {
  return OffsetFinder(ranks, matching).run();
}

}  // namespace lanescope::ranks

// Problem: each rank writes times of its own clock. Idea: nobody leaves a blocking collective before
// the last rank has arrived, and then all leave at nearly the same moment. So the ends of a collective,
// compared over many collectives, give the offset of two clocks; how unequally ranks leave limits how
// exact it is. What is certain is only an interval: a rank's start is before every other rank's end.
//
// Example: rank 1's ends are later than rank 0's by 1004, 1002 and 1003 us; the collectives took
// 160 us after the last arrival. Offset: 1003 us, error: 160 / 9 = 18 us and a little for the spread.
//
// A rank that leaves late because of its place in the ring leaves later the longer a collective takes. So
// collectives of several lengths tell how late it leaves, and the error becomes smaller.
//
// Collectives lie on the workers that own them, medians over the collectives of a rank are made on the
// rank's home, and all workers know all clocks: each step below is one exchange there and one back.
#include "lanescope/ranks/clock_offsets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/clock_pairs.h"
#include "lanescope/ranks/clock_samples.h"

namespace lanescope::ranks {
namespace {

using analysis::lower_median;

constexpr std::int64_t kDriftWindowNs = 5'000'000'000;
constexpr std::size_t kDriftSamples = 16, kMostDriftSamples = 64;
constexpr int kRefinements = 3;
constexpr std::int64_t kSmallBytes = 2048;                   // a loss, a norm, a flag
constexpr std::int64_t kQuickMessageNs = 40'000;             // NVLink takes less, sockets never do
constexpr std::int64_t kLongestShareNs = 1'000'000'000'000;  // longer than any collective

// Rows on their way from the owner of a collective to the home of one of its ranks, and back.
struct EndRow {
  std::uint32_t rank = 0;
  std::int64_t apart_ns = 0;  // how much later than the common end it left; on the way back: median
  std::int64_t together_ns = 0;  // how long all were present
};
struct DriftRow {
  std::uint32_t rank = 0, call = 0;
  std::int64_t end_ns = 0, reference_end_ns = 0;
};
struct DriftFit {
  std::uint32_t rank = 0;
  double drift = 0;
  std::int64_t middle_ns = 0, shift_ns = 0;
};
// What one collective says about one rank.
struct ProofRow {
  std::uint32_t rank = 0;
  std::int64_t most_ns = 0;      // it left after the others had arrived
  std::int64_t least_ns = 0;     // it arrived before the others left
  std::int64_t apart_ns = 0;     // how much later than the common end it left
  std::int64_t together_ns = 0;  // how long all were present
  std::int64_t small_ns = 0;     // of a small message, the shortest call: needs no common clock
};
struct JudgedClock {
  std::uint32_t rank = 0;
  RankClock clock;
  // About the collectives that give the offset: how long all ranks were present, and how long the small ones took.
  std::int64_t longest_ns = 0, longest_small_ns = 0;
  LeavingLine line;
};

class OffsetFinder {
 public:
  OffsetFinder(const JobLayout& layout, const Matching& matching, Communicator& workers)
      : layout_(layout), matching_(matching), workers_(workers), clocks_(layout.home.size()) {}

  std::vector<RankClock> run() {
    if (clocks_.empty()) return {};
    clocks_[0].known = true;
    spread();
    for (int i = 0; i < kRefinements; ++i) refine();
    fit_drifts();
    judge();
    link_clocks_by_pairs(layout_, matching_, workers_, &clocks_);
    return std::move(clocks_);
  }

 private:
  // Finds the median end of each collective, from the members whose clocks are known.
  void find_common_ends() {
    common_.assign(matching_.collectives.size(), {});
    std::vector<std::int64_t> ends;
    for (std::size_t i = 0; i < common_.size(); ++i) {
      if (!matching_.collectives[i].blocking) continue;
      ends.clear();
      for (const CollectiveMember& member : matching_.collectives[i].members)
        if (clocks_[member.rank].known) ends.push_back(clocks_[member.rank].aligned(member.end_ns));
      if (!ends.empty()) common_[i] = lower_median(ends);
    }
  }

  // For each rank of known or of unknown offset, the median difference to the common ends. A rank
  // without such a collective has no row.
  std::vector<EndRow> median_differences(bool known) {
    find_common_ends();
    std::vector<std::vector<EndRow>> to(workers_.workers());
    for (std::size_t i = 0; i < common_.size(); ++i) {
      if (!common_[i]) continue;
      const std::int64_t together = known ? ends_of(matching_.collectives[i]).together_ns() : 0;
      for (const CollectiveMember& member : matching_.collectives[i].members)
        if (clocks_[member.rank].known == known)
          to[layout_.home[member.rank]].push_back(
              {member.rank, member.end_ns - *common_[i], together});
    }
    std::map<std::uint32_t, std::vector<EndRow>> rows;
    for (const EndRow& row : exchange_rows(workers_, std::move(to))) rows[row.rank].push_back(row);
    std::vector<EndRow> medians;
    for (auto& [rank, of_rank] : rows) {
      keep_shortest(of_rank);
      medians.push_back({rank, median_of(of_rank, &EndRow::apart_ns)});
    }
    return share_rows(workers_, std::move(medians));
  }

  // From the reference to ranks that share a collective with a known one, until none is left.
  void spread() {
    for (bool grew = true; grew;) {
      grew = false;
      for (const EndRow& row : median_differences(false)) {
        clocks_[row.rank].known = true;
        clocks_[row.rank].shift_ns = row.apart_ns;
        grew = true;
      }
    }
  }

  // With all ranks known, each is compared with the median of all instead of with the reference
  // alone, whose own way of leaving would be in every offset.
  void refine() {
    std::vector<std::int64_t> shifts;
    for (const RankClock& clock : clocks_) shifts.push_back(clock.shift_ns);
    for (const EndRow& row : median_differences(true)) shifts[row.rank] = row.apart_ns;
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank)
      if (clocks_[rank].known) clocks_[rank].shift_ns = shifts[rank] - shifts[0];
  }

  void fit_drifts() {
    std::vector<std::vector<DriftRow>> to(workers_.workers());
    for (const MatchedCollective& collective : matching_.collectives) {
      if (!collective.blocking || collective.members.front().rank != 0) continue;
      const std::int64_t reference = collective.members.front().end_ns;
      for (const CollectiveMember& member : collective.members)
        if (member.rank != 0 && clocks_[member.rank].known)
          to[layout_.home[member.rank]].push_back(
              {member.rank, member.call, member.end_ns, reference});
    }
    std::map<std::uint32_t, std::vector<DriftRow>> rows;
    for (const DriftRow& row : exchange_rows(workers_, std::move(to)))
      rows[row.rank].push_back(row);
    std::vector<DriftFit> fits;
    for (auto& [rank, of_rank] : rows) {
      sort_rows(of_rank.begin(), of_rank.end(),
                [](const DriftRow& a, const DriftRow& b) { return a.call < b.call; });
      if (const auto fit = fit_drift(of_rank)) fits.push_back(*fit);
    }
    for (const DriftFit& fit : share_rows(workers_, std::move(fits))) {
      clocks_[fit.rank].drift = fit.drift;
      clocks_[fit.rank].middle_ns = fit.middle_ns;
      clocks_[fit.rank].shift_ns = fit.shift_ns;
    }
  }

  // The slope of the differences over time, when it explains more than the spread around it.
  std::optional<DriftFit> fit_drift(const std::vector<DriftRow>& rows) const {
    const RankClock& clock = clocks_[rows.front().rank];
    if (rows.size() < kDriftSamples) return std::nullopt;
    std::vector<std::pair<std::int64_t, std::int64_t>> points;
    const std::size_t each = (rows.size() + kMostDriftSamples - 1) / kMostDriftSamples;
    for (std::size_t i = 0; i < rows.size(); i += each)
      points.emplace_back(rows[i].end_ns, rows[i].end_ns - rows[i].reference_end_ns);
    if (points.size() < kDriftSamples) return std::nullopt;
    const std::int64_t span = points.back().first - points.front().first;
    if (span < kDriftWindowNs) return std::nullopt;
    std::vector<double> slopes;
    for (std::size_t i = 0; i < points.size(); ++i)
      for (std::size_t j = i + 1; j < points.size(); ++j)
        if (points[j].first > points[i].first)
          slopes.push_back(static_cast<double>(points[j].second - points[i].second) /
                           static_cast<double>(points[j].first - points[i].first));
    if (slopes.empty()) return std::nullopt;
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
    if (std::abs(slope) > 0.01 || lower_median(after) * 2 >= lower_median(before))
      return std::nullopt;
    return DriftFit{rows.front().rank, slope, center, level};
  }

  // The last two arrivals and the first two departures of a blocking collective.
  struct Ends {
    std::int64_t last = kNever, last_but_one = kNever;
    std::int64_t first = kForever, first_but_one = kForever;
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
    static constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
    std::int64_t together_ns() const { return last == kNever || first < last ? 0 : first - last; }
  };
  Ends ends_of(const MatchedCollective& collective) const {
    Ends ends;
    for (const CollectiveMember& member : collective.members) {
      const RankClock& clock = clocks_[member.rank];
      if (!clock.known) continue;
      const std::int64_t start = clock.aligned(member.start_ns), end = clock.aligned(member.end_ns);
      ends.last_but_one = std::max(ends.last_but_one, std::min(ends.last, start));
      ends.last = std::max(ends.last, start);
      ends.first_but_one = std::min(ends.first_but_one, std::max(ends.first, end));
      ends.first = std::min(ends.first, end);
    }
    return ends;
  }

  void judge() {
    find_common_ends();
    std::vector<std::vector<ProofRow>> to(workers_.workers());
    for (std::size_t i = 0; i < common_.size(); ++i) {
      if (!common_[i]) continue;
      const MatchedCollective& collective = matching_.collectives[i];
      const Ends ends = ends_of(collective);
      const std::int64_t small_ns = small_time(collective);
      for (const CollectiveMember& member : collective.members) {
        const RankClock& clock = clocks_[member.rank];
        if (!clock.known) continue;
        const std::int64_t start = clock.aligned(member.start_ns),
                           end = clock.aligned(member.end_ns);
        const std::int64_t last = start == ends.last ? ends.last_but_one : ends.last;
        const std::int64_t first = end == ends.first ? ends.first_but_one : ends.first;
        if (last == Ends::kNever || first == Ends::kForever) continue;
        to[layout_.home[member.rank]].push_back(
            {member.rank, end - last, start - first, end - *common_[i],
             std::max<std::int64_t>(0, ends.first - ends.last), small_ns});
      }
    }
    std::map<std::uint32_t, std::vector<ProofRow>> rows;
    for (const ProofRow& row : exchange_rows(workers_, std::move(to)))
      rows[row.rank].push_back(row);
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank) set_offset(rank);
    std::vector<JudgedClock> own;
    for (auto& [rank, of_rank] : rows) own.push_back(judged(rank, std::move(of_rank)));
    const std::vector<JudgedClock> all = share_rows(workers_, std::move(own));
    LeavingLine reference;
    for (const JudgedClock& each : all)
      if (each.rank == 0) reference = each.line;
    for (const JudgedClock& each : all)
      if (each.rank != 0) clocks_[each.rank] = placed(each, reference, layout_.on_cpu[each.rank]);
  }

  // How long the last one to arrive takes, whose call is the shortest. 0: the message is not small, its size is
  // unknown, or the network is quick.
  std::int64_t small_time(const MatchedCollective& collective) const {
    std::int64_t shortest = Ends::kForever;
    for (const CollectiveMember& member : collective.members) {
      const std::int64_t bytes = matching_.kinds[member.kind].bytes;
      if (bytes < 0 || bytes > kSmallBytes) return 0;
      shortest = std::min(shortest, member.end_ns - member.start_ns);
    }
    return shortest > kQuickMessageNs ? shortest : 0;
  }

  void set_offset(std::size_t rank) {
    RankClock& clock = clocks_[rank];
    if (!clock.known) return;
    clock.offset_ns =
        clock_offset_ns(layout_.origin_ns[rank], layout_.origin_ns[0], clock.shift_ns);
  }

  // What the collectives of a rank say; error_ns is the spread alone.
  JudgedClock judged(std::uint32_t rank, std::vector<ProofRow> rows) const {
    JudgedClock out;
    out.rank = rank;
    out.clock = clocks_[rank];
    RankClock& clock = out.clock;
    std::int64_t lowest = Ends::kNever, highest = Ends::kForever;
    for (const ProofRow& row : rows) {
      highest = std::min(highest, row.most_ns);
      lowest = std::max(lowest, row.least_ns);
    }
    clock.samples = rows.size();
    clock.lowest_ns = clock.offset_ns + lowest;
    clock.highest_ns = clock.offset_ns + highest;
    clock.contradicts = lowest > highest;
    out.line = fit_leaving_line(rows);
    keep_shortest(rows);
    out.longest_ns = rows.back().together_ns;
    for (const ProofRow& row : rows)
      out.longest_small_ns = std::max(out.longest_small_ns, row.small_ns);
    clock.error_ns = static_cast<std::int64_t>(spread_apart(rows));
    return out;
  }

  // How much later than the reference a rank leaves is within a share of the collective, either way. If that
  // grows with the length of collectives, it is between nothing and what the line through them says. A small message
  // over a slow network goes from rank to rank, and the first one leaves long before the last.
  static RankClock placed(const JudgedClock& judged, const LeavingLine& reference, bool on_cpu) {
    // CPU threads leave when the scheduler runs them, so on CPUs only what is certain counts (below).
    const std::int64_t share =
        on_cpu ? kLongestShareNs : std::max(kLeastClockErrorNs, judged.longest_ns / kLeavingShare);
    std::int64_t least = -share, most = share;
    if (!on_cpu && judged.line.known && reference.known) {
      const auto length = static_cast<double>(judged.longest_ns);
      const double later = (judged.line.slope - reference.slope) * length;
      const double unsure = std::max(static_cast<double>(kLeastClockErrorNs),
                                     3 * std::hypot(judged.line.error, reference.error) * length);
      const auto limit = static_cast<double>(share);
      least = std::llround(std::max(-limit, std::min(0.0, later) - unsure));
      most = std::llround(std::min(limit, std::max(0.0, later) + unsure));
    }
    // What small messages may add does not grow with their length, so no line shows it. The clocks of the ranks that the
    // interval is from may be as wrong.
    const std::int64_t small =
        on_cpu ? 0 : std::min(kLongestShareNs, judged.longest_small_ns / 4 * 7);
    least = std::min(least, -small);
    most = std::max(most, small);
    RankClock clock = judged.clock;
    clock.lowest_ns -= small;
    clock.highest_ns += small;
    clock.contradicts = clock.lowest_ns > clock.highest_ns;
    std::int64_t moved = -(least + (most - least) / 2);
    if (!clock.contradicts)
      moved =
          std::clamp(clock.offset_ns + moved, clock.lowest_ns, clock.highest_ns) - clock.offset_ns;
    clock.shift_ns += moved;
    clock.offset_ns += moved;
    // Two independent errors: how far the median is off, and how unequally the two ranks leave.
    clock.error_ns = std::llround(
        std::hypot(static_cast<double>(clock.error_ns),
                   static_cast<double>(std::max(kLeastClockErrorNs, (most - least) / 2))));
    if (!clock.contradicts)
      clock.error_ns =
          std::min(clock.error_ns, std::max({kLeastClockErrorNs, clock.highest_ns - clock.offset_ns,
                                             clock.offset_ns - clock.lowest_ns}));
    return clock;
  }

  const JobLayout& layout_;
  const Matching& matching_;
  Communicator& workers_;
  std::vector<RankClock> clocks_;                    // of all ranks, equal on all workers
  std::vector<std::optional<std::int64_t>> common_;  // of the collectives that this worker owns
};

}  // namespace

std::int64_t RankClock::aligned(std::int64_t time_ns) const {
  const std::int64_t moved = time_ns - shift_ns;
  if (drift == 0) return moved;
  return moved -
         static_cast<std::int64_t>(std::llround(drift * static_cast<double>(time_ns - middle_ns)));
}

std::vector<RankClock> compute_clock_offsets(const JobLayout& layout, const Matching& matching,
                                             Communicator& workers) {
  return OffsetFinder(layout, matching, workers).run();
}

}  // namespace lanescope::ranks

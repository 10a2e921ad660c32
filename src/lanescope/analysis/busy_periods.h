// When one track was busy: periods of each block of its slices, and all blocks together without a copy. Private to
// averages_by_track.cpp; interval_union.h answers for windows in any order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lanescope::analysis {

// Disjoint, in order. Nanoseconds.
class BusyPeriods {
 public:
  using Period = std::pair<std::int64_t, std::int64_t>;  // start, end

  void reserve(std::size_t count) { periods_.reserve(count); }
  // In order of start.
  void add(std::int64_t start_ns, std::int64_t end_ns) {
    if (end_ns <= start_ns) return;
    if (!periods_.empty() && start_ns <= periods_.back().second)
      periods_.back().second = std::max(periods_.back().second, end_ns);
    else
      periods_.emplace_back(start_ns, end_ns);
  }
  // Leaves out what lies before that time.
  void cut_before(std::int64_t time_ns);
  // Makes up_to_ns() possible; then nothing may be added.
  void finish();

  bool empty() const { return periods_.empty(); }
  std::span<const Period> periods() const { return periods_; }
  std::int64_t length_ns() const;
  // How long it was busy until then. `place`: where the last search ended; begin with 0.
  std::int64_t up_to_ns(std::int64_t time_ns, std::size_t& place) const;

 private:
  std::vector<Period> periods_;
  std::vector<std::int64_t> before_;  // their length before each
};

// Where the last search ended.
struct BusyPlace {
  std::size_t block = 0, period = 0;
};

// The periods of all blocks of a track. Borrows them.
class BusyTrack {
 public:
  // A block that comes after all that were added. Leaves out of it what these cover.
  void add(BusyPeriods& block);
  bool empty() const { return blocks_.empty(); }
  std::int64_t length_ns() const { return blocks_.empty() ? 0 : length_ns_; }
  std::span<const BusyPeriods* const> blocks() const { return blocks_; }

  // How long it was busy inside [start_ns, end_ns), of blocks that are finished: quick for windows that mostly come in order.
  std::int64_t within_ns(std::int64_t start_ns, std::int64_t end_ns, BusyPlace& place) const;
  // Calls use(start_ns, end_ns) for its periods, cut at both ends of the window.
  template <typename Use>
  void each_within(std::int64_t start_ns, std::int64_t end_ns, Use use) const {
    for (std::size_t b = block_at(start_ns); b < blocks_.size() && first_ns_[b] < end_ns; ++b) {
      const auto periods = blocks_[b]->periods();
      auto at = std::partition_point(periods.begin(), periods.end(),
                                     [&](const auto& period) { return period.second <= start_ns; });
      for (; at != periods.end() && at->first < end_ns; ++at)
        use(std::max(at->first, start_ns), std::min(at->second, end_ns));
    }
  }

 private:
  // The last block that begins until then, else the first.
  std::size_t block_at(std::int64_t time_ns) const;
  std::int64_t up_to_ns(std::int64_t time_ns, BusyPlace& place) const;

  std::vector<const BusyPeriods*> blocks_;       // none is empty
  std::vector<std::int64_t> first_ns_, before_;  // where each begins; the length of those before it
  std::int64_t length_ns_ = 0;
};

// How long any of the tracks was busy. The same for any number of threads.
std::int64_t busy_length_ns(std::span<const BusyTrack* const> tracks, unsigned threads);

}  // namespace lanescope::analysis

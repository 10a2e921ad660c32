#include "lanescope/analysis/repeats.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "lanescope/base/sort_rows.h"

namespace lanescope::analysis {
namespace {

// A symbol of the sequence, or a repeat that was folded into one.
struct Part {
  std::uint32_t symbol = 0, first = 0, end = 0;
  std::uint32_t repeat = Repeat::kNoRepeat;
};

class Folder {
 public:
  explicit Folder(std::span<const std::uint32_t> symbols) {
    parts_.reserve(symbols.size());
    for (std::uint32_t i = 0; i < symbols.size(); ++i) {
      parts_.push_back({symbols[i], i, i + 1, Repeat::kNoRepeat});
      next_symbol_ = std::max(next_symbol_, symbols[i] + 1);
    }
  }

  std::vector<Repeat> run() {
    do {
      std::size_t size = 1;
      while (size <= kLongestCell && size * kFewestRounds <= parts_.size() &&
             comparisons_ < kMostComparisons)
        size = fold(size) ? 1 : size + 1;  // what was folded may now be part of a shorter round
    } while (comparisons_ < kMostComparisons && fold_long_rounds());
    return std::move(repeats_);
  }

 private:
  // Rounds of more than kLongestCell parts. To try each size would take too long: only the distances
  // at which many stretches of kStretch parts come again are tried, the most frequent first.
  bool fold_long_rounds() {
    for (const std::size_t size : frequent_distances())
      if (fold(size)) return true;
    return false;
  }

  std::vector<std::size_t> frequent_distances() {
    constexpr std::size_t kStretch = 16, kMostSizes = 8;
    constexpr std::uint64_t kFactor = 0x9E37'79B9'7F4A'7C15;
    if (parts_.size() < kStretch + (kLongestCell + 1) * (kFewestRounds - 1)) return {};
    std::uint64_t hash = 0, first_factor = 1;  // hash: of the kStretch parts that end here
    for (std::size_t i = 1; i < kStretch; ++i) first_factor *= kFactor;
    std::unordered_map<std::uint64_t, std::size_t> last_seen;
    std::map<std::size_t, std::size_t> times;  // by distance
    comparisons_ += parts_.size();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (i >= kStretch) hash -= (parts_[i - kStretch].symbol + std::uint64_t{1}) * first_factor;
      hash = hash * kFactor + parts_[i].symbol + 1;
      if (i + 1 < kStretch) continue;
      const auto [seen, is_new] = last_seen.try_emplace(hash, i);
      if (is_new) continue;
      const std::size_t distance = i - seen->second;
      seen->second = i;
      if (distance > kLongestCell && distance * kFewestRounds <= parts_.size()) ++times[distance];
    }
    std::vector<std::pair<std::size_t, std::size_t>> ranked;
    for (const auto& [distance, count] : times)
      if (count >= kStretch) ranked.emplace_back(distance, count);
    sort_rows(ranked.begin(), ranked.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
    if (ranked.size() > kMostSizes) ranked.resize(kMostSizes);
    std::vector<std::size_t> sizes;
    for (const auto& [distance, count] : ranked) sizes.push_back(distance);
    return sizes;
  }

  // Folds rounds of `size` parts; false: there are none.
  bool fold(std::size_t size) {
    std::vector<Part> folded;
    std::size_t kept = 0;  // parts before it are in `folded`
    comparisons_ += parts_.size();
    for (auto run = next_run(size, 0); run.end > 0; run = next_run(size, kept)) {
      const std::size_t rounds = (run.end - run.first) / size + 1;
      folded.insert(folded.end(), parts_.begin() + static_cast<std::ptrdiff_t>(kept),
                    parts_.begin() + static_cast<std::ptrdiff_t>(run.first));
      folded.push_back(replace(run.first, size, rounds));
      kept = run.first + size * rounds;
    }
    if (kept == 0) return false;
    folded.insert(folded.end(), parts_.begin() + static_cast<std::ptrdiff_t>(kept), parts_.end());
    parts_ = std::move(folded);
    return true;
  }

  bool repeats_after(std::size_t size, std::size_t at) const {
    return parts_[at].symbol == parts_[at + size].symbol;
  }

  // Parts [first, end) that each come again `size` parts later; end 0: there are none.
  struct Run {
    std::size_t first = 0, end = 0;
  };
  // The next one from `from` on that is long enough for kFewestRounds. So long a run that begins at `from` or later holds the part
  // `least` - 1 further on: if that does not come again, no run begins before it, and most parts are never looked at.
  Run next_run(std::size_t size, std::size_t from) const {
    const std::size_t least = size * (kFewestRounds - 1);
    while (from + least + size <= parts_.size()) {
      Run run{from + least - 1, from + least};
      if (!repeats_after(size, run.first)) {
        from = run.end;
        continue;
      }
      while (run.first > from && repeats_after(size, run.first - 1)) --run.first;
      while (run.end + size < parts_.size() && repeats_after(size, run.end)) ++run.end;
      if (run.end - run.first >= least) return run;
      from = run.end + 1;
    }
    return {};
  }

  Part replace(std::size_t at, std::size_t size, std::size_t rounds) {
    const auto index = static_cast<std::uint32_t>(repeats_.size());
    const Part& last = parts_[at + size * rounds - 1];
    repeats_.push_back({parts_[at].first, last.end, static_cast<std::uint32_t>(rounds)});
    std::vector<std::uint32_t> cell{static_cast<std::uint32_t>(rounds)};
    for (std::size_t i = 0; i < size; ++i) cell.push_back(parts_[at + i].symbol);
    for (std::size_t i = 0; i < size * rounds; ++i)
      if (parts_[at + i].repeat != Repeat::kNoRepeat)
        repeats_[parts_[at + i].repeat].parent = index;
    const auto [symbol, is_new] = symbol_of_.try_emplace(std::move(cell), next_symbol_);
    if (is_new) ++next_symbol_;
    return {symbol->second, parts_[at].first, last.end, index};
  }

  std::vector<Part> parts_;
  std::vector<Repeat> repeats_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> symbol_of_;  // of rounds and a cell
  std::uint32_t next_symbol_ = 0;
  std::size_t comparisons_ = 0;
};

}  // namespace

std::vector<Repeat> find_repeats(std::span<const std::uint32_t> symbols) {
  return Folder(symbols).run();
}

}  // namespace lanescope::analysis

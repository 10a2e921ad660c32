#include "lanescope/analysis/iteration_work.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "lanescope/base/wide.h"

namespace lanescope::analysis {

std::vector<LaunchedPiece> find_pieces(const Trace& trace, const LaunchLinks& links) {
  std::vector<LaunchedPiece> pieces;
  if (links.device_work_count > 0 && links.launched_count * 2 <= links.device_work_count)
    return pieces;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const bool on_device = is_device_work(trace.kind(id)) && links.launch_of[i] != kNone<SliceId>;
    if (on_device)
      pieces.push_back({trace.start_ns(links.launch_of[i]), raw(trace.slices().name[i])});
    else if (links.device_work_count == 0 && trace.kind(id) == CategoryKind::kCpuOp)
      pieces.push_back({trace.start_ns(id), raw(trace.slices().name[i])});
  }
  std::sort(pieces.begin(), pieces.end(), [](const LaunchedPiece& a, const LaunchedPiece& b) {
    return std::tie(a.time_ns, a.name) < std::tie(b.time_ns, b.name);
  });
  return pieces;
}

bool Periods::repeat(const std::vector<std::int64_t>& bounds, bool any_length) const {
  return hold_most(bounds) && are_neighbours_alike(bounds, any_length);
}

bool Periods::hold_most(const std::vector<std::int64_t>& bounds) const {
  return bounds.size() > kFewestIterations && hold_most(bounds.front(), bounds.back());
}

bool Periods::hold_most(std::int64_t from_ns, std::int64_t to_ns) const {
  const std::size_t first = index_of(from_ns);
  const std::size_t held = index_of(to_ns) - first;
  return held * 3 >= (pieces_.size() - first) * 2 && held * 3 >= pieces_.size();
}

bool Periods::repeat_with_more(const std::vector<std::int64_t>& bounds) const {
  constexpr double kNearlyAll = 0.95;
  if (!hold_most(bounds)) return false;
  const std::size_t first = bounds.size() > kFewestIterations + 1 ? 1 : 0;
  std::vector<std::pair<std::size_t, std::size_t>> sizes;  // with the number of the period
  for (std::size_t i = first; i + 1 < bounds.size(); ++i)
    sizes.emplace_back(pieces_in(bounds[i], bounds[i + 1]), i);
  std::sort(sizes.begin(), sizes.end());
  const auto [usual_size, usual] = sizes[(sizes.size() - 1) / 2];
  if (usual_size < kFewestPieces) return false;
  std::size_t like_usual = 0;
  for (const auto& [size, i] : sizes) {
    like_usual += size * 4 <= usual_size * 5 ? 1 : 0;
    if (part_found_in({bounds[usual], bounds[usual + 1]}, {bounds[i], bounds[i + 1]}) < kNearlyAll)
      return false;
  }
  return like_usual * 2 >= sizes.size();
}

bool Periods::are_neighbours_alike(const std::vector<std::int64_t>& bounds, bool any_length) const {
  std::vector<std::size_t> at;
  for (const std::int64_t bound : bounds) at.push_back(index_of(bound));
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i + 1 < at.size(); ++i) sizes.push_back(at[i + 1] - at[i]);
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2),
                   sizes.end());
  if (sizes[sizes.size() / 2] < kFewestPieces) return false;
  const std::size_t first = at.size() > kFewestIterations + 1 ? 1 : 0;
  std::size_t pairs = 0, alike = 0;
  for (std::size_t i = first; i + 2 < at.size(); ++i, ++pairs)
    alike += (any_length ? have_same_kinds(at[i], at[i + 1], at[i + 2])
                         : are_alike(at[i], at[i + 1], at[i + 2]))
                 ? 1
                 : 0;
  return alike * 4 >= pairs * 3;
}

bool Periods::are_two_alike(const std::array<std::int64_t, 3>& bounds) const {
  const std::size_t a = index_of(bounds[0]), b = index_of(bounds[1]), c = index_of(bounds[2]);
  return std::min(b - a, c - b) >= kFewestPieces && hold_most(bounds[0], bounds[2]) &&
         (are_alike(a, b, c) || have_same_kinds(a, b, c));
}

bool Periods::begins_alike(std::int64_t start_ns, const std::vector<std::int64_t>& bounds) const {
  return bounds.size() >= 2 &&
         are_alike(index_of(start_ns), index_of(bounds[0]), index_of(bounds[1]));
}

bool Periods::hold_the_work(const std::vector<std::int64_t>& bounds) const {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 1; i + 1 < bounds.size(); ++i)
    sizes.push_back(index_of(bounds[i + 1]) - index_of(bounds[i]));
  if (sizes.size() < kFewestIterations) return true;
  std::sort(sizes.begin(), sizes.end());
  return sizes[sizes.size() / 2] * sizes.size() * 2 >=
         std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

bool Periods::hold_nearly_all(const std::vector<std::int64_t>& bounds) const {
  constexpr std::size_t kTenth = 10;
  const std::size_t held = index_of(bounds.back()) - index_of(bounds.front());
  return (pieces_.size() - held) * kTenth * (bounds.size() - 1) < held;
}

double Periods::part_held(std::int64_t from_ns, std::int64_t to_ns) const {
  return pieces_.empty()
             ? 0
             : static_cast<double>(pieces_in(from_ns, to_ns)) / static_cast<double>(pieces_.size());
}

double Periods::likeness(const std::vector<Iterations::Range>& ranges) const {
  double least = 1;
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
    const std::size_t a = index_of(ranges[i].start_ns), b = index_of(ranges[i].end_ns),
                      c = index_of(ranges[i + 1].end_ns);
    least =
        std::min(least, static_cast<double>(common_pieces(a, b, c)) /
                            static_cast<double>(std::max<std::size_t>(1, std::max(b - a, c - b))));
  }
  return least;
}

std::size_t Periods::pieces_in(std::int64_t from_ns, std::int64_t to_ns) const {
  return index_of(to_ns) - index_of(from_ns);
}

std::int64_t Periods::time_of_piece(std::int64_t from_ns, std::size_t n) const {
  return pieces_[index_of(from_ns) + n].time_ns;
}

bool Periods::are_alike_at_end(const std::vector<std::int64_t>& bounds) const {
  const std::size_t last = bounds.size() - 1;
  return are_alike(index_of(bounds[last - 2]), index_of(bounds[last - 1]), index_of(bounds[last]));
}

double Periods::part_found_in(std::pair<std::int64_t, std::int64_t> a,
                              std::pair<std::int64_t, std::int64_t> b) const {
  std::unordered_map<std::uint32_t, std::int64_t> left;
  for (std::size_t i = index_of(b.first); i < index_of(b.second); ++i) ++left[pieces_[i].name];
  std::size_t all = 0, found = 0;
  for (std::size_t i = index_of(a.first), end = index_of(a.second); i < end; ++i, ++all)
    if (left[pieces_[i].name]-- > 0) ++found;
  return all == 0 ? 1 : static_cast<double>(found) / static_cast<double>(all);
}

std::uint64_t Periods::symbol_of(std::int64_t from_ns, std::int64_t to_ns) const {
  constexpr std::uint64_t kFactor = 0x9E37'79B9'7F4A'7C15;
  std::uint64_t symbol = 0;
  for (std::size_t i = index_of(from_ns); i < index_of(to_ns); ++i)
    symbol = symbol * kFactor + pieces_[i].name + 1;
  return symbol;
}

std::size_t Periods::index_of(std::int64_t time_ns) const {
  const auto after = std::lower_bound(
      pieces_.begin(), pieces_.end(), time_ns,
      [](const LaunchedPiece& piece, std::int64_t time) { return piece.time_ns < time; });
  return static_cast<std::size_t>(after - pieces_.begin());
}

bool Periods::are_alike(std::size_t a, std::size_t b, std::size_t c) const {
  const std::size_t longer = std::max(b - a, c - b);
  if (longer == 0 || std::min(b - a, c - b) * 5 < longer * 4) return false;
  return common_pieces(a, b, c) * 5 >= longer * 4;
}

std::size_t Periods::common_pieces(std::size_t a, std::size_t b, std::size_t c) const {
  std::unordered_map<std::uint32_t, std::int64_t> left;
  for (std::size_t i = a; i < b; ++i) ++left[pieces_[i].name];
  std::size_t common = 0;
  for (std::size_t i = b; i < c; ++i)
    if (left[pieces_[i].name]-- > 0) ++common;
  return common;
}

bool Periods::have_same_kinds(std::size_t a, std::size_t b, std::size_t c) const {
  constexpr std::size_t kLonger = 4;
  if (std::max(b - a, c - b) >= kLonger * std::min(b - a, c - b)) return false;
  std::unordered_map<std::uint32_t, std::uint8_t> kinds;  // 1: in the first, 2: in the second
  for (std::size_t i = a; i < b; ++i) kinds[pieces_[i].name] |= 1;
  for (std::size_t i = b; i < c; ++i) kinds[pieces_[i].name] |= 2;
  std::size_t in_both = 0;
  for (const auto& [kind, in] : kinds) in_both += in == 3 ? 1 : 0;
  return in_both * 5 >= kinds.size() * 4;
}

bool hold_the_time(const std::vector<std::int64_t>& bounds) {
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 1; i + 1 < bounds.size(); ++i) lengths.push_back(bounds[i + 1] - bounds[i]);
  if (lengths.size() < kFewestIterations) return true;
  std::sort(lengths.begin(), lengths.end());
  lengths.pop_back();
  const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const auto count = static_cast<std::int64_t>(lengths.size());
  return wide(lengths[lengths.size() / 2]) * count * 2 >= total;
}

// By Knuth, Morris and Pratt: the longest proper prefix of each prefix that also ends it.
std::size_t shortest_period(const std::vector<std::uint64_t>& text) {
  if (text.empty()) return 0;
  std::vector<std::size_t> border(text.size(), 0);
  for (std::size_t i = 1; i < text.size(); ++i) {
    std::size_t length = border[i - 1];
    while (length > 0 && text[i] != text[length]) length = border[length - 1];
    border[i] = text[i] == text[length] ? length + 1 : 0;
  }
  return text.size() - border.back();
}

bool is_long_at_end(const std::vector<std::int64_t>& bounds) {
  const std::size_t last = bounds.size() - 1;
  return last >= 3 && bounds[last] - bounds[last - 1] > bounds[last - 1] - bounds[last - 3];
}

}  // namespace lanescope::analysis

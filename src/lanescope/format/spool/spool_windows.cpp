#include "lanescope/format/spool/spool_windows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/codec/record_options.h"

namespace lanescope::format {
namespace {

std::uint64_t start_in_ring(const SpoolIndex& index, const SpoolWindow& window,
                            std::uint64_t newest, const TickMap& clock) {
  const auto newest_ns = clock.unix_ns(newest);
  std::int64_t start_ns = 0;
  if (!newest_ns || window.last_ns > std::numeric_limits<std::int64_t>::max() ||
      __builtin_sub_overflow(*newest_ns, static_cast<std::int64_t>(window.last_ns), &start_ns))
    return window.start;  // damage
  return std::max({window.start, clock.ticks_at(start_ns), index.ring_lost_until});
}

std::uint64_t end_of(const SpoolWindow& window, std::uint64_t last_tick) {
  return window.stop != 0 ? window.stop : std::max(last_tick, window.start);
}

bool has_records(const SpoolIndex& index) {
  return !index.record_chunks.empty() || !index.activity_chunks.empty();
}

// The longest GPU part of each session and cycle that has any.
class LongestParts {
 public:
  LongestParts(std::span<const SpoolWindow> windows, std::uint64_t last_tick) {
    for (const SpoolWindow& window : windows) {
      if (!(window.options & LANESCOPE_RECORD_GPU_PART)) continue;
      Part& longest = parts_[{window.session, window.cycle}];
      const std::uint64_t length = end_of(window, last_tick) - window.start;
      if (!longest.window || length > longest.length) longest = {&window, length};
    }
  }
  bool leave_out(const SpoolWindow& window) const {
    const auto found = parts_.find({window.session, window.cycle});
    return found != parts_.end() && found->second.window != &window;
  }

 private:
  struct Part {
    const SpoolWindow* window = nullptr;
    std::uint64_t length = 0;  // ticks
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Part> parts_;
};

}  // namespace

SpoolWindows::SpoolWindows(const SpoolIndex& index, std::optional<std::uint32_t> session,
                           std::optional<std::uint32_t> cycle, std::uint64_t last_tick,
                           const TickMap* clock, std::uint32_t first_cycle) {
  std::unordered_map<std::uint32_t, std::uint64_t> newest;  // by session
  for (const SpoolWindow& window : index.windows)
    newest[window.session] = std::max(newest[window.session], end_of(window, last_tick));
  const LongestParts parts(index.windows, last_tick);
  std::vector<Window> found;
  for (const SpoolWindow& window : index.windows) {
    if (session && window.session != *session) continue;
    if ((cycle && window.cycle != *cycle) || window.cycle < first_cycle) continue;
    if (parts.leave_out(window)) continue;
    options_ |= window.options;
    const std::uint64_t stop = end_of(window, last_tick);
    has_ring_ |= window.last_ns != 0;
    const std::uint64_t start = window.last_ns == 0 || !clock
                                    ? window.start
                                    : start_in_ring(index, window, newest[window.session], *clock);
    if (start <= stop) found.push_back({start, stop, window.start});
  }
  if (index.windows.empty() && !session && !cycle && has_records(index))
    found.push_back({0, last_tick, 0});  // opened at 0 as well
  set(std::move(found));
}

SpoolWindows SpoolWindows::whole(const SpoolIndex& index, std::uint64_t last_tick) {
  std::vector<Window> found;
  for (const SpoolWindow& window : index.windows)
    found.push_back({window.start, end_of(window, last_tick), window.start});
  if (index.windows.empty() && has_records(index)) found.push_back({0, last_tick, 0});
  SpoolWindows windows;
  windows.set(std::move(found));
  return windows;
}

void SpoolWindows::set(std::vector<Window> found) {
  sort_rows(found.begin(), found.end(),
            [](const Window& a, const Window& b) { return a.start < b.start; });
  for (const Window& window : found) {
    if (!windows_.empty() && window.start <= windows_.back().stop) {
      windows_.back().stop = std::max(windows_.back().stop, window.stop);
      windows_.back().opened = std::min(windows_.back().opened, window.opened);
    } else {
      windows_.push_back(window);
    }
  }
}

const SpoolWindows::Window* SpoolWindows::at(std::uint64_t tick) const {
  if (last_ < windows_.size() && windows_[last_].start <= tick && tick <= windows_[last_].stop)
    return &windows_[last_];
  const auto after = std::upper_bound(
      windows_.begin(), windows_.end(), tick,
      [](std::uint64_t value, const Window& window) { return value < window.start; });
  if (after == windows_.begin() || tick > std::prev(after)->stop) return nullptr;
  last_ = static_cast<std::size_t>(after - windows_.begin()) - 1;
  return &windows_[last_];
}

const SpoolWindows::Window* SpoolWindows::reached(std::uint64_t begin, std::uint64_t end) const {
  auto window =
      std::upper_bound(windows_.begin(), windows_.end(), begin,
                       [](std::uint64_t value, const Window& w) { return value < w.start; });
  // Windows of other sessions may come before it: a few, unless the file is damaged.
  for (int looked_at = 0; looked_at < 16 && window != windows_.end(); ++looked_at, ++window)
    if (window->opened <= begin && end >= window->start) return &*window;
  return nullptr;
}

const SpoolWindows::Window* SpoolWindows::first_start(std::uint64_t from, std::uint64_t to) const {
  const auto window =
      std::lower_bound(windows_.begin(), windows_.end(), from,
                       [](const Window& w, std::uint64_t value) { return w.start < value; });
  return window != windows_.end() && window->start <= to ? &*window : nullptr;
}

}  // namespace lanescope::format

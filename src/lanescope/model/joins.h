// The two steps by which device work finds its operator: a number finds the API call, and the time
// of the call finds the range around it. Files and recordings keep their rows in different forms,
// so both use these templates. Where they differ, and why: docs/decisions/launch_joins.md.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace lanescope {

// `entries` have an `id` and a `start_ns`, and are sorted by both. Of the entries with that id it
// returns the last that starts at or before the time; if all start later, the first one; nullptr:
// none has the id. Ids repeat (they wrap, and a call may be recorded twice), so time decides.
template <typename Entry, typename Id>
const Entry* find_by_id_and_time(std::span<const Entry> entries, Id id, std::int64_t time_ns) {
  const auto after = std::upper_bound(entries.begin(), entries.end(), std::pair(id, time_ns),
                                      [](const auto& key, const Entry& entry) {
                                        return key < std::pair(Id{entry.id}, entry.start_ns);
                                      });
  if (after != entries.begin() && std::prev(after)->id == id) return &*std::prev(after);
  return after != entries.end() && after->id == id ? &*after : nullptr;
}

// The same for keys that mostly come in order: `place` is where the last search ended, and the next
// one begins there. Begin with 0; a key out of order costs a search in all entries.
template <typename Entry, typename Id>
const Entry* find_by_id_and_time(std::span<const Entry> entries, Id id, std::int64_t time_ns,
                                 std::size_t& place) {
  constexpr std::size_t kMostSteps = 8;
  const std::pair key(id, time_ns);
  const auto is_after = [&](std::size_t i) {
    return key < std::pair(Id{entries[i].id}, entries[i].start_ns);
  };
  std::size_t after = place;
  const std::size_t last = std::min(place + kMostSteps, entries.size());
  while (after < last && !is_after(after)) ++after;
  const bool is_found =
      (after == entries.size() || is_after(after)) && (after == 0 || !is_after(after - 1));
  if (!is_found) {
    const auto found = std::partition_point(
        entries.begin(), entries.end(),
        [&](const Entry& entry) { return std::pair(Id{entry.id}, entry.start_ns) <= key; });
    after = static_cast<std::size_t>(found - entries.begin());
  }
  place = after;
  if (after > 0 && entries[after - 1].id == id) return &entries[after - 1];
  return after < entries.size() && entries[after].id == id ? &entries[after] : nullptr;
}

// The open ranges of one thread. Push ranges in order of start, and ask for moments in order of
// time. A range on top that has ended stays ended, so each range is pushed and popped once. Ranges
// that overlap without nesting may leave ended ones below the top. `EndOf` gives the end of a range
// in ns; ends are exclusive.
template <typename Range, typename EndOf>
class OpenRangeStack {
 public:
  explicit OpenRangeStack(EndOf end_of) : end_of_(std::move(end_of)) {}
  void clear() { open_.clear(); }
  // First removes those that have ended; else the ranges of a loop would pile up.
  void push(Range range, std::int64_t start_ns) {
    drop_ended(start_ns);
    open_.push_back(range);
  }
  // The open range that started last; nullptr: none is open.
  const Range* top(std::int64_t time_ns) {
    drop_ended(time_ns);
    return open_.empty() ? nullptr : &open_.back();
  }
  // In order of start, ended ones among them.
  std::span<const Range> all() const { return open_; }

 private:
  void drop_ended(std::int64_t time_ns) {
    while (!open_.empty() && end_of_(open_.back()) <= time_ns) open_.pop_back();
  }
  EndOf end_of_;
  std::vector<Range> open_;
};

}  // namespace lanescope

// sort_rows(first, last, less): std::stable_sort for rows that are shown or ranked. Its code is small: one merge sort for all
// types, and each use adds a comparison and a loop that moves rows. With std::stable_sort and std::sort, the compiler spent a tenth
// of a build on 300 copies of them (docs/decisions/build_time.md). Each comparison costs an indirect call, so code that sorts the
// many events of a trace uses std::sort or sort_shared.h.
//
// Equal rows keep their order. The rows must be contiguous and movable. Memory: two indices for each row.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace lanescope {

using RowComesBefore = bool (*)(const void* rows, const void* less, std::size_t a, std::size_t b);

// order[i]: the index of the row that belongs at place i. Empty if the rows are in order already.
std::vector<std::size_t> order_of_rows(std::size_t count, const void* rows, const void* less,
                                       RowComesBefore before);

template <class Iterator, class Less>
void sort_rows(Iterator first, Iterator last, Less less) {
  if (first == last) return;
  auto* const rows = std::to_address(first);
  using Row = std::remove_pointer_t<std::remove_const_t<decltype(rows)>>;
  std::vector<std::size_t> order = order_of_rows(
      static_cast<std::size_t>(last - first), rows, &less,
      [](const void* all, const void* compare, std::size_t a, std::size_t b) {
        const Row* const row = static_cast<const Row*>(all);
        return static_cast<bool>((*static_cast<const Less*>(compare))(row[a], row[b]));
      });
  for (std::size_t start = 0; start < order.size(); ++start) {
    if (order[start] == start) continue;
    Row held = std::move(rows[start]);  // follows one cycle of the permutation
    std::size_t place = start;
    for (std::size_t from = order[place]; from != start; from = order[place]) {
      rows[place] = std::move(rows[from]);
      order[place] = place;
      place = from;
    }
    rows[place] = std::move(held);
    order[place] = place;
  }
}

}  // namespace lanescope

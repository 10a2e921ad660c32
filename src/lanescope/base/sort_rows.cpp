#include "lanescope/base/sort_rows.h"

#include <algorithm>
#include <numeric>

namespace lanescope {

namespace {

constexpr std::size_t kInsertionRun =
    8;  // runs of this length are sorted by insertion, then merged

}  // namespace

std::vector<std::size_t> order_of_rows(std::size_t count, const void* rows, const void* less,
                                       RowComesBefore before) {
  std::size_t in_order = 1;
  while (in_order < count && !before(rows, less, in_order, in_order - 1)) ++in_order;
  if (in_order >= count) return {};
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t run = 0; run < count; run += kInsertionRun) {
    const std::size_t end = std::min(run + kInsertionRun, count);
    for (std::size_t next = run + 1; next < end; ++next) {
      const std::size_t row = order[next];
      std::size_t place = next;
      for (; place > run && before(rows, less, row, order[place - 1]); --place)
        order[place] = order[place - 1];
      order[place] = row;
    }
  }
  std::vector<std::size_t> left;
  for (std::size_t width = kInsertionRun; width < count; width *= 2) {
    for (std::size_t low = 0; low + width < count; low += 2 * width) {
      const std::size_t middle = low + width;
      const std::size_t end = std::min(middle + width, count);
      if (!before(rows, less, order[middle], order[middle - 1])) continue;
      left.assign(order.begin() + static_cast<std::ptrdiff_t>(low),
                  order.begin() + static_cast<std::ptrdiff_t>(middle));
      std::size_t place = low;
      std::size_t right = middle;
      for (const std::size_t row : left) {
        while (right < end && before(rows, less, order[right], row))
          order[place++] = order[right++];
        order[place++] = row;
      }
    }
  }
  return order;
}

}  // namespace lanescope

// How fast the level-of-detail index of `lanescope view` is made and answers, on the rows of a real trace that are repeated until
// they hold as many slices as wanted: the shape of the rows stays real, the length of the recording grows.
//
//   view_levels TRACE SLICES...     for each number: bytes a slice, slices a second, milliseconds a picture at five zooms
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "lanescope/format/read_trace.h"
#include "lanescope/view/lanes.h"

namespace {

using lanescope::view::Lane;
using lanescope::view::Lanes;
using lanescope::view::LevelCell;
using lanescope::view::LevelIndex;
using lanescope::view::LevelSlice;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostRows = 40;  // what a screen shows
constexpr std::int64_t kPixels = 2048;
constexpr int kPictures = 200;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

struct Made {
  LevelIndex index;
  std::int64_t span_ns = 0;
  double build_ms = 0;
};

Made repeated(const Lanes& lanes, const std::vector<std::size_t>& rows, std::size_t wanted) {
  std::size_t one = 0;
  for (const std::size_t row : rows) one += lanes.index().size(row);
  const std::size_t times = std::max<std::size_t>(1, wanted / one);
  const std::int64_t span_ns = lanes.end_ns() - lanes.origin_ns() + 1000;
  Made made;
  made.span_ns = span_ns * static_cast<std::int64_t>(times);
  made.index.reserve(one * times);
  for (const std::size_t row : rows) {
    std::vector<LevelSlice> slices;  // read before the clock runs
    for (std::size_t i = 0; i < lanes.index().size(row); ++i)
      slices.push_back(lanes.index().slice(row, i));
    const Clock::time_point begin = Clock::now();
    made.index.begin_row();
    for (std::size_t time = 0; time < times; ++time)
      for (LevelSlice slice : slices) {
        slice.start_ns += static_cast<std::int64_t>(time) * span_ns - lanes.origin_ns();
        made.index.add(slice);
      }
    made.index.end_row();
    made.build_ms += milliseconds_since(begin);
  }
  return made;
}

void measure(const Lanes& lanes, const std::vector<std::size_t>& rows, std::size_t wanted) {
  const Made made = repeated(lanes, rows, wanted);
  const auto count = static_cast<double>(made.index.slice_count());
  fmt::print(
      "{} slices, {} rows: index {:.2f} bytes a slice, made at {:.0f} million slices a second\n",
      made.index.slice_count(), rows.size(), static_cast<double>(made.index.index_bytes()) / count,
      count / made.build_ms / 1000);
  std::mt19937_64 random(1);
  for (const double part : {1.0, 0.1, 0.01, 0.001, 0.0001}) {
    const auto length = std::max<std::int64_t>(
        kPixels, static_cast<std::int64_t>(static_cast<double>(made.span_ns) * part));
    std::int64_t step = 1;
    while (step * kPixels < length) step *= 2;
    std::vector<double> times;
    std::size_t cells_count = 0;
    for (int picture = 0; picture < kPictures; ++picture) {
      const std::int64_t t0 =
          length >= made.span_ns
              ? 0
              : static_cast<std::int64_t>(random() %
                                          static_cast<std::uint64_t>(made.span_ns - length));
      const Clock::time_point begin = Clock::now();
      for (std::size_t row = 0; row < rows.size(); ++row) {
        std::vector<LevelCell> cells;
        made.index.cells(row, t0, t0 + length, step, 2 * kPixels, cells);
        cells_count += cells.size();
      }
      times.push_back(milliseconds_since(begin));
    }
    std::sort(times.begin(), times.end());
    fmt::print(
        "  {:>7.2f} % of the recording: median {:.2f} ms, p95 {:.2f} ms, longest {:.2f} ms, {} "
        "cells a picture\n",
        part * 100, times[times.size() / 2], times[times.size() * 95 / 100], times.back(),
        cells_count / kPictures);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print("usage: view_levels TRACE SLICES...\n");
    return 2;
  }
  const auto trace = lanescope::format::read_trace(argv[1]);
  if (!trace) {
    fmt::print("{}\n", trace.error().message);
    return 2;
  }
  const auto facts = lanescope::explain::gather_facts(*trace);
  if (!facts) {
    fmt::print("{}\n", facts.error().message);
    return 2;
  }
  const Lanes lanes(*facts);
  std::vector<std::size_t> rows;
  for (const Lane& lane : lanes.lanes())
    for (std::uint32_t row = 0; row < lane.row_count && rows.size() < kMostRows; ++row)
      rows.push_back(lane.first_row + row);
  for (int i = 2; i < argc; ++i) measure(lanes, rows, std::strtoull(argv[i], nullptr, 10));
  return 0;
}

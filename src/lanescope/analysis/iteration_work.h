// The work of a recording in order of its launch, and how alike the work of two periods is. Private
// to the files that find iterations.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lanescope/analysis/iterations.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

inline constexpr std::size_t kFewestIterations = 3;
inline constexpr std::size_t kFewestPieces = 3;  // of work in an iteration

struct LaunchedPiece {
  std::int64_t time_ns;  // of the launch call; without a device, of the operator's start
  std::uint32_t name;
};

// In order of time. Empty: it is unknown when the work was launched. O(slices log slices).
std::vector<LaunchedPiece> find_pieces(const Trace& trace, const LaunchLinks& links);

// Bounds are times in order: each period lies between two neighbours of them. Borrows the pieces.
class Periods {
 public:
  explicit Periods(const std::vector<LaunchedPiece>& pieces) : pieces_(pieces) {}

  // Do the bounds cut most of the work from the first one on, and at least a third of all, into
  // periods of nearly the same work? With `any_length`: of work of the same kinds.
  bool repeat(const std::vector<std::int64_t>& bounds, bool any_length = false) const;
  // Is three quarters of the neighbours' work nearly the same, and has the middle period
  // kFewestPieces or more? The first one may be start-up where there are more than three.
  bool are_neighbours_alike(const std::vector<std::int64_t>& bounds, bool any_length = false) const;
  // Do they cut as much of the work into periods of which half are nearly the same, and all others hold that, too, and more? An
  // evaluation after every sixth step of an optimizer makes two of six neighbours unlike.
  bool repeat_with_more(const std::vector<std::int64_t>& bounds) const;
  // Two periods with most of the work, which is nearly the same or of the same kinds.
  bool are_two_alike(const std::array<std::int64_t, 3>& bounds) const;
  // Does the work before the first bound look like that of the first period?
  bool begins_alike(std::int64_t start_ns, const std::vector<std::int64_t>& bounds) const;
  // Would periods with the work of the middle one hold half of it? Otherwise they are a few waits
  // close together, next to a period in which the program does its work.
  bool hold_the_work(const std::vector<std::int64_t>& bounds) const;
  // Is less work outside of the periods than a tenth of one? Around layers there is more: embeddings, a head.
  bool hold_nearly_all(const std::vector<std::int64_t>& bounds) const;
  // The part of all work that is launched in this time.
  double part_held(std::int64_t from_ns, std::int64_t to_ns) const;
  // The part of the pieces of the two least alike neighbours that both have.
  double likeness(const std::vector<Iterations::Range>& ranges) const;
  std::size_t all_pieces() const { return pieces_.size(); }
  std::size_t pieces_in(std::int64_t from_ns, std::int64_t to_ns) const;
  // When the n-th piece (from 0) after that time is launched, which must be there.
  std::int64_t time_of_piece(std::int64_t from_ns, std::size_t n) const;
  // Is the work of the last period like that of the one before?
  bool are_alike_at_end(const std::vector<std::int64_t>& bounds) const;
  // The part of the pieces of [a.first, a.second) that have an equal in [b.first, b.second). Both are times.
  double part_found_in(std::pair<std::int64_t, std::int64_t> a,
                       std::pair<std::int64_t, std::int64_t> b) const;
  // Equal for periods that hold the same pieces in the same order.
  std::uint64_t symbol_of(std::int64_t from_ns, std::int64_t to_ns) const;

 private:
  std::size_t index_of(std::int64_t time_ns) const;
  bool hold_most(const std::vector<std::int64_t>& bounds) const;
  bool hold_most(std::int64_t from_ns, std::int64_t to_ns) const;
  // Four fifths of the pieces of the longer one of [a, b), [b, c) have an equal in the other one.
  bool are_alike(std::size_t a, std::size_t b, std::size_t c) const;
  // How many pieces of [b, c) have an equal in [a, b).
  std::size_t common_pieces(std::size_t a, std::size_t b, std::size_t c) const;
  // Four fifths of the kinds of pieces of either stretch are in the other one, and neither is four times as long.
  bool have_same_kinds(std::size_t a, std::size_t b, std::size_t c) const;

  const std::vector<LaunchedPiece>& pieces_;
};

// Would iterations that are all as long as the middle one hold half of the time? Otherwise they are
// rounds of a loop inside of real iterations, which lie between some of them. The first may be
// start-up, and one may be a checkpoint.
bool hold_the_time(const std::vector<std::int64_t>& bounds);

// The least n of which each element equals the n-th before it, from the n-th on; the size, if there is none. O(size).
std::size_t shortest_period(const std::vector<std::uint64_t>& text);

// Does the last one take more than the two before it together?
bool is_long_at_end(const std::vector<std::int64_t>& bounds);

}  // namespace lanescope::analysis

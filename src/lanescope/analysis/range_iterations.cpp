#include "lanescope/analysis/range_iterations.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/iteration_marks.h"
#include "lanescope/base/wide.h"
#include "lanescope/model/names_where.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::analysis {
namespace {

constexpr std::size_t kFewestNamedIterations = 2;

struct RangesOfThread {
  std::vector<SliceId> ranges;                // in order of time, disjoint
  std::vector<std::int64_t> optimizer_steps;  // when they begin, at any depth
  bool has_own = false;                       // some range is the program's own
  std::vector<SliceId> operators;             // those in no other operator
  std::int64_t last_operator_ns = std::numeric_limits<std::int64_t>::min();  // its end

  std::int64_t first_operator_ns(const Trace& trace) const {
    return operators.empty() ? trace.start_ns(ranges.front()) : trace.start_ns(operators.front());
  }
  // When the operator began in which this time lies, or the last one before it.
  std::int64_t operator_start_ns(const Trace& trace, std::int64_t time_ns) const {
    const auto after = std::upper_bound(
        operators.begin(), operators.end(), time_ns,
        [&](std::int64_t time, SliceId each) { return time < trace.start_ns(each); });
    return after == operators.begin() ? time_ns : trace.start_ns(*std::prev(after));
  }
};

// The outermost ranges of the program, of optimizers and of the loader that lie in none of `opened`.
RangesOfThread ranges_of(const Trace& trace, const Track& track,
                         const std::vector<SliceId>& opened) {
  RangesOfThread found;
  NamesWhere is_part(trace, is_part_of_iteration);
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.kind(id) == CategoryKind::kCpuOp) {
      if (trace.start_ns(id) >= found.last_operator_ns) found.operators.push_back(id);
      found.last_operator_ns = std::max(found.last_operator_ns, trace.end_ns(id));
    }
    if (trace.kind(id) != CategoryKind::kUserAnnotation) continue;
    const std::string_view name = trace.name(id);
    const bool is_loops = is_step_of_loop(name);
    if (names::is_optimizer_step(name)) found.optimizer_steps.push_back(trace.start_ns(id));
    if ((!is_loops && is_part(id)) || std::find(opened.begin(), opened.end(), id) != opened.end())
      continue;
    if (!found.ranges.empty() && trace.start_ns(id) < trace.end_ns(found.ranges.back())) continue;
    found.ranges.push_back(id);
    found.has_own = found.has_own || !is_loops;
  }
  return found;
}

// How many ranges the shortest word has that the text repeats twice or more; 0: there is none.
std::size_t word_of(const Trace& trace, const std::vector<SliceId>& ranges) {
  std::vector<std::uint64_t> text;
  for (const SliceId range : ranges) text.push_back(raw(trace.slices().name[raw(range)]));
  const std::size_t size = shortest_period(text);
  return size * kFewestNamedIterations <= text.size() ? size : 0;
}

// A range in each layer of a model, such as "moe": its neighbours are equal, and so is the work between them, attention. After
// every n-th, another layer does not follow, but the head and the next batch. Returns n; 0: it is not so.
std::size_t ranges_of_a_pass(const Trace& trace, const Periods& periods,
                             const std::vector<SliceId>& ranges) {
  std::vector<std::uint64_t> between;
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i)
    between.push_back(periods.symbol_of(trace.end_ns(ranges[i]), trace.start_ns(ranges[i + 1])));
  const std::size_t size = shortest_period(between);
  if (size < 2 || size * kFewestNamedIterations > ranges.size()) return 0;
  const auto pieces_after = [&](std::size_t i) {
    return periods.pieces_in(trace.end_ns(ranges[i]), trace.start_ns(ranges[i + 1]));
  };
  for (std::size_t i = 0; i + 1 < size; ++i)
    if (between[i] != between.front()) return 0;
  return pieces_after(0) >= kFewestPieces && pieces_after(size - 1) > pieces_after(0) ? size : 0;
}

// Nine tenths of the time between the bounds is in ranges.
bool cover_the_time(const Trace& trace, const std::vector<SliceId>& ranges,
                    const std::vector<std::int64_t>& bounds) {
  std::int64_t covered_ns = 0;
  for (const SliceId range : ranges)
    if (trace.start_ns(range) < bounds.back()) covered_ns += trace.dur_ns(range);
  return wide(covered_ns) * 10 >= wide(bounds.back() - bounds.front()) * 9;
}

// Each iteration has as many steps of an optimizer as the others. Otherwise they are parts of a training step, such as its micro
// batches.
bool step_equally(const std::vector<std::int64_t>& optimizer_steps,
                  const std::vector<std::int64_t>& bounds) {
  const auto steps_until = [&](std::int64_t time_ns) {
    return std::lower_bound(optimizer_steps.begin(), optimizer_steps.end(), time_ns) -
           optimizer_steps.begin();
  };
  for (std::size_t i = 0; i + 2 < bounds.size(); ++i)
    if (steps_until(bounds[i + 1]) - steps_until(bounds[i]) !=
        steps_until(bounds[i + 2]) - steps_until(bounds[i + 1]))
      return false;
  return true;
}

// What a thread does between two words is in no range: first it ends the one before (reads a loss), then it begins the next (copies a
// batch). The work before the first word shows what a begin is: the last pieces of work between two words are the same. The pieces
// before them are the end of a word. If the same pieces follow the last word, they are its end.
class Gaps {
 public:
  Gaps(const Trace& trace, const Periods& periods, const RangesOfThread& thread, std::size_t size)
      : trace_(trace), periods_(periods), thread_(thread), size_(size) {
    const std::int64_t first_ns = thread.first_operator_ns(trace),
                       first_range_ns = trace.start_ns(thread.ranges.front());
    const std::size_t begin =
        first_ns < first_range_ns ? periods.pieces_in(first_ns, first_range_ns) : 0;
    const std::size_t pieces = periods.pieces_in(end_of_word(0), start_of_word(1));
    if (begin == 0 || begin > pieces) return;
    const std::int64_t begin_ns = periods.time_of_piece(end_of_word(0), pieces - begin);
    if (periods.symbol_of(begin_ns, start_of_word(1)) ==
        periods.symbol_of(thread.first_operator_ns(trace), start_of_word(0)))
      begin_ = begin;
  }

  // When the word begins with the work before its first range; the start of that range, if there is none.
  std::int64_t begin_of_word(std::size_t i) const {
    if (begin_ == 0) return start_of_word(i);
    if (i == 0) return thread_.first_operator_ns(trace_);
    const std::int64_t gap_ns = end_of_word(i - 1);
    const std::size_t pieces = periods_.pieces_in(gap_ns, start_of_word(i));
    if (pieces < begin_) return start_of_word(i);
    return std::max(
        gap_ns, thread_.operator_start_ns(trace_, periods_.time_of_piece(gap_ns, pieces - begin_)));
  }

  // When the last word ends with the work after its last range.
  std::int64_t end_of_last(std::size_t i) const {
    const std::int64_t from_ns = end_of_word(i), to_ns = thread_.last_operator_ns;
    const std::size_t pieces = from_ns < to_ns ? periods_.pieces_in(from_ns, to_ns) : 0;
    const std::size_t of_gap = periods_.pieces_in(end_of_word(0), start_of_word(1)) - begin_;
    if (pieces == 0 || pieces != of_gap) return from_ns;
    const std::int64_t gap_end_ns =
        begin_ == 0 ? start_of_word(1) : periods_.time_of_piece(end_of_word(0), of_gap);
    return periods_.symbol_of(from_ns, to_ns) == periods_.symbol_of(end_of_word(0), gap_end_ns)
               ? to_ns
               : from_ns;
  }

  std::int64_t start_of_word(std::size_t i) const {
    return trace_.start_ns(thread_.ranges[i * size_]);
  }
  std::int64_t end_of_word(std::size_t i) const {
    return trace_.end_ns(thread_.ranges[i * size_ + size_ - 1]);
  }

 private:
  const Trace& trace_;
  const Periods& periods_;
  const RangesOfThread& thread_;
  const std::size_t size_;
  std::size_t begin_ = 0;  // pieces of work between two words that belong to the second
};

std::optional<Iterations> iterations_of_thread(const Trace& trace, const Periods& periods,
                                               const RangesOfThread& thread) {
  constexpr double kNearlyAll = 0.9;
  std::size_t size = thread.has_own ? word_of(trace, thread.ranges) : 0;
  if (size == 0) return std::nullopt;
  const std::size_t of_a_pass = size == 1 && thread.optimizer_steps.empty()
                                    ? ranges_of_a_pass(trace, periods, thread.ranges)
                                    : 0;
  size = std::max(size, of_a_pass);
  const std::size_t count = thread.ranges.size() / size;
  const Gaps gaps(trace, periods, thread, size);
  std::vector<std::int64_t> bounds;
  for (std::size_t i = 0; i < count; ++i) bounds.push_back(gaps.begin_of_word(i));
  // What follows the last word may be the begin of another one, which the recording cuts.
  const bool is_cut = count * size < thread.ranges.size();
  bounds.push_back(is_cut ? gaps.begin_of_word(count) : gaps.end_of_last(count - 1));
  const std::int64_t end_ns = std::max(bounds.back(), trace.end_ns(thread.ranges.back()));
  if ((of_a_pass == 0 && !cover_the_time(trace, thread.ranges, bounds)) ||
      periods.part_held(bounds.front(), end_ns) < kNearlyAll ||
      !periods.are_neighbours_alike(bounds) || !step_equally(thread.optimizer_steps, bounds))
    return std::nullopt;
  Iterations found;
  found.kind = IterationMark::kRangeStart;
  found.mark = trace.name(thread.ranges.front());
  if (of_a_pass > 0) found.mark = "round of " + std::to_string(of_a_pass) + " " + found.mark;
  for (std::size_t i = 0; i < count; ++i)
    found.ranges.push_back({thread.ranges[i * size], bounds[i], bounds[i + 1]});
  return found;
}

}  // namespace

std::optional<Iterations> iterations_of_ranges(const Trace& trace, const Periods& periods,
                                               ProcessId process) {
  constexpr std::size_t kMostOpened = 4;
  for (const Track& track : trace.tracks()) {
    if (process != kNone<ProcessId> && track.process != process) continue;
    // A range around all others, such as "train", is opened.
    std::vector<SliceId> opened;
    while (opened.size() <= kMostOpened) {
      const RangesOfThread thread = ranges_of(trace, track, opened);
      if (auto found = iterations_of_thread(trace, periods, thread)) return found;
      if (thread.ranges.size() != 1) break;
      opened.push_back(thread.ranges.front());
    }
  }
  return std::nullopt;
}

}  // namespace lanescope::analysis

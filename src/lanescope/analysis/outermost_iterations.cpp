#include "lanescope/analysis/outermost_iterations.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lanescope/analysis/iteration_marks.h"
#include "lanescope/base/wide.h"

namespace lanescope::analysis {
namespace {

bool is_mark_of_program(const Trace& trace, const Iterations& found) {
  return found.kind == IterationMark::kRangeStart &&
         (trace.kind(found.ranges.front().mark) == CategoryKind::kUserAnnotation ||
          is_step_of_loop(trace.name(found.ranges.front().mark)));
}

// Layers of a model that was recorded alone are a loop, too, but no optimizer steps in each, and the CPU does not wait in each.
bool is_sure(const Nest& nest) {
  return nest.optimizer_steps > 0 || (nest.is_all && nest.has_exchanges);
}

// If all of them were as long as the middle one, would they take nearly all time of the rounds?
bool leave_little(const Iterations& inner, std::size_t within, const Iterations::Range& rounds) {
  constexpr double kNearlyAll = 0.95;
  std::vector<std::int64_t> lengths;
  for (const Iterations::Range& each : inner.ranges) lengths.push_back(each.end_ns - each.start_ns);
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return static_cast<double>(*middle) * static_cast<double>(within) >
         kNearlyAll * static_cast<double>(rounds.end_ns - rounds.start_ns);
}

// Are there two or more of these iterations in each round of the outermost loop, and is the round more than they are? Or do the
// rounds tell the same, or a part of it, more exactly?
bool is_inside(const Iterations& inner, const Nest& nest) {
  const auto& rounds = nest.iterations.ranges;
  const Iterations::Range all{rounds.front().mark, rounds.front().start_ns, rounds.back().end_ns};
  const auto within = static_cast<std::size_t>(
      std::count_if(inner.ranges.begin(), inner.ranges.end(), [&](const Iterations::Range& each) {
        return each.start_ns >= all.start_ns && each.start_ns < all.end_ns;
      }));
  const bool is_text = inner.mark.starts_with("round of ");
  // Operators of one name are told apart by their kernels, which may alternate from word to word.
  if (within * 3 <= rounds.size() * 2)
    return inner.kind == IterationMark::kRangeStart && !is_text && nest.has_exchanges;
  if (within * 2 < rounds.size() * 3) return is_text && nest.optimizer_steps == 1;
  if (inner.kind == IterationMark::kRangeEnd) return has_phases(nest);
  return (nest.is_all || nest.has_exchanges) && !leave_little(inner, within, all);
}

// What is known of loops inside of iterations, and of the one around them.
void tell_loops(const IterationInput& input, const std::optional<Nest>& nest, Iterations& found) {
  constexpr double kLeastOther = 0.05;
  const bool is_one_step = found.kind == IterationMark::kRangeEnd && found.owner.empty();
  if (found.kind == IterationMark::kRangeStart || is_one_step) {
    const Iterations::Range& middle = found.ranges[found.ranges.size() / 2];
    found.inner = find_inner_loops(input, found);
    std::erase_if(found.inner, [&](const InnerLoop& each) {
      return is_one_step ? !each.runs_backward
                         : wide(each.time_ns) * 2 < wide(middle.end_ns - middle.start_ns);
    });
  }
  if (!is_one_step || !nest || nest->optimizer_steps < 2 || nest->part_of_other_time < kLeastOther)
    return;
  const auto& rounds = nest->iterations.ranges;
  found.of_outer = nest->optimizer_steps;
  found.outer_ns = rounds[rounds.size() / 2].end_ns - rounds[rounds.size() / 2].start_ns;
}

}  // namespace

bool has_phases(const Nest& nest) {
  constexpr double kMost = 0.5, kSome = 0.1, kNearlyNew = 0.66;
  return nest.part_of_other_time >= kMost ||
         (nest.part_of_other_time >= kSome && nest.part_of_new_operators >= kNearlyNew);
}

std::optional<Iterations> choose_outermost(const IterationInput& input,
                                           const std::optional<Nest>& nest,
                                           std::optional<Iterations> inner, std::string only_step) {
  if (inner && is_mark_of_program(input.trace, *inner)) return inner;
  if (nest && (inner ? is_inside(*inner, *nest) : is_sure(*nest))) return nest->iterations;
  if (!inner) return inner;
  tell_loops(input, nest, *inner);
  if (inner->kind != IterationMark::kRangeEnd) inner->only_step = std::move(only_step);
  return inner;
}

}  // namespace lanescope::analysis

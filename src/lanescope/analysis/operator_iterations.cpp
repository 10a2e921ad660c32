#include "lanescope/analysis/operator_iterations.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/analysis/iteration_marks.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/model/names_where.h"

namespace lanescope::analysis {
namespace {

constexpr std::size_t kFewestOperators = 8;  // outermost ones in an iteration that they mark

// Operators and nodes of autograd that lie in no other, of the first thread with many of them.
std::vector<SliceId> outermost_operators(const IterationInput& input) {
  const Trace& trace = input.trace;
  constexpr std::size_t kMany = 4;  // a quarter of the most
  NamesWhere is_step(trace, is_step_of_loop);
  std::vector<std::vector<SliceId>> threads;
  for (const Track& track : trace.tracks()) {
    if (input.process != kNone<ProcessId> && track.process != input.process) continue;
    std::vector<SliceId>& found = threads.emplace_back();
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      if (trace.kind(id) == CategoryKind::kCpuOp && !is_step(id) &&
          (found.empty() || trace.start_ns(id) >= trace.end_ns(found.back())))
        found.push_back(id);
    }
  }
  std::size_t most = 0;
  for (const auto& each : threads) most = std::max(most, each.size());
  std::vector<SliceId> first;
  for (auto& each : threads)
    if (!each.empty() && each.size() * kMany >= most &&
        (first.empty() || trace.start_ns(each.front()) < trace.start_ns(first.front())))
      first = std::move(each);
  return first;
}

// Operators of one name count as different if they launch different work.
std::vector<std::uint64_t> symbols_of(const IterationInput& input,
                                      const std::vector<SliceId>& operators) {
  const Trace& trace = input.trace;
  const LaunchLinks& links = input.links;
  constexpr std::uint64_t kFactor = 0x9E37'79B9'7F4A'7C15;
  std::vector<std::uint64_t> symbols;
  std::unordered_map<std::uint32_t, std::uint64_t> work;  // by the operator that launched it
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    if (!is_device_work(trace.kind(SliceId{i})) || links.launch_of[i] == kNone<SliceId>) continue;
    const SliceId owner = outermost_operator_of(input, links.launch_of[i]);
    if (owner != kNone<SliceId>)
      work[raw(owner)] = work[raw(owner)] * kFactor + raw(trace.slices().name[i]) + 1;
  }
  for (const SliceId id : operators) {
    const auto launched = work.find(raw(id));
    symbols.push_back((launched == work.end() ? 0 : launched->second) * kFactor +
                      raw(trace.slices().name[raw(id)]));
  }
  return symbols;
}

// When data went between CPU and GPU, other than the sizes that nonzero() reads.
std::vector<std::int64_t> exchanges(const IterationInput& input) {
  const Trace& trace = input.trace;
  std::vector<std::int64_t> times;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i}, launch = input.links.launch_of[i];
    if (trace.kind(id) != CategoryKind::kGpuMemcpy || launch == kNone<SliceId>) continue;
    const bool is_of_host =
        contains_any(trace.name(id), std::array<std::string_view, 2>{"HtoD", "DtoH"});
    bool is_size = false;
    for (SliceId at = input.links.op_of[raw(launch)]; at != kNone<SliceId>;
         at = input.nesting.parent[raw(at)])
      is_size = is_size || trace.name(at) == "aten::nonzero";
    if (is_of_host && !is_size) times.push_back(trace.start_ns(launch));
  }
  std::sort(times.begin(), times.end());
  return times;
}

bool exchange_in_each(const std::vector<std::int64_t>& bounds,
                      const std::vector<std::int64_t>& exchanged) {
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto next = std::lower_bound(exchanged.begin(), exchanged.end(), bounds[i]);
    if (next == exchanged.end() || *next >= bounds[i + 1]) return false;
  }
  return true;
}

std::optional<Iterations> iterations_from(const IterationInput& input,
                                          const std::vector<SliceId>& operators,
                                          const std::vector<std::size_t>& places,
                                          const std::vector<std::int64_t>& exchanged) {
  const Trace& trace = input.trace;
  const Periods& periods = input.periods;
  if ((places.back() - places.front()) / (places.size() - 1) < kFewestOperators)
    return std::nullopt;
  std::vector<std::int64_t> bounds;
  for (const std::size_t place : places) bounds.push_back(trace.start_ns(operators[place]));
  bounds.push_back(trace.end_ns(operators.back()));
  const std::int64_t end_ns = bounds.back();
  if (!periods.are_alike_at_end(bounds)) bounds.pop_back();
  if (is_long_at_end(bounds)) bounds.pop_back();
  // What comes after them on the CPU, such as work on the result, may be more than they are.
  if (wide(bounds.back() - bounds.front()) * 3 < wide(end_ns - bounds.front()) * 2)
    return std::nullopt;
  if (!periods.repeat(bounds) || !hold_the_time(bounds) || !periods.hold_the_work(bounds))
    return std::nullopt;
  if (!periods.hold_nearly_all(bounds) && !exchange_in_each(bounds, exchanged)) return std::nullopt;
  Iterations found;
  found.kind = IterationMark::kRangeStart;
  found.mark = trace.name(operators[places.front()]);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    found.ranges.push_back({operators[places[i]], bounds[i], bounds[i + 1]});
  return found;
}

// The distances at which symbols come again, those of the rarest symbols first, without those of fewer than kFewestOperators.
std::vector<std::size_t> distances_of(const std::vector<const std::vector<std::size_t>*>& places) {
  constexpr std::size_t kMostDistances = 16;
  std::vector<std::size_t> distances;
  for (const auto* each : places)
    for (std::size_t i = 0; i + 1 < each->size() && i < kMostDistances; ++i) {
      const std::size_t distance = (*each)[i + 1] - (*each)[i];
      if (distance < kFewestOperators ||
          std::find(distances.begin(), distances.end(), distance) != distances.end())
        continue;
      distances.push_back(distance);
      if (distances.size() == kMostDistances) return distances;
    }
  return distances;
}

// Where rounds of so many operators begin that are equal to the first round: all operators, in their order. Other operators may
// come between two rounds. Empty: fewer than three quarters of the operators equal the one a round later, or no round is whole.
std::vector<std::size_t> rounds_of_size(const std::vector<std::uint64_t>& symbols,
                                        std::size_t size) {
  if (size * kFewestIterations > symbols.size()) return {};
  std::size_t equal = 0, in_row = 0, first = symbols.size();
  for (std::size_t i = 0; i + size < symbols.size(); ++i) {
    const bool is_equal = symbols[i] == symbols[i + size];
    equal += is_equal ? 1 : 0;
    in_row = is_equal ? in_row + 1 : 0;
    if (in_row == size && first == symbols.size()) first = i + 1 - size;
  }
  if (first == symbols.size() || equal * 4 < (symbols.size() - size) * 3) return {};
  // All places of the round, by Knuth, Morris and Pratt: comparing all of it at each place would take O(symbols x size).
  std::vector<std::size_t> border(size, 0);
  for (std::size_t i = 1; i < size; ++i) {
    std::size_t length = border[i - 1];
    while (length > 0 && symbols[first + i] != symbols[first + length]) length = border[length - 1];
    border[i] = symbols[first + i] == symbols[first + length] ? length + 1 : 0;
  }
  std::vector<std::size_t> begins;
  std::size_t matched = 0;
  for (std::size_t i = first; i < symbols.size(); ++i) {
    while (matched > 0 && symbols[i] != symbols[first + matched]) matched = border[matched - 1];
    if (symbols[i] == symbols[first + matched]) ++matched;
    if (matched < size) continue;
    begins.push_back(i + 1 - size);
    matched = 0;  // rounds do not overlap
  }
  return begins;
}

// "5,291"
std::string with_commas(std::size_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3; text.insert(at, ",")) at -= 3;
  return text;
}

// A simulation's step has no operator that comes once in it and begins it: all of its operators are looked at together.
std::optional<Iterations> iterations_of_rounds(
    const IterationInput& input, const std::vector<SliceId>& operators,
    const std::vector<std::uint64_t>& symbols,
    const std::vector<const std::vector<std::size_t>*>& places, std::size_t too_many,
    const std::vector<std::int64_t>& exchanged) {
  for (const std::size_t size : distances_of(places)) {
    const std::vector<std::size_t> begins = rounds_of_size(symbols, size);
    if (begins.size() < kFewestIterations || begins.size() >= too_many) continue;
    auto found = iterations_from(input, operators, begins, exchanged);
    if (!found) continue;
    found->mark = name_of_round(input.trace, operators, begins.front(), size);
    return found;
  }
  return std::nullopt;
}

}  // namespace

SliceId outermost_operator_of(const IterationInput& input, SliceId call) {
  SliceId owner = kNone<SliceId>;
  for (SliceId at = input.links.op_of[raw(call)]; at != kNone<SliceId>;
       at = input.nesting.parent[raw(at)])
    if (input.trace.kind(at) == CategoryKind::kCpuOp) owner = at;
  return owner;
}

std::string name_of_round(const Trace& trace, const std::vector<SliceId>& operators,
                          std::size_t first, std::size_t size) {
  std::string text = "round of " + with_commas(size) + " operators (";
  const std::string_view begin = trace.name(operators[first]);
  text += begin;
  // The first other one that leaves the text short enough to be printed whole.
  constexpr std::size_t kMostNames = 38;
  for (std::size_t i = first; i < first + size; ++i)
    if (const std::string_view next = trace.name(operators[i]);
        next != begin && begin.size() + next.size() <= kMostNames) {
      text.append(", ").append(next);
      break;
    }
  return text + ", ...)";
}

std::optional<Iterations> iterations_of_operators(const IterationInput& input,
                                                  std::size_t too_many) {
  constexpr std::size_t kMostTried = 64;
  const std::vector<SliceId> operators = outermost_operators(input);
  if (operators.size() < kFewestIterations * kFewestOperators) return std::nullopt;
  const std::vector<std::uint64_t> symbols = symbols_of(input, operators);
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < symbols.size(); ++i) places[symbols[i]].push_back(i);
  std::vector<const std::vector<std::size_t>*> order;
  for (const auto& [symbol, each] : places)
    if (each.size() >= kFewestIterations && each.size() < too_many) order.push_back(&each);
  sort_rows(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->size(), a->front()) < std::pair(b->size(), b->front());
  });
  if (order.size() > kMostTried) order.resize(kMostTried);
  const std::vector<std::int64_t> exchanged = exchanges(input);
  for (const auto* each : order)
    if (auto found = iterations_from(input, operators, *each, exchanged)) return found;
  return iterations_of_rounds(input, operators, symbols, order, too_many, exchanged);
}

std::optional<Iterations> iterations_of_whole_texts(const IterationInput& input) {
  const Trace& trace = input.trace;
  const std::vector<SliceId> operators = outermost_operators(input);
  std::vector<std::uint64_t> names;
  names.reserve(operators.size());
  for (const SliceId id : operators) names.push_back(raw(trace.slices().name[raw(id)]));
  const std::size_t size = shortest_period(names);
  if (size < kFewestOperators || size == names.size() || names.size() % size != 0)
    return std::nullopt;
  std::vector<std::int64_t> bounds;
  for (std::size_t i = 0; i < operators.size(); i += size)
    bounds.push_back(trace.start_ns(operators[i]));
  bounds.push_back(std::max(bounds.back(), trace.end_ns(operators.back())));
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    if (input.periods.pieces_in(bounds[i], bounds[i + 1]) < kFewestPieces) return std::nullopt;
  if (!input.periods.hold_nearly_all(bounds) || !exchange_in_each(bounds, exchanges(input)))
    return std::nullopt;
  Iterations found;
  found.kind = IterationMark::kRangeStart;
  found.mark = name_of_round(trace, operators, 0, size);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    found.ranges.push_back({operators[i * size], bounds[i], bounds[i + 1]});
  return found;
}

}  // namespace lanescope::analysis

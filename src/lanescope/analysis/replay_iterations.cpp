#include "lanescope/analysis/replay_iterations.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/analysis/graph_replays.h"
#include "lanescope/analysis/iteration_work.h"

namespace lanescope::analysis {
namespace {

// A call of the runtime contains that of the driver: the outer one counts.
std::vector<SliceId> replays_of(const Trace& trace, const Track& track) {
  std::vector<SliceId> replays;
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
    if (const SliceId id{i};
        is_api_call(trace.kind(id)) && is_graph_launch(trace, id) &&
        (replays.empty() || trace.start_ns(id) >= trace.end_ns(replays.back())))
      replays.push_back(id);
  return replays;
}

// Three quarters of the neighbours are equal, and none differs from the first by a tenth of its pieces: after the last token of
// an answer the result is read.
bool are_nearly_equal(const Periods& periods, const Trace& trace,
                      const std::vector<SliceId>& replays, const std::vector<std::uint64_t>& work) {
  std::size_t equal = 0;
  for (std::size_t i = 0; i + 1 < work.size(); ++i) equal += work[i] == work[i + 1];
  const auto pieces_from = [&](std::size_t i) {
    return periods.pieces_in(trace.start_ns(replays[i]), trace.start_ns(replays[i + 1]));
  };
  for (std::size_t i = 1; i < work.size(); ++i) {
    const std::size_t more = std::max(pieces_from(0), pieces_from(i));
    if ((more - std::min(pieces_from(0), pieces_from(i))) * 10 >= more) return false;
  }
  return equal * 4 >= (work.size() - 1) * 3;
}

std::optional<Iterations> iterations_between(const IterationInput& input,
                                             const std::vector<SliceId>& replays) {
  const Trace& trace = input.trace;
  const Periods& periods = input.periods;
  std::vector<std::uint64_t> work;
  for (std::size_t i = 0; i + 1 < replays.size(); ++i)
    work.push_back(periods.symbol_of(trace.start_ns(replays[i]), trace.start_ns(replays[i + 1])));
  std::size_t size = shortest_period(work);
  if (size * kFewestIterations > work.size()) {
    if (!are_nearly_equal(periods, trace, replays, work)) return std::nullopt;
    size = 1;
  }
  std::vector<std::int64_t> bounds;
  for (std::size_t i = 0; i < replays.size(); i += size)
    bounds.push_back(trace.start_ns(replays[i]));
  const std::size_t of_one = periods.pieces_in(bounds[0], bounds[1]);
  const std::size_t outside =
      periods.all_pieces() - periods.pieces_in(bounds.front(), trace.end_ns(replays.back()));
  if (outside * 10 >= of_one || !periods.are_neighbours_alike(bounds) || !hold_the_time(bounds))
    return std::nullopt;
  Iterations found;
  found.kind = IterationMark::kRangeStart;
  found.mark = trace.name(replays.front());
  if (size > 1) found.mark = "round of " + std::to_string(size) + " " + found.mark;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    found.ranges.push_back({replays[i * size], bounds[i], bounds[i + 1]});
  return found;
}

}  // namespace

std::optional<Iterations> iterations_of_replays(const IterationInput& input, std::size_t too_many) {
  constexpr std::size_t kFewestReplays = 9;  // few may be parts of one step
  for (const Track& track : input.trace.tracks()) {
    if (input.process != kNone<ProcessId> && track.process != input.process) continue;
    const std::vector<SliceId> replays = replays_of(input.trace, track);
    if (replays.size() < kFewestReplays || replays.size() >= too_many) continue;
    if (auto found = iterations_between(input, replays)) return found;
  }
  return std::nullopt;
}

}  // namespace lanescope::analysis

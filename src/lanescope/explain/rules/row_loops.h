// Loops whose rounds each look for the rows that they work on, and wait for their number: over experts, over groups.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {

// Indices of calls in their sequence.
struct RowRound {
  std::size_t first = 0;
  std::size_t find = 0;  // the call that waits for the number of rows
  std::size_t last = 0;
};

// What a rule takes for such a loop.
struct RowRounds {
  // The round that begins with this call; nothing: none begins there.
  std::function<std::optional<RowRound>(const CallSequence&, std::size_t)> round_at;
  std::size_t fewest_rounds = 2;
  std::size_t longest_pause = 0;  // calls from one round to the next
  bool across_steps = false;      // a step may be one round: a thread's steps count as one sequence
};

struct RowLoops {
  std::uint64_t loops = 0, rounds = 0;
  std::uint64_t longest = 0;                             // rounds of the longest loop
  SliceId find = kNone<SliceId>, last = kNone<SliceId>;  // of its first round
  std::int64_t waiting_ns = 0;      // in all rounds but a loop's first, with their backward passes
  std::int64_t after_waits_ns = 0;  // what the GPU waits in and after the calls that find rows
};

// In the steady steps; nothing: no such loop.
std::optional<RowLoops> measure_row_loops(const Facts& facts, const RowRounds& kind);

}  // namespace lanescope::explain::rules

// The collectives of one trace in the order in which the rank called them, whatever ran them: a GPU,
// another device, or the CPU.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/explain/facts.h"
#include "lanescope/ranks/rank_summary.h"

namespace lanescope::ranks {

// Nanoseconds since Trace::base_time_ns().
struct FoundCall {
  CollectiveKind kind;  // `group` is not set
  ProcessGroup group;   // as the call itself describes it
  SliceId slice = kNone<SliceId>;
  std::int64_t launch_ns = 0, start_ns = 0, end_ns = 0;
  std::optional<std::int64_t> sequence;
  std::optional<std::int64_t> peer;  // of a send or receive: the other rank, as recorded
};

struct RankCalls {
  std::vector<FoundCall> calls;  // by launch, then start
  // Kernels of collectives that were launched before the recording, or that lack the metadata that
  // others have.
  std::uint64_t unlinked = 0;
  analysis::IntervalUnion compute, communication, compute_or_communication;
};

// The collectives that the CPU called (torch's record_param_comms), in order, whether their kernels
// are in the file or not. Start and end are those of the call. `from_start`: the recording shows
// the creation of the communicator, so it also has the first collective.
struct CalledCollectives {
  std::vector<FoundCall> calls;
  bool from_start = false;
};
CalledCollectives find_called_collectives(const Trace& trace);

// docs/definitions/ranks.md#collectives. O(n log n). Any thread.
RankCalls find_rank_calls(const explain::Facts& facts);

}  // namespace lanescope::ranks

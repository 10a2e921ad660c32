// The process groups and kinds of collectives of a whole job, with the same numbers on every worker.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lanescope/ranks/communicator.h"
#include "lanescope/ranks/rank_summary.h"

namespace lanescope::ranks {

// One of a job's ranks, on the worker that read its file.
struct OwnRank {
  std::uint32_t index = 0;  // place among the job's ranks
  RankSummary summary;
};

// What ranks do in one call, and whom it waits for.
enum class CallShape : std::uint8_t {
  kAll,     // every rank gives and takes the same amount, and waits for every other one
  kRooted,  // one rank gives or takes: the others need not wait for each other
  kUneven,  // amounts differ from rank to rank, and all wait for all
  kSend,
  kReceive,
  kUnknown,
};
CallShape shape_of(const CollectiveKind& kind);

// The same group on several ranks: equal names, and equal lists of ranks where both are known.
struct JobGroup {
  std::string name;
  std::vector<std::int64_t> member_ranks;  // as the files list them; empty: unknown
  std::string description;                 // of the first rank's first call
  std::int64_t size = 0;                   // 0: unknown
  std::vector<std::uint32_t> ranks;        // that call it: places among the job's ranks, rising
  std::uint32_t collective_ranks = 0;      // of these, how many call more than send and receive
  std::uint64_t calls = 0;                 // of all ranks
  // About calls that are no send or receive. has_sequences: all have sequence numbers, each once a
  // rank. has_steps: some are in numbered steps.
  bool has_sequences = true, has_steps = false;
};

struct CallTable {
  std::vector<JobGroup> groups;  // by name, then list of ranks
  std::vector<CollectiveKind>
      kinds;                         // in the order in which ranks and calls use them; `group` is 0
  std::vector<std::uint32_t> signs;  // one a kind: equal where calls of one collective may differ
  // The numbers of each own rank in this table: one for each of RankSummary::groups and RankSummary::kinds.
  struct Numbers {
    std::vector<std::uint32_t> groups, kinds;
  };
  std::vector<Numbers> own;
};

// Every worker calls it. O(calls) on each; the table itself is on all of them.
CallTable make_call_table(std::span<const OwnRank> own, Communicator& workers);

}  // namespace lanescope::ranks

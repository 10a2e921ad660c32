// The chain of one step: what its critical path goes through, in order, folded into rows that a
// person can read. docs/definitions/whatif.md#chain.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/simulate/replay.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

// How the path comes to a row from the one before it.
enum class ChainLink : std::uint8_t {
  kNone,         // the first row, or nothing is known
  kSamePlace,    // the thread or stream goes on
  kLaunch,       // a CPU thread launched the GPU work
  kWait,         // a call waited for the GPU work
  kFullQueue,    // a launch call waited until GPU work left the queue
  kStreamOrder,  // GPU work waited for the work before it on its stream
  kOtherStream,  // GPU work waited for work of another stream; inferred
  kHandOver,     // a thread was woken by another one
};
const char* chain_link_name(ChainLink link);  // "launch", ...
const char* chain_link_text(ChainLink link);  // words for people; empty: kNone, kSamePlace

struct ChainPart {
  std::string name;  // of the event that the time is spent in; empty: code without events
  std::int64_t time_ns = 0;
};

// Pieces of the path that follow each other on one thread or stream, inside one event.
struct ChainRow {
  ChainLink link = ChainLink::kNone;
  TrackId track = kNone<TrackId>;
  bool is_gpu = false;
  SliceId event =
      kNone<SliceId>;  // the (first) event that holds them; kNone: the whole thread or stream
  std::int64_t start_ns = 0;  // of the first piece
  std::int64_t time_ns = 0;   // of all rounds
  std::int64_t delay_ns = 0;  // of that time: latencies, gaps, and what nothing explains
  std::size_t pieces = 0;
  std::vector<ChainPart> parts = {};  // by innermost event, longest first, at most three
  // By the events of the outermost depth at which none has 80 % of the row, else none 97 %; longest first, at most four.
  // Empty: there is no such depth.
  std::vector<ChainPart> inside = {};
  // Rows of one loop follow each other and have the same `loop`; 0: no loop.
  std::size_t loop = 0, rounds = 1;
  bool is_shown = false;  // one of the longest
};

struct Chain {
  std::size_t step = 0;  // index into StepGraph::steps
  std::int64_t length_ns = 0;
  std::vector<ChainRow> rows;  // in order of time
  // Of the rows that are not shown.
  std::size_t other_rows = 0;
  std::int64_t other_ns = 0;
};

inline constexpr std::size_t kMostChainRows = 20;

// Of the steady step with the (lower) median length. `replay`: of the graph's own edges. `nesting`: with Python frames,
// if the rows may be named by them. Linear in events and the depth of their nesting.
Chain critical_chain(const StepGraph& graph, const Replay& replay,
                     const analysis::SliceNesting& nesting, std::size_t most_rows = kMostChainRows);

}  // namespace lanescope::simulate

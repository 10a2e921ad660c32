// What holds for every Trace, whatever bytes it was read from.
#pragma once
#include "lanescope/format/read_trace.h"
#include "lanescope/model/trace.h"

namespace lanescope::fuzz {

// Buffers that fit the inputs: clearing large ones is most of the time of a run otherwise.
format::ReadOptions small_reads();

// Its memory fits its input; it can be written; what was written is read without loss, says the
// same, and is written again byte for byte.
void check_round_trip(const Trace& trace);

// info, table, tree, memory, explain (text, JSON, page) and diff: none crashes, each says
// something, self times are no longer than total times and the parts of a wall add up.
void check_analyses(const Trace& trace);

}  // namespace lanescope::fuzz

// What holds for every Trace, whatever bytes it was read from.
#pragma once
#include <cstdint>
#include <string_view>

#include "lanescope/format/read_trace.h"
#include "lanescope/model/trace.h"

namespace lanescope::fuzz {

// Buffers that fit the inputs: clearing large ones is most of the time of a run otherwise.
format::ReadOptions small_reads();

// Reads bytes of any format. An error has a message.
Result<Trace> read_or_error(const std::uint8_t* data, std::size_t size);

// What was read of a written trace lacks what the trace's recording lacked, and nothing else.
void check_losses(const ImportStats& before, const ImportStats& after, std::string_view written);

// Its memory fits its input; it can be written; what was written is read without further loss, says
// the same, and is written again byte for byte.
void check_round_trip(const Trace& trace);

// What is computed from a trace and printed: self times, the table, the tree, memory, info, the
// explanation (text, JSON, page) and a comparison with itself. None crashes, each says something,
// self times are within total times and the parts of a wall add up. Doing all of it for each input
// would leave a fuzzer 70 inputs a second, so `choice` (any number) picks one part.
void check_analyses(const Trace& trace, std::uint64_t choice);

}  // namespace lanescope::fuzz

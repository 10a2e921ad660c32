// The device activities for the rows of a piece: the piece's own activities, and the API calls of other
// pieces that started its GPU work.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/format/spool/spool_activities.h"
#include "lanescope/format/spool/spool_piece.h"
#include "lanescope/format/spool/spool_scan.h"

namespace lanescope::format {

// What a piece needs from the calls before it. Starts empty.
struct CallCarry {
  std::vector<spool::Record> outer_calls;  // runtime calls that may still have driver calls inside
  std::uint32_t last_id = 0;               // the highest correlation id of the piece before
};

// Returns:
// - the calls that begin in the piece;
// - the work, waits and events that begin in the piece, or that one of these calls started;
// - the calls of other pieces with the ids of such work.
// `of_threads`: activities from the chunks of threads that overlap the piece. `buffer` has kChunkBytes.
// Counts no damage, because scan_spool() has counted it. Cost: reads each chunk of activities that
// overlaps the piece in time or has ids of the piece's calls.
SpoolActivities read_piece_activities(const SpoolBytes& bytes, const SpoolScan& scan,
                                      const SpoolPiece& piece,
                                      std::span<const spool::Record> of_threads, CallCarry* carry,
                                      std::span<std::byte> buffer);

}  // namespace lanescope::format

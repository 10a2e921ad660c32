// The device activities that the rows of a piece need: its own, and the API calls of other pieces
// that started its own work.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/format/spool/spool_activities.h"
#include "lanescope/format/spool/spool_piece.h"
#include "lanescope/format/spool/spool_scan.h"

namespace lanescope::format {

// What a piece must know of the calls before it. Starts empty.
struct CallCarry {
  std::vector<spool::Record> outer_calls;  // runtime calls that may still have driver calls inside
  std::uint32_t last_id = 0;               // the highest correlation id of the piece before
};

// Calls that begin in the piece; work, waits and events that such a call started, wherever they
// begin, and those that begin in the piece; the calls of other pieces whose ids these have.
// `outer`: runtime calls of earlier pieces that may still run. `buffer` holds kChunkBytes. Damage
// was counted by scan_spool(). Cost: chunks that meet the piece in time or in the ids of its calls
// are read.
SpoolActivities read_piece_activities(const SpoolBytes& bytes, const SpoolScan& scan,
                                      const SpoolPiece& piece, CallCarry* carry,
                                      std::span<std::byte> buffer);

}  // namespace lanescope::format

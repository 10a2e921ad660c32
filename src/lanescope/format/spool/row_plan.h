// A recording cut into pieces, and its events numbered beforehand, so that each piece gives the
// rows that it would have in the whole.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lanescope/format/spool/activity_carry.h"
#include "lanescope/format/spool/activity_links.h"
#include "lanescope/format/spool/spool_scan.h"

namespace lanescope::format {

// How far the numbering of events has come, in the order of threads and their chunks, and what
// waits for the thread's next range.
struct RowNumbers {
  std::int64_t external_id = 0, ev_idx = 0, memory = 0;
  // The engine's wrapper of a backward node gets the node's numbers.
  std::optional<std::pair<spool::Record, SlotKey>> wrapper;
  // What a collective has anew in each call; its thread.
  std::optional<std::pair<spool::Record, std::uint32_t>> collective;
};

// Of a whole recording that is read in pieces.
struct RowPlan {
  std::vector<RowNumbers> at_chunk;    // before each chunk of `index.record_chunks`
  std::int64_t ev_idx_end = 0;         // memory events are numbered after all others
  std::vector<FirstCall> first_calls;  // by window
  std::vector<SpoolPiece> pieces;
};

// Cuts a recording into pieces of about `rows_per_piece` rows and numbers its events beforehand:
// each chunk is read once more. Adds the spans of what waits for a later chunk to `scan`. Fills in
// what `carry` must know of the whole recording.
RowPlan plan_rows(const SpoolBytes& bytes, SpoolScan* scan, std::uint64_t rows_per_piece,
                  ActivityCarry* carry);

}  // namespace lanescope::format

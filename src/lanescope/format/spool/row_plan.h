// Cuts a recording into pieces and numbers its events first, so that each piece gives the same rows
// as the whole.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lanescope/format/spool/activity_carry.h"
#include "lanescope/format/spool/activity_links.h"
#include "lanescope/format/spool/spool_scan.h"

namespace lanescope::format {

// The state while events are numbered, in the order of threads and their chunks, and what waits for
// the thread's next range.
struct RowNumbers {
  std::int64_t external_id = 0, ev_idx = 0, memory = 0, python_id = 0;
  // The engine's wrapper of a backward node gets the node's numbers.
  struct Wrapper {
    spool::RangeRecord range;
    SlotKey place;
    std::optional<spool::CallNumbersRecord> call_numbers;
  };
  std::optional<Wrapper> wrapper;
  std::optional<std::pair<spool::CallNumbersRecord, std::uint32_t>> call_numbers;  // and its thread
  std::vector<spool::TensorRecord> tensors;
  std::uint32_t tensors_thread = spool::kNoThread;
  // The thread's open Python frames, outermost first: their numbers; 0: lost.
  std::vector<std::int64_t> frames;
  std::uint32_t frames_thread = spool::kNoThread;
};

// The plan for a whole recording that is read in pieces.
struct RowPlan {
  std::vector<RowNumbers> at_chunk;    // before each chunk of `index.record_chunks`
  std::int64_t ev_idx_end = 0;         // memory events are numbered after all others
  std::vector<FirstCall> first_calls;  // by window
  std::vector<SpoolPiece> pieces;
};

// Cuts a recording into pieces of about `rows_per_piece` rows and numbers its events; reads each
// chunk once more. Adds the spans of records that wait for a later chunk to `scan`. Fills in what
// `carry` needs from the whole recording.
RowPlan plan_rows(const SpoolBytes& bytes, SpoolScan* scan, std::uint64_t rows_per_piece,
                  ActivityCarry* carry);

}  // namespace lanescope::format

// The rows of one piece of a recording, as a Trace.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/format/spool/activity_carry.h"
#include "lanescope/format/spool/activity_links.h"
#include "lanescope/format/spool/counter_rows.h"
#include "lanescope/format/spool/forward_backward.h"
#include "lanescope/format/spool/piece_activities.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/format/spool/row_plan.h"
#include "lanescope/format/spool/spool_scan.h"
#include "lanescope/model/time_limits.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// What the rows of a piece need from earlier pieces. Starts empty.
struct RowCarry {
  struct OpenRange {
    spool::RangeRecord range;
    SlotKey place;
    std::int64_t external_id;
    std::optional<spool::CallNumbersRecord> call_numbers;
  };
  std::vector<OpenRange> open_ranges;  // may still have calls inside
  CallCarry calls;
  ForwardBackward forward_backward;
  ActivityCarry activities;
  CounterCarry counters;
  DurationLimit durations;  // of all pieces together: they become one file
};

// `plan`: null if the piece is the whole recording. Read pieces in order of time, with one carry.
// The first piece has the trace's metadata, the last one the window's spans. Memory: the Trace, and
// about 250 bytes per launch and 100 per range when there are activities.
Result<Trace> read_rows(const SpoolBytes& bytes, const SpoolScan& scan,
                        const ReadSpoolOptions& options, const SpoolPiece& piece,
                        const RowPlan* plan, RowCarry* carry, ImportStats stats);

}  // namespace lanescope::format

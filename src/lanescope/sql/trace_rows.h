// A Trace as the tables of SQL need it: the columns as they are, and what analyses add (nesting,
// launches, steps), computed when a query first asks for it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lanescope/analysis/collective_calls.h"
#include "lanescope/analysis/frame_table.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::sql {

// Not thread-safe. Each part costs its analysis once, O(n log n) at most, and stays.
class TraceRows {
 public:
  explicit TraceRows(std::shared_ptr<const Trace> trace) : trace_(std::move(trace)) {}

  const Trace& trace() const { return *trace_; }
  // All slices of a thread, Python frames included.
  const analysis::SliceNesting& nesting();
  // Without Python frames, as the table of operators has it.
  const analysis::SliceNesting& nesting_without_frames();
  const analysis::LaunchLinks& links();
  // What the name of a Python frame says; other slices: nothing.
  names::PythonFrame frame(std::uint32_t slice);
  const std::vector<analysis::StepRange>& steps();
  // Looks only at the last step that began on the CPU at this time or before. Returns its number if it has not ended yet.
  std::optional<std::int64_t> step_at(std::int64_t time_ns);
  // For GPU work: what step_at() returns for the start of its launch call.
  std::optional<std::int64_t> step_of_launch(std::uint32_t slice);
  // Per slice: the sum of the durations of GPU work whose op_of is that slice.
  std::int64_t device_ns(std::uint32_t slice);
  const std::vector<analysis::CollectiveCall>& collectives();
  const std::vector<std::int64_t>& collective_devices();

  // The innermost slice of a track that contains the time; kNone: none.
  SliceId slice_at(TrackId track, std::int64_t time_ns);
  // The first slice of the track that begins at the time or later; kNone: none.
  SliceId slice_after(TrackId track, std::int64_t time_ns) const;

  // All sets of arguments that events have. The rows of set i are [first_row[i], first_row[i + 1]).
  struct ArgSets {
    std::vector<ArgsId> ids;
    std::vector<std::uint32_t> first_row;  // one more than ids
  };
  const ArgSets& arg_sets();
  struct ArgPlace {
    ArgsId id;
    std::uint32_t field;
  };
  ArgPlace arg_at(std::uint32_t row);

 private:
  std::shared_ptr<const Trace> trace_;
  std::optional<analysis::SliceNesting> nesting_, nesting_without_frames_;
  std::optional<analysis::LaunchLinks> links_;
  std::optional<analysis::FrameTable> frames_;
  std::optional<analysis::Steps> steps_;
  std::optional<std::vector<std::int64_t>> device_ns_;
  std::optional<std::vector<analysis::CollectiveCall>> collectives_;
  std::vector<std::int64_t> collective_devices_;
  std::optional<ArgSets> arg_sets_;
  std::size_t last_set_ = 0;  // where arg_at() found its last answer
};

}  // namespace lanescope::sql

// Copies rows of one Trace into a TraceBuilder: texts, arguments, processes and tracks get the builder's
// own ids.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lanescope/model/trace.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope {

// Borrows both. Several copiers may fill one builder, one after the other. One thread.
class TraceCopier {
 public:
  // `pid_of` says which pid a process gets; without it, a process keeps its own.
  TraceCopier(const Trace& trace, TraceBuilder& builder,
              std::function<Scalar(ProcessId)> pid_of = {});

  // Adds `by` to the ids that join slices of one trace (correlation, External id, sequence number, ...),
  // so that the ids of several traces differ. An id of 0 or less means "none" and does not change.
  void shift_ids(std::int64_t by) { id_shift_ = by; }
  // The largest id copied so far, after the shift.
  std::int64_t largest_id() const { return largest_id_; }

  StringId copy(StringId id);
  Scalar copy(const Scalar& scalar);
  CategoryId copy(CategoryId id);
  ArgsId copy(ArgsId id);
  Scalar pid(ProcessId id);
  // Copies the name, labels and sort index of the process.
  void copy_process(ProcessId id);
  // The builder's track for this one. The first call for a track makes it, with its name.
  TrackId track(TrackId id);

 private:
  std::optional<std::int64_t> shifted(std::optional<std::int64_t> id);

  const Trace& trace_;
  TraceBuilder& builder_;
  std::function<Scalar(ProcessId)> pid_of_;
  std::int64_t id_shift_ = 0, largest_id_ = 0;
  std::vector<TrackId> tracks_;
};

}  // namespace lanescope

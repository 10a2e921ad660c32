// Copies rows of one Trace into a TraceBuilder: texts, arguments, processes and tracks get the builder's
// own ids.
#pragma once
#include <functional>
#include <vector>

#include "lanescope/model/trace.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope {

// Borrows both. Several copiers may fill one builder, one after the other. One thread.
class TraceCopier {
 public:
  // `pid_of` says which pid a process gets; without it, its own.
  TraceCopier(const Trace& trace, TraceBuilder& builder,
              std::function<Scalar(ProcessId)> pid_of = {});

  StringId copy(StringId id);
  Scalar copy(const Scalar& scalar);
  CategoryId copy(CategoryId id);
  ArgsId copy(ArgsId id);
  Scalar pid(ProcessId id);
  // Name, labels and place in the order.
  void copy_process(ProcessId id);
  // Made with its name on first use.
  TrackId track(TrackId id);

 private:
  const Trace& trace_;
  TraceBuilder& builder_;
  std::function<Scalar(ProcessId)> pid_of_;
  std::vector<TrackId> tracks_;
};

}  // namespace lanescope

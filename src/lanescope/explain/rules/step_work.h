// What several rules ask of the steady steps: their kernels, by training phase, and the waits of
// the GPU while the CPU was in certain code.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/analysis/kernel_name.h"
#include "lanescope/analysis/training_phases.h"
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Kernels, copies and memsets of the main device that began in steady steps, in order of start.
std::vector<const analysis::DeviceWork*> steady_work(const Facts& facts);

// Nanoseconds of the main device's wall that these hold: a union, overlaps once.
std::int64_t union_ns(const std::vector<const analysis::DeviceWork*>& works);

// Python frames take part, so that time in them belongs to the range around them.
std::vector<analysis::Phase> phases_of(const Facts& facts);

struct CompiledFacts {
  analysis::SliceNesting nesting;  // with Python frames
  analysis::CompiledCode code;
};
CompiledFacts compiled_facts_of(const Facts& facts);

// Time of steady steps in which the GPU waited for the CPU (host_late_stretches) while the
// launching thread's innermost event was one that `wanted` accepts.
struct WaitTime {
  std::int64_t time_ns = 0;
  SliceId longest = kNone<SliceId>;  // the event with most of it, where nothing else is said
};
template <typename Wanted>
WaitTime waiting_while(const Facts& facts, Wanted wanted) {
  WaitTime found;
  std::int64_t most_ns = 0;
  for (const HostStretch& stretch : host_late_stretches(facts))
    facts.host->visit(stretch.thread, stretch.start_ns, stretch.end_ns,
                      [&](SliceId slice, std::int64_t from, std::int64_t to) {
                        if (slice == kNone<SliceId> || !wanted(slice)) return;
                        found.time_ns += to - from;
                        if (to - from <= most_ns) return;
                        most_ns = to - from;
                        found.longest = slice;
                      });
  return found;
}

// Time in which the loop asked its DataLoader for the next batch: of the GPU's waits for the CPU;
// without GPU work, of the steps. `longest`: the longest of these `__next__` ranges.
WaitTime waiting_for_batches(const Facts& facts);

// Parses each distinct kernel name once.
class KernelNames {
 public:
  explicit KernelNames(const Trace& trace) : trace_(trace) {}
  const analysis::KernelName& of(SliceId kernel);

 private:
  const Trace& trace_;
  std::vector<std::unique_ptr<analysis::KernelName>> by_string_;
};

// The nearest ancestor, or itself, whose name `wanted` accepts; kNone: there is none. Python frames
// are no ancestors here.
template <typename Wanted>
SliceId ancestor_where(const Facts& facts, SliceId slice, Wanted wanted) {
  while (slice != kNone<SliceId> && !wanted(facts.trace->name(slice)))
    slice = facts.nesting.parent[raw(slice)];
  return slice;
}
// The same: whose name starts with `prefix`.
SliceId ancestor_named(const Facts& facts, SliceId slice, std::string_view prefix);

// The part of these (any order, overlaps allowed) in which the main device ran nothing.
std::int64_t device_idle_during(const Facts& facts, std::vector<analysis::Window> windows);

// Idle time of the main device in steady steps between two moments that belongs to launching what
// runs there: not launched yet, launch latency, pauses between queued work.
std::int64_t launch_waits_within(const Facts& facts, std::int64_t start_ns, std::int64_t end_ns);

// Time by name, for evidence.
struct Named {
  std::uint64_t count = 0;
  std::int64_t time_ns = 0, most_ns = -1;
  SliceId longest = kNone<SliceId>;
  void add(SliceId slice, std::int64_t ns_value) {
    ++count;
    time_ns += ns_value;
    if (ns_value <= most_ns) return;
    most_ns = ns_value;
    longest = slice;
  }
};
// Adds the three with most time, with their lines.
void add_named(const Facts& facts, const std::map<std::string, Named>& by_name, Finding& finding);

// Adds as evidence the three that the CPU spent most more time in during one step than in the mean
// of the other steady ones (of all others, if there are none), on the thread that marks it: each a
// twentieth of `excess_ns` or more.
void add_more_than_usual(const Facts& facts, std::size_t step, std::int64_t excess_ns,
                         Finding& finding);

// For a finding that may be why one step took so long: how much of its time on the main device lies
// in these times. Of the CPU's times counts what the device was idle in, of the device's all.
// Nothing is added when there is no such step.
void explain_long_step(const Facts& facts, std::vector<analysis::Window> cpu_windows,
                       std::vector<analysis::Window> device_windows, Finding& finding);

// Of a time the part that the long step did not hold the main device; all, when there is none.
std::int64_t outside_long_step(const Facts& facts, std::int64_t start_ns, std::int64_t end_ns);

// Length of the union; any order.
std::int64_t total_length(std::vector<analysis::Window> windows);

// The parts of stretches that lie in windows; both in order of time.
std::vector<HostStretch> parts_within(const std::vector<HostStretch>& all,
                                      const std::vector<analysis::Window>& windows);

// "train.py(31): step", the innermost Python frame of the program itself around a slice, from
// frames or from a recorded call stack; empty without stacks. O(slices of the thread).
std::string python_line(const Facts& facts, SliceId slice);

// Adds "called at {}" where the trace has stacks.
void add_line(const Facts& facts, SliceId slice, Sentence& sentence);

}  // namespace lanescope::explain::rules

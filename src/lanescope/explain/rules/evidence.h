// Lines of evidence that several rules add, and where in the program an event was called.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// Adds "CPU meanwhile" evidence: the three largest host shares.
void add_host_evidence(const Facts& facts, const std::vector<HostShare>& shares, Finding& finding);

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

// Compares one step with the mean of the other steady steps (of all others, if none is steady), on
// the thread that marks it. Adds as evidence the three names in which the CPU spent most additional
// time, each with a twentieth of `excess_ns` or more.
void add_more_than_usual(const Facts& facts, std::size_t step, std::int64_t excess_ns,
                         Finding& finding);

// "train.py(31): step", the innermost Python frame of the program itself around a slice, from
// frames or from a recorded call stack; empty without stacks. O(slices of the thread).
std::string python_line(const Facts& facts, SliceId slice);

// Adds "called at {}" where the trace has stacks.
void add_line(const Facts& facts, SliceId slice, Sentence& sentence);
// The slice as evidence: `what` it is, and where it was called.
Evidence called_at(const Facts& facts, SliceId slice, Sentence what);

}  // namespace lanescope::explain::rules

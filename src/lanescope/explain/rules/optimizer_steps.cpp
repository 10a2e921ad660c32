#include "lanescope/explain/rules/optimizer_steps.h"

#include <algorithm>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {
namespace {

// torch before 1.11 writes its own ranges as operators.
std::vector<SliceId> find_optimizer_steps(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<SliceId> found;
  for (const SliceId id : slices_named(facts, names::is_optimizer_step))
    if (is_front_end(trace.kind(id))) found.push_back(id);
  sort_rows(found.begin(), found.end(),
            [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
  return found;
}

std::vector<std::int64_t> find_optimizer_steps_ns(const Facts& facts) {
  std::vector<std::int64_t> starts_ns;
  for (const SliceId step : optimizer_steps(facts))
    starts_ns.push_back(facts.trace->start_ns(step));
  return starts_ns;
}

}  // namespace

const std::vector<SliceId>& optimizer_steps(const Facts& facts) {
  return made_once<find_optimizer_steps>(facts);
}

const std::vector<std::int64_t>& optimizer_steps_ns(const Facts& facts) {
  return made_once<find_optimizer_steps_ns>(facts);
}

SliceId optimizer_step_around(const Facts& facts, SliceId slice) {
  return ancestor_where(facts, slice, names::is_optimizer_step);
}

}  // namespace lanescope::explain::rules

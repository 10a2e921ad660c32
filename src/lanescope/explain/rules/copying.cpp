#include "lanescope/explain/rules/copying.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "lanescope/analysis/memory_timeline.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/cpu_waits.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

bool is_between_cpu_and_gpu(std::string_view name) {
  for (const std::string_view word :
       {"HtoD", "DtoH", "HostToDevice", "DeviceToHost", "Pageable", "Pinned"})
    if (name.find(word) != std::string_view::npos) return true;
  return false;
}

// Operators that only copy. aten::item asks for a value and belongs to host-sync.
bool only_copies(std::string_view op) {
  return op == "aten::copy_" || op == "aten::_to_copy" || op == "aten::to";
}

// Marks the copy's call and the operators around it that only copy.
void mark_copying(const Facts& facts, SliceId work, std::vector<bool>& marked) {
  const SliceId launch = facts.links.launch_of[raw(work)];
  const SliceId op = facts.links.op_of[raw(work)];
  bool is_copy = op == kNone<SliceId>;
  for (SliceId up = op; up != kNone<SliceId>; up = facts.nesting.parent[raw(up)]) {
    if (!only_copies(facts.trace->name(up))) break;
    is_copy = true;
    marked[raw(up)] = true;
  }
  if (is_copy && launch != kNone<SliceId>) marked[raw(launch)] = true;
}

Copying find_copying(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& timeline = facts.device().timeline;
  Copying found;
  std::vector<bool> marked(trace.slices().size(), false);
  std::int64_t counted_until = 0;
  for (const DeviceWork& work : timeline.work) {
    if (work.work != WorkClass::kCopy || !inside(facts.steady_windows, work.start_ns) ||
        !is_between_cpu_and_gpu(trace.name(work.slice)))
      continue;
    ++found.copies;
    const auto size = trace.slice_args(work.slice).integer(ArgKey::kBytes);
    found.all_sized &= size.has_value();
    found.bytes = analysis::add_bytes(found.bytes, std::max<std::int64_t>(0, size.value_or(0)));
    found.all_pinned &= trace.name(work.slice).find("Pageable") == std::string_view::npos;
    // Copies may overlap: each moment counts once.
    const std::int64_t from = std::max(work.start_ns, counted_until);
    if (from < work.end_ns)
      found.alone_ns +=
          timeline.time_within(from, work.end_ns)[static_cast<std::size_t>(WorkClass::kCopy)];
    counted_until = std::max(counted_until, work.end_ns);
    if (found.longest == kNone<SliceId> || trace.dur_ns(work.slice) > trace.dur_ns(found.longest))
      found.longest = work.slice;
    mark_copying(facts, work.slice, marked);
  }
  if (found.copies == 0) return found;
  // What such an operator calls is a part of it. Parents have lower ids than their children.
  for (std::uint32_t i = 0; i < marked.size(); ++i)
    if (const SliceId around = facts.nesting.parent[i];
        around != kNone<SliceId> && marked[raw(around)])
      marked[i] = true;
  found.waiting_ns =
      waiting_while(facts, [&](SliceId slice) { return marked[raw(slice)]; }).time_ns;
  return found;
}

}  // namespace

const Copying& copying_of(const Facts& facts) { return made_once<find_copying>(facts); }

std::int64_t waiting_in_copies_ns(const Facts& facts) {
  return find_bound(facts) == Bound::kCopy ? copying_of(facts).waiting_ns : 0;
}

}  // namespace lanescope::explain::rules

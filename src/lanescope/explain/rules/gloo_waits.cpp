// Problem: Gloo copies gradients to the CPU and sends them on threads of its own; the thread that waits for it has no event, so the
// GPU's idleness looks like code without events. Idea: the idle time of the device inside the collectives' ranges, without the
// time in which another thread still works for the step.
#include "lanescope/explain/rules/gloo_waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lanescope/analysis/cpu_collectives.h"
#include "lanescope/analysis/interval_union.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/step_state.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

bool is_collective_range(const Trace& trace, SliceId slice) {
  return is_front_end(trace.kind(slice)) && analysis::cpu_collective_library(trace.name(slice));
}

// Calls `visit` with each part of a gap of the main device that lies in these windows (disjoint, in order).
template <typename Visit>
void visit_idle_parts(const Facts& facts, const std::vector<Window>& windows, Visit visit) {
  auto part = facts.device().gaps.parts.begin();
  const auto end = facts.device().gaps.parts.end();
  for (const Window& window : windows) {
    while (part != end && part->end_ns <= window.start_ns) ++part;
    for (auto each = part; each != end && each->start_ns < window.end_ns; ++each)
      visit(
          Window{std::max(window.start_ns, each->start_ns), std::min(window.end_ns, each->end_ns)},
          each->cause);
  }
}

GlooWaits find_gloo_waits(const Facts& facts) {
  const Trace& trace = *facts.trace;
  GlooWaits found;
  std::set<TrackId> threads;  // of the collectives
  std::vector<Window> running, early;
  std::map<std::size_t, std::int64_t> last_forward_ns;  // by step
  const auto is_looked_at = [](std::string_view name) {
    return name == "DistributedDataParallel.forward" || analysis::cpu_collective_library(name);
  };
  for (const SliceId slice : slices_named(facts, is_looked_at)) {
    if (!is_front_end(trace.kind(slice)) ||
        steady_step_at(facts, trace.start_ns(slice)) == ~std::size_t{0})
      continue;
    if (trace.name(slice) == "DistributedDataParallel.forward") {
      ++found.forwards;
      std::int64_t& last_ns = last_forward_ns[steady_step_at(facts, trace.start_ns(slice))];
      last_ns = std::max(last_ns, trace.start_ns(slice));
    }
    const char* library = analysis::cpu_collective_library(trace.name(slice));
    if (!library) continue;
    found.library = library;
    ++found.count;
    threads.insert(trace.slices().track[raw(slice)]);
    running.push_back({trace.start_ns(slice), trace.end_ns(slice)});
    if (found.longest == kNone<SliceId> || trace.dur_ns(slice) > trace.dur_ns(found.longest))
      found.longest = slice;
  }
  if (found.count == 0) return found;
  for (const Window& window : running)
    if (const auto last = last_forward_ns.find(steady_step_at(facts, window.start_ns));
        last != last_forward_ns.end() && window.start_ns < last->second)
      early.push_back(window);
  const std::vector<Window> steady = steady_parts(facts, joined(std::move(running)));
  for (const Window& window : steady) found.time_ns += window.length_ns();
  analysis::IntervalUnion working;  // other threads, in operators and calls
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId slice{i};
    const CategoryKind kind = trace.kind(slice);
    if ((kind != CategoryKind::kCpuOp && !is_api_call(kind)) ||
        trace.name(slice).starts_with("ProfilerStep") ||
        threads.contains(trace.slices().track[i]) || is_collective_range(trace, slice))
      continue;
    working.add(trace.start_ns(slice), trace.end_ns(slice));
  }
  working.finish();
  const auto waiting_in = [&](const Window& part) {
    return part.length_ns() - working.length_within_ns(part.start_ns, part.end_ns);
  };
  visit_idle_parts(facts, steady, [&](const Window& part, analysis::IdleCause cause) {
    found.waiting_ns += waiting_in(part);
    found.waiting_by_cause[static_cast<std::size_t>(cause)] += waiting_in(part);
  });
  visit_idle_parts(
      facts, steady_parts(facts, joined(std::move(early))),
      [&](const Window& part, analysis::IdleCause) { found.early_waiting_ns += waiting_in(part); });
  return found;
}

}  // namespace

std::uint64_t GlooWaits::sends_per_step(const Facts& facts) const {
  const auto steps = static_cast<std::uint64_t>(facts.selection.steady.size());
  if (!facts.steps.marked || steps == 0 || forwards < 2 * steps || forwards % steps != 0) return 0;
  return count >= forwards && count % forwards == 0 ? forwards / steps : 0;
}

const GlooWaits& gloo_waits(const Facts& facts) { return made_once<find_gloo_waits>(facts); }

bool is_copy_of_host_collective(const Facts& facts, SliceId work) {
  const std::string_view copy = facts.trace->name(work);
  return (copy.starts_with("Memcpy DtoH") || copy.starts_with("Memcpy HtoD")) &&
         ancestor_where(facts, facts.links.op_of[raw(work)], [](std::string_view name) {
           return name.starts_with("c10d::") || analysis::cpu_collective_library(name);
         }) != kNone<SliceId>;
}

bool gloo_waits_matter(const Facts& facts) {
  return facts.main_device && wall_share(facts, gloo_waits(facts).waiting_ns) >= 0.1;
}

std::int64_t waiting_for_gloo_ns(const Facts& facts) {
  return gloo_waits_matter(facts) ? gloo_waits(facts).waiting_ns : 0;
}

IdleTimes idle_without_gloo(const Facts& facts) {
  IdleTimes idle = facts.wall.idle;
  if (!gloo_waits_matter(facts)) return idle;
  const IdleTimes& waiting = gloo_waits(facts).waiting_by_cause;
  for (std::size_t i = 0; i < idle.size(); ++i) idle[i] -= waiting[i];
  return idle;
}

std::int64_t waiting_for_cpu_in(const Facts& facts, const IdleTimes& idle) {
  using enum analysis::IdleCause;
  std::int64_t sum_ns = 0;
  for (const analysis::IdleCause cause : {kHostLate, kAfterSync, kLaunchLatency})
    sum_ns += idle[static_cast<std::size_t>(cause)];
  if (facts.steps.marked)
    for (const analysis::IdleCause cause : {kBeforeFirstWork, kAfterLastWork})
      sum_ns += idle[static_cast<std::size_t>(cause)];
  return sum_ns;
}

std::int64_t waiting_for_cpu_without_gloo_ns(const Facts& facts) {
  return waiting_for_cpu_in(facts, idle_without_gloo(facts));
}

Sentence gloo_headline(const Facts& facts) {
  if (facts.trace->import_stats().is_truncated() || !gloo_waits_matter(facts) ||
      find_bound(facts) != Bound::kCommunication)
    return {};
  const GlooWaits& found = gloo_waits(facts);
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  return say(facts,
             "Communication-bound: of the {} [a step took], the GPU was idle for {} ({}) while {} "
             "ran collectives on the CPU.",
             {linked(ns(facts.per_step(wall_ns)), shows::kStep),
              linked(ns(facts.per_step(found.waiting_ns)), found.longest),
              linked(ratio(found.waiting_ns, wall_ns), found.longest), text(found.library)});
}

Sentence gloo_waits_note(const Facts& facts) {
  if (!gloo_waits_matter(facts)) return {};
  const GlooWaits& found = gloo_waits(facts);
  return say("The GPU is idle for {} of it while {} runs collectives on the CPU.",
             {linked(ns(facts.per_step(found.waiting_ns)), found.longest), text(found.library)});
}

}  // namespace lanescope::explain::rules

// Where a measured number comes from, for limits that are broken.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/compare.h"
#include "lanescope/explain/measures.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain {

using analysis::DeviceWork;
using analysis::Gap;
using analysis::IdleCause;
using analysis::IdlePart;
using analysis::WorkClass;

namespace {

constexpr std::size_t kMostEvidence = 3;

struct Pile {
  std::uint64_t count = 0;
  std::int64_t time_ns = 0, size_bytes = 0;
  SliceId longest = kNone<SliceId>;
};

void add(Pile& pile, const Trace& trace, SliceId slice) {
  ++pile.count;
  pile.time_ns += trace.dur_ns(slice);
  pile.size_bytes += trace.slice_args(slice).integer(ArgKey::kBytes).value_or(0);
  if (pile.longest == kNone<SliceId> || trace.dur_ns(slice) > trace.dur_ns(pile.longest))
    pile.longest = slice;
}

using Piles = std::map<std::string, Pile>;

// "NAME x12: 3.000us per step", by `size`, largest first.
std::vector<Evidence> evidence_of(const Facts& facts, const Piles& piles, bool with_bytes,
                                  const std::function<std::int64_t(const Pile&)>& size) {
  std::vector<std::pair<std::string, Pile>> ranked(piles.begin(), piles.end());
  sort_rows(ranked.begin(), ranked.end(),
            [&](const auto& a, const auto& b) { return size(a.second) > size(b.second); });
  std::vector<Evidence> evidence;
  for (std::size_t i = 0; i < ranked.size() && i < kMostEvidence; ++i) {
    const auto& [label, pile] = ranked[i];
    Evidence each{pile.longest,
                  say(facts, "{} x{} [in {} steps]: {} [per step]",
                      {kernel(label), count(pile.count), count(facts.selection.steady.size()),
                       ns(facts.per_step(pile.time_ns))})};
    if (with_bytes) {
      append(each.text, say(facts, ", {} [per step]", {bytes(facts.per_step(pile.size_bytes))}));
    }
    evidence.push_back(std::move(each));
  }
  return evidence;
}

std::vector<Evidence> work_evidence(const Facts& facts,
                                    const std::function<bool(const DeviceWork&)>& wanted,
                                    bool by_count, bool with_bytes) {
  Piles piles;
  for (const DeviceWork& work : facts.device().timeline.work)
    if (inside(facts.steady_windows, work.start_ns) && wanted(work))
      add(piles[std::string(facts.trace->name(work.slice))], *facts.trace, work.slice);
  return evidence_of(facts, piles, with_bytes, [&](const Pile& pile) {
    return with_bytes ? pile.size_bytes
           : by_count ? static_cast<std::int64_t>(pile.count)
                      : pile.time_ns;
  });
}

// The longest gaps with one of some causes: length, cause, and the work after it.
std::vector<Evidence> idle_evidence(const Facts& facts,
                                    const std::function<bool(IdleCause)>& wanted) {
  struct Found {
    const Gap* gap;
    IdlePart part;
  };
  std::vector<Found> found;
  for (const Gap& gap : facts.device().gaps.gaps)
    for (const IdlePart& part : facts.device().gaps.parts_of(gap))
      if (wanted(part.cause) && inside(facts.steady_windows, part.start_ns))
        found.push_back({&gap, part});
  const auto longer = [](const Found& a, const Found& b) {
    return a.part.end_ns - a.part.start_ns > b.part.end_ns - b.part.start_ns;
  };
  const std::size_t shown = std::min(found.size(), kMostEvidence);
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown), found.end(),
                    longer);
  std::vector<Evidence> evidence;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [gap, part] = found[i];
    Evidence each{gap->next_work, say("idle {}: {}", {ns(part.end_ns - part.start_ns),
                                                      text(idle_cause_phrase(part.cause))})};
    if (gap->next_work != kNone<SliceId>) {
      const SliceId op = facts.links.op_of[raw(gap->next_work)];
      each.text.pattern += ", before {}";
      each.text.values.push_back(
          kernel(facts.trace->name(op == kNone<SliceId> ? gap->next_work : op)));
    }
    if (part.blame != kNone<SliceId>) {
      each.slice = part.blame;
      each.text.pattern += ", after {}";
      each.text.values.push_back(name(facts.trace->name(part.blame)));
    }
    evidence.push_back(std::move(each));
  }
  return evidence;
}

std::vector<Evidence> wall_evidence(const Facts& facts) {
  const auto& part = facts.wall.partition;
  std::vector<Evidence> evidence = {
      {kNone<SliceId>,
       say("per step: compute {}, communication alone {}, copies alone {}, idle {}",
           {ns(facts.per_step(part.compute_ns)), ns(facts.per_step(part.exposed_communication_ns)),
            ns(facts.per_step(part.exposed_copy_ns)), ns(facts.per_step(part.idle_ns))})}};
  const auto longest = std::max_element(
      facts.selection.steady.begin(), facts.selection.steady.end(),
      [&](std::size_t a, std::size_t b) {
        return facts.device().windows[a].length_ns() < facts.device().windows[b].length_ns();
      });
  if (longest != facts.selection.steady.end() && facts.steps.steps[*longest].number)
    evidence.push_back({facts.steps.steps[*longest].slice,
                        say("the longest is step {} with {}",
                            {text(std::to_string(*facts.steps.steps[*longest].number)),
                             ns(facts.device().windows[*longest].length_ns())})});
  return evidence;
}

// The time of the peak, and the largest allocation until then.
std::vector<Evidence> peak_evidence(const Facts& facts, ArgKey key) {
  const Trace& trace = *facts.trace;
  std::int64_t most = -1, at_ns = 0, largest = 0;
  for (std::uint32_t i = 0; i < trace.instants().size(); ++i) {
    if (!is_device_memory(facts, i)) continue;
    const ArgsView args = trace.args(trace.instants().args[i]);
    const auto value = args.integer(key);
    if (!value || *value <= most) continue;
    most = *value;
    at_ns = trace.instants().time_ns[i];
  }
  if (most < 0) return {};
  for (std::uint32_t i = 0; i < trace.instants().size() && trace.instants().time_ns[i] <= at_ns;
       ++i)
    if (is_device_memory(facts, i))
      largest = std::max(
          largest, trace.args(trace.instants().args[i]).integer(ArgKey::kMemoryBytes).value_or(0));
  return {{kNone<SliceId>,
           say("reached {} after the start of the window; the largest single allocation until then "
               "is {}",
               {ns(at_ns - trace.window_start_ns()), bytes(largest)})}};
}

// Grouped by the operator around the call, without one by the call.
std::vector<Evidence> call_evidence(const Facts& facts, const std::vector<SliceId>& calls) {
  Piles piles;
  for (const SliceId call : calls) {
    const SliceId op = facts.links.op_of[raw(call)];
    std::string label(facts.trace->name(call));
    if (op != kNone<SliceId>) {
      std::string around(facts.trace->name(op));
      if (around.starts_with("ProfilerStep#")) around = "ProfilerStep*";
      label += " in " + around;
    }
    add(piles[label], *facts.trace, call);
  }
  return evidence_of(facts, piles, false,
                     [](const Pile& pile) { return static_cast<std::int64_t>(pile.count); });
}

std::vector<SliceId> launch_calls(const Facts& facts) {
  std::vector<SliceId> calls;
  for (const DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch != kNone<SliceId> && inside(facts.steady_windows, work.start_ns))
      calls.push_back(launch);
  }
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  return calls;
}

}  // namespace

std::vector<Evidence> measure_evidence(const Facts& facts, const Measure& measure) {
  const std::string_view key = measure.key;
  if (!facts.main_device) return {};
  const auto of_kind = [&](CategoryKind kind) {
    return [&facts, kind](const DeviceWork& work) { return facts.trace->kind(work.slice) == kind; };
  };
  const auto of_class = [](WorkClass wanted) {
    return [wanted](const DeviceWork& work) { return work.work == wanted; };
  };
  if (key == "wall" || key == "median_wall" || key == "longest_wall") return wall_evidence(facts);
  if (key == "compute") return work_evidence(facts, of_class(WorkClass::kCompute), false, false);
  if (key == "exposed_communication")
    return work_evidence(facts, of_class(WorkClass::kCommunication), false, false);
  if (key == "exposed_copy") return work_evidence(facts, of_class(WorkClass::kCopy), false, false);
  if (key == "kernels") return work_evidence(facts, of_kind(CategoryKind::kKernel), true, false);
  if (key == "memsets") return work_evidence(facts, of_kind(CategoryKind::kGpuMemset), true, false);
  if (key == "copies") return work_evidence(facts, of_kind(CategoryKind::kGpuMemcpy), true, false);
  if (key == "copy_bytes")
    return work_evidence(facts, of_kind(CategoryKind::kGpuMemcpy), false, true);
  if (key == "peak_memory" || key == "peak_reserved")
    return peak_evidence(facts,
                         key == "peak_memory" ? ArgKey::kTotalAllocated : ArgKey::kTotalReserved);
  if (key == "host_waits") return call_evidence(facts, find_host_waits(facts));
  if (key == "launches") return call_evidence(facts, launch_calls(facts));
  if (key == "idle") return idle_evidence(facts, [](IdleCause) { return true; });
  if (key == "waiting_for_cpu")
    return idle_evidence(facts, [&](IdleCause cause) {
      return cause == IdleCause::kHostLate || cause == IdleCause::kAfterSync ||
             cause == IdleCause::kLaunchLatency ||
             (facts.steps.marked &&
              (cause == IdleCause::kBeforeFirstWork || cause == IdleCause::kAfterLastWork));
    });
  if (const auto cause = find_idle_cause(key))
    return idle_evidence(facts, [&](IdleCause each) { return each == *cause; });
  return {};
}

}  // namespace lanescope::explain

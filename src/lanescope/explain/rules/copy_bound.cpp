// Copies between the CPU's memory and the GPU are the largest part of a step.
#include <optional>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/copying.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// Shorter copies than this cost more for the call than for the data.
constexpr std::int64_t kSmallBytes = 64 * 1024;

std::optional<Copying> measure_copy_bound(const Facts& facts) {
  if (find_bound(facts) != Bound::kCopy) return std::nullopt;
  return copying_of(facts);
}

bool are_many_and_small(const Facts& facts, const Copying& found) {
  const auto copies = static_cast<std::int64_t>(found.copies);
  return facts.per_step(copies) >= 20 && found.all_sized && found.bytes / copies < kSmallBytes;
}

Finding tell_copy_bound(const Facts& facts, const Copying& found) {
  const auto& part = facts.wall.partition;
  const std::int64_t other_ns = facts.waiting_for_cpu_ns() - found.waiting_ns;
  Finding finding;
  finding.kind = FindingKind::kBound;
  finding.verdict = say(facts,
                        "Copy-bound: of the {} [a step takes], {} ({}) goes to copies between CPU "
                        "and GPU; the GPU computes {}",
                        {linked(ns(facts.per_step(part.wall_ns)), shows::kStep),
                         linked(ns(facts.per_step(found.time_ns())), shows::kCopies),
                         linked(ratio(found.time_ns(), part.wall_ns), shows::kCopies),
                         linked(ns(facts.per_step(part.compute_ns)), shows::kCompute)});
  append(finding.verdict, share_of(other_ns, part.wall_ns) >= 0.01
                              ? say(" and waits {} for the CPU to do other things.",
                                    {linked(ns(facts.per_step(other_ns)), shows::kIdle)})
                              : say("."));
  finding.at_stake_ns = facts.per_step(found.time_ns());
  finding.at_stake_ratio = share_of(found.time_ns(), part.wall_ns);
  finding.explains = {{"gpu-idle", facts.per_step(facts.waiting_for_cpu_ns())}};
  finding.arithmetic.push_back(
      say(facts,
          "only these copies ran: {}; the GPU had nothing to do while the CPU made such a copy or "
          "waited for it: {} [per step]",
          {ns(facts.per_step(found.alone_ns)), ns(facts.per_step(found.waiting_ns))}));
  finding.arithmetic.push_back(
      found.all_sized
          ? say(facts, "{} [copy|copies], {} [per step]",
                {count(a_step(facts, found.copies)), bytes(facts.per_step(found.bytes))})
          : say(facts, "{} [copy|copies] [in {} steps]",
                {count(found.copies), count(facts.selection.steady.size())}));
  finding.evidence.push_back(
      {found.longest, say("the longest: {}", {name(facts.trace->name(found.longest))})});
  if (are_many_and_small(facts, found)) {
    finding.try_next = {
        "make one copy of many: join the tensors on the side where they are (torch.stack, "
        "torch.cat), copy once, and split the result"};
    finding.action = say("Join the tensors, and copy once");
  } else if (found.all_pinned) {
    finding.try_next = {
        "start the copies a step ahead, on a stream of their own: the memory is pinned already",
        "copy less: smaller types, and nothing that the GPU can compute"};
    finding.action = say("Start the copies a step ahead, on their own stream; copy smaller types");
  } else {
    finding.try_next = {
        "keep on the GPU what the GPU needs again, and on the CPU what it never needs",
        "copy what must be copied from or to pinned memory, with non_blocking=True, while the GPU "
        "computes"};
    finding.action = say("Keep the data on the GPU; copy the rest with pinned memory, ahead");
  }
  finding.brief = say("Copies between CPU and GPU take most of the time");
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule copy_bound_rule = {
    .id = "copy-bound",
    .question = "do copies between CPU and GPU limit the step?",
    .meant_by = "transfer upload download pcie",
    .order = 25,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_copy_bound, tell_copy_bound>,
    .bounds_step = true,
    .is_regression = true,
};

}  // namespace lanescope::explain::rules

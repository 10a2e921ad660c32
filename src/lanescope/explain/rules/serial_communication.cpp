// Communication hardly overlaps with compute: both use one stream, or the program waits before and after it.
#include <algorithm>
#include <optional>
#include <set>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

struct SerialCommunication {
  std::int64_t total_ns = 0;
  std::int64_t exposed_ns = 0;
  std::uint64_t calls = 0;
  std::uint64_t on_compute_stream = 0;
  SliceId longest = kNone<SliceId>;
  std::int64_t longest_ns = 0;
  bool one_stream = false;
};

std::optional<SerialCommunication> measure_serial_communication(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& timeline = facts.device().timeline;
  std::set<std::uint32_t> compute_tracks;
  for (const DeviceWork& work : timeline.work)
    if (work.work == WorkClass::kCompute)
      compute_tracks.insert(raw(trace.slices().track[raw(work.slice)]));
  std::int64_t total_ns = 0, exposed_ns = 0, counted_until = 0, longest_ns = -1;
  std::uint64_t calls = 0, on_compute_stream = 0;
  SliceId longest = kNone<SliceId>;
  for (const DeviceWork& work : timeline.work) {
    if (work.work != WorkClass::kCommunication || !inside(facts.steady_windows, work.start_ns))
      continue;
    ++calls;
    on_compute_stream += compute_tracks.count(raw(trace.slices().track[raw(work.slice)]));
    const std::int64_t from = std::max(work.start_ns, counted_until);
    counted_until = std::max(counted_until, work.end_ns);
    if (from >= work.end_ns) continue;
    const std::int64_t alone = timeline.time_within(
        from, work.end_ns)[static_cast<std::size_t>(WorkClass::kCommunication)];
    total_ns += work.end_ns - from;
    exposed_ns += alone;
    if (alone > longest_ns) {
      longest_ns = alone;
      longest = work.slice;
    }
  }
  const auto& part = facts.wall.partition;
  if (calls < 3 || share_of(exposed_ns, total_ns) < 0.9 ||
      share_of(exposed_ns, part.wall_ns) < 0.05 || part.compute_ns == 0)
    return std::nullopt;
  return SerialCommunication{total_ns,
                             exposed_ns,
                             calls,
                             on_compute_stream,
                             longest,
                             longest_ns,
                             on_compute_stream * 2 > calls};
}

Finding tell_serial_communication(const Facts& facts, const SerialCommunication& measured) {
  const Trace& trace = *facts.trace;
  const auto& [total_ns, exposed_ns, calls, on_compute_stream, longest, longest_ns, one_stream] =
      measured;
  const auto& part = facts.wall.partition;
  Finding finding;
  finding.verdict = say(
      facts, "Communication hardly overlaps with compute: of {} [per step] {} are exposed. {}",
      {ns(facts.per_step(total_ns)), ratio(exposed_ns, total_ns),
       text(
           one_stream
               ? "It is on the stream that computes, so the two cannot overlap."
               : "It has a stream of its own, so waits before and after it prevent the overlap.")});
  // At most the smaller of the two can be hidden.
  const std::int64_t stake_ns = std::min(exposed_ns, part.compute_ns);
  finding.at_stake_ns = facts.per_step(stake_ns);
  finding.at_stake_ratio = share_of(stake_ns, part.wall_ns);
  finding.arithmetic.push_back(
      say(facts,
          "compute takes {} [per step] and can hide at most as much communication; kernels that "
          "overlap with communication take longer themselves",
          {ns(facts.per_step(part.compute_ns))}));
  finding.arithmetic.push_back(
      say(facts, "{} of {} communication [kernel runs|kernels run] on a stream that also computes",
          {count(on_compute_stream), count(calls)}));
  finding.evidence.push_back(
      {longest, say("{}: {} alone", {kernel(trace.name(longest)), ns(longest_ns)})});
  // If one call, or a few, sum all gradients, they begin when the last gradient is ready.
  const bool has_few_calls = facts.per_step(static_cast<std::int64_t>(calls)) <= 3;
  finding.try_next = {
      one_stream
          ? "call the collective with async_op=True and wait() where its result is needed, or "
            "on a stream of its own"
      : has_few_calls
          ? "split it, so that the first part starts while backward runs: DDP's buckets "
            "(bucket_cap_mb), FSDP's units with backward_prefetch; wait() only where the result is "
            "needed"
          : "start each one as soon as its input is ready (DDP does it while backward runs, FSDP "
            "with backward_prefetch), and wait() only where the result is needed",
      "overlap tensor-parallel layers across micro-batches: each layer needs its sum at once"};
  finding.confidence = facts.confidence();
  finding.sample_count = calls;
  finding.sample_noun = "call";
  finding.action =
      one_stream
          ? say("Call the collective with async_op=True, and wait() where its result is needed")
      : has_few_calls
          ? say("Split the collective, and start its first part while backward runs: DDP buckets")
          : say("Start each collective earlier, as soon as its input is ready");
  finding.brief = say("Communication hardly overlaps with compute");
  return finding;
}

}  // namespace

extern constinit const Rule serial_communication_rule = {
    .id = "serial-communication",
    .question = "why does communication not overlap with compute?",
    .order = 410,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_serial_communication, tell_serial_communication>,
    .is_regression = true,
    .fix = Fix::kCommunication,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules

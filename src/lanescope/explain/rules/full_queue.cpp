// Launch calls wait because the GPU's queue is full.
#include <algorithm>
#include <optional>

#include "lanescope/explain/rules/queued_launches.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct FullQueue {
  std::uint64_t held = 0;  // launch calls
  std::int64_t held_ns = 0;
  std::uint64_t deepest = 0;
  SliceId longest = kNone<SliceId>;
  bool any_free = false;      // a call found room in the queue
  std::int64_t usual_ns = 0;  // of those that did
};

// The queue of a stream holds about a thousand launches; the next call waits for a free place.
std::optional<FullQueue> measure_full_queue(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::vector<QueuedLaunch>& launches = queued_launches(facts);
  std::vector<std::int64_t> free_lengths;
  for (const QueuedLaunch& launch : launches)
    if (launch.queued < kFullQueue) free_lengths.push_back(trace.dur_ns(launch.call));
  if (free_lengths.size() == launches.size()) return std::nullopt;
  const bool any_free = !free_lengths.empty();
  const std::int64_t usual_ns =
      any_free ? analysis::lower_median(std::move(free_lengths)) : kUsualLaunchNs;
  std::uint64_t held = 0, deepest = 0;
  std::int64_t held_ns = 0;
  SliceId longest = kNone<SliceId>;
  for (const QueuedLaunch& launch : launches) {
    const std::int64_t length = trace.dur_ns(launch.call);
    deepest = std::max(deepest, launch.queued);
    if (launch.queued < kFullQueue || length < 20'000 || length < 5 * usual_ns) continue;
    ++held;
    held_ns += length;
    if (longest == kNone<SliceId> || length > trace.dur_ns(longest)) longest = launch.call;
  }
  std::int64_t cpu_ns = 0;
  for (const auto& window : facts.steady_cpu_windows()) cpu_ns += window.length_ns();
  if (held < 3 || share_of(held_ns, cpu_ns) < 0.05) return std::nullopt;
  return FullQueue{.held = held,
                   .held_ns = held_ns,
                   .deepest = deepest,
                   .longest = longest,
                   .any_free = any_free,
                   .usual_ns = usual_ns};
}

Finding tell_full_queue(const Facts& facts, const FullQueue& found) {
  const Trace& trace = *facts.trace;
  Finding finding;
  finding.kind = FindingKind::kNormal;
  finding.verdict = say(facts,
                        "{} [launch call|launch calls] took up to {} because the GPU's queue was "
                        "full ({} launches in it): the CPU waits for the GPU there, and shorter "
                        "calls would change nothing.",
                        {count(found.held), ns(trace.dur_ns(found.longest)), count(found.deepest)});
  finding.arithmetic.push_back(
      found.any_free
          ? say(facts,
                "these calls took {} [per step]; with room in the queue one takes {} in the median",
                {ns(facts.per_step(found.held_ns)), ns(found.usual_ns)})
          : say(facts,
                "these calls took {} [per step]; no call of the steady steps found room in the "
                "queue; a launch usually takes a few us",
                {ns(facts.per_step(found.held_ns))}));
  finding.evidence.push_back(
      {found.longest, say("the longest of them: {}", {name(trace.name(found.longest))})});
  finding.try_next = {"change nothing on the CPU: the GPU is the limit"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.held;
  finding.sample_noun = "launch call";
  return finding;
}

}  // namespace

extern constinit const Rule full_queue_rule = {
    .id = "full-queue",
    .question = "do launch calls wait for a full queue?",
    .order = 330,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_full_queue, tell_full_queue>,
};

}  // namespace lanescope::explain::rules

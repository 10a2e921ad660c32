// CUDA_LAUNCH_BLOCKING=1, left from a search for an error: each launch waits until its kernel is done, so the CPU never
// works while the GPU does.
#include "lanescope/explain/rules/launch_waits.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// Shorter kernels may end before their launch call returns, even if it does not wait.
constexpr std::int64_t kLongKernelNs = 10'000;
constexpr std::int64_t kClockToleranceNs = 1'000;
constexpr std::uint64_t kFewestLaunches = 10;
constexpr double kLeastBlockingLaunchesShare = 0.02;

struct BlockingLaunches {
  std::uint64_t long_kernels = 0, covered = 0;
  std::int64_t busy_ns = 0, waiting_ns = 0;
  SliceId longest = kNone<SliceId>;  // a launch call
  std::int64_t saved_ns() const { return std::min(busy_ns, waiting_ns); }
};

BlockingLaunches count_blocking_launches(const Facts& facts,
                                         const std::vector<const analysis::DeviceWork*>& works) {
  const Trace& trace = *facts.trace;
  BlockingLaunches found;
  for (const analysis::DeviceWork* work : works) {
    const SliceId call = facts.links.launch_of[raw(work->slice)];
    if (call == kNone<SliceId> || trace.kind(work->slice) != CategoryKind::kKernel ||
        work->end_ns - work->start_ns < kLongKernelNs ||
        facts.links.launched_by(call).size() != 1 ||
        !trace.api_call(call).does(api_effect::kStartsKernels))
      continue;
    ++found.long_kernels;
    if (trace.start_ns(call) > work->start_ns ||
        trace.end_ns(call) + kClockToleranceNs < work->end_ns)
      continue;
    ++found.covered;
    if (found.longest == kNone<SliceId> || trace.dur_ns(call) > trace.dur_ns(found.longest))
      found.longest = call;
  }
  return found;
}

bool nearly_all_block(const BlockingLaunches& found) {
  return found.covered >= kFewestLaunches && found.covered * 20 >= found.long_kernels * 19;
}

std::optional<BlockingLaunches> measure_blocking_launches(const Facts& facts) {
  const auto& works = steady_work(facts);
  BlockingLaunches found = count_blocking_launches(facts, works);
  if (!nearly_all_block(found)) return std::nullopt;
  found.busy_ns = union_ns(works);
  found.waiting_ns = facts.waiting_for_cpu_ns();
  if (share_of(found.saved_ns(), facts.steady_wall_ns()) < kLeastBlockingLaunchesShare)
    return std::nullopt;
  return found;
}

Finding tell_blocking_launches(const Facts& facts, const BlockingLaunches& found) {
  const std::int64_t saved_ns = facts.per_step(found.saved_ns());
  Finding finding;
  finding.verdict =
      say(facts,
          "Each launch waits until its kernel is done, as with CUDA_LAUNCH_BLOCKING=1: {} of {} "
          "kernels of 10 us or more end before their launch call returns. CPU and GPU never work "
          "at the same time, which costs up to {} [per step] ({}).",
          {count(found.covered), count(found.long_kernels), ns(saved_ns),
           ratio(found.saved_ns(), facts.steady_wall_ns())});
  finding.at_stake_ns = saved_ns;
  finding.at_stake_ratio = share_of(found.saved_ns(), facts.steady_wall_ns());
  finding.arithmetic.push_back(
      say(facts,
          "the smaller of the GPU's work {} and its waiting for the CPU {} [per step]: one could "
          "happen during the other",
          {ns(facts.per_step(found.busy_ns)), ns(facts.per_step(found.waiting_ns))}));
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest launch call")));
  finding.try_next = {
      "unset CUDA_LAUNCH_BLOCKING: in the shell, a job script, a container or os.environ",
      "some debuggers and profilers make launches wait, too"};
  finding.brief = say("Each launch waits until its kernel is done");
  finding.action = say("Unset CUDA_LAUNCH_BLOCKING, which is for finding errors");
  finding.confidence = facts.confidence();
  finding.sample_count = found.long_kernels;
  finding.sample_noun = "kernel";
  // While each launch waits, the trace does not show what launches cost.
  const std::int64_t waiting_ns = facts.per_step(found.waiting_ns);
  finding.explains = {{"host-sync", saved_ns},
                      {"full-queue", saved_ns},
                      {"slow-launches", waiting_ns},
                      {"host-bound", waiting_ns}};
  return finding;
}

}  // namespace

bool launches_block(const Facts& facts) {
  return facts.main_device && nearly_all_block(count_blocking_launches(facts, steady_work(facts)));
}

extern constinit const Rule blocking_launches_rule = {
    .id = "blocking-launches",
    .question = "does each launch wait for its kernel?",
    .meant_by = "cuda_launch_blocking",
    .order = 82,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_blocking_launches, tell_blocking_launches>,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules

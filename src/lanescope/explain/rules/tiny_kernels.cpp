// There are so many kernels of a few microseconds that launching them takes most of the time.
#include <optional>
#include <vector>

#include "lanescope/explain/owner_rounds.h"
#include "lanescope/explain/rules/launch_kind.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {

namespace {

struct TinyKernels {
  std::int64_t waiting_ns = 0;  // of the GPU, for launches of tiny kernels
};

// The GPU's waits for launches of tiny kernels; with `parts`: of those that are launched in these windows.
std::int64_t waits_for_tiny_kernels(const Facts& facts,
                                    const std::vector<analysis::Window>* parts = nullptr) {
  // A long wait has another cause than launching. Short waits, each before a tiny kernel, come from
  // launching.
  constexpr std::int64_t kLongestWaitNs = 100'000;
  std::int64_t waiting_ns = 0;
  for (const analysis::Gap& gap : facts.device().gaps.gaps) {
    if (gap.next_work == kNone<SliceId> || gap.end_ns - gap.start_ns > kLongestWaitNs ||
        facts.trace->dur_ns(gap.next_work) >= analysis::kTinyKernelNs ||
        !inside(facts.steady_windows, gap.start_ns))
      continue;
    const SliceId launch = facts.links.launch_of[raw(gap.next_work)];
    if (parts && (launch == kNone<SliceId> || !inside(*parts, facts.trace->start_ns(launch))))
      continue;
    for (const analysis::IdlePart& part : facts.device().gaps.parts_of(gap))
      if (part.cause == analysis::IdleCause::kHostLate ||
          part.cause == analysis::IdleCause::kLaunchLatency)
        waiting_ns += part.end_ns - part.start_ns;
  }
  return waiting_ns;
}

std::optional<TinyKernels> measure_tiny_kernels(const Facts& facts) {
  const auto& launches = facts.launches;
  const auto steps = static_cast<std::uint64_t>(facts.selection.steady.size());
  const TinyKernels found{.waiting_ns = waits_for_tiny_kernels(facts)};
  if (steps == 0 || launches.kernel_count < 200 * steps ||
      launches.tiny_kernel_count * 2 < launches.kernel_count ||
      launches.graph_work_count * 2 > launches.linked_count ||
      share_of(found.waiting_ns, facts.wall.partition.wall_ns) < 0.1)
    return std::nullopt;
  return found;
}

// A graph of the parts between waits spares their launches alone.
void keep_to_parts(const Facts& facts, Finding& finding) {
  const std::int64_t waiting_ns = waits_for_tiny_kernels(facts, &waits_inside(facts).parts_windows);
  finding.at_stake_ns = facts.per_step(waiting_ns);
  finding.at_stake_ratio = share_of(waiting_ns, facts.wall.partition.wall_ns);
  finding.arithmetic.push_back(
      say(facts,
          "{} [per step] of it before kernels of the parts without a wait: a graph of these parts "
          "spares no more",
          {ns(facts.per_step(waiting_ns))}));
}

Finding tell_tiny_kernels(const Facts& facts, const TinyKernels& found) {
  const auto& launches = facts.launches;
  const auto steps = static_cast<std::uint64_t>(facts.selection.steady.size());
  const Value per_step = count(launches.kernel_count / steps);
  const Value tiny = launches.tiny_kernel_count == launches.kernel_count
                         ? text("all")
                         : ratio(static_cast<std::int64_t>(launches.tiny_kernel_count),
                                 static_cast<std::int64_t>(launches.kernel_count));
  Finding finding;
  finding.verdict = say(facts,
                        "Launch-bound: {} kernels [per step], {} of them shorter than 10 us; in "
                        "gaps of up to 100 us the GPU waits {} [per step] for their launches.",
                        {per_step, tiny, ns(facts.per_step(found.waiting_ns))});
  finding.at_stake_ns = facts.per_step(found.waiting_ns);
  finding.at_stake_ratio = share_of(found.waiting_ns, facts.wall.partition.wall_ns);
  finding.arithmetic.push_back(
      say("median kernel {}; {} of {} kernels ran shorter than their own launch call took",
          {ns(launches.median_kernel_ns), count(launches.shorter_than_launch_count),
           count(launches.kernel_count)}));
  finding.arithmetic.push_back(say(
      facts,
      "{} launch [call|calls] [per step] [takes|take] {} of CPU time, the operators around them "
      "take the rest",
      {count(launches.launch_call_count / steps), ns(facts.per_step(launches.launch_call_ns))}));
  const LaunchMode mode = launch_mode_of(facts);
  if (mode == LaunchMode::kReplayed)
    finding.try_next = {
        words_for(facts,
                  "launch fewer kernels outside of the graphs that are replayed: capture "
                  "more, use fused or foreach operators[if batch|, a larger batch]")};
  else if (mode == LaunchMode::kCompiled)
    finding.try_next = {
        words_for(facts,
                  "compile more of the step, use fused or foreach optimizers[if batch|, a larger "
                  "batch]"),
        "let the compiled code replay a CUDA graph: mode=\"reduce-overhead\", if it is not set"};
  else
    finding.try_next = {
        words_for(facts,
                  "run fewer, larger kernels: torch.compile, fused or foreach optimizers[if "
                  "batch|, a larger batch]"),
        "capture a CUDA graph, which launches the whole step at once"};
  finding.confidence = facts.confidence();
  finding.sample_count = launches.kernel_count;
  finding.sample_noun = "kernel";
  finding.brief = say(facts, "The GPU waits for launches: {} kernels [per step], {} under 10 us",
                      {per_step, tiny});
  if (mode == LaunchMode::kEager)
    advise_about_launches(facts, graph_advice(facts), finding);
  else
    advise_about_launches(
        facts,
        {say(facts, mode == LaunchMode::kReplayed
                        ? "Capture more of the step[if a batch spares launches|, or use a larger "
                          "batch]"
                        : "Compile more of the step[if a batch spares launches|, or use a larger "
                          "batch]")},
        finding);
  if (advises_parts_between_waits(facts, finding.action)) keep_to_parts(facts, finding);
  // The waits are those of the same loop.
  if (advises_smaller_history(facts, finding.action))
    finding.explains.push_back({"host-sync", finding.at_stake_ns});
  advise_about_sizes(facts, finding);
  return finding;
}

}  // namespace

extern constinit const Rule tiny_kernels_rule = {
    .id = "tiny-kernels",
    .question = "do so many small kernels run that launching them takes the time?",
    .meant_by = "batchsize cudalaunchkernel",
    .order = 110,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_tiny_kernels, tell_tiny_kernels>,
    .is_regression = true,
    .stake_is_waiting = true,
    .same_time_as = Fix::kCudaGraph,
};

}  // namespace lanescope::explain::rules

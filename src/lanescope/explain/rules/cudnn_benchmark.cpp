// cuDNN or MIOpen tried out its algorithms for a convolution: many kinds of kernels in one call, or kernels that it times by events.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr std::int64_t kFewestTimedKinds = 2;  // of kernels in a trial that waits for events

struct Trials {
  std::int64_t cpu_ns = 0;
  std::int64_t gpu_ns = 0;
  std::vector<Window> windows;  // calls on the CPU
  std::vector<Window> on_device;
  std::map<std::string, Named> by_name;
  bool is_repeated = false;                  // in at least two steps
  bool is_late = false;                      // after the first step
  bool is_in_each = false;                   // in each of at least two steady steps
  std::size_t new_sizes = 0;                 // that were tried, if some weight met several
  std::unordered_set<std::uint32_t> steady;  // the calls in steady steps, raw
};

// A trial runs each algorithm between two events and waits for the second one.
bool times_kernels(const Facts& facts, SliceId op) {
  return any_inside(facts, op, [](std::string_view name) {
    return name == "cudaEventSynchronize" || name == "hipEventSynchronize";
  });
}

// Trials come with each new size of an input if weights of one shape met at least three of them: how many different pairs of input
// and weight there are. 0: they do not.
std::size_t count_new_sizes(const Trace& trace, const std::vector<SliceId>& trials) {
  constexpr std::size_t kFewestSizes = 3;
  std::map<analysis::Sizes, std::set<analysis::Sizes>> inputs_of;
  for (const SliceId op : trials) {
    const auto inputs = operator_inputs(trace, op);
    const auto input = inputs.tensor(0), weight = inputs.tensor(1);
    if (input && weight) inputs_of[weight->dims].insert(input->dims);
  }
  std::size_t pairs = 0, most = 0;
  for (const auto& [weight, sizes] : inputs_of) {
    pairs += sizes.size();
    most = std::max(most, sizes.size());
  }
  return most >= kFewestSizes ? pairs : 0;
}

std::optional<Trials> measure_cudnn_benchmark(const Facts& facts) {
  const Trace& trace = *facts.trace;
  struct Call {
    std::set<std::uint32_t> names;
    std::vector<const DeviceWork*> works;
  };
  std::map<std::uint32_t, Call> calls;  // by raw operator slice
  for (const DeviceWork& work : facts.device().timeline.work) {
    const SliceId op = facts.links.op_of[raw(work.slice)];
    if (op == kNone<SliceId> || trace.kind(work.slice) != CategoryKind::kKernel ||
        trace.kind(op) != CategoryKind::kCpuOp ||
        trace.name(op).find("convolution") == std::string_view::npos)
      continue;
    Call& call = calls[raw(op)];
    call.names.insert(raw(trace.slices().name[raw(work.slice)]));
    call.works.push_back(&work);
  }
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, const Call*>>> by_op;
  for (const auto& [op, call] : calls) by_op[raw(trace.slices().name[op])].emplace_back(op, &call);
  std::vector<const DeviceWork*> trial_works;
  std::vector<SliceId> trials;
  std::map<std::string, Named> by_name;
  std::vector<Window> windows;
  std::set<std::size_t> steps, steady_steps;
  std::unordered_set<std::uint32_t> steady;
  bool enough = false;
  for (const auto& [label, list] : by_op) {
    if (list.size() < 3) continue;
    enough = true;
    std::vector<std::int64_t> counts;
    for (const auto& [op, call] : list)
      counts.push_back(static_cast<std::int64_t>(call->names.size()));
    const std::int64_t median = analysis::lower_median(std::move(counts));
    for (const auto& [op, call] : list) {
      const auto distinct = static_cast<std::int64_t>(call->names.size());
      const SliceId id{op};
      if ((distinct < median + 4 || distinct < 2 * median) &&
          (distinct < kFewestTimedKinds || !times_kernels(facts, id)))
        continue;
      trials.push_back(id);
      trial_works.insert(trial_works.end(), call->works.begin(), call->works.end());
      windows.push_back({trace.start_ns(id), trace.end_ns(id)});
      by_name[std::string(trace.name(id))].add(id, trace.dur_ns(id));
      if (const std::size_t step = steady_step_at(facts, trace.start_ns(id));
          step != ~std::size_t{0}) {
        steady_steps.insert(step);
        steady.insert(op);
      }
      for (std::size_t i = 0; i < facts.steps.steps.size(); ++i)
        if (trace.start_ns(id) >= facts.steps.steps[i].cpu_start_ns &&
            trace.start_ns(id) < facts.steps.steps[i].cpu_end_ns)
          steps.insert(i);
    }
  }
  if (!enough || trial_works.empty()) return std::nullopt;
  const std::int64_t gpu_ns = union_ns(trial_works), cpu_ns = total_length(windows);
  if (std::max(gpu_ns, cpu_ns) < 500'000) return std::nullopt;
  std::vector<Window> on_device;
  for (const DeviceWork* work : trial_works) on_device.push_back({work->start_ns, work->end_ns});
  return Trials{.cpu_ns = cpu_ns,
                .gpu_ns = gpu_ns,
                .windows = std::move(windows),
                .on_device = std::move(on_device),
                .by_name = std::move(by_name),
                .is_repeated = facts.steps.marked && steps.size() >= 2,
                .is_late = facts.steps.marked && !steps.empty() && *steps.rbegin() > 0,
                .is_in_each = facts.steps.marked && steady_steps.size() >= 2 &&
                              steady_steps.size() == facts.selection.steady.size(),
                .new_sizes = steady.empty() ? 0 : count_new_sizes(trace, trials),
                .steady = std::move(steady)};
}

// Trials in each step, or for each new size, are no start-up: they cost, however long the program runs.
void tell_each_step(const Facts& facts, const Trials& found, Finding& finding) {
  const std::int64_t cost_ns = cost_of_calls(facts, found.steady);
  finding.kind = FindingKind::kCost;
  rate_cost(facts, cost_ns, found.steady.size(), finding);
  finding.arithmetic.push_back(
      say(facts,
          "at stake: {} such calls in the steady steps: their GPU work and the time in which the "
          "GPU is idle during them, {} [per step]",
          {count(found.steady.size()), ns(finding.at_stake_ns)}));
  for (const char* covered : {"host-bound", "allocator-calls", "host-sync", "tiny-kernels"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  const Value calls = count((found.steady.size() + facts.selection.steady.size() / 2) /
                            facts.selection.steady.size());
  finding.brief = say(facts, "Convolutions try out algorithms");
  append(finding.brief,
         found.new_sizes > 0
             ? say(facts, " anew for each of {} sizes of an input: {} [call|calls] [per step]",
                   {count(found.new_sizes), calls})
             : say(facts, " in each step: {} [call|calls] [per step]", {calls}));
  finding.action = say(
      "Set torch.backends.cudnn.benchmark=False, or pad to a few lengths: each new size is tried");
}

Finding tell_cudnn_benchmark(const Facts& facts, const Trials& found) {
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict = say(
      facts,
      "Convolutions tried out algorithms: {} [call|calls] ran kernels of many kinds instead of the "
      "usual few, {} of CPU time and {} of GPU time{}.",
      {count(found.windows.size()), ns(found.cpu_ns), ns(found.gpu_ns),
       text(found.is_repeated ? "; it happened in at least two steps, as when shapes change"
                              : "")});
  finding.at_stake_ns = std::max(found.gpu_ns, found.cpu_ns);
  explain_long_step(facts, found.windows, found.on_device, finding);
  add_named(facts, found.by_name, finding);
  finding.try_next = {
      found.is_late
          ? "keep shapes fixed (pad, drop the last small batch), or set "
            "torch.backends.cudnn.benchmark=False: cuDNN tries out algorithms for each new shape"
          : "it happens once for each input shape: warm up with each shape before measuring",
  };
  finding.confidence = found.windows.size() >= 3 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = found.windows.size();
  finding.sample_noun = "call";
  finding.brief = say("Convolutions tried out algorithms: {} of CPU time", {ns(found.cpu_ns)});
  if (found.is_in_each || found.new_sizes > 0) tell_each_step(facts, found, finding);
  return finding;
}

}  // namespace

extern constinit const Rule cudnn_benchmark_rule = {
    .id = "cudnn-benchmark",
    .question = "did convolutions try out algorithms?",
    .order = 850,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_cudnn_benchmark, tell_cudnn_benchmark>,
};

}  // namespace lanescope::explain::rules

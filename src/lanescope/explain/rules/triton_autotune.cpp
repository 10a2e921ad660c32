// One Triton kernel in several builds (warps, registers, shared memory), each run many times, and
// then one of them only; or kernels that ran while torch.compile was compiling.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/step_work.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;

Outcome triton_autotune(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  const Trace& trace = *facts.trace;
  const CompiledFacts compiled = compiled_facts_of(facts);
  KernelNames names(trace);
  using Build = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;
  struct Runs {
    std::map<Build, std::vector<const DeviceWork*>> builds;
    Build last{};
  };
  std::map<std::string, Runs> by_kernel;
  std::vector<const DeviceWork*> trials;
  std::map<std::string, Named> by_name;
  std::set<std::string> tuned;
  for (const DeviceWork& work : facts.device().timeline.work) {
    if (trace.kind(work.slice) != CategoryKind::kKernel) continue;
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch != kNone<SliceId> &&
        compiled.code.layer[raw(launch)] == analysis::CompileLayer::kCompiling) {
      trials.push_back(&work);
      by_name[std::string(trace.name(work.slice))].add(work.slice, work.end_ns - work.start_ns);
      tuned.insert(std::string(trace.name(work.slice)));
      continue;
    }
    const std::string_view label = trace.name(work.slice);
    if (!label.starts_with("triton_") && names.of(work.slice).library != "Triton") continue;
    const ArgsView args = trace.slice_args(work.slice);
    const Build build{raw(args.text(ArgKey::kBlock).value_or(kNone<StringId>)),
                      args.integer(ArgKey::kRegistersPerThread).value_or(0),
                      args.integer(ArgKey::kSharedMemory).value_or(0)};
    Runs& runs = by_kernel[std::string(label)];
    runs.builds[build].push_back(&work);
    runs.last = build;
  }
  for (const auto& [label, runs] : by_kernel) {
    if (runs.builds.size() < 3) continue;
    std::size_t tried = 0;
    std::int64_t last_ns = 0;
    for (const auto& [build, works] : runs.builds) {
      if (build == runs.last) continue;
      tried += works.size();
      last_ns = std::max(last_ns, works.back()->end_ns);
    }
    const auto& winner = runs.builds.at(runs.last);
    const auto alone = std::count_if(winner.begin(), winner.end(), [&](const DeviceWork* work) {
      return work->start_ns >= last_ns;
    });
    // The losers were each repeated to be timed, and then the winner runs alone.
    if (tried < 3 * (runs.builds.size() - 1) || alone < 3) continue;
    for (const auto& [build, works] : runs.builds)
      for (const DeviceWork* work : works) {
        if (work->start_ns > last_ns) continue;
        trials.push_back(work);
        by_name[label].add(work->slice, work->end_ns - work->start_ns);
      }
    tuned.insert(label);
  }
  const std::int64_t gpu_ns = union_ns(trials);
  if (trials.size() < 10 || gpu_ns < 100'000) return Quiet{};
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict =
      say("Kernels were autotuned during the recording: {} trial runs of {} kernels, {} of GPU "
          "time. The winner is kept, so it is no part of a usual step.",
          {count(trials.size()), count(tuned.size()), ns(gpu_ns)});
  finding.at_stake_ns = gpu_ns;
  add_named(facts, by_name, finding);
  finding.try_next = {
      "warm up before recording: every shape once. Inductor keeps its choice in its cache "
      "directory; @triton.autotune tunes anew in each process and for each new key"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = trials.size();
  finding.sample_noun = "run";
  return finding;
}

}  // namespace lanescope::explain::rules

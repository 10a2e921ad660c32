// One Triton kernel in several builds (warps, registers, shared memory), each run many times, and
// then one of them only; or kernels that ran while torch.compile was compiling.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/parsed_kernel_names.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr std::size_t kFewestBuilds = 3;
constexpr std::size_t kRunsToTime = 5;  // triton.testing.do_bench runs a kernel so often, then more

using Build = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;  // block, registers, shared
struct Run {
  const DeviceWork* work = nullptr;
  Build build;
};

// True: the name is that of generated code, or the driver launched it under a plain name, as it
// does with kernels of @triton.jit. C++ templates also have many builds, but these are no trials.
bool may_be_tuned(const Facts& facts, const KernelNames& names, SliceId kernel) {
  const std::string_view label = facts.trace->name(kernel);
  if (label.starts_with("triton_") || names.of(kernel).library == "Triton") return true;
  const SliceId launch = facts.links.launch_of[raw(kernel)];
  if (launch == kNone<SliceId>) return false;
  const ApiCall call = facts.trace->api_call(launch);
  return call.runtime() == ApiRuntime::kCudaDriver && call.does(api_effect::kLaunchesKernel) &&
         label.find_first_of("<(: ") == std::string_view::npos;
}

Build build_of(const Trace& trace, SliceId kernel) {
  const ArgsView args = trace.slice_args(kernel);
  return {raw(args.text(ArgKey::kBlock).value_or(kNone<StringId>)),
          args.integer(ArgKey::kRegistersPerThread).value_or(0),
          args.integer(ArgKey::kSharedMemory).value_or(0)};
}

// Runs of one kernel that lie within one step, in order; without marked steps all runs.
struct Stretch {
  std::size_t step = 0;
  std::vector<Run> runs;
  std::map<Build, std::size_t> counts;
  void add(const Run& run) {
    runs.push_back(run);
    ++counts[run.build];
  }
  bool is_tuning() const {
    return counts.size() >= kFewestBuilds &&
           std::all_of(counts.begin(), counts.end(),
                       [](const auto& each) { return each.second >= kRunsToTime; });
  }
  // How many runs are over when the last build that is not kept has ended.
  std::size_t trials() const {
    std::size_t count = runs.size();
    while (count > 0 && runs[count - 1].build == runs.back().build) --count;
    return count;
  }
  // From the first trial's start to the last one's end.
  Window window() const { return {runs.front().work->start_ns, runs[trials() - 1].work->end_ns}; }
};

// True: each build is timed in one go, so nearly all runs are among five or more of the same build.
// Without steps, each build except the kept one has a single go.
bool in_goes(const Stretch& stretch, bool in_steps) {
  std::map<Build, std::size_t> goes;
  std::size_t in_long_goes = 0, go = 0;
  const std::size_t end = in_steps ? stretch.runs.size() : stretch.trials();
  for (std::size_t i = 0; i < end; i += go) {
    go = 1;
    while (i + go < end && stretch.runs[i + go].build == stretch.runs[i].build) ++go;
    if (go >= kRunsToTime) in_long_goes += go;
    if (++goes[stretch.runs[i].build] > 1 && !in_steps) return false;
  }
  return in_long_goes * 10 >= end * 9;
}

// True: no other kernels run between the trials, except a memset or a fill that clears the cache.
bool is_alone(const Facts& facts, const Stretch& stretch) {
  const Window window = stretch.window();
  const auto& works = facts.device().timeline.work;
  auto work = std::lower_bound(
      works.begin(), works.end(), window.start_ns,
      [](const DeviceWork& each, std::int64_t time) { return each.start_ns < time; });
  std::int64_t own_ns = 0, other_ns = 0;
  const StringId own = facts.trace->slices().name[raw(stretch.runs.front().work->slice)];
  for (; work != works.end() && work->start_ns < window.end_ns; ++work) {
    const std::string_view label = facts.trace->name(work->slice);
    if (facts.trace->slices().name[raw(work->slice)] == own)
      own_ns += work->end_ns - work->start_ns;
    else if (facts.trace->kind(work->slice) == CategoryKind::kKernel &&
             label.find("FillFunctor") == std::string_view::npos)
      other_ns += work->end_ns - work->start_ns;
  }
  return other_ns * 5 <= own_ns;
}

// With marked steps: the steps in which several builds were timed, if in more steps only one or two
// builds ran (two: for two sizes). Without: everything, if only the kept build ran afterwards.
std::vector<const Stretch*> tuning_among(const Facts& facts, const std::vector<Stretch>& stretches,
                                         bool in_steps) {
  std::vector<const Stretch*> found;
  std::set<Build> tried;
  for (const Stretch& stretch : stretches) {
    if (!stretch.is_tuning()) continue;
    if (!in_goes(stretch, in_steps) || !is_alone(facts, stretch)) return {};
    found.push_back(&stretch);
    for (const auto& [build, count] : stretch.counts) tried.insert(build);
  }
  if (found.empty()) return {};
  if (!in_steps) {
    const Stretch& all = *found.front();
    return all.runs.size() - all.trials() >= 3 ? found : std::vector<const Stretch*>{};
  }
  const std::size_t plain = stretches.size() - found.size();
  for (const Stretch& stretch : stretches) {
    if (stretch.is_tuning()) continue;
    if (stretch.counts.size() >= kFewestBuilds) return {};
    for (const auto& [build, count] : stretch.counts)
      if (!tried.contains(build)) return {};
  }
  return plain >= 2 && plain > found.size() ? found : std::vector<const Stretch*>{};
}

// By name: its stretches, of kernels that ran in three builds or more.
std::map<std::uint32_t, std::vector<Stretch>> stretches_by_kernel(
    const Facts& facts, const std::vector<bool>& is_candidate, bool in_steps) {
  const Trace& trace = *facts.trace;
  const auto& works = facts.device().timeline.work;
  std::map<std::uint32_t, std::set<Build>> builds;  // up to kFewestBuilds of each
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!is_candidate[i]) continue;
    auto& of_this = builds[raw(trace.slices().name[raw(works[i].slice)])];
    if (of_this.size() < kFewestBuilds) of_this.insert(build_of(trace, works[i].slice));
  }
  const std::vector<Window>& steps = facts.device().windows;
  std::map<std::uint32_t, std::vector<Stretch>> found;
  std::size_t step = 0;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!is_candidate[i]) continue;
    const std::uint32_t name = raw(trace.slices().name[raw(works[i].slice)]);
    if (builds[name].size() < kFewestBuilds) continue;
    if (in_steps) {
      while (step < steps.size() && steps[step].end_ns <= works[i].start_ns) ++step;
      if (step == steps.size() || works[i].start_ns < steps[step].start_ns) continue;
    }
    std::vector<Stretch>& stretches = found[name];
    if (stretches.empty() || stretches.back().step != step) {
      stretches.emplace_back();
      stretches.back().step = step;
    }
    stretches.back().add({&works[i], build_of(trace, works[i].slice)});
  }
  return found;
}

struct TritonAutotune {
  std::size_t trials = 0;
  std::int64_t gpu_ns = 0;
  std::vector<Window> tuning;
  std::map<std::string, Named> by_name;
};

std::optional<TritonAutotune> measure_triton_autotune(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const CompiledFacts compiled = compiled_facts_of(facts);
  const KernelNames names(facts);
  const auto& works = facts.device().timeline.work;
  const bool in_steps = facts.steps.marked && facts.device().windows.size() > 1;
  std::vector<const DeviceWork*> trials;
  std::vector<Window> tuning;
  std::map<std::string, Named> by_name;
  const auto add_trial = [&](const DeviceWork& work) {
    trials.push_back(&work);
    by_name[std::string(trace.name(work.slice))].add(work.slice, work.end_ns - work.start_ns);
  };
  std::vector<bool> is_candidate(works.size(), false);
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (trace.kind(works[i].slice) != CategoryKind::kKernel) continue;
    const SliceId launch = facts.links.launch_of[raw(works[i].slice)];
    if (launch != kNone<SliceId> &&
        compiled.code.layer[raw(launch)] == analysis::CompileLayer::kCompiling) {
      add_trial(works[i]);
      tuning.push_back({works[i].start_ns, works[i].end_ns});
      continue;
    }
    is_candidate[i] = may_be_tuned(facts, names, works[i].slice);
  }
  for (const auto& [name, stretches] : stretches_by_kernel(facts, is_candidate, in_steps))
    for (const Stretch* stretch : tuning_among(facts, stretches, in_steps)) {
      for (std::size_t i = 0, end = stretch->trials(); i < end; ++i)
        add_trial(*stretch->runs[i].work);
      tuning.push_back(stretch->window());
    }
  const std::int64_t gpu_ns = union_ns(trials);
  if (trials.size() < 10 || gpu_ns < 100'000) return std::nullopt;
  return TritonAutotune{trials.size(), gpu_ns, std::move(tuning), std::move(by_name)};
}

Finding tell_triton_autotune(const Facts& facts, const TritonAutotune& measured) {
  const auto& [trials, gpu_ns, tuning, by_name] = measured;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  const std::int64_t whole_ns = total_length(tuning);
  finding.verdict =
      say("Kernels were autotuned during the recording: {} trial runs, {} of GPU time, in {}. The "
          "fastest version is kept, so a usual step does not do this.",
          {count(trials), ns(gpu_ns), ns(whole_ns)});
  finding.at_stake_ns = whole_ns;
  explain_long_step(facts, {}, tuning, finding);
  finding.arithmetic.push_back(
      say("kernels that were tuned: {}; counted is the time from the first trial of a kernel to "
          "the last in the same step, with what happens between them: clearing the cache, reading "
          "the timing, building the next version",
          {count(by_name.size())}));
  add_named(facts, by_name, finding);
  finding.try_next = {
      "warm up before recording: every shape once. Inductor keeps its choice in its cache "
      "directory; @triton.autotune tunes again in each process and for each new key",
      "use a key with few values, such as sizes rounded up, if it comes back with each new size"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = trials;
  finding.sample_noun = "run";
  finding.brief = say("Kernels were tuned during the recording: {}", {ns(whole_ns)});
  finding.action = say("Warm up every shape once before you record");
  return finding;
}

}  // namespace

extern constinit const Rule triton_autotune_rule = {
    .id = "triton-autotune",
    .question = "were kernels autotuned during the recording?",
    .order = 860,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_triton_autotune, tell_triton_autotune>,
};

}  // namespace lanescope::explain::rules

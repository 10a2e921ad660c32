// Launch calls that take the CPU longer than usual.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "lanescope/base/wide.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/queued_launches.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::int64_t kSlowMedianNs = 15'000;
// Launch calls of a thread, and calls while no other thread launches: fewer show nothing.
constexpr std::size_t kFewestOverlapping = 20;

std::vector<QueuedLaunch> make_queued_launches(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& works = facts.device().timeline.work;
  std::vector<std::int64_t> returned, began;
  std::vector<SliceId> calls;
  for (const auto& work : works) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId>) {  // waited in the queue when the recording began
      if (!work.before_recording) continue;
      returned.push_back(std::numeric_limits<std::int64_t>::min());
      began.push_back(work.start_ns);
      continue;
    }
    returned.push_back(std::min(trace.end_ns(launch), work.start_ns));
    began.push_back(work.start_ns);
    calls.push_back(launch);
  }
  std::sort(returned.begin(), returned.end());
  std::sort(began.begin(), began.end());
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  // The first launch of a kernel loads it, which is another cost and happens once.
  std::unordered_set<std::uint32_t> seen;
  std::vector<SliceId> first_uses;
  for (const auto& work : works) {
    if (!seen.insert(raw(trace.slices().name[raw(work.slice)])).second) continue;
    first_uses.push_back(facts.links.launch_of[raw(work.slice)]);
  }
  std::sort(first_uses.begin(), first_uses.end());
  const auto windows = facts.steady_cpu_windows();
  std::vector<QueuedLaunch> launches;
  for (const SliceId call : calls) {
    const std::int64_t time = trace.start_ns(call);
    // Before the first work began, the GPU may have been busy with unrecorded work.
    if (time < began.front() || !inside(windows, time) ||
        facts.links.launched_by(call).size() != 1 ||
        !trace.api_call(call).does(api_effect::kStartsKernels) ||
        std::binary_search(first_uses.begin(), first_uses.end(), call))
      continue;
    const auto done = std::upper_bound(returned.begin(), returned.end(), time) - returned.begin();
    const auto begun = std::upper_bound(began.begin(), began.end(), time) - began.begin();
    launches.push_back(
        {call, static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(0, done - begun))});
  }
  return launches;
}

}  // namespace

const std::vector<QueuedLaunch>& queued_launches(const Facts& facts) {
  return made_once<make_queued_launches>(facts);
}

namespace {

// Threads of one process whose launch calls overlap in time and are slow only then.
struct LaunchingThreads {
  std::size_t threads = 0;     // 0: the calls do not show this
  std::int64_t alone_ns = 0;   // median of the calls that begin while no other thread launches
  std::int64_t calls_ns = 0;   // all calls together
  std::int64_t within_ns = 0;  // time in which at least one runs
  bool same_kernels =
      false;  // nine tenths of the calls start kernels that half of the threads launch
};

// The kernels of nine tenths of the calls are launched by half of the threads or more.
bool launch_the_same(const Facts& facts, const std::vector<SliceId>& calls, std::size_t threads) {
  const Trace& trace = *facts.trace;
  const auto kernel_of = [&](SliceId call) {
    return raw(trace.slices().name[raw(facts.links.launched_by(call).front())]);
  };
  std::map<std::uint32_t, std::set<std::uint32_t>> users;
  for (const SliceId call : calls)
    users[kernel_of(call)].insert(raw(trace.slices().track[raw(call)]));
  const auto shared = std::count_if(calls.begin(), calls.end(), [&](SliceId call) {
    return users[kernel_of(call)].size() * 2 >= threads;
  });
  return static_cast<std::size_t>(shared) * 10 >= calls.size() * 9;
}

LaunchingThreads threads_that_wait_for_each_other(const Facts& facts, std::vector<SliceId> calls) {
  const Trace& trace = *facts.trace;
  std::sort(calls.begin(), calls.end(), [&](SliceId a, SliceId b) {
    return std::pair(trace.start_ns(a), a) < std::pair(trace.start_ns(b), b);
  });
  std::map<std::uint32_t, std::size_t> calls_of;        // by thread
  std::map<std::uint32_t, std::int64_t> latest_end_of;  // the same
  std::set<std::uint32_t> processes;
  std::vector<std::int64_t> lengths, alone;
  std::vector<analysis::Window> windows;
  LaunchingThreads found;
  for (const SliceId call : calls) {
    const TrackId thread = trace.slices().track[raw(call)];
    ++calls_of[raw(thread)];
    processes.insert(raw(trace.tracks()[raw(thread)].process));
    windows.push_back({trace.start_ns(call), trace.end_ns(call)});
    lengths.push_back(trace.dur_ns(call));
    found.calls_ns += trace.dur_ns(call);
    const bool is_alone =
        std::none_of(latest_end_of.begin(), latest_end_of.end(), [&](const auto& other) {
          return other.first != raw(thread) && other.second > trace.start_ns(call);
        });
    if (is_alone) alone.push_back(trace.dur_ns(call));
    latest_end_of[raw(thread)] = std::max(latest_end_of[raw(thread)], trace.end_ns(call));
  }
  for (const auto& window : joined(windows)) found.within_ns += window.end_ns - window.start_ns;
  const auto threads =
      static_cast<std::size_t>(std::count_if(calls_of.begin(), calls_of.end(), [](const auto& of) {
        return of.second >= kFewestOverlapping;
      }));
  // On a slow CPU, calls are as slow without others at the same time.
  if (threads < 2 || processes.size() != 1 || alone.size() < kFewestOverlapping ||
      found.calls_ns < 2 * found.within_ns)
    return {};
  found.alone_ns = analysis::lower_median(alone);
  if (analysis::lower_median(lengths) < 2 * found.alone_ns) return {};
  found.threads = threads;
  found.same_kernels = launch_the_same(facts, calls, threads);
  return found;
}

// The GPU's idle time while one of these calls or more ran, without the profiler's own work.
std::int64_t idle_during(const Facts& facts, const std::vector<analysis::Window>& calls) {
  std::int64_t idle_ns = 0;
  for (const analysis::Window& window : joined(calls)) {
    const auto busy = facts.device().timeline.time_within(window.start_ns, window.end_ns);
    const auto idle = idle_within(facts.device().gaps, window);
    idle_ns += window.end_ns - window.start_ns - busy[0] - busy[1] - busy[2] -
               idle[static_cast<std::size_t>(analysis::IdleCause::kProfiler)];
  }
  return idle_ns;
}

struct SlowLaunches {
  bool all_slow = false;
  std::int64_t median_ns = 0;
  std::int64_t stake_ns = 0;
  std::int64_t excess_ns = 0;
  std::uint64_t slow = 0;
  std::size_t launch_count = 0;
  SliceId longest = kNone<SliceId>;
  LaunchingThreads at_once = {};
};

std::optional<SlowLaunches> measure_slow_launches(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& timeline = facts.device().timeline;
  const std::vector<QueuedLaunch>& launches = queued_launches(facts);
  // Time in which the profiler worked while the GPU had nothing to do is not counted for the call.
  const auto length_of = [&](SliceId call) {
    const auto idle = idle_within(facts.device().gaps, {trace.start_ns(call), trace.end_ns(call)});
    return trace.dur_ns(call) - idle[static_cast<std::size_t>(analysis::IdleCause::kProfiler)];
  };
  std::vector<std::int64_t> lengths;
  std::vector<SliceId> calls;
  for (const QueuedLaunch& launch : launches)
    if (launch.queued < kFullQueue) {
      lengths.push_back(length_of(launch.call));
      calls.push_back(launch.call);
    }
  if (lengths.size() < 100) return std::nullopt;
  const std::int64_t median_ns = analysis::lower_median(lengths);
  const bool all_slow = median_ns > kSlowMedianNs;
  const Wide limit_ns = all_slow ? kUsualLaunchNs : 50 * wide(median_ns);
  // A call's excess over the usual time counts only as far as the GPU was idle in it.
  std::int64_t stake_ns = 0, excess_ns = 0;
  std::uint64_t slow = 0;
  SliceId longest = kNone<SliceId>;
  std::vector<analysis::Window> slow_calls;
  for (const QueuedLaunch& launch : launches) {
    const std::int64_t length = length_of(launch.call);
    if (launch.queued >= kFullQueue || length <= limit_ns) continue;
    const auto busy = timeline.time_within(trace.start_ns(launch.call), trace.end_ns(launch.call));
    const std::int64_t idle = length - busy[0] - busy[1] - busy[2];
    const std::int64_t over = length - (all_slow ? kUsualLaunchNs : median_ns);
    ++slow;
    slow_calls.push_back({trace.start_ns(launch.call), trace.end_ns(launch.call)});
    excess_ns += over;
    stake_ns += std::min(idle, over);
    if (longest == kNone<SliceId> || length > length_of(longest)) longest = launch.call;
  }
  stake_ns =
      std::min(stake_ns, idle_during(facts, slow_calls));  // calls of several threads overlap
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (slow == 0 || share_of(stake_ns, wall_ns) < 0.02) return std::nullopt;
  return SlowLaunches{
      all_slow, median_ns,
      stake_ns, excess_ns,
      slow,     lengths.size(),
      longest,  all_slow ? threads_that_wait_for_each_other(facts, calls) : LaunchingThreads()};
}

// No replay knows how long calls take once fewer threads make them.
void tell_threads(const Facts& facts, const SlowLaunches& measured, Finding& finding) {
  const LaunchingThreads& at_once = measured.at_once;
  finding.verdict = say(facts,
                        "{} threads launch at the same time and wait for each other in the launch "
                        "call: it takes {} in the median, but {} when no other thread launches; "
                        "meanwhile the GPU was idle for {} [per step].",
                        {count(at_once.threads), ns(measured.median_ns), ns(at_once.alone_ns),
                         ns(facts.per_step(measured.stake_ns))});
  finding.arithmetic.push_back(
      say(facts, "these calls take {} in all [per step], within {} of time",
          {ns(facts.per_step(at_once.calls_ns)), ns(facts.per_step(at_once.within_ns))}));
  finding.brief = say("{} threads launch at once and wait for each other: {} a call",
                      {count(at_once.threads), ns(measured.median_ns)});
  finding.gain_is_bound = true;
  if (!at_once.same_kernels) {
    finding.action = say("Launch less from these threads: CUDA graphs, fused operators");
    finding.try_next.erase(finding.try_next.begin());
    return;
  }
  finding.action = say("Collect several inputs into one batch, and run it from one thread");
  finding.try_next.front() =
      "collect several inputs into one batch and run it from one thread: each launch then works "
      "for "
      "all of them (one thread without batches launches as often as before)";
  finding.explains.push_back({"tiny-kernels", finding.at_stake_ns});
}

Finding tell_slow_launches(const Facts& facts, const SlowLaunches& measured) {
  const Trace& trace = *facts.trace;
  const auto& [all_slow, median_ns, stake_ns, excess_ns, slow, launch_count, longest, at_once] =
      measured;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  if (all_slow)
    finding.verdict = say(facts,
                          "Launch calls are slow: {} each in the median, where a few us are usual; "
                          "during the excess time the GPU was idle for {} [per step].",
                          {ns(median_ns), ns(facts.per_step(stake_ns))});
  else
    finding.verdict = say(facts,
                          "{} of {} launch calls took more than 50 times the median of {}: {} more "
                          "[per step], during which the GPU was idle for {}.",
                          {count(slow), count(launch_count), ns(median_ns),
                           ns(facts.per_step(excess_ns)), ns(facts.per_step(stake_ns))});
  finding.at_stake_ns = facts.per_step(stake_ns);
  finding.at_stake_ratio = share_of(stake_ns, wall_ns);
  finding.arithmetic.push_back(say(facts,
                                   "of each call, the part above {} counts, at most the time in "
                                   "which no stream ran: {} of {} [per step]",
                                   {ns(all_slow ? kUsualLaunchNs : median_ns),
                                    ns(facts.per_step(stake_ns)), ns(facts.per_step(excess_ns))}));
  finding.evidence.push_back(
      {longest, say("the longest of them: {}", {name(trace.name(longest))})});
  finding.try_next = {
      all_slow ? "look at the CPU: frequency, a shared or throttled core, NUMA node, threads that "
                 "fight for cores (OMP_NUM_THREADS, data loader workers)"
               : "look at what interrupted these calls: other threads, a driver that loads modules "
                 "(CUDA_MODULE_LOADING=EAGER), the recorder's buffers",
      launch_mode_of(facts) == LaunchMode::kEager
          ? "make fewer launches: torch.compile, CUDA graphs, fused operators"
          : "make fewer launches: put more of the step into the compiled code or the graphs"};
  finding.brief =
      all_slow ? say("Launch calls are slow: {} each", {ns(median_ns)})
               : say(facts, "{} [launch call|launch calls] took more than 50 times the median",
                     {count(slow)});
  finding.action = all_slow ? say("Check the CPU: its frequency, shared cores, OMP_NUM_THREADS")
                            : say(kKeepOffThisCore);
  finding.confidence = facts.confidence();
  finding.sample_count = launch_count;
  finding.sample_noun = "launch call";
  if (at_once.threads > 0) tell_threads(facts, measured, finding);
  return finding;
}

}  // namespace

extern constinit const Rule slow_launches_rule = {
    .id = "slow-launches",
    .question = "do launch calls take too long?",
    .meant_by = "cudalaunchkernel",
    .order = 340,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_slow_launches, tell_slow_launches>,
    .is_regression = true,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules

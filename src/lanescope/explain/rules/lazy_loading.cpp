// The first use of a kernel brings its code to the GPU: module loads and long first launches.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr std::int64_t kSlowCallNs = 100'000;
constexpr std::int64_t kLoneSlowCallNs =
    1'000'000;  // of a kernel with no later launches to compare

struct LazyLoading {
  std::vector<Window> windows;
  std::map<std::string, Named> by_name;
  std::uint64_t first_launches = 0;
  std::uint64_t lone_launches = 0;
  std::int64_t median = 0;
  std::int64_t total_ns = 0;
  std::int64_t idle_ns = 0;
};

std::optional<LazyLoading> measure_lazy_loading(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<Window> windows;
  std::map<std::string, Named> by_name;
  const auto take = [&](SliceId slice, const std::string& label) {
    windows.push_back({trace.start_ns(slice), trace.end_ns(slice)});
    by_name[label].add(slice, trace.dur_ns(slice));
  };
  std::uint64_t first_launches = 0, lone_launches = 0;
  std::vector<Window> profiler;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const bool overhead = trace.kind(id) == CategoryKind::kOverhead &&
                          trace.name(id).find("Lazy Function Loading") != std::string_view::npos;
    const bool call = trace.api_call(id).does(api_effect::kLoadsCode | api_effect::kMayLoadCode) &&
                      trace.dur_ns(id) >= kSlowCallNs;
    if (analysis::is_profiler_overhead(trace, id) && profiler.size() < 1000)
      profiler.push_back({trace.start_ns(id), trace.end_ns(id)});
    if (overhead || call) take(id, std::string(trace.name(id)));
  }
  // Launch calls of each kernel in order; a first one that is far longer than all later ones of
  // that kernel, and than launches usually are, loaded it.
  struct Launches {
    SliceId first = kNone<SliceId>;
    std::int64_t longest_later_ns = 0;
    std::uint64_t count = 0;
  };
  std::unordered_map<std::uint32_t, Launches> by_kernel;
  std::vector<std::int64_t> durations;
  for (const DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> || trace.kind(work.slice) != CategoryKind::kKernel ||
        facts.links.launched_by(launch).size() != 1)
      continue;
    durations.push_back(trace.dur_ns(launch));
    Launches& entry = by_kernel[raw(trace.slices().name[raw(work.slice)])];
    if (entry.count++ == 0) {
      entry.first = launch;
      continue;
    }
    SliceId later = launch;  // streams may run them in another order than they were launched
    if (trace.start_ns(launch) < trace.start_ns(entry.first)) std::swap(entry.first, later);
    entry.longest_later_ns = std::max(entry.longest_later_ns, trace.dur_ns(later));
  }
  const std::int64_t median = analysis::lower_median(std::move(durations));
  for (const auto& [kernel_id, entry] : by_kernel) {
    const std::int64_t dur_ns = trace.dur_ns(entry.first);
    const bool is_lone = entry.count < 3;
    // A launch also takes long when the queue is full: then the GPU works.
    if (is_lone && (dur_ns < kLoneSlowCallNs || dur_ns < 100 * wide(median) ||
                    wide(device_idle_during(
                        facts, {{trace.start_ns(entry.first), trace.end_ns(entry.first)}})) *
                            10 <
                        wide(dur_ns) * 9))
      continue;
    if (dur_ns < kSlowCallNs || dur_ns < 10 * wide(median) ||
        dur_ns < 5 * wide(entry.longest_later_ns))
      continue;
    // The profiler's own start holds up whatever is launched then.
    if (std::any_of(profiler.begin(), profiler.end(), [&](const Window& own) {
          return own.start_ns < trace.end_ns(entry.first) &&
                 own.end_ns > trace.start_ns(entry.first);
        }))
      continue;
    ++(is_lone ? lone_launches : first_launches);
    take(entry.first, std::string(trace.name(entry.first)));
  }
  const std::int64_t total_ns = total_length(windows);
  if (total_ns < 200'000) return std::nullopt;
  const std::int64_t idle_ns = device_idle_during(facts, windows);
  return LazyLoading{std::move(windows),
                     std::move(by_name),
                     first_launches,
                     lone_launches,
                     median,
                     total_ns,
                     idle_ns};
}

Finding tell_lazy_loading(const Facts& facts, const LazyLoading& measured) {
  const auto& [windows, by_name, first_launches, lone_launches, median, total_ns, idle_ns] =
      measured;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  const bool named = by_name.size() > (first_launches + lone_launches > 0 ? 1 : 0);
  finding.verdict =
      say(facts,
          "First uses of kernels cost {} during the recording, in {} [call|calls], {} of it with "
          "the GPU "
          "idle: {}.",
          {ns(total_ns), count(windows.size()), ns(idle_ns),
           text(named ? "their code is loaded when they first run"
                      : "probably their code was loaded, or a library set itself up")});
  finding.at_stake_ns = idle_ns;
  explain_long_step(facts, windows, {}, finding);
  if (first_launches > 0)
    finding.arithmetic.push_back(
        say(facts,
            "{} [kernel|kernels] whose first launch took more than 10 times the median "
            "launch ({}) and more than 5 times any later launch of the same kernel",
            {count(first_launches), ns(median)}));
  if (lone_launches > 0)
    finding.arithmetic.push_back(
        say("kernels launched once or twice, whose first launch took more than 1 ms and 100 times "
            "the median launch ({}) while the GPU had nothing to do: {}",
            {ns(median), count(lone_launches)}));
  add_named(facts, by_name, finding);
  finding.try_next = {"run a few steps before measuring: each shape and branch once"};
  if (by_name.begin()->first.starts_with("cu") || by_name.begin()->first.starts_with("Lazy"))
    finding.try_next.push_back(
        "set CUDA_MODULE_LOADING=EAGER to load all kernels at start, where a late first use hurts "
        "(a server's first request)");
  finding.confidence = named ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = windows.size();
  finding.sample_noun = "call";
  finding.brief = say("First uses of kernels took {}", {ns(total_ns)});
  return finding;
}

}  // namespace

extern constinit const Rule lazy_loading_rule = {
    .id = "lazy-loading",
    .question = "were kernels loaded during the recording?",
    .order = 830,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_lazy_loading, tell_lazy_loading>,
};

}  // namespace lanescope::explain::rules

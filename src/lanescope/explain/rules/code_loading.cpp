#include "lanescope/explain/rules/code_loading.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/launch_stats.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/device_time.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr std::int64_t kLeastLoadingNs = 200'000;
constexpr std::int64_t kSlowCallNs = 100'000;
constexpr std::int64_t kLoneSlowCallNs =
    1'000'000;  // of a kernel with no later launches to compare

std::optional<CodeLoading> make_code_loading(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<Window> windows;
  std::vector<SliceId> calls;
  std::map<std::string, Named> by_name;
  const auto take = [&](SliceId slice, const std::string& label) {
    calls.push_back(slice);
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
  // The launch calls of each kernel, in order. The first one loaded the kernel if it took far
  // longer than all later ones, and far longer than launches usually take.
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
    // A launch also takes long if the queue is full, but then the GPU is working.
    if (is_lone && (dur_ns < kLoneSlowCallNs || dur_ns < 100 * wide(median) ||
                    wide(device_idle_during(
                        facts, {{trace.start_ns(entry.first), trace.end_ns(entry.first)}})) *
                            10 <
                        wide(dur_ns) * 9))
      continue;
    if (dur_ns < kSlowCallNs || dur_ns < 10 * wide(median) ||
        dur_ns < 5 * wide(entry.longest_later_ns))
      continue;
    // While the profiler starts, it delays every launch.
    if (std::any_of(profiler.begin(), profiler.end(), [&](const Window& own) {
          return own.start_ns < trace.end_ns(entry.first) &&
                 own.end_ns > trace.start_ns(entry.first);
        }))
      continue;
    ++(is_lone ? lone_launches : first_launches);
    take(entry.first, std::string(trace.name(entry.first)));
  }
  const std::int64_t total_ns = total_length(windows);
  if (total_ns < kLeastLoadingNs) return std::nullopt;
  const std::int64_t idle_ns = device_idle_during(facts, windows);
  return CodeLoading{std::move(windows), std::move(calls), std::move(by_name), first_launches,
                     lone_launches,      median,           total_ns,           idle_ns};
}

}  // namespace

const std::optional<CodeLoading>& find_code_loading(const Facts& facts) {
  return made_once<make_code_loading>(facts);
}

}  // namespace lanescope::explain::rules

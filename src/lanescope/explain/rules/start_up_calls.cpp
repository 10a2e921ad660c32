#include "lanescope/explain/rules/start_up_calls.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "lanescope/analysis/launch_stats.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/code_loading.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {
namespace {

// A call that only does its usual work is shorter, however busy the machine is.
constexpr std::int64_t kLongCallNs = 20'000'000;

// Calls that may take long for other reasons: they wait, copy, allocate or launch.
constexpr ApiEffects kOtherReasons = api_effect::kBlocks | api_effect::kCopies |
                                     api_effect::kAllocates | api_effect::kStartsKernels |
                                     api_effect::kSets | api_effect::kLoadsCode |
                                     api_effect::kMayLoadCode | api_effect::kInStreamOrder;

// When the first GPU work of any device began. Nothing: it was launched before the recording, so
// the recording has no first use.
std::optional<std::int64_t> first_work_ns(const Facts& facts) {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  for (const DeviceFacts& device : facts.devices) {
    if (device.timeline.work.empty()) continue;
    const analysis::DeviceWork& work = device.timeline.work.front();
    if (facts.links.launch_of[raw(work.slice)] == kNone<SliceId>) return std::nullopt;
    first_ns = std::min(first_ns, work.start_ns);
  }
  return first_ns;
}

SliceId operator_around(const Facts& facts, SliceId slice) {
  while (slice != kNone<SliceId> && facts.trace->kind(slice) != CategoryKind::kCpuOp)
    slice = facts.nesting.parent[raw(slice)];
  return slice;
}

// The first call of each operator that the program called, by name.
class FirstCalls {
 public:
  explicit FirstCalls(const Facts& facts) : facts_(facts) {}
  bool is_first(SliceId outermost) {
    if (!filled_) fill();
    const auto found = first_.find(raw(facts_.trace->slices().name[raw(outermost)]));
    return found != first_.end() && found->second == outermost;
  }

 private:
  void fill() {
    filled_ = true;
    const Trace& trace = *facts_.trace;
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
      const SliceId id{i};
      if (trace.kind(id) != CategoryKind::kCpuOp) continue;
      const auto [at, is_new] = first_.emplace(raw(trace.slices().name[i]), id);
      if (!is_new && trace.start_ns(id) < trace.start_ns(at->second)) at->second = id;
    }
  }
  const Facts& facts_;
  bool filled_ = false;
  std::map<std::uint32_t, SliceId> first_;
};

// An operator whose own code takes longer than this on the CPU, and which then launches a kernel, does
// something else first.
constexpr std::int64_t kLongOwnCodeNs = 3'000'000;
// Where no other call shows what is usual.
constexpr std::int64_t kLongLoneCodeNs = 10'000'000;
constexpr std::int64_t kTimesTheUsual = 50;

// Copies convert on the CPU, and factorisations work there.
bool may_work_on_cpu(std::string_view op) {
  return op == "aten::copy_" || op == "aten::to" || op == "aten::_to_copy" ||
         op.find("linalg_") != op.npos;
}

// The time of an operator outside of nested operators and of calls that take long for other reasons; -1: it launches no
// kernel itself.
std::int64_t own_code_ns(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(op);
  const std::uint32_t end = track.first_slice + track.slice_count;
  std::int64_t own_ns = trace.dur_ns(op);
  bool launches = false;
  for (std::uint32_t i = raw(op) + 1; i < end && trace.start_ns(SliceId{i}) < trace.end_ns(op);
       ++i) {
    const SliceId child{i};
    if (facts.nesting.parent[i] != op) continue;
    const ApiCall call = trace.api_call(child);
    if (!is_api_call(trace.kind(child)) ||
        call.does(api_effect::kBlocks | api_effect::kCopies | api_effect::kAllocates))
      own_ns -= trace.dur_ns(child);
    else
      launches = launches || call.does(api_effect::kStartsKernels);
  }
  return launches ? own_ns : -1;
}

// Operators whose first call took far longer than the later ones. O(slices x depth).
std::vector<FirstCallsOfOperator> slow_first_calls(const Facts& facts) {
  const Trace& trace = *facts.trace;
  struct Calls {
    std::vector<SliceId> all, slow;
  };
  std::map<std::uint32_t, Calls> by_name;
  std::vector<analysis::Window> profiler;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (analysis::is_profiler_overhead(trace, id))
      profiler.push_back({trace.start_ns(id), trace.end_ns(id)});
    if (trace.kind(id) != CategoryKind::kCpuOp || !trace.name(id).starts_with("aten::") ||
        may_work_on_cpu(trace.name(id)))
      continue;
    Calls& calls = by_name[raw(trace.slices().name[i])];
    calls.all.push_back(id);
    if (trace.dur_ns(id) < kLongOwnCodeNs) continue;
    const std::int64_t own_ns = own_code_ns(facts, id);
    if (own_ns >= kLongOwnCodeNs && wide(own_ns) * 5 >= wide(trace.dur_ns(id)) * 4)
      calls.slow.push_back(id);
  }
  std::vector<FirstCallsOfOperator> found;
  for (auto& [name_id, calls] : by_name) {
    if (calls.slow.empty()) continue;
    const auto earlier = [&](SliceId a, SliceId b) {
      return trace.start_ns(a) < trace.start_ns(b);
    };
    std::sort(calls.all.begin(), calls.all.end(), earlier);
    std::sort(calls.slow.begin(), calls.slow.end(), earlier);
    if (calls.slow.front() != calls.all.front()) continue;
    FirstCallsOfOperator first;
    first.calls = calls.all.size();
    std::vector<std::int64_t> others;
    for (const SliceId call : calls.all)
      if (!std::binary_search(calls.slow.begin(), calls.slow.end(), call, earlier))
        others.push_back(trace.dur_ns(call));
    if (!others.empty()) first.usual_ns = analysis::lower_median(std::move(others));
    const std::int64_t least_ns =
        first.usual_ns > 0 ? kTimesTheUsual * first.usual_ns : kLongLoneCodeNs;
    // Where most calls are slow, that is what is usual.
    if (calls.slow.size() > 1 && calls.slow.size() * 2 > calls.all.size()) continue;
    for (const SliceId call : calls.slow) {
      const analysis::Window window{trace.start_ns(call), trace.end_ns(call)};
      const bool is_profilers = std::any_of(profiler.begin(), profiler.end(), [&](const auto& own) {
        return own.start_ns < window.end_ns && own.end_ns > window.start_ns;
      });
      if (window.length_ns() < least_ns || is_profilers ||
          device_idle_during(facts, {window}) * 10 < window.length_ns() * 9)
        continue;
      const auto at = std::lower_bound(calls.all.begin(), calls.all.end(), call, earlier);
      if (at != calls.all.begin() &&
          !std::binary_search(calls.slow.begin(), calls.slow.end(), *(at - 1), earlier))
        ++first.again;
      first.slow.push_back(call);
      first.slow_ns += window.length_ns();
    }
    if (first.slow.empty() || first.slow.front() != calls.all.front()) continue;
    first.name = trace.name(outermost_around(facts, first.slow.front()));
    found.push_back(std::move(first));
  }
  sort_rows(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.slow_ns > b.slow_ns; });
  return found;
}

// Are there slow calls in each of several steady steps? The first step is not among these.
bool is_slow_in_each_step(const Facts& facts, const FirstCallsOfOperator& calls) {
  if (!facts.steps.marked || facts.selection.steady.size() < 2) return false;
  std::set<std::size_t> steps;
  for (const SliceId call : calls.slow)
    steps.insert(steady_step_at(facts, facts.trace->start_ns(call)));
  steps.erase(~std::size_t{0});
  return steps.size() == facts.selection.steady.size();
}

}  // namespace

std::int64_t StartUpCalls::total_ns() const { return total_length(windows); }

bool StartUpCalls::contains(SliceId call) const {
  return std::any_of(calls.begin(), calls.end(),
                     [&](const StartUpCall& each) { return each.call == call; });
}

namespace {

StartUpCalls find_start_up_calls(const Facts& facts) {
  const Trace& trace = *facts.trace;
  StartUpCalls found;
  const std::optional<std::int64_t> work_ns = first_work_ns(facts);
  FirstCalls first_calls(facts);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.dur_ns(id) < kLongCallNs || !is_api_call(trace.kind(id)) ||
        trace.api_call(id).does(kOtherReasons))
      continue;
    const bool frees = trace.api_call(id).does(api_effect::kFrees);
    if (work_ns && trace.end_ns(id) <= *work_ns && !frees) {
      found.calls.push_back({StartUpCall::Kind::kContext, id, kNone<SliceId>});
      found.context_ns += trace.dur_ns(id);
      continue;
    }
    // A library that only wants the context calls cudaFree(nullptr), once. A program that frees
    // memory does so in later calls, too.
    const SliceId op = operator_around(facts, id), outermost = outermost_operator_of(facts, id);
    if (op == kNone<SliceId> || outermost == kNone<SliceId> || !first_calls.is_first(op) ||
        device_idle_during(facts, {{trace.start_ns(id), trace.end_ns(id)}}) * 10 <
            trace.dur_ns(id) * 9)
      continue;
    found.calls.push_back({StartUpCall::Kind::kLibrary, id, op});
  }
  for (FirstCallsOfOperator& each : slow_first_calls(facts))
    (is_slow_in_each_step(facts, each) ? found.repeated : found.operators)
        .push_back(std::move(each));
  for (const FirstCallsOfOperator& each : found.operators)
    for (const SliceId call : each.slow)
      found.calls.push_back({StartUpCall::Kind::kOperator, call, call});
  // Calls inside such an operator are its own.
  std::erase_if(found.calls, [&](const StartUpCall& call) {
    return call.kind != StartUpCall::Kind::kOperator &&
           std::any_of(found.calls.begin(), found.calls.end(), [&](const StartUpCall& around) {
             return around.kind == StartUpCall::Kind::kOperator &&
                    trace.slices().track[raw(around.call)] ==
                        trace.slices().track[raw(call.call)] &&
                    trace.start_ns(around.call) <= trace.start_ns(call.call) &&
                    trace.end_ns(call.call) <= trace.end_ns(around.call);
           });
  });
  sort_rows(found.calls.begin(), found.calls.end(),
            [&](const StartUpCall& a, const StartUpCall& b) {
              return trace.start_ns(a.call) < trace.start_ns(b.call);
            });
  std::vector<analysis::Window> windows;
  for (const StartUpCall& call : found.calls)
    windows.push_back({trace.start_ns(call.call), trace.end_ns(call.call)});
  found.windows = joined(std::move(windows));
  return found;
}

std::vector<SliceId> find_first_use_calls(const Facts& facts) {
  std::vector<SliceId> calls;
  const StartUpCalls& start_up = start_up_calls(facts);
  for (const StartUpCall& call : start_up.calls) calls.push_back(call.call);
  if (const auto& loading = find_code_loading(facts))
    for (const SliceId call : loading->calls) {
      const std::int64_t time_ns = facts.trace->start_ns(call);
      if (!inside(start_up.windows, time_ns)) calls.push_back(call);
    }
  return calls;
}

}  // namespace

const StartUpCalls& start_up_calls(const Facts& facts) {
  return made_once<find_start_up_calls>(facts);
}

const std::vector<SliceId>& first_use_calls(const Facts& facts) {
  return made_once<find_first_use_calls>(facts);
}

std::int64_t idle_in_repeated_calls(const Facts& facts) {
  std::vector<analysis::Window> windows;
  for (const FirstCallsOfOperator& each : start_up_calls(facts).repeated)
    for (const SliceId call : each.slow)
      windows.push_back({facts.trace->start_ns(call), facts.trace->end_ns(call)});
  return device_idle_during(facts, steady_parts(facts, joined(std::move(windows))));
}

std::int64_t idle_in_first_uses(const Facts& facts) {
  std::vector<analysis::Window> windows;
  for (const SliceId call : first_use_calls(facts))
    windows.push_back({facts.trace->start_ns(call), facts.trace->end_ns(call)});
  return device_idle_during(facts, steady_parts(facts, joined(std::move(windows))));
}

}  // namespace lanescope::explain::rules

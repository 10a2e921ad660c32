#include "lanescope/explain/rules/start_up_calls.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/code_loading.h"
#include "lanescope/explain/rules/device_time.h"
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

}  // namespace

std::int64_t StartUpCalls::total_ns() const { return total_length(windows); }

bool StartUpCalls::contains(SliceId call) const {
  return std::any_of(calls.begin(), calls.end(),
                     [&](const StartUpCall& each) { return each.call == call; });
}

StartUpCalls start_up_calls(const Facts& facts) {
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

std::vector<SliceId> first_use_calls(const Facts& facts) {
  std::vector<SliceId> calls;
  for (const StartUpCall& call : start_up_calls(facts).calls) calls.push_back(call.call);
  if (const auto loading = find_code_loading(facts))
    calls.insert(calls.end(), loading->calls.begin(), loading->calls.end());
  return calls;
}

std::int64_t idle_in_first_uses(const Facts& facts) {
  std::vector<analysis::Window> windows;
  for (const SliceId call : first_use_calls(facts))
    windows.push_back({facts.trace->start_ns(call), facts.trace->end_ns(call)});
  return device_idle_during(facts, steady_parts(facts, joined(std::move(windows))));
}

}  // namespace lanescope::explain::rules

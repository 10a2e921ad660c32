// Every operator passes through Python before it runs: a TorchDispatchMode is on, such as FlopCounterMode.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr std::uint64_t kFewestDispatches = 20;  // of a step
constexpr double kLeastDispatchModeShare = 0.05;

struct DispatchMode {
  std::uint64_t calls = 0;
  std::int64_t own_ns = 0;   // on the CPU, without the operators that it calls in turn
  std::int64_t idle_ns = 0;  // of the GPU in that time
  SliceId longest = kNone<SliceId>;
};

// Newer versions of torch record the detour itself, with_stack records the function of the mode.
bool is_detour(const Trace& trace, SliceId id) {
  if (trace.kind(id) == CategoryKind::kCpuOp) return trace.name(id) == "PythonDispatchMode";
  return trace.kind(id) == CategoryKind::kPythonFunction &&
         trace.name(id).ends_with(": __torch_dispatch__");
}

// The detours of one thread (in order of start) without the operators that begin in them.
std::vector<Window> own_time(const Trace& trace, const std::vector<Window>& detours,
                             const Track& track) {
  std::vector<Window> own;
  std::size_t at = 0;
  std::int64_t from = detours.front().start_ns;
  const auto close = [&] {
    if (from < detours[at].end_ns) own.push_back({from, detours[at].end_ns});
  };
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || is_detour(trace, id)) continue;
    while (at < detours.size() && detours[at].end_ns <= trace.start_ns(id)) {
      close();
      if (++at < detours.size()) from = detours[at].start_ns;
    }
    if (at == detours.size()) return own;
    if (trace.start_ns(id) < from) continue;
    if (from < trace.start_ns(id)) own.push_back({from, trace.start_ns(id)});
    from = std::max(from, trace.end_ns(id));
  }
  for (; at < detours.size(); ++at) {
    close();
    if (at + 1 < detours.size()) from = detours[at + 1].start_ns;
  }
  return own;
}

std::optional<DispatchMode> measure_dispatch_mode(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  std::map<std::uint32_t, std::vector<Window>> detours;  // by raw thread
  DispatchMode found;
  // An operator on its detour and the mode's function for it are one: the recorded operator counts.
  std::uint64_t operators = 0, functions = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_detour(trace, id) || !inside(cpu_windows, trace.start_ns(id))) continue;
    ++(trace.kind(id) == CategoryKind::kCpuOp ? operators : functions);
    detours[raw(trace.slices().track[i])].push_back({trace.start_ns(id), trace.end_ns(id)});
    if (found.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(found.longest))
      found.longest = id;
  }
  found.calls = std::max(operators, functions);
  const auto steps = step_count(facts);
  if (found.calls < kFewestDispatches * steps) return std::nullopt;
  std::vector<Window> own;
  for (auto& [thread, windows] : detours) {
    const auto pieces = own_time(trace, joined(windows), trace.track(TrackId{thread}));
    own.insert(own.end(), pieces.begin(), pieces.end());
  }
  found.own_ns = total_length(own);
  found.idle_ns = facts.main_device ? device_idle_during(facts, std::move(own)) : 0;
  const std::int64_t cost_ns = facts.main_device ? found.idle_ns : found.own_ns;
  if (share_of(cost_ns, facts.steady_wall_ns()) < kLeastDispatchModeShare) return std::nullopt;
  return found;
}

Finding tell_dispatch_mode(const Facts& facts, const DispatchMode& found) {
  const auto steps = step_count(facts);
  const std::int64_t cost_ns = facts.main_device ? found.idle_ns : found.own_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "Operators pass through Python before they run, {} times [per step]: {} "
                        "[per step] ({}){}.",
                        {count(found.calls / steps), ns(facts.per_step(cost_ns)),
                         ratio(cost_ns, facts.steady_wall_ns()),
                         text(facts.main_device ? ", in which the GPU is idle" : "")});
  rate_cost(facts, cost_ns, found.calls, finding);
  finding.arithmetic.push_back(
      say(facts,
          "{} [per step] on the CPU in a TorchDispatchMode (PythonDispatchMode, "
          "__torch_dispatch__), without the operators that it calls",
          {ns(facts.per_step(found.own_ns))}));
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest")));
  finding.try_next = {
      "leave the mode out of the steps that count: FlopCounterMode, a mode that logs or checks "
      "operators, FakeTensorMode; record one step with it, and time the others",
      "a tensor subclass with __torch_dispatch__ costs the same: use plain tensors where speed "
      "counts, or torch.compile, which runs that code once"};
  finding.brief = say(
      facts, "Each operator passes through Python (a TorchDispatchMode is on), {} times [per step]",
      {count(found.calls / steps)});
  finding.action =
      say("Leave the mode out of usual steps: FlopCounterMode, one that logs or checks operators");
  finding.sample_noun = "operator";
  return finding;
}

}  // namespace

extern constinit const Rule dispatch_mode_rule = {
    .id = "dispatch-mode",
    .question = "do operators pass through Python before they run?",
    .meant_by = "flop counter dispatch mode python",
    .order = 123,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_dispatch_mode, tell_dispatch_mode>,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules

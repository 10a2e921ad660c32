// Every operator passes through Python before it runs: a TorchDispatchMode is on, such as FlopCounterMode, or tensors of a
// class of their own have __torch_function__.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/start_up_calls.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr std::uint64_t kFewestDispatches = 20;  // of a step
constexpr double kLeastDispatchModeShare = 0.05;

// Which method makes the detour: __torch_dispatch__ below the operators, or __torch_function__ around them.
enum class Detour : std::uint8_t { kDispatch, kFunction };

struct DispatchMode {
  Detour detour = Detour::kDispatch;
  bool is_of_device = false;  // of torch.set_default_device, or `with torch.device(...)`
  std::uint64_t calls = 0;
  std::int64_t own_ns = 0;   // on the CPU, without the operators that it calls in turn
  std::int64_t idle_ns = 0;  // of the GPU in that time
  SliceId longest = kNone<SliceId>;
  // The mode is on in one stretch only, and as many operators run without it outside.
  bool is_once = false;
  Window stretch{};  // from the first detour to the end of the last
};

constexpr std::string_view kDispatchOperator = "PythonDispatchMode",
                           kDispatchFrame = ": __torch_dispatch__",
                           kFunctionFrame = ": __torch_function__";

// Newer versions of torch record the detour itself, with_stack records the function of the mode.
bool is_detour(const Trace& trace, SliceId id, Detour detour) {
  if (trace.kind(id) == CategoryKind::kCpuOp)
    return detour == Detour::kDispatch && trace.name(id) == kDispatchOperator;
  return trace.kind(id) == CategoryKind::kPythonFunction &&
         trace.name(id).ends_with(detour == Detour::kDispatch ? kDispatchFrame : kFunctionFrame);
}

// In order of id.
std::vector<SliceId> find_detours(const Facts& facts, Detour detour) {
  std::vector<SliceId> found = slices_named(facts, [](std::string_view name) {
    return name == kDispatchOperator || name.ends_with(kDispatchFrame) ||
           name.ends_with(kFunctionFrame);
  });
  std::erase_if(found, [&](SliceId id) { return !is_detour(*facts.trace, id, detour); });
  return found;
}

// The detours of one thread (in order of start) without the operators that begin in them.
std::vector<Window> own_time(const Trace& trace, const std::vector<Window>& detours,
                             const Track& track, Detour detour) {
  std::vector<Window> own;
  std::size_t at = 0;
  std::int64_t from = detours.front().start_ns;
  const auto close = [&] {
    if (from < detours[at].end_ns) own.push_back({from, detours[at].end_ns});
  };
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || is_detour(trace, id, detour)) continue;
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

// What is no detour, on whichever thread: first uses of kernels and libraries, which are start-up, and backward passes, in which the
// thread of the detour waits for others. In order.
std::vector<Window> other_than_detours(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<SliceId> found = slices_named(facts, [](std::string_view name) {
    return name.starts_with("<built-in method run_backward");
  });
  if (facts.main_device) {
    const std::vector<SliceId>& first_uses = first_use_calls(facts);
    found.insert(found.end(), first_uses.begin(), first_uses.end());
  }
  std::vector<Window> windows;
  for (const SliceId id : found) windows.push_back({trace.start_ns(id), trace.end_ns(id)});
  return joined(std::move(windows));
}

// The parts of `windows` outside of `others`; both in order.
std::vector<Window> parts_outside(const std::vector<Window>& windows,
                                  const std::vector<Window>& others) {
  std::vector<Window> parts;
  auto other = others.begin();
  for (const Window& window : windows) {
    std::int64_t from_ns = window.start_ns;
    while (other != others.end() && other->end_ns <= from_ns) ++other;
    for (auto next = other; next != others.end() && next->start_ns < window.end_ns; ++next) {
      if (from_ns < next->start_ns) parts.push_back({from_ns, next->start_ns});
      from_ns = std::max(from_ns, next->end_ns);
    }
    if (from_ns < window.end_ns) parts.push_back({from_ns, window.end_ns});
  }
  return parts;
}

// Is the mode on in one stretch only? torch.export, make_fx and fake tensors trace once. Counts the top-level operators that run
// outside of the stretch.
bool is_on_once(const Facts& facts, const DispatchMode& found,
                const std::map<std::uint32_t, std::vector<Window>>& detours,
                const std::vector<Window>& cpu_windows) {
  const Trace& trace = *facts.trace;
  const auto holds = [&](const Window& window) {
    return window.start_ns <= found.stretch.start_ns && found.stretch.end_ns <= window.end_ns;
  };
  if (std::none_of(cpu_windows.begin(), cpu_windows.end(), holds)) return false;
  std::uint64_t outside = 0;
  for (const auto& [thread, unused] : detours) {
    const Track& track = trace.track(TrackId{thread});
    std::int64_t end_ns = 0;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      if (trace.kind(id) != CategoryKind::kCpuOp || trace.start_ns(id) < end_ns) continue;
      end_ns = trace.end_ns(id);
      if ((end_ns <= found.stretch.start_ns || trace.start_ns(id) >= found.stretch.end_ns) &&
          inside(cpu_windows, trace.start_ns(id)))
        ++outside;
    }
  }
  return outside >= found.calls;
}

std::optional<DispatchMode> measure_detours(const Facts& facts, Detour detour) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  const CompiledFacts compiled = compiled_facts_of(facts);
  std::map<std::uint32_t, std::vector<Window>> detours;  // by raw thread
  DispatchMode found{.detour = detour};
  // One detour can have two rows: the operator and the mode's function for it (the operator counts), or a method and the base
  // class's method that it calls (the outer one counts).
  std::uint64_t operators = 0, functions = 0, of_device = 0;
  for (const SliceId id : find_detours(facts, detour)) {
    if (!inside(cpu_windows, trace.start_ns(id))) continue;
    // torch.compile runs operators of fake tensors in such a mode while it compiles.
    if (compiled.code.layer[raw(id)] == analysis::CompileLayer::kCompiling) continue;
    auto& windows = detours[raw(trace.slices().track[raw(id)])];
    const bool is_operator = trace.kind(id) == CategoryKind::kCpuOp;
    const bool is_inner = !windows.empty() && trace.end_ns(id) <= windows.back().end_ns;
    if (is_operator) ++operators;
    if (!is_operator && (detour == Detour::kDispatch || !is_inner)) ++functions;
    if (trace.name(id).starts_with("torch/utils/_device.py")) ++of_device;
    if (!is_inner || detour == Detour::kDispatch)
      windows.push_back({trace.start_ns(id), trace.end_ns(id)});
    if (found.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(found.longest))
      found.longest = id;
  }
  found.calls = std::max(operators, functions);
  found.is_of_device = of_device * 2 > found.calls;
  const auto steps = step_count(facts);
  if (found.calls < kFewestDispatches * steps) return std::nullopt;
  found.stretch = {INT64_MAX, INT64_MIN};
  for (const auto& [thread, windows] : detours)
    for (const Window& window : windows) {
      found.stretch.start_ns = std::min(found.stretch.start_ns, window.start_ns);
      found.stretch.end_ns = std::max(found.stretch.end_ns, window.end_ns);
    }
  found.is_once = detour == Detour::kDispatch && is_on_once(facts, found, detours, cpu_windows);
  std::vector<Window> own;
  const std::vector<Window> others = other_than_detours(facts);
  for (auto& [thread, windows] : detours) {
    const auto pieces = parts_outside(
        own_time(trace, joined(windows), trace.track(TrackId{thread}), detour), others);
    own.insert(own.end(), pieces.begin(), pieces.end());
  }
  found.own_ns = total_length(own);
  found.idle_ns = facts.main_device ? device_idle_during(facts, std::move(own)) : 0;
  const std::int64_t cost_ns = facts.main_device ? found.idle_ns : found.own_ns;
  if (share_of(cost_ns, facts.steady_wall_ns()) < kLeastDispatchModeShare) return std::nullopt;
  return found;
}

std::optional<DispatchMode> measure_dispatch_mode(const Facts& facts) {
  auto found = measure_detours(facts, Detour::kDispatch);
  return found ? found : measure_detours(facts, Detour::kFunction);
}

// An operator in the longest __torch_function__ leads to a line of that method, which the frame itself does not.
SliceId shown_slice(const Trace& trace, const DispatchMode& found) {
  if (found.detour == Detour::kDispatch) return found.longest;
  const Track& track = trace.track(found.longest);
  for (std::uint32_t i = raw(found.longest) + 1;
       i < track.first_slice + track.slice_count &&
       trace.start_ns(SliceId{i}) < trace.end_ns(found.longest);
       ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp) return SliceId{i};
  return found.longest;
}

void tell_torch_function(const Facts& facts, const DispatchMode& found, Finding& finding) {
  finding.arithmetic.push_back(say(
      facts,
      "{} [per step] on the CPU in __torch_function__ of a tensor subclass or a TorchFunctionMode, "
      "without the operators that it calls",
      {ns(facts.per_step(found.own_ns))}));
  finding.try_next =
      found.is_of_device
          ? std::vector<std::string>{
                "torch.set_default_device and `with torch.device(...)` are such a mode: pass "
                "device= where tensors are made, and leave the mode before the steps"}
          : std::vector<std::string>{
                "compute with plain tensors in the step: x.as_subclass(torch.Tensor); keep what the subclass carries outside of them, and wrap the results at the end",
                "leave a TorchFunctionMode out of the steps that count"};
  finding.brief =
      say(facts, "Each operator passes through Python (__torch_function__), {} times [per step]",
          {count(found.calls / step_count(facts))});
  finding.action =
      found.is_of_device
          ? say("Pass device= where tensors are made: torch.set_default_device costs Python in "
                "each call")
          : say("Compute with plain tensors: x.as_subclass(torch.Tensor), metadata outside of "
                "them");
}

// Tracing: what is measured is not the program as it runs later.
Finding tell_tracing(const Facts& facts, const DispatchMode& found) {
  const std::int64_t long_ns = found.stretch.end_ns - found.stretch.start_ns;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict = say(
      "In one stretch of {} operators pass through Python before they run, {} times: tracing, as "
      "by torch.export or make_fx, or a TorchDispatchMode that is on once. No operator outside of "
      "it does.",
      {ns(long_ns), count(found.calls)});
  finding.at_stake_ns = long_ns;
  finding.at_stake_ratio = share_of(long_ns, facts.steady_wall_ns());
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest")));
  finding.sample_count = found.calls;
  finding.sample_noun = "operator";
  finding.try_next = {
      "trace once and keep what comes out (torch.export.save), before the part that is measured",
      "to see what a usual step takes: start the profiler after it, or mark the steps "
      "(prof.step())"};
  finding.brief = say("A model is traced once, operator by operator in Python: {}", {ns(long_ns)});
  finding.action = say("Trace before the recording starts, and keep the result: torch.export.save");
  return finding;
}

Finding tell_dispatch_mode(const Facts& facts, const DispatchMode& found) {
  if (found.is_once) return tell_tracing(facts, found);
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
  finding.evidence.push_back(
      called_at(facts, shown_slice(*facts.trace, found), say("the longest")));
  finding.sample_noun = "operator";
  if (found.detour == Detour::kFunction) {
    tell_torch_function(facts, found, finding);
    return finding;
  }
  finding.arithmetic.push_back(
      say(facts,
          "{} [per step] on the CPU in a TorchDispatchMode (PythonDispatchMode, "
          "__torch_dispatch__), without the operators that it calls",
          {ns(facts.per_step(found.own_ns))}));
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
  return finding;
}

}  // namespace

extern constinit const Rule dispatch_mode_rule = {
    .id = "dispatch-mode",
    .question = "do operators pass through Python before they run?",
    .meant_by = "flop counter dispatch mode python subclass torch_function",
    .order = 123,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_dispatch_mode, tell_dispatch_mode>,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules

// Tensors that are made on the CPU and moved to the GPU at once: torch.zeros(n).to("cuda"), or tables such as
// torch.arange(n).mul(x).sin().to("cuda").
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/built_chains.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;
using analysis::WorkClass;

namespace {

constexpr double kLeastBuiltShare = 0.01, kLargeBuiltShare = 0.05;  // of the wall

// Making it on the GPU saves all of this: idle time, and time in which only the copy ran.
struct SpentTime {
  std::int64_t idle_ns = 0, copies_ns = 0;
  std::int64_t total_ns() const { return idle_ns + copies_ns; }
};

SpentTime without_compute(const Facts& facts, std::vector<Window> windows) {
  SpentTime found;
  for (const Window& window : joined(std::move(windows))) {
    const auto busy = facts.device().timeline.time_within(window.start_ns, window.end_ns);
    const std::int64_t copies_ns = busy[static_cast<std::size_t>(WorkClass::kCopy)];
    found.copies_ns += copies_ns;
    found.idle_ns += window.length_ns() - copies_ns -
                     busy[static_cast<std::size_t>(WorkClass::kCompute)] -
                     busy[static_cast<std::size_t>(WorkClass::kCommunication)];
  }
  return found;
}

// Chains of the same operators that copy as much.
struct BuiltGroup {
  std::vector<const BuiltChain*> chains;
  std::uint64_t tensors = 0;
  std::int64_t bytes = 0, cost_ns = 0;
};

struct BuiltOnCpu {
  std::span<const BuiltChain> chains;  // built_chains()
  std::vector<BuiltGroup> groups;      // most cost first; they point into `chains`
  std::uint64_t tensors = 0;
  std::int64_t cost_ns = 0, idle_ns = 0;  // idle_ns: part of it
  std::int64_t moving_ns = 0, computing_ns = 0, after_waits_ns = 0;
  std::int64_t quiet_ns =
      0;  // part of after_waits_ns: in code without events, such as to free what was made
  std::vector<SliceId> spared;
};

Window window_of(const Trace& trace, const BuiltChain& chain) {
  return {trace.start_ns(chain.makers.front()), chain.end_ns};
}

void group_chains(const Facts& facts, BuiltOnCpu& found) {
  const Trace& trace = *facts.trace;
  std::map<std::vector<std::int64_t>, BuiltGroup> groups;
  for (const BuiltChain& chain : found.chains) {
    std::vector<std::int64_t> symbol{chain.bytes, static_cast<std::int64_t>(chain.copies.size())};
    for (const SliceId op : chain.makers) symbol.push_back(raw(trace.slices().name[raw(op)]));
    BuiltGroup& group = groups[std::move(symbol)];
    group.chains.push_back(&chain);
    group.tensors += chain.copies.size();
    group.bytes = analysis::add_bytes(group.bytes, chain.bytes);
    group.cost_ns += without_compute(facts, {window_of(trace, chain)}).total_ns();
  }
  for (auto& [symbol, group] : groups) found.groups.push_back(std::move(group));
  sort_rows(found.groups.begin(), found.groups.end(),
            [](const BuiltGroup& a, const BuiltGroup& b) { return a.cost_ns > b.cost_ns; });
}

// When the GPU is idle because the CPU waited for such a copy, as host-sync counts: the copy's operator ends before that.
std::vector<Window> waits_for_copies(const Facts& facts, std::span<const BuiltChain> chains) {
  std::unordered_set<std::uint32_t> copies;
  for (const BuiltChain& chain : chains)
    for (const SliceId op : chain.copies) copies.insert(raw(op));
  std::vector<Window> waits;
  for (const HostStretch& stretch : host_late_stretches(facts))
    if (stretch.blame != kNone<SliceId>)
      if (const SliceId op = outermost_operator_of(facts, stretch.blame);
          op != kNone<SliceId> && copies.contains(raw(op)))
        waits.push_back({stretch.start_ns, stretch.end_ns});
  return waits;
}

// What other rules say of the same time.
void measure_covered(const Facts& facts, BuiltOnCpu& found) {
  constexpr std::int64_t kLongOperatorNs = 100'000;  // as cpu-operators counts
  const Trace& trace = *facts.trace;
  std::vector<Window> moving, computing;
  for (const BuiltChain& chain : found.chains) {
    moving.push_back({trace.start_ns(chain.copies.front()), chain.end_ns});
    for (const SliceId op : chain.makers)
      if (trace.dur_ns(op) >= kLongOperatorNs)
        computing.push_back({trace.start_ns(op), trace.end_ns(op)});
    found.spared.insert(found.spared.end(), chain.makers.begin(), chain.makers.end());
    found.spared.insert(found.spared.end(), chain.copies.begin(), chain.copies.end());
  }
  found.moving_ns = without_compute(facts, moving).total_ns();
  computing.insert(computing.end(), moving.begin(), moving.end());
  found.computing_ns = without_compute(facts, std::move(computing)).total_ns();
}

std::optional<BuiltOnCpu> measure_cpu_built_tensor(const Facts& facts) {
  BuiltOnCpu found;
  found.chains = built_chains(facts);
  if (found.chains.empty()) return std::nullopt;
  std::vector<Window> windows;
  for (const BuiltChain& chain : found.chains) {
    found.tensors += chain.copies.size();
    windows.push_back(window_of(*facts.trace, chain));
  }
  std::vector<Window> waits = waits_for_copies(facts, found.chains);
  for (const Window& wait : waits) found.after_waits_ns += wait.length_ns();
  found.quiet_ns = lost_in(facts, steady_parts(facts, joined(waits))).quiet_ns;
  windows.insert(windows.end(), waits.begin(), waits.end());
  const SpentTime spent = without_compute(facts, std::move(windows));
  found.cost_ns = spent.total_ns();
  found.idle_ns = spent.idle_ns;
  const double share = share_of(found.cost_ns, facts.wall.partition.wall_ns);
  // A large tensor counts although a recording of one or two steps has only so many.
  if (found.tensors < std::max<std::size_t>(1, facts.selection.steady.size()) ||
      share < (found.tensors < 3 ? kLargeBuiltShare : kLeastBuiltShare))
    return std::nullopt;
  group_chains(facts, found);
  measure_covered(facts, found);
  return found;
}

// "aten::arange to aten::sin": where a chain begins and ends.
Sentence makers_text(const Trace& trace, const BuiltChain& chain) {
  return chain.makers.size() == 1 ? say("{}", {name(trace.name(chain.makers.front()))})
                                  : say("{} to {}", {name(trace.name(chain.makers.front())),
                                                     name(trace.name(chain.makers.back()))});
}

// "torch.zeros" of aten::zeros, where Python has a function of that name with a device.
std::optional<std::string> function_of(std::string_view op) {
  static constexpr std::array<std::string_view, 10> kFunctions = {
      "aten::zeros", "aten::ones",  "aten::full",    "aten::arange",   "aten::eye",
      "aten::rand",  "aten::randn", "aten::randint", "aten::linspace", "aten::randperm"};
  if (std::find(kFunctions.begin(), kFunctions.end(), op) == kFunctions.end()) return std::nullopt;
  return "torch." + std::string(op.substr(std::string_view("aten::").size()));
}

void advise_on_making(const Facts& facts, const BuiltOnCpu& found, Finding& finding) {
  const Trace& trace = *facts.trace;
  const BuiltGroup& largest = found.groups.front();
  const BuiltChain& chain = *largest.chains.front();
  const bool is_constant = chain.is_table && !chain.is_random;
  const std::uint64_t rounds =
      largest.chains.size() / std::max<std::size_t>(1, facts.selection.steady.size());
  if (is_constant && rounds >= 2) {
    finding.brief =
        say(facts,
            "The CPU makes tensors of one size and copies them to the GPU, {} times [per step] (",
            {count(rounds)});
    append(finding.brief, makers_text(trace, chain));
    append(finding.brief, say(")"));
    finding.action = say(
        "If they are equal each time: make them once, on the GPU (device=x.device), and keep them");
    return;
  }
  finding.brief =
      say(facts, "{} [tensor is|tensors are] made on the CPU [per step] and copied to the GPU (",
          {count(a_step(facts, found.tensors))});
  append(finding.brief, makers_text(trace, chain));
  append(finding.brief, say(", {})", {bytes(facts.per_step(largest.bytes))}));
  finding.gain_is_bound =
      chain.makers.size() > 1;  // the GPU still has to make them, in as many launches
  const auto function = function_of(trace.name(chain.makers.front()));
  if (found.groups.size() == 1 && chain.makers.size() == 1 && function && !chain.is_table)
    finding.action = say("Make it on the GPU: {}(..., device=x.device)", {text(*function)});
  else
    finding.action = say("Make them on the GPU, device=x.device; make constants before the loop");
}

Finding tell_cpu_built_tensor(const Facts& facts, const BuiltOnCpu& found) {
  const Trace& trace = *facts.trace;
  Finding finding;
  finding.verdict = say(facts,
                        "{} [tensor was|tensors were] made on the CPU and then moved to the GPU: "
                        "{} [per step] in which the GPU computes nothing.",
                        {count(found.tensors), ns(facts.per_step(found.cost_ns))});
  finding.at_stake_ns = facts.per_step(found.cost_ns);
  finding.at_stake_ratio = share_of(found.cost_ns, facts.wall.partition.wall_ns);
  finding.waiting_ns = facts.per_step(found.idle_ns);
  finding.spared_calls = found.spared;
  finding.explains = {{"pageable-copy", facts.per_step(found.moving_ns)},
                      {"exposed-copy", facts.per_step(found.moving_ns)},
                      {"host-sync", facts.per_step(found.after_waits_ns)},
                      {"python-hole", facts.per_step(found.quiet_ns)},
                      {"cpu-operators", facts.per_step(found.computing_ns)}};
  finding.arithmetic.push_back(
      say("counted from the start of the operator that makes a tensor to the end of its copy, and "
          "after it while the GPU waits because the CPU waited for the copy, where the GPU neither "
          "computed nor communicated; making the tensor on the GPU costs a "
          "launch for each operator"));
  for (std::size_t i = 0; i < found.groups.size() && i < 3; ++i) {
    const BuiltGroup& group = found.groups[i];
    Sentence line = makers_text(trace, *group.chains.front());
    append(line, say(facts, " x{}, then moved: {} in all; {} [per step] without compute",
                     {count(group.chains.size()), bytes(group.bytes),
                      ns(facts.per_step(group.cost_ns))}));
    finding.evidence.push_back({group.chains.front()->makers.front(), std::move(line)});
  }
  finding.try_next = {
      "make it where it is used: torch.zeros(n, device=x.device), or x.new_zeros(n)",
      "make constants once, before the loop"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.tensors;
  finding.sample_noun = "tensor";
  advise_on_making(facts, found, finding);
  return finding;
}

}  // namespace

extern constinit const Rule cpu_built_tensor_rule = {
    .id = "cpu-built-tensor",
    .question = "are tensors made on the CPU and then moved to the GPU?",
    .meant_by = "zeros arange device to constant",
    .order = 450,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_cpu_built_tensor, tell_cpu_built_tensor>,
    .is_regression = true,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules

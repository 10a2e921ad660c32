// What torch.compile made of the program: regions, fused kernels, or nothing on the GPU.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/parsed_kernel_names.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;

namespace {

struct Fused {
  std::uint64_t calls = 0, operators = 0;
  std::int64_t gpu_ns = 0;
  SliceId longest = kNone<SliceId>;
};

struct CompiledWork {
  std::set<std::string_view> regions;  // names
  SliceId first_region = kNone<SliceId>;
  std::size_t graph_count = 0;
  std::map<std::string, Fused> fused;  // generated kernels by name
  std::uint64_t kernels = 0, fused_calls = 0;
  std::int64_t fused_ns = 0, other_ns = 0, in_graphs_ns = 0;  // of kernels
  std::int64_t in_trials_ns = 0;  // launched while torch.compile compiled: it tries kernels out
};

bool is_while_compiling(const Trace& trace, const CompiledFacts& compiled, SliceId launch) {
  const std::int64_t at = trace.start_ns(launch);
  return std::any_of(compiled.code.compiles.begin(), compiled.code.compiles.end(),
                     [&](const analysis::CompileRun& run) {
                       return run.start_ns <= at && at < run.end_ns &&
                              trace.slices().track[raw(run.slice)] ==
                                  trace.slices().track[raw(launch)];
                     });
}

void add_kernels(const Facts& facts, const CompiledFacts& compiled, CompiledWork& found) {
  const Trace& trace = *facts.trace;
  const KernelNames names(facts);
  for (const DeviceWork& work : facts.device().timeline.work) {
    if (trace.kind(work.slice) != CategoryKind::kKernel ||
        !inside(facts.steady_windows, work.start_ns))
      continue;
    ++found.kernels;
    const StringId id = trace.slices().name[raw(work.slice)];
    const names::KernelName& name = names.of(work.slice);
    const std::int64_t dur_ns = work.end_ns - work.start_ns;
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch != kNone<SliceId> &&
        compiled.code.layer[raw(launch)] == analysis::CompileLayer::kGraph)
      found.in_graphs_ns += dur_ns;
    else if (launch != kNone<SliceId> && is_while_compiling(trace, compiled, launch))
      found.in_trials_ns += dur_ns;
    if (name.fused.empty() && !trace.text(id).starts_with("triton_")) {
      found.other_ns += dur_ns;
      continue;
    }
    Fused& kernel = found.fused[std::string(trace.text(id))];
    ++kernel.calls;
    kernel.operators = name.fused.size();
    kernel.gpu_ns += dur_ns;
    if (kernel.longest == kNone<SliceId> || dur_ns > trace.dur_ns(kernel.longest))
      kernel.longest = work.slice;
    found.fused_ns += dur_ns;
    ++found.fused_calls;
  }
}

std::optional<CompiledWork> measure_compiled_code(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const CompiledFacts compiled = compiled_facts_of(facts);
  CompiledWork found;
  found.graph_count = compiled.code.graphs.size();
  SliceId& first = found.first_region;
  for (const analysis::CompiledCall& call : compiled.code.calls) {
    found.regions.insert(trace.name(call.slice));
    if (first == kNone<SliceId> || trace.start_ns(call.slice) < trace.start_ns(first))
      first = call.slice;
  }
  if (facts.main_device) add_kernels(facts, compiled, found);
  if (found.regions.empty() && found.graph_count == 0 && found.fused.empty()) return std::nullopt;
  return found;
}

void tell_fused(const Facts& facts, const CompiledWork& found, Finding& finding) {
  const auto steps = step_count(facts);
  std::uint64_t operators = 0;
  for (const auto& [label, kernel] : found.fused) operators += kernel.operators;
  finding.verdict =
      say(facts,
          "torch.compile fused: generated kernels {}, operators in their names {}, runs [per step] "
          "{}; they take {} of the kernels' time.",
          {count(found.fused.size()), count(operators), count(found.fused_calls / steps),
           ratio(found.fused_ns, found.fused_ns + found.other_ns)});
  std::vector<std::pair<std::string, Fused>> ranked(found.fused.begin(), found.fused.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.gpu_ns > b.second.gpu_ns; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    const Fused& each = ranked[i].second;
    const Value time = ns(facts.per_step(each.gpu_ns));
    finding.evidence.push_back(
        {each.longest, each.operators == 0
                           ? say(facts, "{}: {} [per step]", {kernel(ranked[i].first), time})
                           : say(facts, "{}: {} [operator|operators], {} [per step]",
                                 {kernel(ranked[i].first), count(each.operators), time})});
  }
}

Finding tell_compiled_code(const Facts& facts, const CompiledWork& found) {
  Finding finding;
  finding.kind = FindingKind::kWhere;
  const auto steps = step_count(facts);
  if (!facts.main_device) {
    finding.verdict =
        say("torch.compile ran, compiled regions: {}. The trace has no GPU work, so it does not "
            "show what was fused.",
            {count(found.regions.size())});
  } else if (found.fused.empty()) {
    finding.verdict = say(facts,
                          "torch.compile ran and fused nothing on the GPU: no kernel is a "
                          "generated one; [per step] {} [library kernel|library kernels] ran.",
                          {count(found.kernels / steps)});
    finding.try_next = {
        launch_mode_of(facts) == LaunchMode::kReplayed
            ? "compile larger regions: a single matmul or addmm has nothing to fuse"
            : "compile larger regions: a single matmul or addmm has nothing to fuse; or use "
              "mode=\"reduce-overhead\" if the CPU is the limit"};
  } else {
    tell_fused(facts, found, finding);
  }
  if (!found.regions.empty())
    finding.arithmetic.push_back(say(
        "compiled regions: {} ({}), compiled graphs: {}; the layers around a call are guards and "
        "wrappers of the compiler, on the CPU",
        {count(found.regions.size()), name(*found.regions.begin()), count(found.graph_count)}));
  const std::int64_t kernels_ns = found.fused_ns + found.other_ns;
  if (found.graph_count > 0 && kernels_ns > 0 && has_launches(facts)) {
    Sentence launched = say("compiled graphs launched {} of the kernels' time",
                            {ratio(found.in_graphs_ns, kernels_ns)});
    if (found.in_trials_ns > 0)
      append(launched, say(", torch.compile tried kernels out for {} of it",
                           {ratio(found.in_trials_ns, kernels_ns)}));
    if (const std::int64_t eager_ns = kernels_ns - found.in_graphs_ns - found.in_trials_ns;
        eager_ns > 0)
      append(launched, say(", eager code {}", {ratio(eager_ns, kernels_ns)}));
    finding.arithmetic.push_back(std::move(launched));
    if (found.in_graphs_ns * 2 < kernels_ns - found.in_trials_ns)
      finding.try_next.push_back(
          "compile more of the program: code that is not compiled launches most of the GPU's work, "
          "by its time");
  }
  if (found.first_region != kNone<SliceId> && finding.evidence.empty())
    finding.evidence.push_back({found.first_region, say("the first compiled region")});
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule compiled_code_rule = {
    .id = "compiled-code",
    .question = "did torch.compile fuse anything?",
    .order = 160,
    .run = measure_and_tell<measure_compiled_code, tell_compiled_code>,
};

}  // namespace lanescope::explain::rules

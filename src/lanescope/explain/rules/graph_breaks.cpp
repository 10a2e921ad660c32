// torch.compile left its graph in the middle of a function: a compiled region inside another one.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/compiling.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::CompiledCall;
using analysis::CompileLayer;

namespace {

struct Break {
  std::uint64_t calls = 0;
  SliceId first = kNone<SliceId>;
  std::string before;  // the last eager operator before the first of them
};

// What the outer region ran by itself just before the inner one: often what broke the graph.
std::string eager_before(const Trace& trace, const CompiledFacts& compiled,
                         const CompiledCall& inner) {
  for (std::uint32_t i = raw(inner.slice); i-- > raw(inner.around) + 1;) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || compiled.code.layer[i] != CompileLayer::kRegion)
      continue;
    const std::string_view label = trace.name(id);
    if (label.starts_with("Torch-Compiled Region") || label == "CompiledFunction") continue;
    SliceId top = id;  // aten::item rather than what it calls
    for (SliceId up = compiled.nesting.parent[i]; up != kNone<SliceId> && up != inner.around;
         up = compiled.nesting.parent[raw(up)])
      if (trace.kind(up) == CategoryKind::kCpuOp) top = up;
    return std::string(trace.name(top));
  }
  return {};
}

// Where a compiled graph begins or ends: its wrapper checks arguments and makes outputs there. Graphs that are
// joined do this once.
class GraphEnds {
 public:
  GraphEnds(const Trace& trace, const CompiledFacts& compiled) {
    const auto& layer = compiled.code.layer;
    for (std::uint32_t i = 0; i < layer.size(); ++i) {
      const SliceId parent = compiled.nesting.parent[i];
      if (layer[i] != CompileLayer::kGraph || parent == kNone<SliceId>) continue;
      if (layer[raw(parent)] != CompileLayer::kGraph) continue;
      Work& work =
          works_.try_emplace(raw(parent), Work{trace.start_ns(SliceId{i}), 0}).first->second;
      work.end_ns = std::max(work.end_ns, trace.end_ns(SliceId{i}));
    }
  }
  // Is this time of the slice itself before the first or after the last event inside it?
  bool contains(SliceId slice, std::int64_t from_ns, std::int64_t to_ns) const {
    const auto work = works_.find(raw(slice));
    return work != works_.end() &&
           (to_ns <= work->second.start_ns || from_ns >= work->second.end_ns);
  }

 private:
  struct Work {
    std::int64_t start_ns, end_ns;
  };
  std::unordered_map<std::uint32_t, Work> works_;  // by the slice around it
};

struct GraphBreaks {
  std::map<std::string, Break> breaks;  // by the inner region's name
  std::uint64_t break_count = 0;
  std::uint64_t outermost = 0;  // compiled calls
  WaitTime wait;
};

std::optional<GraphBreaks> measure_graph_breaks(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const CompiledFacts compiled = compiled_facts_of(facts);
  const bool whole = !facts.steps.marked;
  const auto windows = facts.steady_cpu_windows();
  std::map<std::string, Break> breaks;  // by the inner region's name
  std::uint64_t break_count = 0, outermost = 0;
  for (const CompiledCall& call : compiled.code.calls) {
    if (!whole && !inside(windows, trace.start_ns(call.slice))) continue;
    if (call.around == kNone<SliceId>) {
      ++outermost;
      continue;
    }
    Break& entry = breaks[std::string(trace.name(call.slice))];
    if (entry.calls++ == 0) {
      entry.first = call.slice;
      entry.before = eager_before(trace, compiled, call);
    }
    ++break_count;
  }
  if (break_count == 0) return std::nullopt;

  // Between the pieces: guards, wrappers and eager code, and the begin and end of each compiled graph.
  const std::vector<bool> broken = inside_broken_calls(facts, compiled);
  const GraphEnds ends(trace, compiled);
  const WaitTime wait =
      waiting_while(facts, [&](SliceId slice, std::int64_t from_ns, std::int64_t to_ns) {
        const CompileLayer layer = compiled.code.layer[raw(slice)];
        return broken[raw(slice)] && layer != CompileLayer::kCompiling &&
               (layer != CompileLayer::kGraph || ends.contains(slice, from_ns, to_ns));
      });

  return GraphBreaks{.breaks = std::move(breaks),
                     .break_count = break_count,
                     .outermost = outermost,
                     .wait = wait};
}

Finding tell_graph_breaks(const Facts& facts, const GraphBreaks& found) {
  const bool whole = !facts.steps.marked;
  Finding finding;
  const auto steps = step_count(facts);
  finding.verdict = say(facts,
                        "Graph breaks: torch.compile cut its code into pieces, {} [break|breaks] "
                        "in {} compiled [call|calls]" +
                            std::string(whole ? "" : " ({} [per step])") +
                            "; at each the CPU returns to Python, and nothing is fused across it.",
                        {count(found.break_count), count(found.outermost)});
  if (!whole) finding.verdict.values.push_back(count(found.break_count / steps));
  // Of the pieces of a call one stays, and is entered once.
  const std::int64_t saved_ns =
      found.wait.time_ns - found.wait.time_ns * static_cast<std::int64_t>(found.outermost) /
                               static_cast<std::int64_t>(found.break_count + found.outermost);
  finding.at_stake_ns = facts.per_step(saved_ns);
  finding.at_stake_ratio = share_of(saved_ns, facts.wall.partition.wall_ns);
  if (facts.main_device)
    finding.arithmetic.push_back(say(
        facts,
        "the GPU waited {} [per step] while the CPU entered and left the compiled graphs of such "
        "calls, {} pieces; one stays, so {} is at stake; what fusion across a break could save "
        "is not included",
        {ns(facts.per_step(found.wait.time_ns)), count(found.break_count + found.outermost),
         ns(finding.at_stake_ns)}));
  else
    finding.arithmetic.push_back(say("the trace holds no GPU work: what they cost is not known"));
  std::vector<std::pair<std::string, Break>> ranked(found.breaks.begin(), found.breaks.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.calls > b.second.calls; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    Sentence line = say("{} x{} goes on inside another region",
                        {name(ranked[i].first), count(ranked[i].second.calls)});
    if (!ranked[i].second.before.empty()) {
      line.pattern += "; the last eager operator before it: {}";
      line.values.push_back(name(ranked[i].second.before));
    }
    add_line(facts, ranked[i].second.first, line);
    finding.evidence.push_back({ranked[i].second.first, std::move(line)});
  }
  finding.try_next = {
      "run with TORCH_LOGS=graph_breaks to see the line of each break; "
      "torch.compile(fullgraph=True) makes a break an error",
      "usual causes: .item(), print, data-dependent branches, calls that Dynamo does not know"};
  finding.confidence = facts.main_device ? facts.confidence() : Confidence::kMedium;
  finding.sample_count = found.outermost;
  finding.sample_noun = "compiled call";
  finding.brief = say(facts, "{} graph [break cuts|breaks cut] torch.compile's code into pieces",
                      {count(found.break_count)});
  finding.action =
      say("Run with TORCH_LOGS=graph_breaks to see the lines; remove .item() and print there");
  return finding;
}

}  // namespace

extern constinit const Rule graph_breaks_rule = {
    .id = "graph-breaks",
    .question = "does torch.compile have graph breaks?",
    .order = 690,
    .run = measure_and_tell<measure_graph_breaks, tell_graph_breaks>,
    .is_regression = true,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules

// torch.compile cut a function into several graphs (graph breaks). A trace shows a break as a compiled region inside another
// compiled region.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/between_regions.h"
#include "lanescope/explain/rules/calls_with_work.h"
#include "lanescope/explain/rules/compiling.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/own_frames.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain::rules {

using analysis::CompiledCall;
using analysis::CompileLayer;

namespace {

struct Break {
  std::uint64_t calls = 0;
  SliceId first = kNone<SliceId>;
  std::string before;  // the last eager operator before `first`
};

// Finds the begin and the end of each compiled graph. There, the graph's wrapper checks arguments and makes outputs. Without a break
// between two graphs, this happens once instead of twice.
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
  // True: this part of the slice's self time lies before the first or after the last event of the graph inside the slice.
  bool contains(SliceId slice, std::int64_t from_ns, std::int64_t to_ns) const {
    const auto work = works_.find(raw(slice));
    return work != works_.end() &&
           (to_ns <= work->second.start_ns || from_ns >= work->second.end_ns);
  }

 private:
  struct Work {
    std::int64_t start_ns, end_ns;
  };
  std::unordered_map<std::uint32_t, Work> works_;  // key: the slice around the work
};

// Eager operators that run between the pieces of one compiled call.
struct EagerPart {
  std::unordered_set<std::uint32_t> calls;
  SliceId longest = kNone<SliceId>;
  std::int64_t cost_ns = 0;
};
constexpr double kLeastEagerShare = 0.05;  // of the steady wall; with less, it is not named

EagerPart eager_part(const Facts& facts, const CompiledFacts& compiled,
                     const std::vector<bool>& broken) {
  const Trace& trace = *facts.trace;
  EagerPart found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || !broken[i] ||
        compiled.code.layer[i] != CompileLayer::kRegion ||
        analysis::runs_compiled_code(trace.name(id)) ||
        steady_step_at(facts, trace.start_ns(id)) == ~std::size_t{0})
      continue;
    SliceId up = compiled.nesting.parent[i];
    while (up != kNone<SliceId> && trace.kind(up) != CategoryKind::kCpuOp)
      up = compiled.nesting.parent[raw(up)];
    if (up != kNone<SliceId> && !analysis::is_compiled_region(trace.name(up)))
      continue;  // a part of another operator
    found.calls.insert(i);
    if (found.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(found.longest))
      found.longest = id;
  }
  if (facts.main_device) found.cost_ns = work_in_calls(facts, found.calls).time_ns();
  return found;
}

struct GraphBreaks {
  std::map<std::string, Break> breaks;  // by the inner region's name
  std::uint64_t break_count = 0;
  std::uint64_t outermost = 0;  // compiled calls that lie in no other one
  WaitTime wait;
  EagerPart eager;
  BreakCause cause;
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
      if (const SliceId before = eager_before(facts, compiled, call); before != kNone<SliceId>)
        entry.before = std::string(trace.name(before));
    }
    ++break_count;
  }
  if (break_count == 0) return std::nullopt;

  // Waits in the code between the pieces: guards, wrappers, eager code, and the begin and end of each compiled graph.
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
                     .wait = wait,
                     .eager = eager_part(facts, compiled, broken),
                     .cause = break_cause(facts, compiled, true)};
}

// Adds the eager part to the finding. The first screen then names this part instead of the breaks.
void tell_eager_part(const Facts& facts, const GraphBreaks& found, Finding& finding) {
  const EagerPart& eager = found.eager;
  const std::string function = python_function(facts, eager.longest);
  const Value calls = count(a_step(facts, eager.calls.size()));
  finding.arithmetic.push_back(
      say(facts,
          "between the pieces {} [operator|operators] [per step] run uncompiled, {} [per step]: "
          "what compiling them with the code around them gains at most",
          {calls, ns(facts.per_step(eager.cost_ns))}));
  finding.evidence.insert(
      finding.evidence.begin(),
      called_at(facts, eager.longest, say("the longest operator that runs uncompiled there")));
  finding.brief =
      function.empty()
          ? say(facts, "{} operators run uncompiled between pieces of compiled code", {calls})
          : say("{} runs uncompiled between pieces of compiled code",
                {name(function_first(short_line(function)))});
  finding.action =
      say("Compile it with the rest: remove torch.compiler.disable, or what breaks the graph "
          "(TORCH_LOGS=graph_breaks)");
  finding.gain_is_bound = true;  // even fused, this part reads and writes its data once
  for (const char* covered : {"unfused-norm", "unfused-chain"})
    finding.explains.push_back({covered, finding.at_stake_ns});
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
  // Without breaks, a compiled call has one piece, and the CPU enters it once.
  const std::int64_t saved_ns =
      found.wait.time_ns - found.wait.time_ns * static_cast<std::int64_t>(found.outermost) /
                               static_cast<std::int64_t>(found.break_count + found.outermost);
  // An upper bound: fusion would remove all of the eager work. The code around it reads and writes the data once.
  const bool has_eager = share_of(found.eager.cost_ns, facts.steady_wall_ns()) >= kLeastEagerShare;
  const std::int64_t stake_ns = saved_ns + (has_eager ? found.eager.cost_ns : 0);
  finding.at_stake_ns = facts.per_step(stake_ns);
  finding.at_stake_ratio = share_of(stake_ns, facts.wall.partition.wall_ns);
  finding.waiting_ns = facts.per_step(saved_ns);
  if (facts.main_device)
    finding.arithmetic.push_back(say(
        facts,
        "the GPU waited {} [per step] while the CPU entered and left the compiled graphs of such "
        "calls, {} pieces; one stays, so {} is at stake; what fusion across a break could save "
        "is not included",
        {ns(facts.per_step(found.wait.time_ns)), count(found.break_count + found.outermost),
         ns(facts.per_step(saved_ns))}));
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
  if (!found.cause.op.empty()) {
    finding.brief = say(
        facts, "{} cuts torch.compile's code into pieces, {} [time|times] [in {} steps]",
        {name(found.cause.op), count(found.cause.breaks), count(facts.selection.steady.size())});
    finding.evidence.insert(finding.evidence.begin(),
                            called_at(facts, found.cause.example, say("the first of these calls")));
  }
  const Sentence cut_by = finding.brief;
  if (has_eager) tell_eager_part(facts, found, finding);
  if (!has_eager || is_known_break(found.cause.op)) {
    finding.brief = cut_by;
    finding.action = advice_on_break(found.cause.op);
  }
  // Without the break, the program does not read a value there, so that wait ends, too.
  if (is_known_break(found.cause.op))
    finding.explains.push_back({"host-sync", finding.at_stake_ns});
  return finding;
}

}  // namespace

extern constinit const Rule graph_breaks_rule = {
    .id = "graph-breaks",
    .question = "does torch.compile have graph breaks?",
    .order = 690,
    .run = measure_and_tell<measure_graph_breaks, tell_graph_breaks>,
    .is_regression = true,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules

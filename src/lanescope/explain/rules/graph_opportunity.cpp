// The CPU is the limit and every step launches the same work: a CUDA graph could launch it at once.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "lanescope/analysis/graph_replays.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_rounds.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/compiling.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/growing_buffers.h"
#include "lanescope/explain/rules/launch_kind.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/launch_waits.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/step_sequences.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Phase;
using analysis::Window;

namespace {

// From the first launch of a step to the end of its last one, in order of time. Spans that overlap
// are joined (a call of one step may return in the next).
std::vector<Window> launch_spans(const std::vector<StepSequence>& steps) {
  std::vector<Window> spans;
  for (const StepSequence& step : steps) {
    if (step.slices.empty()) continue;
    if (!spans.empty() && step.launches.start_ns <= spans.back().end_ns)
      spans.back().end_ns = std::max(spans.back().end_ns, step.launches.end_ns);
    else
      spans.push_back(step.launches);
  }
  return spans;
}

// Something that must not happen during a capture, by the operator that asked for it.
struct Blocker {
  std::uint64_t calls = 0;
  SliceId first = kNone<SliceId>;
};
std::map<std::string, Blocker> blockers(const Facts& facts, const std::vector<Window>& spans) {
  const Trace& trace = *facts.trace;
  std::map<std::string, Blocker> found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId call{i};
    if (!is_api_call(trace.kind(call)) || !inside(spans, trace.start_ns(call))) continue;
    const std::string_view label = trace.name(call);
    const ApiCall api = trace.api_call(call);
    // Calls in stream order can allocate and free inside a graph, too.
    const bool allocates = api.does(api_effect::kAllocates | api_effect::kFrees) &&
                           !api.does(api_effect::kInStreamOrder);
    if (!allocates && !analysis::is_blocking_call(trace, facts.links, call)) continue;
    std::string asked(label);
    for (SliceId up = facts.links.op_of[i]; up != kNone<SliceId>;
         up = facts.nesting.parent[raw(up)])
      if (trace.kind(up) == CategoryKind::kCpuOp) asked = std::string(trace.name(up));
    Blocker& entry = found[asked];
    if (entry.calls++ == 0) entry.first = call;
  }
  for (const analysis::CompiledCall& call : compiled_facts_of(facts).code.calls) {
    if (call.around == kNone<SliceId> || !inside(spans, trace.start_ns(call.slice))) continue;
    Blocker& entry = found["graph break of torch.compile"];
    if (entry.calls++ == 0) entry.first = call.slice;
  }
  return found;
}

// An event that takes the CPU longer is not a launch, so a replay needs it, too.
constexpr std::int64_t kLongestEventNs = 500'000;

// The GPU's waits for the CPU between the first and the last launch of a step. Left out are the
// wait for input, torch.compile's guards, which run before a replay, too, and each stretch in which one event, or Python
// without events, takes the CPU long. The median span counts: a hole in one step (garbage collection, another process) is not
// usual.
std::int64_t waiting_inside(const Facts& facts, const std::vector<Window>& spans) {
  const auto& phases = training_phases(facts);
  const CompiledFacts compiled = compiled_facts_of(facts);
  const auto stays = [&](SliceId slice) {
    return slice != kNone<SliceId> &&
           (phases[raw(slice)] == Phase::kLoader ||
            (is_own_time(facts, compiled, slice) &&
             compiled.code.layer[raw(slice)] != analysis::CompileLayer::kGraph));
  };
  std::vector<std::int64_t> waiting(spans.size(), 0);
  std::size_t at = 0;  // stretches and spans are in order of time
  for (const HostStretch& stretch : host_late_stretches(facts)) {
    while (at < spans.size() && spans[at].end_ns <= stretch.start_ns) ++at;
    for (std::size_t i = at; i < spans.size() && spans[i].start_ns < stretch.end_ns; ++i)
      facts.host->visit(stretch.thread, std::max(stretch.start_ns, spans[i].start_ns),
                        std::min(stretch.end_ns, spans[i].end_ns),
                        [&](SliceId slice, std::int64_t start_ns, std::int64_t end_ns) {
                          if (end_ns - start_ns <= kLongestEventNs && !stays(slice))
                            waiting[i] += end_ns - start_ns;
                        });
  }
  return analysis::median_of_steps(waiting) * static_cast<std::int64_t>(spans.size());
}

// Most of a step is one kernel over and over, or the optimizer's loop over its tensors: fewer,
// larger launches are the simpler change.
struct Loop {
  std::uint64_t pieces = 0;
  SliceId example = kNone<SliceId>;
  bool optimizer = false;
};
Loop find_loop(const Facts& facts, const StepSequence& step) {
  constexpr std::uint64_t kLeast = 50;
  const auto& phases = training_phases(facts);
  std::map<std::uint32_t, Loop> by_name;
  Loop optimizer, most;
  for (const SliceId slice : step.slices) {
    for (Loop* loop : {&by_name[raw(facts.trace->slices().name[raw(slice)])],
                       phases[raw(slice)] == Phase::kOptimizer ? &optimizer : nullptr})
      if (loop && loop->pieces++ == 0) loop->example = slice;
  }
  optimizer.optimizer = true;
  for (const auto& [label, loop] : by_name)
    if (loop.pieces > most.pieces) most = loop;
  if (optimizer.pieces >= most.pieces) most = optimizer;
  return most.pieces >= kLeast && most.pieces * 2 >= step.slices.size() ? most : Loop{};
}

constexpr Need kTwoSteadySteps = {
    [](const Facts& facts) { return facts.steps.marked && facts.selection.steady.size() >= 2; },
    need::kRecordSteps};

// Pieces that compiled code launches.
std::uint64_t compiled_pieces(const Facts& facts, const StepSequence& step) {
  const CompiledFacts compiled = compiled_facts_of(facts);
  return static_cast<std::uint64_t>(
      std::count_if(step.slices.begin(), step.slices.end(), [&](SliceId work) {
        const SliceId launch = facts.links.launch_of[raw(work)];
        return launch != kNone<SliceId> &&
               compiled.code.layer[raw(launch)] != analysis::CompileLayer::kNone;
      }));
}

struct GraphOpportunity {
  LaunchMode mode = LaunchMode::kEager;
  StepSequence first;                 // of the steady steps
  std::optional<StepSequence> other;  // the first step that launches something else
  std::size_t difference = 0;         // the first piece of work that differs
  // Where all steps launch the same:
  std::map<std::string, Blocker> blocking;
  std::int64_t waiting = 0;  // of the GPU for the CPU
  Loop loop;
  std::uint64_t compiled = 0;       // pieces of the first step that compiled code launches
  const Owner* changing = nullptr;  // loop_of_changing_size()
};

std::optional<GraphOpportunity> measure_graph_opportunity(const Facts& facts) {
  // For a program that replays a graph, outside-graphs and graph-gaps report what is left.
  const LaunchMode mode = launch_mode_of(facts);
  if (find_bound(facts) != Bound::kHost || mode == LaunchMode::kReplayed || launches_block(facts) ||
      runs_sharding_hooks(facts) || has_growing_buffer(facts))
    return std::nullopt;
  const auto steps = step_sequences(facts);
  GraphOpportunity found;
  found.mode = mode;
  found.first = steps.front();
  if (found.first.works.size() < 5) return std::nullopt;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    found.difference = first_difference(found.first, steps[i]);
    if (found.difference >= std::max(found.first.works.size(), steps[i].works.size())) continue;
    found.other = steps[i];
    return found;
  }
  const std::vector<Window> spans = launch_spans(steps);
  found.blocking = blockers(facts, spans);
  found.waiting = waiting_inside(facts, spans);
  if (share_of(found.waiting, facts.wall.partition.wall_ns) < 0.1) return std::nullopt;
  found.loop = find_loop(facts, found.first);
  if (mode == LaunchMode::kCompiled) found.compiled = compiled_pieces(facts, found.first);
  found.changing = loop_of_changing_size(facts);
  return found;
}

void tell_difference(const Facts& facts, const GraphOpportunity& found, Finding& finding) {
  finding.kind = FindingKind::kWhere;
  finding.verdict =
      say("One CUDA graph cannot replay the whole step: the CPU is the limit, but the steps do not "
          "launch the same work. Piece {} of a step is the first to differ ({} and {} pieces).",
          {count(found.difference + 1), count(found.first.works.size()),
           count(found.other->works.size())});
  for (const StepSequence* step : {&found.first, &*found.other})
    if (found.difference < step->slices.size())
      finding.evidence.push_back(
          {step->slices[found.difference],
           say("one step has {} there",
               {kernel(facts.trace->name(step->slices[found.difference]))})});
  finding.try_next = {
      "fix shapes and branches, or capture only the part that stays the same: "
      "torch.cuda.make_graphed_callables, or a compiled part with mode=\"reduce-overhead\""};
}

void add_blockers(const Facts& facts, const GraphOpportunity& found, Finding& finding) {
  std::vector<std::pair<std::string, Blocker>> ranked(found.blocking.begin(), found.blocking.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.calls > b.second.calls; });
  for (std::size_t i = 0; i < ranked.size() && i < 5; ++i) {
    finding.evidence.push_back(called_at(facts, ranked[i].second.first,
                                         say("prevents one graph: {} x{} ({})",
                                             {name(ranked[i].first), count(ranked[i].second.calls),
                                              name(facts.trace->name(ranked[i].second.first))})));
  }
  if (finding.evidence.empty())
    finding.evidence.push_back(
        {found.first.slices.front(), say("the first piece of a usual step")});
}

// What to do, without what the program already does.
Sentence graph_action(const Facts& facts, const GraphOpportunity& found, bool is_mostly_eager) {
  if (const WaitsInside& waits = waits_inside(facts); !found.blocking.empty() && waits.are_many())
    return graph_beside_waits(facts, waits);
  if (is_mostly_eager)
    return say(
        "Compile the whole step with mode=\"reduce-overhead\": compiled code launches {} of "
        "them now",
        {count(found.compiled)});
  if (found.mode == LaunchMode::kCompiled)
    return say("Pass mode=\"reduce-overhead\" to the torch.compile in use: it replays a graph");
  // A larger batch does as much for each launch; it helps as long as most kernels are tiny.
  if (facts.launches.tiny_kernel_count * 2 >= facts.launches.kernel_count)
    return say(facts,
               "Replay them as one CUDA graph: torch.compile(mode=\"reduce-overhead\")[if a batch "
               "spares launches|; or use a larger batch]");
  return say("Replay them as one CUDA graph: torch.compile(mode=\"reduce-overhead\")");
}

Finding tell_graph_opportunity(const Facts& facts, const GraphOpportunity& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  if (found.other) {
    tell_difference(facts, found, finding);
    return finding;
  }
  finding.verdict = say(facts,
                        "A CUDA graph could launch the step{}: the CPU is the limit, and all {} "
                        "steps launch the same {} pieces of GPU work in the same order and shape. "
                        "The GPU waits {} [per step] ({}) between them.",
                        {text(found.blocking.empty() ? "" : ", once what prevents it is removed"),
                         count(facts.selection.steady.size()), count(found.first.works.size()),
                         ns(facts.per_step(found.waiting)), ratio(found.waiting, wall_ns)});
  // A blocker of the capture and a loop have their own advice, which comes first.
  if (!found.blocking.empty() || found.loop.pieces > 0 || found.changing)
    finding.kind = FindingKind::kWhere;
  if (found.changing)
    finding.arithmetic.push_back(say(
        "a size of {} differs from round to round, between {} and {}: a graph replays the sizes "
        "of its capture only",
        {name(found.changing->sizes.op),
         count(static_cast<std::uint64_t>(found.changing->sizes.least)),
         count(static_cast<std::uint64_t>(found.changing->sizes.most))}));
  if (found.loop.pieces > 0)
    finding.arithmetic.push_back(
        found.loop.optimizer
            ? say("{} of the pieces are the optimizer's: a fused optimizer is the simpler change",
                  {count(found.loop.pieces)})
            : say("{} of the pieces are {}: one call instead of a loop is the simpler change",
                  {count(found.loop.pieces), kernel(facts.trace->name(found.loop.example))}));
  finding.at_stake_ns = facts.per_step(found.waiting);
  finding.at_stake_ratio = share_of(found.waiting, wall_ns);
  finding.arithmetic.push_back(say(facts,
                                   "counted: the GPU's waits for the CPU between [a step's] first "
                                   "and last launch, in the median step, without waits for the "
                                   "DataLoader and without events of more than 500 us"));
  if (found.blocking.empty())
    finding.arithmetic.push_back(
        say("no wait, pageable copy or allocation was found between them: nothing that a capture "
            "forbids"));
  add_blockers(facts, found, finding);
  const bool is_compiled = found.mode == LaunchMode::kCompiled;
  const bool is_mostly_eager = is_compiled && found.compiled * 2 < found.first.works.size();
  // How long the guards take that a step with more compiled code needs, the trace does not show.
  finding.gain_is_bound = is_compiled;
  finding.try_next = {
      is_compiled
          ? "the compiled code replays no CUDA graph: pass mode=\"reduce-overhead\" to its "
            "torch.compile; where that is set, TORCH_LOGS=perf_hints says why graphs are skipped"
          : "use torch.compile(mode=\"reduce-overhead\"), torch.cuda.make_graphed_callables or "
            "torch.cuda.CUDAGraph around the step",
      "copy inputs into the same tensors each step; call .item(), .cpu() and print after the "
      "replay"};
  if (facts.device().timeline.communication_ns > 0)
    finding.try_next.push_back(
        "collectives are among the pieces: NCCL's can be captured, but DistributedDataParallel "
        "asks for 11 eager iterations before a capture (torch's notes on CUDA graphs)");
  finding.brief =
      say(facts, "Every step launches the same {} [piece|pieces] of GPU work one by one",
          {count(found.first.works.size())});
  finding.action = graph_action(facts, found, is_mostly_eager);
  return finding;
}

}  // namespace

extern constinit const Rule graph_opportunity_rule = {
    .id = "graph-opportunity",
    .question = "can I use CUDA graphs?",
    .meant_by = "cudagraph",
    .order = 720,
    .needs = {need::kGpuWork, need::kLaunchCalls, kTwoSteadySteps},
    .run = measure_and_tell<measure_graph_opportunity, tell_graph_opportunity>,
    .fix = Fix::kCudaGraph,
};

}  // namespace lanescope::explain::rules

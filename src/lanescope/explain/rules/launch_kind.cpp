#include "lanescope/explain/rules/launch_kind.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/loop_remedies.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/double_backward.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/growing_buffers.h"
#include "lanescope/explain/rules/norm_rounds.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rounds_of_inputs.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/stacked_rows.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/model/names_where.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::size_t kNoStep = ~std::size_t{0};

// The end of each steady step's last autograd node; 0: it has none.
std::vector<std::int64_t> ends_of_backward(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<std::int64_t> ends(facts.steps.steps.size(), 0);
  for (const SliceId id : backward_nodes(facts)) {
    const std::size_t step = steady_step_at(facts, trace.start_ns(id));
    if (step < ends.size()) ends[step] = std::max(ends[step], trace.end_ns(id));
  }
  return ends;
}

bool only_copies_or_reads(std::string_view op) {
  static constexpr std::array<std::string_view, 6> kOps = {
      "aten::item",     "aten::_local_scalar_dense", "aten::copy_", "aten::to",
      "aten::_to_copy", "aten::is_nonzero"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

bool make_are_for_parameters(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& phases = training_phases(facts);
  const std::vector<std::int64_t> ends = ends_of_backward(facts);
  std::uint64_t pieces = 0, for_parameters = 0;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    const SliceId call = facts.links.launch_of[raw(work->slice)];
    if (call == kNone<SliceId>) continue;
    ++pieces;
    const std::size_t step = steady_step_at(facts, trace.start_ns(call));
    const bool is_after = step != kNoStep && step < ends.size() && ends[step] > 0 &&
                          trace.start_ns(call) >= ends[step];
    if (is_after || phases[raw(work->slice)] == analysis::Phase::kOptimizer) ++for_parameters;
  }
  return for_parameters * 2 >= pieces && pieces > 0;
}

}  // namespace

bool are_for_parameters(const Facts& facts) { return made_once<make_are_for_parameters>(facts); }

bool are_of_parts(const Facts& facts) {
  const Owners* owners = step_owners(facts);
  if (!owners) return false;
  std::uint64_t pieces = 0;
  for (const Owner& owner : owners->owners) {
    if (!takes_parts(facts, owner)) continue;
    pieces += owner.work.launches;
    const Owner* backward = backward_of_loop(*owners, owner);
    if (backward && !takes_parts(facts, *backward)) pieces += backward->work.launches;
  }
  return pieces * 2 >= facts.launches.linked_count && pieces > 0;
}

namespace {

OperatorThatWaits make_operator_that_waits(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::map<std::string_view, std::uint64_t> calls;
  OperatorThatWaits found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId call{i};
    if (!is_api_call(trace.kind(call)) || !inside(windows, trace.start_ns(call))) continue;
    if (trace.api_call(call).does(api_effect::kAllocates | api_effect::kFrees) ||
        !analysis::is_blocking_call(trace, facts.links, call))
      continue;
    SliceId op = facts.links.op_of[i];
    while (op != kNone<SliceId> && trace.kind(op) != CategoryKind::kCpuOp)
      op = facts.nesting.parent[raw(op)];
    if (op == kNone<SliceId> || only_copies_or_reads(trace.name(op))) continue;
    ++calls[trace.name(op)];
  }
  std::uint64_t most = 0;
  for (const auto& [op, count] : calls)
    if (count > most && count >= facts.selection.steady.size()) {
      most = count;
      found.op = std::string(op);
    }
  if (found.op.empty()) return found;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    const SliceId op = ancestor_where(facts, facts.links.op_of[raw(work->slice)],
                                      [&](std::string_view name) { return name == found.op; });
    if (op == kNone<SliceId>) continue;
    ++found.pieces;
    if (found.longest == kNone<SliceId> || trace.dur_ns(op) > trace.dur_ns(found.longest))
      found.longest = op;
  }
  return found;
}

}  // namespace

const OperatorThatWaits& operator_that_waits(const Facts& facts) {
  return made_once<make_operator_that_waits>(facts);
}

namespace {

// Per step: when the CPU launches for others than the optimizer, and when it waits.
struct LaunchesAndWaits {
  std::vector<std::pair<std::int64_t, std::uint32_t>> launches;  // when, and the name of the work
  std::vector<std::int64_t> waits_ns;
};

constexpr std::size_t kFewestInRound = 100;  // pieces of a part that is worth a graph

// A part between two waits of a step, by its names in order.
struct PartCount {
  std::uint64_t times = 0, pieces = 0;
};

// From the first to the last launch of parts that a graph could hold.
void add_windows(const std::vector<std::pair<analysis::Window, std::uint64_t>>& parts,
                 std::uint64_t second, WaitsInside& found) {
  for (const auto& [window, size] : parts)
    if (size >= kFewestInRound || (size > 0 && size >= second))
      found.parts_windows.push_back(window);
}

// Cuts the launches of each step at its waits.
void count_parts(std::vector<LaunchesAndWaits>& steps, WaitsInside& found) {
  for (LaunchesAndWaits& step : steps) {
    std::sort(step.launches.begin(), step.launches.end());
    std::sort(step.waits_ns.begin(), step.waits_ns.end());
    std::uint64_t longest = 0, second = 0;
    std::map<std::vector<std::uint32_t>, PartCount> large;
    std::vector<std::pair<analysis::Window, std::uint64_t>> all;
    auto from = step.launches.begin();
    const auto end_part = [&](auto to) {
      const auto size = static_cast<std::uint64_t>(to - from);
      second = std::max(second, std::min(size, longest));
      longest = std::max(longest, size);
      if (size > 0) all.push_back({{from->first, (to - 1)->first + 1}, size});
      if (size >= kFewestInRound) {
        std::vector<std::uint32_t> names;
        names.reserve(size);
        for (auto each = from; each != to; ++each) names.push_back(each->second);
        PartCount& part = large[std::move(names)];
        ++part.times;
        part.pieces = size;
        found.in_large += size;
      }
      from = to;
    };
    for (const std::int64_t wait_ns : step.waits_ns)
      end_part(std::lower_bound(from, step.launches.end(), std::pair{wait_ns, std::uint32_t{0}}));
    end_part(step.launches.end());
    add_windows(all, second, found);
    found.pieces += step.launches.size();
    found.in_longest += longest;
    found.in_two_longest += longest + second;
    if (step.launches.empty()) continue;
    found.kinds = large.size();
    found.rounds = found.round_pieces = 0;
    for (const auto& [names, part] : large)
      if (std::pair(part.times, part.pieces) > std::pair(found.rounds, found.round_pieces)) {
        found.rounds = part.times;
        found.round_pieces = part.pieces;
      }
  }
}

// A copy of a value that the CPU waits for: it comes with the wait.
bool is_value_for_cpu(const Trace& trace, SliceId work) {
  constexpr std::int64_t kOneNumber = 16;  // bytes: a complex one is the largest
  return trace.name(work).starts_with("Memcpy DtoH") &&
         trace.slice_args(work).integer(ArgKey::kBytes).value_or(0) <= kOneNumber;
}

WaitsInside make_waits_inside(const Facts& facts) {
  const Trace& trace = *facts.trace;
  WaitsInside found;
  if (!facts.steps.marked || facts.selection.steady.empty()) return found;
  std::vector<analysis::Window> launches(facts.steps.steps.size(), {0, 0});
  std::vector<LaunchesAndWaits> parts(launches.size());
  const auto& phases = training_phases(facts);
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    const SliceId call = facts.links.launch_of[raw(work->slice)];
    if (call == kNone<SliceId>) continue;
    const std::size_t step = steady_step_at(facts, trace.start_ns(call));
    if (step >= launches.size()) continue;
    ++found.all_pieces;
    if (phases[raw(call)] == analysis::Phase::kOptimizer)
      found.has_optimizer = true;
    else if (is_value_for_cpu(trace, work->slice))
      --found.all_pieces;
    else
      parts[step].launches.emplace_back(trace.start_ns(call),
                                        raw(trace.slices().name[raw(work->slice)]));
    analysis::Window& window = launches[step];
    if (window.end_ns == 0) window.start_ns = trace.start_ns(call);
    window.start_ns = std::min(window.start_ns, trace.start_ns(call));
    window.end_ns = std::max(window.end_ns, trace.start_ns(call));
  }
  std::map<std::string_view, std::uint64_t> calls;
  SliceId last = kNone<SliceId>;  // an operator may wait several times
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId call{i};
    if (!is_api_call(trace.kind(call)) ||
        trace.api_call(call).does(api_effect::kAllocates | api_effect::kFrees) ||
        !analysis::is_blocking_call(trace, facts.links, call))
      continue;
    const std::size_t step = steady_step_at(facts, trace.start_ns(call));
    if (step >= launches.size() || trace.start_ns(call) < launches[step].start_ns ||
        trace.start_ns(call) >= launches[step].end_ns)
      continue;
    parts[step].waits_ns.push_back(trace.start_ns(call));
    const SliceId outermost = outermost_operator_of(facts, call);
    const SliceId asks = outermost == kNone<SliceId> ? call : outermost;
    if (asks == last) continue;
    last = asks;
    ++calls[trace.name(asks)];
    ++all;
    if (phases[raw(call)] != analysis::Phase::kOptimizer) continue;
    ++found.in_optimizer;
    if (const SliceId range = optimizer_step_around(facts, call);
        found.optimizer.empty() && range != kNone<SliceId>)
      found.optimizer = std::string(names::optimizer_of_step(trace.name(range)));
  }
  std::uint64_t most = 0;
  for (const auto& [op, count] : calls)
    if (count > most) {
      most = count;
      found.op = std::string(op);
    }
  found.waits = all;
  found.per_step = all / facts.selection.steady.size();
  count_parts(parts, found);
  return found;
}

}  // namespace

const WaitsInside& waits_inside(const Facts& facts) { return made_once<make_waits_inside>(facts); }

bool are_mostly_the_optimizers(const Facts& facts) {
  std::uint64_t own = 0;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    const SliceId launch = facts.links.launch_of[raw(work->slice)];
    if (launch != kNone<SliceId> && is_in_optimizer_step(facts, launch)) ++own;
  }
  return own * 2 > facts.launches.linked_count;
}

bool runs_sharding_hooks(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::uint64_t hooks = 0;
  const auto is_hook = [](std::string_view name) {
    return name.starts_with("FSDP::") || name.starts_with("FullyShardedDataParallel.");
  };
  for (const SliceId id : slices_named(facts, is_hook))
    if (trace.kind(id) == CategoryKind::kUserAnnotation && inside(windows, trace.start_ns(id)))
      ++hooks;
  return hooks > facts.selection.steady.size();
}

bool runs_torch_script(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  NamesWhere is_of_script(trace, [](std::string_view label) {
    return label.find("torch::jit::") != std::string_view::npos;
  });
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (is_of_script(SliceId{i}) && inside(windows, trace.start_ns(SliceId{i}))) return true;
  return false;
}

namespace {

// True: a loop over the rows of a tensor launches most of the work. A larger batch would only make it longer.
bool tell_stacked_rows(const Facts& facts, Finding& finding) {
  const StackedRows* loop = rows_of_most_work(facts);
  if (!loop) return false;
  finding.brief = say("The CPU launches too slowly: a loop over {} rows has most of the GPU's work",
                      {count(loop->rows)});
  finding.action = say(
      "If no row needs the one before it: call its body once for the batch. It stacks the results "
      "anyway");
  finding.evidence.insert(finding.evidence.begin(),
                          called_at(facts, loop->stack, say("here the results are joined")));
  finding.is_about_all_work = false;
  return true;
}

// An operator that waits in each step launches most of the work.
void tell_waiting_operator(const Facts& facts, const OperatorThatWaits& waiting, Finding& finding) {
  finding.brief =
      say("The CPU launches too slowly: {} launches {} of the GPU's work",
          {name(waiting.op), ratio(static_cast<std::int64_t>(waiting.pieces),
                                   static_cast<std::int64_t>(facts.launches.linked_count))});
  finding.action = say("Call it less often, or once for several inputs; it waits for the GPU");
  finding.is_about_all_work = false;
  finding.evidence.insert(finding.evidence.begin(),
                          {waiting.longest, say("the longest of its calls")});
}

// What is done instead of, or before, replaying a CUDA graph; nothing: a graph can be.
std::optional<Sentence> instead_of_graph(const Facts& facts) {
  if (const OperatorThatWaits& waiting = operator_that_waits(facts); !waiting.op.empty())
    return are_mostly_the_optimizers(facts)
               ? say("Most are the optimizer's, which waits in {}: join its parameters, such as "
                     "tables of one width, so that it updates fewer",
                     {name(waiting.op)})
               : say("Fuse operators: torch.compile(model). A CUDA graph cannot contain the waits "
                     "in {}",
                     {name(waiting.op)});
  if (has_growing_buffer(facts))
    return say(
        "The cache grows each time: write into one of full length and mask it (static KV cache), "
        "then torch.compile(mode=\"reduce-overhead\")");
  // What generate() waits for lies between the forward passes that a graph would hold.
  if (chooses_words_without_shapes(facts))
    return say(facts,
               "Keep the KV cache at one length (a static cache, masked), then "
               "torch.compile(mode=\"reduce-overhead\")[if a batch spares launches|; or a larger "
               "batch]");
  if (const WaitsInside& waits = waits_inside(facts); waits.are_many())
    return graph_beside_waits(facts, waits);
  if (runs_sharding_hooks(facts))
    return say(facts,
               "FSDP runs Python around each layer: shard fewer, larger parts, compile each of "
               "them[if a batch spares launches|, or a larger batch]");
  if (runs_torch_script(facts))
    return say(
        "torch.compile does not compile torch.jit.script modules: replay a CUDA graph "
        "(make_graphed_callables), or leave TorchScript");
  return std::nullopt;
}

}  // namespace

LaunchAdvice graph_advice(const Facts& facts) {
  return {after_one_call_for_all(
              facts, say(facts,
                         "Use torch.compile([if batch|model, ]mode=\"reduce-overhead\")[if a "
                         "batch spares launches|, or a larger batch]")),
          true};
}

void advise_about_launches(const Facts& facts, LaunchAdvice usual, Finding& finding) {
  if (tell_stacked_rows(facts, finding)) return;
  finding.action = std::move(usual.action);
  if (!usual.is_cuda_graph) return;
  if (differentiates_backward(facts)) {
    finding.action = graph_of_double_backward(facts);
    return;
  }
  const OperatorThatWaits& waiting = operator_that_waits(facts);
  if (!waiting.op.empty() && waiting.pieces * 2 >= facts.launches.linked_count)
    tell_waiting_operator(facts, waiting, finding);
  else if (std::optional<Sentence> instead = instead_of_graph(facts))
    finding.action = std::move(*instead);
}

namespace {

// torch.optim.LBFGS goes through its history in a Python loop, and reads a product of each entry on the CPU.
bool is_history_of_optimizer(const WaitsInside& waits) {
  return waits.optimizer == "LBFGS" && waits.in_optimizer * 2 > waits.waits &&
         !waits.is_mostly_model();
}

}  // namespace

bool advises_smaller_history(const Facts& facts, const Sentence& action) {
  const WaitsInside& waits = waits_inside(facts);
  return waits.are_many() && is_history_of_optimizer(waits) &&
         action.pattern == graph_beside_waits(facts, waits).pattern;
}

bool advises_parts_between_waits(const Facts& facts, const Sentence& action) {
  const WaitsInside& waits = waits_inside(facts);
  return waits.are_many() &&
         (waits.may_stay() || waits.may_stay_between_rounds() ||
          (waits.may_leave_out() && !is_history_of_optimizer(waits))) &&
         action.pattern == graph_beside_waits(facts, waits).pattern;
}

namespace {

Sentence parts_beside_waits(const Facts& facts, const WaitsInside& waits) {
  if (waits.may_stay())
    return say(
        facts,
        "Use torch.compile([if batch|model, ]mode=\"reduce-overhead\")[if a batch spares "
        "launches|, or a larger batch]. The {} waits [per step], such as in {}, can stay: {} "
        "of the launches{} lie in {} without a wait",
        {count(waits.per_step), name(waits.op),
         ratio(static_cast<std::int64_t>(waits.parts() == 1 ? waits.in_longest
                                                            : waits.in_two_longest),
               static_cast<std::int64_t>(waits.pieces)),
         text(waits.has_optimizer ? " before the optimizer's" : ""),
         text(waits.parts() == 1 ? "one part" : "two parts")});
  if (waits.may_stay_between_rounds())
    return say(
        facts,
        "Use torch.compile(mode=\"reduce-overhead\") on the code between waits: one part "
        "of {} launches runs {} times [per step]. The {} waits, such as in {}, can stay",
        {count(waits.round_pieces), count(waits.rounds), count(waits.per_step), name(waits.op)});
  if (is_history_of_optimizer(waits))
    return say(
        "Most launches and waits are L-BFGS's own, for each entry of its history: use a smaller "
        "history_size (100 unless set)");
  // Most of the waits go with a change that another finding names.
  const std::uint64_t norms = norm_rounds(facts).rounds / step_count(facts);
  if (waits.may_leave_out() && norms * 2 > waits.per_step && norms <= waits.per_step)
    return say(facts,
               "Use torch.compile(mode=\"reduce-overhead\") on code without waits: {} of the "
               "launches{} lie in {}. First read the {} norms [per step] at once; leave the other "
               "{} [wait|waits] outside of it",
               {ratio(static_cast<std::int64_t>(waits.parts() == 1 ? waits.in_longest
                                                                   : waits.in_two_longest),
                      static_cast<std::int64_t>(waits.pieces)),
                text(waits.has_optimizer ? " before the optimizer's" : ""),
                text(waits.parts() == 1 ? "one part" : "two parts"), count(norms),
                count(waits.per_step - norms)});
  if (waits.may_leave_out())
    return say(facts,
               "Use torch.compile(mode=\"reduce-overhead\") on code without waits: {} of the "
               "launches{} lie in {}. Leave the {} waits [per step], most in {}, outside of it",
               {ratio(static_cast<std::int64_t>(waits.parts() == 1 ? waits.in_longest
                                                                   : waits.in_two_longest),
                      static_cast<std::int64_t>(waits.pieces)),
                text(waits.has_optimizer ? " before the optimizer's" : ""),
                text(waits.parts() == 1 ? "one part" : "two parts"), count(waits.per_step),
                name(waits.op)});
  return say(facts,
             "First remove the {} waits [per step], most in {}: a CUDA graph cannot contain them. "
             "Then torch.compile(mode=\"reduce-overhead\")",
             {count(waits.per_step), name(waits.op)});
}

}  // namespace

Sentence graph_beside_waits(const Facts& facts, const WaitsInside& waits) {
  return after_one_call_for_all(facts, parts_beside_waits(facts, waits));
}

}  // namespace lanescope::explain::rules

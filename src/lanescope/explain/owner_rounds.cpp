#include "lanescope/explain/owner_rounds.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/batch_advice.h"
#include "lanescope/explain/rules/gradient_passes.h"
#include "lanescope/explain/rules/memory_common.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/names/collective_calls.h"
#include "lanescope/names/torch_optimizers.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain {
namespace {

bool has_in_round(const Owner& owner, std::string_view part) {
  const auto holds = [&](const std::string& label) { return label.find(part) != label.npos; };
  return holds(owner.name) || std::any_of(owner.cell.begin(), owner.cell.end(), holds) ||
         std::any_of(owner.parts.begin(), owner.parts.end(),
                     [&](const OwnerPart& each) { return holds(each.name); });
}

// Nodes of autograd such as ThresholdBackwardBackward0.
bool differentiates_twice(const Owner& owner) { return has_in_round(owner, "BackwardBackward"); }

// A layer, or compiled code: rounds of losses of one batch have none.
bool has_forward_product(const Owner& owner) {
  const auto holds = [](const std::string& label) {
    return is_layer_operator(label) || analysis::is_of_compiled_function(label) ||
           analysis::is_compiled_region(label);
  };
  return std::any_of(owner.cell.begin(), owner.cell.end(), holds) ||
         std::any_of(owner.parts.begin(), owner.parts.end(),
                     [&](const OwnerPart& each) { return holds(each.name); });
}

// Otherwise the rounds are parts of one backward pass, such as those of a model that is compiled in pieces.
bool has_forward_call(const Owner& owner) {
  return std::any_of(owner.cell.begin(), owner.cell.end(), [](const std::string& each) {
    return each.find("Backward") == std::string::npos &&
           each.find("AccumulateGrad") == std::string::npos;
  });
}

// Rounds with a forward and a backward pass each.
bool is_micro_batches(const Owner& owner) {
  return owner.kind == OwnerKind::kLoop &&
         (owner.has_backward ||
          (has_in_round(owner, "AccumulateGrad") && has_forward_call(owner))) &&
         has_forward_product(owner);
}

// Tasks, as of meta learning: each round takes gradients by torch.autograd.grad(), which adds to no parameter, alone or before its
// own backward(). A micro batch has one backward pass, which does. Where no pass at all adds gradients, the trace may not name it.
bool has_inner_gradients(const Facts& facts, const Owner& owner) {
  return owner.kind == OwnerKind::kLoop && owner.has_backward && !owner.repeats_graph &&
         (owner.backward_passes >= 2 ||
          (!owner.adds_gradients && rules::count_gradient_passes(facts).adding > 0));
}

// clip_grad_norm_ in each round: norms of gradients, and factors for them.
bool clips_gradients(const Owner& owner) {
  return (has_in_round(owner, "aten::linalg_vector_norm") ||
          has_in_round(owner, "aten::_foreach_norm")) &&
         (has_in_round(owner, "aten::mul_") || has_in_round(owner, "aten::_foreach_mul_"));
}

// An optimizer updates the weights in each round: rounds are steps of their own, and no micro batches.
bool updates_weights(const Owner& owner) {
  return has_in_round(owner, "aten::_fused_") || has_in_round(owner, "aten::_foreach_addcdiv_") ||
         has_in_round(owner, names::kOptimizerStep);
}

// An optimizer that calls its closure again and again, as LBFGS does.
bool evaluates_closure(const Owner& owner) {
  return std::any_of(owner.around.begin(), owner.around.end(),
                     [](const std::string& each) { return names::is_optimizer_step(each); });
}

// Lists of tensors are copied in each round, as by a search that sets other weights for each trial.
bool copies_lists(const Owner& owner) { return has_in_round(owner, "aten::_foreach_copy_"); }

// As many collectives as rounds or more: gradients are reduced in each round, and not once for all.
bool communicates_in_rounds(const Facts& facts, const Owner& owner) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::uint64_t calls = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (names::is_collective_call(trace.name(SliceId{i})) &&
        inside(windows, trace.start_ns(SliceId{i})))
      ++calls;
  return calls >= owner.rounds && owner.rounds > 0;
}

// The same convolution again and again, with nothing between.
bool is_equal_convolutions(const Owner& owner) {
  constexpr std::uint64_t kFewestRounds = 8;
  return owner.kind == OwnerKind::kLoop && owner.cell_size == 1 && owner.loops > 0 &&
         owner.cell.size() == 1 && owner.cell.front().starts_with("aten::conv") &&
         owner.rounds >= kFewestRounds * owner.loops && owner.sizes.op.empty();
}

// True for a loop, and for an operator that is reported apart from the loop around it.
bool changes_size(const Owner& owner) {
  if (owner.sizes.op.empty()) return false;
  return owner.kind == OwnerKind::kLoop ||
         (owner.kind == OwnerKind::kOperator && owner.sizes.op == owner.name);
}

// What a model computes of its rows. A mask or a list that grows by one is no sign of rows that are computed again.
bool is_model_work(std::string_view op) {
  constexpr std::string_view kParts[] = {"linear", "matmul", "mm", "conv", "attention", "norm"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return op.find(part) != op.npos; });
}

// One small operator for each parameter. Where that is a quarter of a step on a CPU, few parameters are enough.
bool is_optimizer_loop(const Facts& facts, const Owner& owner) {
  constexpr std::uint64_t kFewestRounds = 8, kFewestOnCpu = 4, kMostCalls = 24;
  const Owners* owners = facts.main_device ? nullptr : step_owners(facts);
  const std::uint64_t fewest =
      owners && owner.total_ns * 4 >= owners->total_ns ? kFewestOnCpu : kFewestRounds;
  return owner.kind == OwnerKind::kLoop && owner.cell_size <= kMostCalls &&
         owner.rounds >= fewest * std::max<std::uint64_t>(1, owner.loops) &&
         std::any_of(owner.around.begin(), owner.around.end(),
                     [](const std::string& each) { return names::is_optimizer_step(each); });
}

// Nothing: the optimizer is of torch.optim and has no form that helps. On a CPU foreach=True runs the same calls one by one.
Sentence form_of_optimizer(const Facts& facts, const Owner& owner) {
  if (is_before_foreach(*facts.trace))
    return say("With PyTorch 1.12 or later, give the optimizer foreach=True: few calls for all");
  const auto range = std::find_if(owner.around.begin(), owner.around.end(),
                                  [](const auto& each) { return names::is_optimizer_step(each); });
  const names::OptimizerForms* forms =
      range == owner.around.end() ? nullptr
                                  : names::forms_of_optimizer(names::optimizer_of_step(*range));
  if (!facts.main_device)
    return forms && !forms->has_fused
               ? Sentence()
               : say("Give the optimizer fused=True, if it has it: few calls for all parameters");
  if (!forms || forms->has_fused)
    return say("Give the optimizer fused=True or foreach=True: few calls for all parameters");
  return forms->has_foreach ? say("Give the optimizer foreach=True: few calls for all parameters")
                            : Sentence();
}

// Copies into another layout are a quarter of the rounds. With a GPU the rule layout-copies says more.
bool copies_layouts(const Owner& owner) {
  return owner.kind == OwnerKind::kLoop &&
         std::any_of(owner.parts.begin(), owner.parts.end(), [&](const OwnerPart& part) {
           return part.name == "aten::contiguous" && part.time_ns * 4 >= owner.total_ns;
         });
}

// Of one optimizer, or of all of them together.
bool steps_once_a_step(const Facts& facts) {
  const auto windows = facts.steady_cpu_windows();
  std::size_t steps = 0;
  for (const std::int64_t start_ns : rules::optimizer_steps_ns(facts))
    steps += inside(windows, start_ns) ? 1 : 0;
  return steps == facts.selection.steady.size();
}

// "4 micro batches for each optimizer step: if memory allows (1.20 of 139.72 GiB in use), one batch of all"
Sentence one_batch_of_all(const Facts& facts, const Owner& owner) {
  Sentence text = say("{} micro batches for each optimizer step: if memory allows",
                      {count(owner.rounds / owner.loops)});
  if (const rules::MemoryUse use = rules::use_of_memory(facts); use.is_known())
    append(text, say(" ({} of {} in use)", {bytes(use.most_bytes), bytes(use.device_bytes)}));
  append(text, say(", one batch of all"));
  return text;
}

}  // namespace

bool accumulates_gradients(const Facts& facts, const Owner& owner) {
  return is_micro_batches(owner) && owner.adds_gradients && owner.backward_passes <= 1 &&
         owner.has_large_products && owner.loops > 0 && a_step(facts, owner.loops) == 1 &&
         facts.steps.marked && !owner.repeats_graph && !differentiates_twice(owner) &&
         !has_inner_gradients(facts, owner) && !evaluates_closure(owner) &&
         !updates_weights(owner) && !copies_lists(owner) && !clips_gradients(owner) &&
         !communicates_in_rounds(facts, owner) && !rules::is_memory_nearly_full(facts) &&
         steps_once_a_step(facts);
}

bool takes_part_of_tensor(const Owner& owner) {
  return std::any_of(owner.cell.begin(), owner.cell.end(), [](const std::string& op) {
    return op == "aten::select" || op == "aten::slice" || op == "aten::narrow";
  });
}

bool may_narrow_by_mask(const Facts& facts, const Owner& owner) {
  if (!takes_part_of_tensor(owner) || owner.kind != OwnerKind::kLoop || owner.rounds == 0 ||
      owner.has_layers || owner.has_backward || owner.work.size_waits < owner.rounds)
    return false;
  const SliceId call = cpu_side(facts, owner.example);
  return call != kNone<SliceId> && !facts.trace->slice_args(call).has(ArgKey::kInputDims);
}

// y[mask] = f(y[mask]): the size that changes is the number of rows that the mask chose, and both sides wait for it. All other rows
// stay, so no round works on what the one before left.
bool changes_rows_by_mask(const Owner& owner) {
  return has_in_round(owner, "aten::index_put_") &&
         std::find(owner.cell.begin(), owner.cell.end(), "aten::index") != owner.cell.end() &&
         owner.work.size_waits >= 2 * owner.rounds;
}

Sentence more_of_rounds(const Facts& facts, const Owner& owner) {
  Sentence text;
  // Only if that is at least 30 % of its time.
  if (!facts.main_device && owner.work.uneven_ns * 10 >= owner.total_ns * 3)
    append(text,
           say("; some calls are much slower than equal ones, which takes {} of it: other work may "
               "hold the core",
               {ratio(std::min(owner.work.uneven_ns, owner.total_ns), owner.total_ns)}));
  if (changes_size(owner))
    append(text, say(owner.sizes.grows ? "; a size of {} grows round by round, from {} to {}"
                     : owner.sizes.falls
                         ? "; a size of {} falls round by round, between {} and {}"
                         : "; a size of {} changes from round to round, between {} and {}",
                     {name(owner.sizes.op), count(static_cast<std::uint64_t>(owner.sizes.least)),
                      count(static_cast<std::uint64_t>(owner.sizes.most))}));
  if (!facts.main_device && copies_layouts(owner))
    append(text, say("; {} copies tensors into another layout", {name("aten::contiguous")}));
  if (differentiates_twice(owner))
    append(text, say("; it differentiates a backward pass (create_graph=True)"));
  return text;
}

Sentence remedy_of_rounds(const Facts& facts, const Owner& owner) {
  if (differentiates_twice(owner) && rules::count_gradient_passes(facts).are_of_tasks())
    return say(
        "It differentiates the updates of inner loops: where they are tasks, torch.func.vmap over "
        "all tasks (functional_call, torch.func.grad)");
  if (differentiates_twice(owner) && rules::count_gradient_passes(facts).can_be_joined())
    return rules::remedy_of_same_output();
  if (differentiates_twice(owner))
    return say("If it is a penalty on gradients: take it every few steps, or on fewer rows");
  if (changes_size(owner) && owner.sizes.grows && !is_model_work(owner.sizes.op)) return {};
  if (changes_size(owner) && owner.sizes.grows)
    return say(
        "If earlier rows stay as they are: keep their results (a KV cache), compute new rows only");
  if (changes_size(owner) && changes_rows_by_mask(owner))
    return say(
        "If a mask chooses the rows that each round changes: compute all rows, and keep the others "
        "with torch.where");
  if (changes_size(owner) && owner.sizes.falls)
    return say(
        "If each round works on what the one before left: compute for all at once, and loop over "
        "the result only (as torchvision.ops.nms does for boxes)");
  if (changes_size(owner))
    return say(
        "If no round needs the one before it: pad to one size, or group equal sizes, and make one "
        "call");
  if (may_narrow_by_mask(facts, owner))
    return say(
        "If each round handles one row of a batch: one call for all rows, with torch.where. "
        "If each keeps what a mask left: compute for all before the loop, as torchvision.ops.nms "
        "does");
  if (owner.has_backward && owner.repeats_graph)
    return say(
        "The rounds go back over one graph: make one call of them, with "
        "autograd.grad(is_grads_batched=True), torch.func.jacrev or vmap");
  if (is_equal_convolutions(owner))
    return say("If each takes its own channels of one input: one convolution with groups={}",
               {count(owner.rounds / owner.loops)});
  if (is_micro_batches(owner) && has_inner_gradients(facts, owner) && !evaluates_closure(owner))
    return say(
        "Rounds take gradients of their own (autograd.grad): torch.func.vmap over them if they are "
        "tasks or models; if each follows the one before, torch.compile one");
  if (is_micro_batches(owner) && evaluates_closure(owner))
    return say(
        "Each round is a call of the optimizer's closure: allow fewer (max_iter, max_eval), or "
        "torch.compile what it calls");
  if (is_micro_batches(owner) && updates_weights(owner)) return {};
  if (is_micro_batches(owner) && communicates_in_rounds(facts, owner))
    return say(
        "Each round has a backward pass with all-reduces of its own: model.no_sync() in all rounds "
        "but the last; or larger micro batches");
  if (is_micro_batches(owner) && copies_lists(owner))
    return say(
        "If a round only tries other weights for their loss: torch.no_grad(), without backward(); "
        "if it is a micro batch: take larger ones");
  if (is_micro_batches(owner) && clips_gradients(owner))
    return say(
        "If the norms are of clip_grad_norm_: clip once, after the last backward pass; and take "
        "larger micro batches where memory allows");
  if (is_micro_batches(owner) && rules::is_memory_nearly_full(facts)) return {};
  if (accumulates_gradients(facts, owner)) return one_batch_of_all(facts, owner);
  if (is_micro_batches(owner))
    // Rounds of a few rows may be for the gradient of each sample.
    return owner.has_large_products
               ? say("Each round has a backward pass: take larger micro batches where memory "
                     "allows")
               : say("Each round has a backward pass: take larger micro batches where memory "
                     "allows; for gradients of each sample, torch.func.vmap of grad");
  if (!facts.main_device && copies_layouts(owner))
    return say("Stay in one layout: permute once before the layers, not around each of them");
  return is_optimizer_loop(facts, owner) ? form_of_optimizer(facts, owner) : Sentence();
}

bool is_before_foreach(const Trace& trace) {
  const auto categories = trace.categories();
  return std::any_of(categories.begin(), categories.end(), [&](const Category& each) {
    return each.text != kNone<StringId> && trace.text(each.text) == "Operator";
  });
}

const Owner* loop_of_changing_size(const Facts& facts) {
  const Owners* owners = step_owners(facts);
  if (!owners) return nullptr;
  for (const Owner& owner : owners->owners)
    if (changes_size(owner) && owner.total_ns * 2 > owners->total_ns) return &owner;
  return nullptr;
}

void advise_about_sizes(const Facts& facts, Finding& finding) {
  const Owner* loop = loop_of_changing_size(facts);
  if (!loop) return;
  finding.action = remedy_of_rounds(facts, *loop);
  finding.try_next.insert(finding.try_next.begin(), finding.action.pattern);
}

}  // namespace lanescope::explain

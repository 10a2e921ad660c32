// The program waits for the GPU in the middle of a step: .item(), .cpu(), synchronize(), copies.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/host_syncs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/wait_remedies.h"
#include "lanescope/explain/rules/waits_for_sizes.h"
#include "lanescope/explain/sampled_code.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {
namespace {

// torch.linalg reads on the CPU whether each matrix could be factorised, unless the `_ex` form is called.
constexpr std::string_view kChecksMatrices = "aten::_linalg_check_errors";

struct CheckingCall {
  std::string_view op, form_without_check;
};
constexpr CheckingCall kCheckingCalls[] = {
    {"aten::cholesky", "torch.linalg.cholesky_ex"},
    {"aten::inverse", "torch.linalg.inv_ex"},
    {"aten::linalg_cholesky", "torch.linalg.cholesky_ex"},
    {"aten::linalg_inv", "torch.linalg.inv_ex"},
    {"aten::linalg_ldl_factor", "torch.linalg.ldl_factor_ex"},
    {"aten::linalg_lu_factor", "torch.linalg.lu_factor_ex"},
    {"aten::linalg_solve", "torch.linalg.solve_ex"},
};

// True: the longest wait checks a matrix.
bool is_check_of_matrix(const Facts& facts, const SyncGroup& group) {
  return ancestor_named(facts, facts.links.op_of[raw(group.longest)], kChecksMatrices) !=
         kNone<SliceId>;
}

// A factorisation that waits for its own kernels: no line of the program can leave that out.
bool is_own_wait(const Facts& facts, const SyncGroup& group) {
  const SliceId op = facts.links.op_of[raw(group.longest)];
  return op != kNone<SliceId> && (facts.trace->name(op).starts_with("aten::linalg_") ||
                                  facts.trace->name(op).starts_with("aten::_linalg_"));
}

void tell_own_wait(const Facts& facts, const SyncGroup& group, Finding& finding) {
  const std::string op(facts.trace->name(facts.links.op_of[raw(group.longest)]));
  finding.kind = FindingKind::kWhere;
  finding.try_next = {op +
                      " waits for its own kernels: call it less often (keep its result), or once "
                      "for a stack of matrices"};
}

void tell_checks(std::string_view op, Finding& finding) {
  const auto call = std::find_if(std::begin(kCheckingCalls), std::end(kCheckingCalls),
                                 [&](const CheckingCall& each) { return each.op == op; });
  finding.try_next = {
      "torch.linalg waits to see whether each matrix could be factorised: its _ex functions "
      "(cholesky_ex, inv_ex, solve_ex, lu_factor_ex) do not, and return `info`, which can be read "
      "once, at the end",
      "factorise matrices of one size in one batched call: one wait for all"};
  finding.action =
      call == std::end(kCheckingCalls)
          ? say("It waits to check its matrix: stack matrices, one batched call waits once for all")
          : say("Call {}: it does not wait to check; or one batched call for all matrices",
                {name(call->form_without_check)});
}

// The Python line that waits, if there are enough samples of its stack.
void tell_samples(const Facts& facts, const HostSyncs& found, Finding& finding) {
  std::vector<analysis::Window> windows;
  for (const LaunchingWait& wait : found.launching_waits) windows.push_back(wait.window);
  const auto code = find_sampled_code(*facts.trace, facts.main_thread, joined(windows));
  if (!code) return;
  Sentence line = say("samples of the launching thread's Python stack in these waits: ");
  append(line, describe(*code));
  finding.arithmetic.push_back(std::move(line));
}

// What the fix saves, what it does not, and why.
void tell_savings(const Facts& facts, const HostSyncs& found, Finding& finding) {
  finding.arithmetic.push_back(
      say(facts,
          std::string("saved without the waits: the idle time after them, {} [per step]") +
              (found.lead_ns > 0 ? ", and what the CPU's lead would cover (below)" : "") +
              ", but at most the GPU's work ({}) + the operators that wait ({}); also the copies "
              "that only bring a value to the CPU, {}; all waits together take {}",
          {ns(facts.per_step(found.idle_ns)), ns(facts.per_step(found.busy_ns)),
           ns(facts.per_step(found.waiting_ops_ns)), ns(facts.per_step(found.copies_ns)),
           ns(facts.per_step(found.waited_ns))}));
  std::int64_t short_ns = 0;
  for (const auto& [asker, group] : found.groups)
    short_ns += group.idle_ns + group.lead_ns - group.cost_ns();
  if (facts.per_step(short_ns) > 0)
    finding.arithmetic.push_back(say(facts,
                                     "operators that wait less than 20 us on average count with no "
                                     "more than their own duration: {} [per step] less",
                                     {ns(facts.per_step(short_ns))}));
  if (found.sizing_ns > 0)
    finding.arithmetic.push_back(say(facts,
                                     "operators whose output size is known also save the GPU's "
                                     "waits for the CPU while these run, {} [per step]",
                                     {ns(facts.per_step(found.sizing_ns))}));
  if (found.lead_ns > 0)
    finding.arithmetic.push_back(say(
        facts,
        "a wait also costs the CPU its lead over the GPU: with it, {} [per step] of the GPU's "
        "later waits for the CPU would disappear (until the next such wait, at most its length)",
        {ns(facts.per_step(found.lead_ns))}));
  if (found.elsewhere_ns > 0)
    finding.arithmetic.push_back(
        say(facts,
            "not counted: {} [per step] after a wait in which the CPU allocated or freed memory at "
            "the driver, or waited for a batch",
            {ns(facts.per_step(found.elsewhere_ns))}));
  tell_samples(facts, found, finding);
}

// The operators whose waits cost most.
void tell_costliest_operators(const Facts& facts, const HostSyncs& found, Finding& finding) {
  for (std::size_t i = 0; i < found.ranked.size() && i < 3; ++i) {
    if (i > 0 && found.ranked[i].second.cost_ns() == 0) break;  // it cost nothing
    Sentence text = say(facts, "{} x{}: waited {} [per step], GPU idle afterwards {}",
                        {name(found.ranked[i].first), count(found.ranked[i].second.calls),
                         ns(facts.per_step(found.ranked[i].second.waited_ns)),
                         ns(facts.per_step(found.ranked[i].second.idle_ns))});
    add_line(facts, found.ranked[i].second.longest, text);
    finding.evidence.push_back({found.ranked[i].second.longest, std::move(text)});
  }
}

void tell_what_to_try(const HostSyncs& found, Finding& finding) {
  if (found.after_uploads_ns * 4 > found.idle_ns)
    finding.try_next.push_back(
        "for copies to the GPU: use pinned memory (DataLoader(pin_memory=True), "
        "tensor.pin_memory()) and .to(device, non_blocking=True), which do not wait");
  if (found.after_uploads_ns * 4 < found.idle_ns * 3) {
    finding.try_next.push_back(
        "keep values on the GPU; read a loss or a metric every n steps instead of every step");
    finding.try_next.push_back(
        "move .item(), .cpu(), nonzero(), masks and prints of tensors after the last launch of the "
        "step");
  }
}

// A hook of the program on the gradient of a parameter: operators in AccumulateGrad that are not its own work.
bool is_in_gradient_hook(const Facts& facts, SliceId wait) {
  const Trace& trace = *facts.trace;
  SliceId outermost = kNone<SliceId>;  // of the aten operators around the wait
  for (SliceId up = facts.links.op_of[raw(wait)]; up != kNone<SliceId>;
       up = facts.nesting.parent[raw(up)]) {
    const std::string_view label = trace.name(up);
    if (label.starts_with(kEvaluateNode))
      return is_accumulating_node(label) && outermost != kNone<SliceId> &&
             !trace.name(outermost).starts_with("aten::add") &&
             trace.name(outermost) != "aten::detach" && trace.name(outermost) != "aten::copy_";
    if (label.starts_with("aten::")) outermost = up;
    if (names::is_optimizer_step(label)) return false;  // an optimizer in the backward pass
  }
  return false;
}

// Nodes of the steady steps in which such a hook waits: one for each gradient and backward pass.
std::uint64_t hooked_gradients(const Facts& facts, const HostSyncs& found) {
  return static_cast<std::uint64_t>(
      std::count_if(found.waiting_ops.begin(), found.waiting_ops.end(),
                    [&](SliceId op) { return is_accumulating_node(facts.trace->name(op)); }));
}

void tell_gradient_hooks_that_wait(const Facts& facts, const HostSyncs& found, Finding& finding) {
  const SyncGroup& group = found.ranked.front().second;
  finding.brief = say(
      facts,
      "Hooks on {} gradients read values: the CPU waits for the GPU, {} [time|times] [in {} steps]",
      {count(a_step(facts, hooked_gradients(facts, found))), count(group.calls),
       count(facts.selection.steady.size())});
  finding.action =
      say("Run the hooks every n steps, or collect the values on the GPU and copy them once");
  finding.try_next = {
      "a hook on a gradient (register_hook, register_post_accumulate_grad_hook) that calls .item() "
      "or .cpu() waits for the GPU each time: keep its values on the GPU, torch.stack() them after "
      "backward(), and read them in one copy",
      "values that are only watched: every n steps"};
}

// "aten::to and aten::item make the CPU wait for the GPU, 180 times in 60 steps": the operators whose waits cost a tenth of
// all or more, three at most, the costliest first.
Sentence brief_of_waits(const Facts& facts, const HostSyncs& found) {
  constexpr std::size_t kMostNames = 3;
  std::int64_t total_ns = 0;
  for (const auto& [op, group] : found.ranked) total_ns += group.cost_ns();
  std::vector<std::string_view> names;
  std::uint64_t calls = 0;
  for (const auto& [op, group] : found.ranked) {
    if (!names.empty() && (group.cost_ns() * 10 < total_ns || group.cost_ns() == 0)) break;
    if (names.size() == kMostNames) break;
    // The uploads of an operator and its reads are two things.
    if (std::find(names.begin(), names.end(), op) != names.end()) continue;
    names.push_back(op);
    calls += group.calls;
  }
  std::string pattern = "{}";
  std::vector<Value> values{asker_name(names.front())};
  for (std::size_t i = 1; i < names.size(); ++i) {
    pattern += i + 1 == names.size() ? " and {}" : ", {}";
    values.push_back(asker_name(names[i]));
  }
  pattern += names.size() == 1 ? " makes" : " make";
  values.push_back(count(calls));
  values.push_back(count(facts.selection.steady.size()));
  return say(facts, pattern + " the CPU wait for the GPU, {} [time|times] [in {} steps]",
             std::move(values));
}

// True: of the operators that cost a tenth or more, those that copy an index from the CPU (x[i]) have four fifths of the calls, and others
// read results.
bool mostly_copies_indices(const HostSyncs& found) {
  std::int64_t total_ns = 0;
  for (const auto& [op, group] : found.ranked) total_ns += group.cost_ns();
  std::uint64_t calls = 0, of_indices = 0;
  for (const auto& [op, group] : found.ranked) {
    if (group.cost_ns() * 10 < total_ns || group.cost_ns() == 0) break;
    calls += group.calls;
    of_indices += op == "aten::index" && group.is_of_uploads() ? group.calls : 0;
  }
  return of_indices > 0 && of_indices * 5 >= calls * 4;
}

Finding tell_host_sync(const Facts& facts, const HostSyncs& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "The CPU waits for the GPU in the middle of the work: {} [wait|waits] [in "
                        "{} steps], after which the GPU was idle for {} [per step] ({}).",
                        {count(found.waits), count(facts.selection.steady.size()),
                         ns(facts.per_step(found.idle_ns)), ratio(found.idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(found.at_stake_ns);
  finding.at_stake_ratio = share_of(found.at_stake_ns, wall_ns);
  finding.idle_after_waits_ns = facts.per_step(found.idle_ns);
  finding.spared_waits = found.upload_calls;
  // A call that only waits is there for the wait alone. While it is recorded, the CPU is so slow that such a wait is short, and a
  // replay shows too little of it.
  const ApiCall first_call = find_api_call(found.ranked.front().first);
  const bool only_waits =
      first_call.does(api_effect::kBlocks) && !first_call.does(api_effect::kCopies);
  finding.own_cost_ns = only_waits ? finding.at_stake_ns : facts.per_step(found.own_cost_ns);
  tell_savings(facts, found, finding);
  tell_costliest_operators(facts, found, finding);
  if (converts_layout(found.ranked.front().first))
    finding.try_next = {
        "it waits for its own copies and counts: call it once for an input that stays the same, "
        "and less often for others"};
  else
    tell_what_to_try(found, finding);
  finding.confidence = facts.confidence();
  finding.sample_count = found.waits;
  finding.sample_noun = "wait";
  finding.brief = brief_of_waits(facts, found);
  if (found.is_about_sizes) tell_waits_for_sizes(facts, found, finding);
  if (const SyncGroup& worst = found.ranked.front().second; worst.lead_ns > worst.idle_ns)
    append(finding.brief, say(", and later the GPU waits for what the CPU does next"));
  if (found.is_for_streams_in_turn) {
    finding.brief = say(
        facts, "{} waits for one stream before the next gets work, {} [time|times] [in {} steps]",
        {name(found.ranked.front().first), count(found.ranked.front().second.calls),
         count(facts.selection.steady.size())});
    finding.try_next.insert(
        finding.try_next.begin(),
        "launch on all streams first, then wait for all of them, or let the current stream wait "
        "(wait_stream, wait_event): their work can run at the same time");
    finding.explains.push_back({"graph-gaps", finding.at_stake_ns});
  }
  if (found.is_about_sizes) return finding;
  if (is_in_gradient_hook(facts, found.ranked.front().second.longest)) {
    tell_gradient_hooks_that_wait(facts, found, finding);
    return finding;
  }
  if (is_check_of_matrix(facts, found.ranked.front().second)) {
    tell_checks(found.ranked.front().first, finding);
    return finding;
  }
  if (is_own_wait(facts, found.ranked.front().second)) {
    tell_own_wait(facts, found.ranked.front().second, finding);
    return finding;
  }
  finding.action =
      found.is_for_streams_in_turn
          ? say("Launch on all streams first, then wait for all: they can run at the same time")
          : remedy_for_waits(facts, found.ranked.front());
  if (!found.is_for_streams_in_turn && !found.ranked.front().second.is_of_uploads() &&
      mostly_copies_indices(found))
    finding.action =
        say("x[i] with i on the CPU copies i each time, and waits: join all indices, copy them to "
            "the GPU once; results: one copy, too");
  return finding;
}

}  // namespace

extern constinit const Rule host_sync_rule = {
    .id = "host-sync",
    .question = "does the program wait for the GPU in the middle of a step?",
    .meant_by = "cudadevicesynchronize cudastreamsynchronize item sync print logging",
    .order = 80,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_host_sync, tell_host_sync>,
    .is_regression = true,
    .fix = Fix::kRemoveSync,
};

}  // namespace lanescope::explain::rules

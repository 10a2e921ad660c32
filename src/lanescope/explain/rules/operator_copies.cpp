// Operators that want their inputs in another layout than the operators before them make, so that torch copies each tensor on its
// way.
//
// Two such cases are known, and need no shapes. A group norm on CUDA works in channels-first: between convolutions in
// channels_last it copies its input, and the next convolution copies it back. An einsum that takes a one-hot tensor (which token
// goes to which expert) permutes, reshapes and casts all of its zeros.
#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/copy_sources.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// Of the GPU's working time: copies of either side of a pair, and copies of an einsum.
constexpr double kLeastOfASide = 0.02, kLeastOfEinsum = 0.03;
constexpr double kLeastEinsumShare = 0.05;  // of a step: the calls with such copies

bool contains_part(std::string_view name, std::string_view part) {
  return name.find(part) != name.npos;
}

// What works in channels-first only, whatever the layout of its input.
bool is_channels_first_only(std::string_view op) { return contains_part(op, "group_norm"); }

struct OperatorCopies {
  Savings copies;  // between the layouts of convolutions and group norms
  std::uint64_t of_norms = 0, of_convolutions = 0;
  std::int64_t norms_ns = 0, convolutions_ns = 0;
  // Or calls of aten::einsum shortly after aten::one_hot.
  std::uint64_t einsums = 0, einsum_copies = 0, calls = 0;
  std::int64_t einsum_copies_ns = 0, cost_ns = 0;
  SliceId longest = kNone<SliceId>;
};

std::optional<OperatorCopies> between_layouts(const Facts& facts) {
  OperatorCopies found;
  for (const SourcedCopy& copy : sourced_copies(facts)) {
    if (!copy.is_layout || copy.asker == kNone<SliceId>) continue;
    const std::string_view asker = facts.trace->name(copy.asker);
    const std::int64_t time_ns = copy.kernel->dur_ns();
    if (is_channels_first_only(asker)) {
      ++found.of_norms;
      found.norms_ns += time_ns;
    } else if (contains_part(asker, "convolution")) {
      ++found.of_convolutions;
      found.convolutions_ns += time_ns;
    } else {
      continue;
    }
    found.copies.add(*copy.kernel, time_ns);
  }
  found.copies.finish();
  const std::int64_t busy_ns = facts.wall.partition.busy_ns();
  if (share_of(found.norms_ns, busy_ns) < kLeastOfASide ||
      share_of(found.convolutions_ns, busy_ns) < kLeastOfASide)
    return std::nullopt;
  found.longest = found.copies.longest();
  return found;
}

// The calls of aten::einsum that follow aten::one_hot closely, as in a mixture of experts; one-hot labels of a loss have none
// after them.
std::unordered_set<std::uint32_t> einsums_after_one_hot(const Facts& facts) {
  constexpr std::size_t kFarthest = 32;  // calls of the program
  std::unordered_set<std::uint32_t> found;
  for (const CallSequence& calls : call_sequences(facts)) {
    std::size_t since = kFarthest;
    for (const SliceId call : calls) {
      const std::string_view op = facts.trace->name(call);
      since = op == "aten::one_hot" ? 0 : since + 1;
      if (op == "aten::einsum" && since < kFarthest) found.insert(raw(call));
    }
  }
  return found;
}

std::optional<OperatorCopies> of_one_hot_einsums(const Facts& facts) {
  const std::unordered_set<std::uint32_t> einsums = einsums_after_one_hot(facts);
  if (einsums.empty()) return std::nullopt;
  OperatorCopies found;
  std::unordered_set<std::uint32_t> copying;
  std::int64_t longest_ns = -1;
  for (const SourcedCopy& copy : sourced_copies(facts)) {
    if (!einsums.contains(raw(copy.outermost))) continue;
    const std::int64_t time_ns = copy.kernel->dur_ns();
    copying.insert(raw(copy.outermost));
    ++found.einsum_copies;
    found.einsum_copies_ns += time_ns;
    if (time_ns > longest_ns) found.longest = copy.kernel->slice;
    longest_ns = std::max(longest_ns, time_ns);
  }
  if (share_of(found.einsum_copies_ns, facts.wall.partition.busy_ns()) < kLeastOfEinsum)
    return std::nullopt;
  found.einsums = copying.size();
  const std::unordered_set<std::uint32_t> calls = with_backward_nodes(facts, copying);
  found.calls = calls.size();
  found.cost_ns = cost_of_calls(facts, calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastEinsumShare) return std::nullopt;
  return found;
}

std::optional<OperatorCopies> measure_operator_copies(const Facts& facts) {
  if (auto found = between_layouts(facts)) return found;
  return of_one_hot_einsums(facts);
}

void tell_between_layouts(const Facts& facts, const OperatorCopies& found, Finding& finding) {
  finding.verdict =
      say(facts,
          "Group norms and convolutions copy their tensors between two layouts: {} [copy|copies] "
          "[in {} steps], {} of [a step's] {}.",
          {count(found.copies.calls()), count(facts.selection.steady.size()),
           ns(facts.per_step(found.copies.time_ns())),
           ns(facts.per_step(facts.wall.partition.wall_ns))});
  finding.arithmetic.push_back(say(
      facts,
      "{} [copy|copies] by group norms take {} [per step], {} by convolutions {}, in the forward "
      "and the backward pass",
      {count(found.of_norms), ns(facts.per_step(found.norms_ns)), count(found.of_convolutions),
       ns(facts.per_step(found.convolutions_ns))}));
  rate_finding(facts, found.copies, finding);
  finding.sample_noun = "copy";
  finding.evidence.push_back(longest_of(facts, found.longest));
  finding.try_next = {
      "torch's group norm on CUDA works in channels-first: it copies a tensor in channels_last, "
      "and the next convolution copies the result back, in the backward pass again. torch.compile "
      "the blocks: it fuses the norm with its neighbours and keeps the layout",
      "or use a group norm that takes channels_last, such as apex.contrib.group_norm"};
  finding.brief =
      say(facts,
          "Group norms copy to channels-first, convolutions back: {} [copy|copies] [in {} steps]",
          {count(found.copies.calls()), count(facts.selection.steady.size())});
  finding.action = say("torch.compile the blocks: its group norm needs no copies");
  for (const char* covered : {"layout-copies", "no-roof", "conv-layout"})
    finding.explains.push_back({covered, facts.per_step(found.copies.time_ns())});
}

void tell_one_hot_einsums(const Facts& facts, const OperatorCopies& found, Finding& finding) {
  finding.verdict = say(
      facts,
      "{} [call|calls] of {} [per step] [follows|follow] {} and [copies|copy] and cast what they "
      "take: {} for the copies, {} [per step] in all with the backward pass.",
      {count(std::max<std::uint64_t>(1, found.einsums / step_count(facts))), name("aten::einsum"),
       name("aten::one_hot"), ns(facts.per_step(found.einsum_copies_ns)),
       ns(facts.per_step(found.cost_ns))});
  rate_cost(facts, found.cost_ns, found.calls, finding);
  finding.gain_is_bound = true;  // moving the rows takes some of it
  finding.arithmetic.push_back(
      say("counted: calls of aten::einsum at most 32 calls after aten::one_hot that copy, and the "
          "nodes of the backward pass that they made"));
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest of these copies")));
  finding.try_next = {
      "an einsum over a one-hot tensor [tokens, experts, slots] multiplies, permutes and casts "
      "zeros. Write rows by index: row = expert * slots + slot; new_zeros(experts * slots, "
      "width).index_copy(0, row, x), and read the results back as out[row]",
      "where the einsum takes no one-hot tensor: order its dimensions as a batched product has "
      "them, so that nothing is permuted"};
  finding.brief =
      say("{} with a one-hot tensor copies, casts and multiplies zeros", {name("aten::einsum")});
  finding.action =
      say("Move rows by index: zeros(...).index_copy(0, row, x), and out[row] to read them back");
  for (const char* covered : {"layout-copies", "no-roof"})
    finding.explains.push_back({covered, facts.per_step(found.einsum_copies_ns)});
}

Finding tell_operator_copies(const Facts& facts, const OperatorCopies& found) {
  Finding finding;
  if (found.copies.calls() > 0)
    tell_between_layouts(facts, found, finding);
  else
    tell_one_hot_einsums(facts, found, finding);
  return finding;
}

}  // namespace

extern constinit const Rule operator_copies_rule = {
    .id = "operator-copies",
    .question = "which operators force copies into another layout?",
    .meant_by = "channelslast groupnorm einsum contiguous",
    .order = 599,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_operator_copies, tell_operator_copies>,
    .is_regression = true,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules

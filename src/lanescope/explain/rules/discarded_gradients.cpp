// A backward pass goes on into a part of the model whose gradients are dropped before anything reads them. Example: the
// loss of a GAN's discriminator goes back through the generator, whose optimizer clears those gradients.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;

namespace {

constexpr double kLeastDiscardedShare = 0.05;
constexpr std::uint64_t kFewestDiscarded = 2;  // gradients of a pass

// A call that may read or change a tensor of a shape: of the optimizer, or of the program between two passes.
struct ShapeUse {
  std::int64_t time_ns = 0;
  std::uint32_t name = 0;  // raw
};
using ShapeUses = std::map<Sizes, std::vector<ShapeUse>>;

bool is_clearing(const Facts& facts, SliceId op) {
  return ancestor_where(facts, op, [](std::string_view name) {
           return name.find("zero_grad") != std::string_view::npos;
         }) != kNone<SliceId>;
}

// By shape of the first input, in order of time: where a gradient or its parameter is one. A model's weights are no first
// input of its layers.
ShapeUses find_uses_of(const Facts& facts, const std::vector<BackwardPass>& passes) {
  const Trace& trace = *facts.trace;
  ShapeUses uses;
  for (const BackwardPass& pass : passes)
    for (const auto& [node, shape] : pass.gradients) uses.try_emplace(shape);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId op{i};
    if (trace.kind(op) != CategoryKind::kCpuOp ||
        trace.name(op).find("Backward") != std::string_view::npos)
      continue;
    if (outermost_around(facts, op) != op && !is_in_optimizer_step(facts, op)) continue;
    if (steady_step_at(facts, trace.start_ns(op)) == ~std::size_t{0} || is_clearing(facts, op))
      continue;
    for (const Sizes& shape : first_input_shapes(trace, op))
      if (const auto found = uses.find(shape); found != uses.end())
        found->second.push_back({trace.start_ns(op), raw(trace.slices().name[i])});
  }
  for (auto& [shape, all] : uses)
    sort_rows(all.begin(), all.end(),
              [](const ShapeUse& a, const ShapeUse& b) { return a.time_ns < b.time_ns; });
  return uses;
}

// Tensors of a shape that the call that takes most of them takes in this time.
std::uint64_t used_between(const std::vector<ShapeUse>& uses, std::int64_t from_ns,
                           std::int64_t to_ns) {
  std::map<std::uint32_t, std::uint64_t> by_name;
  std::uint64_t most = 0;
  for (const ShapeUse& use : uses)
    if (use.time_ns > from_ns && use.time_ns < to_ns) most = std::max(most, ++by_name[use.name]);
  return most;
}

// Did this node's AccumulateGrad add to a gradient that was there?
bool adds_to_gradient(const Facts& facts, SliceId node) {
  return any_inside(facts, node,
                    [](std::string_view name) { return name.starts_with("aten::add"); });
}

// When the next pass after `at` makes a new gradient of this shape, which shows that the one before was dropped. Nothing:
// none does, or one is added to what is there.
std::optional<std::int64_t> next_new_gradient(const Facts& facts,
                                              const std::vector<BackwardPass>& passes,
                                              std::size_t at, const Sizes& shape) {
  const Trace& trace = *facts.trace;
  const std::int64_t end_ns = trace.end_ns(passes[at].nodes.back());
  for (std::size_t i = at + 1; i < passes.size(); ++i) {
    if (trace.start_ns(passes[i].nodes.front()) < end_ns) continue;
    bool has_shape = false;
    for (const auto& [node, made] : passes[i].gradients) {
      if (made != shape) continue;
      if (adds_to_gradient(facts, passes[i].nodes[node])) return std::nullopt;
      has_shape = true;
    }
    if (has_shape) return trace.start_ns(passes[i].nodes.front());
  }
  return std::nullopt;
}

struct DiscardedGradients {
  std::uint64_t passes = 0, gradients = 0;  // of one pass: the gradients after the last used one
  std::unordered_set<std::uint32_t> nodes;
  SliceId first = kNone<SliceId>;  // of them
  std::int64_t cost_ns = 0;
};

// The nodes after the last gradient that something may have used.
void add_pass(const Facts& facts, const std::vector<BackwardPass>& passes, std::size_t at,
              const ShapeUses& uses, DiscardedGradients& found) {
  const BackwardPass& pass = passes[at];
  const std::int64_t end_ns = facts.trace->end_ns(pass.nodes.back());
  std::map<Sizes, std::uint64_t> left;  // uses that no gradient has taken yet
  std::size_t used_until = 0;           // node
  std::uint64_t used = 0, discarded = 0;
  for (const auto& [node, shape] : pass.gradients) {
    const auto next_ns = next_new_gradient(facts, passes, at, shape);
    auto [uses_left, is_first] = left.try_emplace(shape, 0);
    if (is_first && next_ns) uses_left->second = used_between(uses.at(shape), end_ns, *next_ns);
    if (next_ns && uses_left->second == 0) {
      ++discarded;
      continue;
    }
    if (next_ns) --uses_left->second;
    used_until = node;
    discarded = 0;
    ++used;
  }
  // Where nothing is seen to use a gradient, uses may not be recorded.
  if (used == 0 || discarded < kFewestDiscarded) return;
  ++found.passes;
  found.gradients = discarded;
  for (std::size_t n = used_until + 1; n < pass.nodes.size(); ++n) {
    if (found.first == kNone<SliceId>) found.first = pass.nodes[n];
    found.nodes.insert(raw(pass.nodes[n]));
  }
}

std::optional<DiscardedGradients> measure_discarded_gradients(const Facts& facts) {
  if (has_collectives(facts)) return std::nullopt;  // hooks may read them
  const std::vector<BackwardPass>& passes = backward_passes(facts);
  const std::size_t steps = facts.selection.steady.size();
  if (passes.size() <= steps) return std::nullopt;  // each step drops what its optimizer used
  const ShapeUses uses = find_uses_of(facts, passes);
  DiscardedGradients found;
  for (std::size_t i = 0; i < passes.size(); ++i) add_pass(facts, passes, i, uses, found);
  // In each step, save that what follows the last one is not recorded.
  if (found.nodes.empty() || (found.passes + 1) * 2 <= steps) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, found.nodes);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastDiscardedShare) return std::nullopt;
  return found;
}

Finding tell_discarded_gradients(const Facts& facts, const DiscardedGradients& found) {
  Finding finding;
  finding.verdict = say(facts,
                        "A backward pass ends with gradients of {} parameters that are dropped "
                        "before anything reads them: {} [per step] ({}).",
                        {count(found.gradients), ns(facts.per_step(found.cost_ns)),
                         ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.nodes.size(), finding);
  finding.arithmetic.push_back(say(
      "dropped: until the next backward pass makes a new gradient of the same shape (instead "
      "of adding to it), no optimizer and no call of the program takes a tensor of that shape"));
  finding.arithmetic.push_back(
      say(facts,
          "at stake: the nodes of such passes after the last gradient that may be used, {} [in {} "
          "steps]",
          {count(found.nodes.size()), count(facts.selection.steady.size())}));
  finding.evidence.push_back({found.first, say("the first node after that gradient")});
  finding.try_next = {
      "detach what comes out of that part before this loss: discriminator(fake.detach())",
      "compute that part under torch.no_grad() for this loss, or set requires_grad_(False) on its "
      "parameters meanwhile",
      "name the parameters: torch.autograd.backward(loss, inputs=parameters) makes only their "
      "gradients"};
  finding.explains.push_back({"costly-operator", finding.at_stake_ns});
  finding.brief = say("A backward pass goes on to {} parameters whose gradients are dropped unread",
                      {count(found.gradients)});
  finding.action =
      say("detach() the output of that part before this loss: discriminator(fake.detach())");
  return finding;
}

}  // namespace

extern constinit const Rule discarded_gradients_rule = {
    .id = "discarded-gradients",
    .question = "are gradients dropped before anything reads them?",
    .meant_by = "gan discriminator generator detach zero_grad backward unused",
    .order = 448,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_discarded_gradients, tell_discarded_gradients>,
};

}  // namespace lanescope::explain::rules

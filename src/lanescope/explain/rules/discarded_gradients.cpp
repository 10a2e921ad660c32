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
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/products.h"
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

// When a later pass makes a new gradient of this shape, which shows that the one before was dropped, with all that passes between
// added to it. Nothing: none does.
std::optional<std::int64_t> next_new_gradient(const Facts& facts,
                                              const std::vector<BackwardPass>& passes,
                                              std::size_t at, const Sizes& shape) {
  const Trace& trace = *facts.trace;
  const std::int64_t end_ns = trace.end_ns(passes[at].nodes.back());
  for (std::size_t i = at + 1; i < passes.size(); ++i) {
    if (trace.start_ns(passes[i].nodes.front()) < end_ns) continue;
    bool has_shape = false, adds = false;
    for (const auto& [node, made] : passes[i].gradients) {
      if (made != shape) continue;
      has_shape = true;
      adds = adds || adds_to_gradient(facts, passes[i].nodes[node]);
    }
    if (has_shape && !adds) return trace.start_ns(passes[i].nodes.front());
  }
  return std::nullopt;
}

struct DiscardedGradients {
  std::uint64_t passes = 0, gradients = 0;  // of one pass: the gradients after the last used one
  std::unordered_set<std::uint32_t> nodes;
  SliceId first = kNone<SliceId>;  // of them
  std::int64_t cost_ns = 0;
  bool is_by_clearing =
      false;  // known from what AccumulateGrad and zero_grad() do, not from shapes
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

// A backward pass that adds gradients to parameters, and what runs around it. Needs no shapes.
struct ClearedPass {
  BackwardPass pass;
  Accumulated gradients;
  std::int64_t start_ns = 0, end_ns = 0;
  // zero_grad(), the pass, step(): the gradients that are new are those of the optimizer that zero_grad() cleared right before the
  // pass, and the step after the pass is of that optimizer. The last ones are added to what is there: they are not its.
  bool is_of_first_part = false;
  std::size_t new_count() const { return gradients.all.size() - gradients.added.size(); }
  bool adds_last() const {  // first all that are new, then all that are added
    return new_count() > 0 && gradients.added.size() >= kFewestDiscarded &&
           gradients.all[new_count()] == gradients.added.front();
  }
};

// Of calls and ranges, not of their shadows on the GPU.
std::vector<std::int64_t> starts_of(const Trace& trace, const std::vector<SliceId>& slices) {
  std::vector<std::int64_t> starts_ns;
  for (const SliceId slice : slices)
    if (is_front_end(trace.kind(slice))) starts_ns.push_back(trace.start_ns(slice));
  std::sort(starts_ns.begin(), starts_ns.end());
  return starts_ns;
}

// How many of these times lie between, the first included.
std::ptrdiff_t count_between(const std::vector<std::int64_t>& times_ns, std::int64_t from_ns,
                             std::int64_t to_ns) {
  return std::lower_bound(times_ns.begin(), times_ns.end(), to_ns) -
         std::lower_bound(times_ns.begin(), times_ns.end(), from_ns);
}

// What lies around passes, by when it begins.
struct CallTimes {
  std::vector<std::int64_t> clears_ns, updates_ns, products_ns;
  bool are_between(std::int64_t from_ns, std::int64_t to_ns) const {
    return count_between(clears_ns, from_ns, to_ns) + count_between(updates_ns, from_ns, to_ns) +
               count_between(products_ns, from_ns, to_ns) >
           0;
  }
};

// A pass whose sequence numbers do not fall all the way, as where a backward pass is differentiated, is given in parts: nothing runs
// between these.
std::vector<BackwardPass> whole_passes(const Facts& facts, const CallTimes& calls) {
  const Trace& trace = *facts.trace;
  std::vector<BackwardPass> found;
  for (const BackwardPass& pass : backward_passes(facts)) {
    if (!found.empty() && found.back().thread == pass.thread &&
        !calls.are_between(trace.end_ns(found.back().nodes.back()),
                           trace.start_ns(pass.nodes.front())))
      found.back().nodes.insert(found.back().nodes.end(), pass.nodes.begin(), pass.nodes.end());
    else
      found.push_back(
          {.step = pass.step, .thread = pass.thread, .nodes = pass.nodes, .gradients = {}});
  }
  return found;
}

std::vector<ClearedPass> find_cleared_passes(const Facts& facts) {
  const Trace& trace = *facts.trace;
  CallTimes calls;
  calls.clears_ns = starts_of(trace, slices_starting_with(facts, "Optimizer.zero_grad#"));
  calls.updates_ns = optimizer_steps_ns(facts);
  calls.products_ns = starts_of(trace, slices_named(facts, [](std::string_view op) {
                                  return is_product(op) || op.starts_with("aten::conv");
                                }));
  std::vector<ClearedPass> found;
  for (BackwardPass& pass : whole_passes(facts, calls))
    if (Accumulated gradients = accumulated_in(facts, pass); !gradients.all.empty()) {
      const std::int64_t start_ns = trace.start_ns(pass.nodes.front()),
                         end_ns = trace.end_ns(pass.nodes.back());
      found.push_back({std::move(pass), std::move(gradients), start_ns, end_ns});
    }
  for (std::size_t i = 0; i + 1 < found.size(); ++i) {
    ClearedPass& own = found[i];
    const std::int64_t before_ns =
        i == 0 ? facts.steady_cpu_windows().front().start_ns : found[i - 1].end_ns;
    const std::int64_t after_ns = found[i + 1].start_ns;
    if (!own.adds_last() || count_between(calls.clears_ns, before_ns, own.start_ns) != 1 ||
        count_between(calls.updates_ns, own.end_ns, after_ns) != 1)
      continue;
    // A zero_grad() right after the step before would be that of the optimizer before.
    const std::int64_t clear_ns =
        *std::lower_bound(calls.clears_ns.begin(), calls.clears_ns.end(), before_ns);
    const auto updates =
        std::lower_bound(calls.updates_ns.begin(), calls.updates_ns.end(), own.start_ns) -
        calls.updates_ns.begin();
    const std::int64_t last_update_ns =
        updates == 0
            ? before_ns
            : std::max(before_ns,
                       trace.end_ns(optimizer_steps(facts)[static_cast<std::size_t>(updates - 1)]));
    own.is_of_first_part = count_between(calls.products_ns, last_update_ns, clear_ns) > 0;
  }
  return found;
}

// By pass: are its last gradients cleared before a step reads them? The passes that follow add to them, and the step after each
// is of another optimizer; then a pass makes new ones. From the last pass to the first, so that each looks at the next one only.
std::vector<bool> find_dropped_last(const std::vector<ClearedPass>& passes) {
  std::vector<bool> drops(passes.size(), false);
  for (std::size_t at = passes.size(); at-- > 0;) {
    const ClearedPass& own = passes[at];
    if (!own.is_of_first_part || at + 1 == passes.size()) continue;
    const Accumulated& next = passes[at + 1].gradients;
    if (next.all.size() != own.gradients.all.size()) continue;
    const std::size_t first_of_last = next.all[own.new_count()];
    const bool adds_to_them = std::any_of(next.added.begin(), next.added.end(),
                                          [&](std::size_t node) { return node >= first_of_last; });
    drops[at] = !adds_to_them || (passes[at + 1].new_count() == own.new_count() && drops[at + 1]);
  }
  return drops;
}

DiscardedGradients find_by_clearing(const Facts& facts) {
  DiscardedGradients found;
  found.is_by_clearing = true;
  if (clears_by_zeros(facts)) return found;
  const std::vector<ClearedPass> passes = find_cleared_passes(facts);
  const std::vector<bool> drops = find_dropped_last(passes);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (!drops[i]) continue;
    const ClearedPass& own = passes[i];
    ++found.passes;
    found.gradients = own.gradients.added.size();
    for (std::size_t n = own.gradients.all[own.new_count() - 1] + 1; n < own.pass.nodes.size();
         ++n) {
      if (found.first == kNone<SliceId>) found.first = own.pass.nodes[n];
      found.nodes.insert(raw(own.pass.nodes[n]));
    }
  }
  return found;
}

std::optional<DiscardedGradients> measure_discarded_gradients(const Facts& facts) {
  if (has_collectives(facts)) return std::nullopt;  // hooks may read them
  const std::vector<BackwardPass>& passes = backward_passes(facts);
  const std::size_t steps = facts.selection.steady.size();
  if (passes.size() <= steps) return std::nullopt;  // each step drops what its optimizer used
  const ShapeUses uses = find_uses_of(facts, passes);
  DiscardedGradients found;
  for (std::size_t i = 0; i < passes.size(); ++i) add_pass(facts, passes, i, uses, found);
  if (found.nodes.empty()) found = find_by_clearing(facts);
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
      found.is_by_clearing
          ? "dropped: the zero_grad() before such a pass does not clear them, so the step after it "
            "is of an optimizer that does not have them; another zero_grad() clears them before "
            "its own pass makes new ones"
          : "dropped: until a later backward pass makes a new gradient of the same shape (instead "
            "of adding to it), no optimizer and no call of the program takes a tensor of that "
            "shape"));
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

// A matrix is factored twice: once in the forward pass, and again in the backward() of the program's own function, or by the next
// call that needs the same factors.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;

namespace {

constexpr double kLeastFactoredShare = 0.05;

enum class Factors : std::uint8_t { kNone, kLu, kCholesky, kEigen, kSingular };

// What a call makes of the matrices that are its first input.
Factors factors_of_call(std::string_view op) {
  if (!op.starts_with("aten::")) return Factors::kNone;
  op.remove_prefix(6);
  if (op.starts_with('_')) op.remove_prefix(1);
  if (op.starts_with("linalg_")) op.remove_prefix(7);
  if (op.ends_with("_ex")) op.remove_suffix(3);
  if (op == "lu_factor" || op == "solve" || op == "inv" || op == "inverse" || op == "det" ||
      op == "slogdet" || op == "logdet" || op == "lu" || op == "lu_with_info")
    return Factors::kLu;
  if (op == "cholesky") return Factors::kCholesky;
  if (op == "eigh") return Factors::kEigen;
  if (op == "svd") return Factors::kSingular;
  return Factors::kNone;
}

struct FactoredCall {
  SliceId call{};
  Factors kind = Factors::kNone;
  Sizes shape;
};

std::optional<FactoredCall> factored_call(const Trace& trace, SliceId op) {
  const Factors kind = factors_of_call(trace.name(op));
  if (kind == Factors::kNone) return std::nullopt;
  auto shapes = first_input_shapes(trace, op);
  if (shapes.size() != 1 || shapes[0].size() < 2) return std::nullopt;
  Sizes& shape = shapes[0];
  if (kind != Factors::kSingular && shape.back() != shape[shape.size() - 2]) return std::nullopt;
  return FactoredCall{op, kind, std::move(shape)};
}

// The calls inside of a slice, not those inside of others.
std::vector<FactoredCall> factored_in(const Trace& trace, SliceId slice) {
  std::vector<FactoredCall> found;
  const Track& track = trace.track(slice);
  std::int64_t until_ns = INT64_MIN;
  for (std::uint32_t i = raw(slice); i < track.first_slice + track.slice_count &&
                                     trace.start_ns(SliceId{i}) < trace.end_ns(slice);
       ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) < until_ns || trace.kind(id) != CategoryKind::kCpuOp) continue;
    auto call = factored_call(trace, id);
    if (!call) continue;
    until_ns = trace.end_ns(id);
    found.push_back(*std::move(call));
  }
  return found;
}

struct FactoredAgain {
  std::uint64_t times = 0;
  std::unordered_set<std::uint32_t> calls;
  SliceId first = kNone<SliceId>, again = kNone<SliceId>;
  Sizes shape;
  bool is_in_backward = false;
  std::int64_t cost_ns = 0;

  void add(const FactoredCall& before, const FactoredCall& after, bool in_backward) {
    if (times++ == 0) {
      first = before.call;
      again = after.call;
      shape = after.shape;
      is_in_backward = in_backward;
    }
    calls.insert(raw(after.call));
  }
};

void find_in_backward(const Facts& facts, FactoredAgain& found) {
  const Trace& trace = *facts.trace;
  for (const AutogradPair& pair : autograd_pairs(facts)) {
    // torch's own nodes, whose names end with a number, keep the factors.
    std::vector<FactoredCall> forward;
    for (const SliceId node : pair.nodes) {
      if (!trace.name(node).ends_with("Backward")) continue;
      if (forward.empty()) forward = factored_in(trace, pair.forward);
      for (const FactoredCall& again : factored_in(trace, node)) {
        const auto before =
            std::find_if(forward.begin(), forward.end(), [&](const FactoredCall& each) {
              return each.kind == again.kind && each.shape == again.shape;
            });
        if (before != forward.end()) found.add(*before, again, true);
      }
    }
  }
}

// Neighbours of different names, such as det and inv: nothing takes or makes such matrices between them.
void find_in_forward(const Trace& trace, const CallSequence& calls, FactoredAgain& found) {
  std::optional<FactoredCall> last;
  for (const SliceId op : calls) {
    auto call = factored_call(trace, op);
    if (call) {
      if (last && last->kind == call->kind && last->shape == call->shape &&
          trace.name(last->call) != trace.name(op))
        found.add(*last, *call, false);
      last = std::move(call);
      continue;
    }
    if (!last) continue;
    const auto shapes = input_shapes(trace, op);
    if (std::find(shapes.begin(), shapes.end(), last->shape) != shapes.end()) last.reset();
  }
}

std::optional<FactoredAgain> measure_factored_again(const Facts& facts) {
  FactoredAgain found;
  find_in_backward(facts, found);
  for (const CallSequence& calls : call_sequences(facts))
    find_in_forward(*facts.trace, calls, found);
  if (found.times == 0 || found.times < facts.selection.steady.size()) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastFactoredShare) return std::nullopt;
  return found;
}

Finding tell_factored_again(const Facts& facts, const FactoredAgain& found) {
  const Trace& trace = *facts.trace;
  const Value first = name(trace.name(found.first)), again = name(trace.name(found.again)),
              shape = text(analysis::shape_text(found.shape));
  Finding finding;
  finding.verdict =
      say(facts, "{} factors matrices of {} that {} has factored before: {} [per step] ({}).",
          {again, shape, first, ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  if (found.is_in_backward) finding.verdict.pattern += " It runs in the backward pass.";
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      found.is_in_backward
          ? say("counted: calls in the backward() of a function of the program that factor "
                "matrices of the size that its forward() factored in the same way")
          : say("counted: calls that factor matrices of the same size in the same way, one after "
                "the other; between them no operator takes a tensor of that size"));
  finding.evidence.push_back(called_at(facts, found.again, say("again")));
  finding.evidence.push_back(called_at(facts, found.first, say("the first time")));
  finding.try_next = {
      found.is_in_backward
          ? "in forward() keep the factors with ctx.save_for_backward; torch.linalg.lu_solve(..., "
            "adjoint=True) solves with the transposed matrix, cholesky_solve with its factor"
          : "factor once (torch.linalg.lu_factor, cholesky), and use lu_solve, cholesky_solve and "
            "the product of the diagonal for the rest",
      "if the matrices are others of the same size, this does not apply"};
  for (const char* covered :
       {"allocator-calls", "graph-opportunity", "host-sync", "costly-operator", "slow-launches"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      found.is_in_backward
          ? say("{} in the backward pass factors the matrices that {} has factored", {again, first})
          : say("{} factors the matrices again that {} has just factored", {again, first});
  finding.action =
      found.is_in_backward
          ? say("Keep the factors: ctx.save_for_backward, and lu_solve with adjoint=True")
          : say("Factor once (lu_factor, cholesky), and use lu_solve or cholesky_solve");
  return finding;
}

}  // namespace

extern constinit const Rule factored_again_rule = {
    .id = "factored-again",
    .question = "is a matrix factored again?",
    .meant_by = "factor lu cholesky solve inverse det backward again",
    .order = 468,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_factored_again, tell_factored_again>,
};

}  // namespace lanescope::explain::rules

// A matrix is factored twice: once in the forward pass, and again in the backward() of the program's own function, by the next
// call that needs the same factors, or in each step, though nothing makes or writes it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_makers.h"
#include "lanescope/explain/rules/tensor_sizes.h"

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
  bool is_same_each_step = false;  // the matrix
  bool is_by_work = false;         // sizes are not recorded: the decompositions are equal work
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

// True: a product of matrices of this size, whose result has another size, such as inv(A) @ b.
bool makes_other_size(const Trace& trace, SliceId op, const Sizes& shape) {
  const std::string_view product = trace.name(op);
  if (maker_kind(product) != MakerKind::kProduct) return false;
  const analysis::TensorArguments inputs = operator_inputs(trace, op);
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (a && b && (a->rank() == 1 || b->rank() == 1)) return true;
  const auto made = made_size(product, inputs);
  return made && *made != shape;
}

// Neighbours of different names, such as det and inv: nothing makes such matrices between them.
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
    if (std::find(shapes.begin(), shapes.end(), last->shape) != shapes.end() &&
        !makes_other_size(trace, op, last->shape))
      last.reset();
  }
}

// The GPU work of the LU decompositions in a call of the program.
struct LuWork {
  std::uint64_t pieces = 0;
  std::int64_t time_ns = 0;

  // Of many pieces, whose number grows with the matrix: as many, and a time that differs by 5 % at most.
  bool is_as_large_as(const LuWork& other) const {
    constexpr std::uint64_t kFewestPieces = 32;
    return pieces >= kFewestPieces && pieces == other.pieces &&
           std::abs(time_ns - other.time_ns) * 20 <= time_ns;
  }
};

// The same neighbours where sizes are not recorded: their decompositions are equal work, and what runs between them takes a
// fiftieth of that time, so it is no product of such matrices.
void find_equal_work(const Facts& facts, FactoredAgain& found) {
  const Trace& trace = *facts.trace;
  if (!facts.main_device) return;
  std::unordered_map<std::uint32_t, LuWork> decompositions;
  std::unordered_map<std::uint32_t, std::int64_t> work_ns;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    const SliceId outermost = outermost_operator_of(facts, work->slice);
    if (outermost == kNone<SliceId>) continue;
    work_ns[raw(outermost)] += work->end_ns - work->start_ns;
    if (ancestor_where(facts, facts.links.op_of[raw(work->slice)], [](std::string_view name) {
          return name == "aten::linalg_lu_factor_ex";
        }) == kNone<SliceId>)
      continue;
    LuWork& lu = decompositions[raw(outermost)];
    ++lu.pieces;
    lu.time_ns += work->end_ns - work->start_ns;
  }
  for (const CallSequence& calls : call_sequences(facts)) {
    SliceId last = kNone<SliceId>;
    std::int64_t between_ns = 0;
    for (const SliceId op : calls) {
      const auto lu = decompositions.find(raw(op));
      if (lu == decompositions.end()) {
        if (const auto other = work_ns.find(raw(op)); other != work_ns.end())
          between_ns += other->second;
        continue;
      }
      if (last != kNone<SliceId> && trace.name(last) != trace.name(op) &&
          factors_of_call(trace.name(op)) == Factors::kLu &&
          first_input_shapes(trace, op).empty() &&
          lu->second.is_as_large_as(decompositions[raw(last)]) &&
          between_ns * 50 <= lu->second.time_ns) {
        found.add({last, Factors::kLu, {}}, {op, Factors::kLu, {}}, false);
        found.is_by_work = true;
      }
      last = factors_of_call(trace.name(op)) == Factors::kLu ? op : kNone<SliceId>;
      between_ns = 0;
    }
  }
}

// True: the operator takes the factor, and returns a tensor of the size of its right side.
bool solves_with_factor(std::string_view op) {
  return op == "aten::cholesky_solve" || op == "aten::linalg_lu_solve" || op == "aten::lu_solve" ||
         op == "aten::linalg_solve_triangular" || op == "aten::triangular_solve";
}

// True: the operator takes a tensor of this size, or may make one.
bool takes_or_makes(const TensorMakers& makers, const Trace& trace, SliceId op, const Sizes& shape,
                    double bytes) {
  if (solves_with_factor(trace.name(op))) return false;
  const auto takes = [&](const std::vector<Sizes>& shapes) {
    return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
  };
  if (takes(first_input_shapes(trace, op)) || takes(input_shapes(trace, op))) return true;
  return makers.may_make(op, analysis::element_count(shape), bytes);
}

// Finds calls of the program that factor a matrix, if no other operator of the recording takes, makes or writes that matrix.
void find_unchanged_matrix(const Facts& facts, FactoredAgain& found) {
  constexpr std::int64_t kFewestMatrixRows = 256;  // rows
  const Trace& trace = *facts.trace;
  std::vector<FactoredCall> calls;
  for (const CallSequence& sequence : call_sequences(facts))
    for (const SliceId op : sequence)
      if (auto call = factored_call(trace, op); call && call->shape.back() >= kFewestMatrixRows)
        calls.push_back(*std::move(call));
  if (calls.empty() || calls.size() < facts.selection.steady.size()) return;
  const FactoredCall& first = calls.front();
  const auto matrix = operator_inputs(trace, first.call).tensor(0);
  if (!matrix || std::any_of(calls.begin(), calls.end(), [&](const FactoredCall& each) {
        return each.kind != first.kind || each.shape != first.shape;
      }))
    return;
  const TensorMakers makers(facts);
  const double bytes = matrix->dense_bytes();
  if (makers.may_be_made_outside(bytes)) return;
  for (const SliceId op : makers.operators()) {
    const auto call = factored_call(trace, op);
    if ((!call || call->shape != first.shape) &&
        takes_or_makes(makers, trace, op, first.shape, bytes))
      return;
  }
  for (const FactoredCall& call : calls) found.add(first, call, false);
  found.is_same_each_step = true;
}

std::optional<FactoredAgain> measure_factored_again(const Facts& facts) {
  if (!any_named(facts, [](std::string_view op) { return factors_of_call(op) != Factors::kNone; }))
    return std::nullopt;
  FactoredAgain found;
  find_in_backward(facts, found);
  for (const CallSequence& calls : call_sequences(facts))
    find_in_forward(*facts.trace, calls, found);
  if (found.times == 0) find_equal_work(facts, found);
  if (found.times == 0) find_unchanged_matrix(facts, found);
  if (found.times == 0 || found.times < facts.selection.steady.size()) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastFactoredShare) return std::nullopt;
  return found;
}

// What solves with a factor that is kept, in the words of the call that makes it anew.
Sentence kept_factor(std::string_view op) {
  const Factors kind = factors_of_call(op);
  return kind == Factors::kLu
             ? say("Factor it once (lu_factor, or cholesky for a covariance), then lu_solve or "
                   "cholesky_solve in each step")
         : kind == Factors::kCholesky
             ? say("Factor it once, before the loop, and use cholesky_solve in each step")
             : say("Do it once, before the loop, and keep the result");
}

Finding tell_unchanged_matrix(const Facts& facts, const FactoredAgain& found) {
  const Value op = name(facts.trace->name(found.first)),
              shape = text(analysis::shape_text(found.shape));
  Finding finding;
  finding.verdict = say(
      facts,
      "{} factors a matrix of {} in each step that nothing makes or writes in the recording: {} "
      "[per step] ({}). If it stays the same, factor it once.",
      {op, shape, ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(say(
      "counted: calls of the program that factor a matrix of this size; no other operator of the "
      "recorded steps takes such a tensor, or works long enough to have written one. Solving with "
      "the kept factor takes a part of this time"));
  finding.evidence.push_back(called_at(facts, found.first, say("the call")));
  finding.try_next = {
      "factor once: LU, pivots = torch.linalg.lu_factor(A), then torch.linalg.lu_solve(LU, pivots, "
      "b) in each step; for a covariance L = torch.linalg.cholesky(A), then "
      "torch.cholesky_solve(b, L)",
      "if another matrix of the same size comes from outside in each step, this does not apply"};
  for (const char* covered : {"costly-operator", "host-sync", "slow-launches", "hotspot-kernel",
                              "no-roof", "fp32-matmul", "few-blocks"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say("{} factors a {} matrix in each step, which no operator changes", {op, shape});
  finding.action = kept_factor(op.text);
  return finding;
}

Finding tell_factored_again(const Facts& facts, const FactoredAgain& found) {
  if (found.is_same_each_step) return tell_unchanged_matrix(facts, found);
  const Trace& trace = *facts.trace;
  const Value first = name(trace.name(found.first)), again = name(trace.name(found.again)),
              shape = text(analysis::shape_text(found.shape));
  Finding finding;
  const Value cost = ns(facts.per_step(found.cost_ns)),
              share = ratio(found.cost_ns, facts.steady_wall_ns());
  finding.verdict =
      found.is_by_work
          ? say(facts,
                "{} factors a matrix of the same size as {} just before, with equal work: {} [per "
                "step] ({}).",
                {again, first, cost, share})
          : say(facts, "{} factors matrices of {} that {} has factored before: {} [per step] ({}).",
                {again, shape, first, cost, share});
  if (found.is_in_backward) finding.verdict.pattern += " It runs in the backward pass.";
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      found.is_in_backward
          ? say("counted: calls in the backward() of a function of the program that factor "
                "matrices of the size that its forward() factored in the same way")
      : found.is_by_work
          ? say("sizes are not recorded; counted: calls whose LU decompositions have as many "
                "pieces "
                "of GPU work and take as long, to 5 %, one after the other; what runs between them "
                "takes at most a fiftieth of that time")
          : say("counted: calls that factor matrices of the same size in the same way, one after "
                "the other; between them no operator takes a tensor of that size, but for products "
                "of another "
                "size"));
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
  if (found.is_by_work) {
    finding.brief = say("{} factors a matrix of the same size as {} just before", {again, first});
    finding.action = say(
        "If it is the same: factor once (lu_factor; cholesky for a covariance), then lu_solve or "
        "cholesky_solve");
    return finding;
  }
  finding.brief =
      found.is_in_backward
          ? say("{} in the backward pass factors the matrices that {} has factored", {again, first})
          : say("{} factors the matrices again that {} has just factored", {again, first});
  finding.action =
      found.is_in_backward
          ? say("Keep the factors: ctx.save_for_backward, and lu_solve with adjoint=True")
          : say("Factor once (lu_factor, or cholesky for a covariance), then lu_solve or "
                "cholesky_solve");
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

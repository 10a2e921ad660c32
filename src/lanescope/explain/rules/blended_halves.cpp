// Guidance: each pass computes a batch of two halves, which are then mixed as a + s * (b - a). Where s is 1, only b counts.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastHalvesShare = 0.1;
constexpr std::size_t kMixingCalls = 8;  // after the halves are split

std::optional<Sizes> size_of_first(const Trace& trace, SliceId op) {
  auto shapes = first_input_shapes(trace, op);
  if (shapes.size() != 1 || shapes[0].empty()) return std::nullopt;
  return std::move(shapes[0]);
}

bool is_weighted(std::string_view op) {
  return is_product(op) || op == "aten::conv2d" || op == "aten::conv1d" || op == "aten::conv3d";
}

// torch.cat([x, y]) of two tensors of one size, along the first dimension: the rows of each.
std::optional<std::int64_t> rows_joined(const Trace& trace, SliceId op) {
  if (trace.name(op) != "aten::cat") return std::nullopt;
  const auto parts = first_input_shapes(trace, op);
  const auto dim = operator_inputs(trace, op).value(1);
  if (parts.size() != 2 || parts[0] != parts[1] || parts[0].size() < 2 || !dim || !dim->integer ||
      *dim->integer != 0)
    return std::nullopt;
  return parts[0][0];
}

// After `at`, are two tensors of this size subtracted, the difference multiplied by a number, and added to one of the size?
bool mixes_as_guidance(const Trace& trace, const CallSequence& calls, std::size_t at,
                       const Sizes& half) {
  static constexpr std::array<std::string_view, 3> kOrder = {"aten::sub", "aten::mul", "aten::add"};
  std::size_t met = 0;
  for (std::size_t i = at + 1; i < calls.size() && i <= at + kMixingCalls; ++i) {
    const std::string_view label = trace.name(calls[i]);
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    const auto a = inputs.tensor(0), b = inputs.tensor(1);
    if (label != kOrder[met] || !a || a->dims != half) continue;
    const bool takes_two = b && b->dims == half;
    if ((met == 1) == takes_two) continue;
    if (++met == kOrder.size()) return true;
  }
  return false;
}

struct BlendedPass {
  std::int64_t rows = 0;  // of both halves
  std::vector<SliceId> calls;
  SliceId product = kNone<SliceId>;
  std::size_t end = 0;  // where they are split
};

// The pass that begins with a cat at `at`.
std::optional<BlendedPass> blended_pass_at(const Trace& trace, const CallSequence& calls,
                                           std::size_t at) {
  const auto rows = rows_joined(trace, calls[at]);
  if (!rows) return std::nullopt;
  BlendedPass pass;
  pass.rows = 2 * *rows;
  for (std::size_t i = at; i < calls.size(); ++i) {
    const std::string_view label = trace.name(calls[i]);
    if (label.starts_with(kEvaluateNode)) return std::nullopt;
    if (rows_joined(trace, calls[i]) == rows) {
      pass.calls.push_back(calls[i]);
      continue;
    }
    const auto size = size_of_first(trace, calls[i]);
    if (!size || size->front() != pass.rows) continue;
    if ((label == "aten::chunk" || label == "aten::split" || label == "aten::tensor_split") &&
        pass.product != kNone<SliceId>) {
      Sizes half = *size;
      half.front() = *rows;
      if (!mixes_as_guidance(trace, calls, i, half)) return std::nullopt;
      pass.end = i;
      return pass;
    }
    if (is_view(label)) continue;
    if (is_weighted(label) && pass.product == kNone<SliceId>) pass.product = calls[i];
    pass.calls.push_back(calls[i]);
  }
  return std::nullopt;
}

// A product or a convolution, by its weight.
std::string weight_key(const Trace& trace, SliceId op) {
  const auto weight = operator_inputs(trace, op).tensor(1);
  return std::string(trace.name(op)) + (weight ? analysis::shape_text(weight->dims) : "");
}

struct BlendedHalves {
  std::uint64_t passes = 0;
  std::unordered_set<std::uint32_t> calls;
  BlendedPass first;
  std::int64_t whole_ns = 0;
};

std::optional<BlendedHalves> measure_blended_halves(const Facts& facts) {
  const Trace& trace = *facts.trace;
  BlendedHalves found;
  std::set<std::string> on_one_half;  // products on as many rows as a half has
  std::set<std::string> on_both;
  for (const CallSequence& calls : call_sequences(facts)) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      // A pass with backward is no sampling, so the halves are no guidance.
      if (trace.name(calls[i]).starts_with(kEvaluateNode)) return std::nullopt;
      auto pass = blended_pass_at(trace, calls, i);
      if (!pass) continue;
      i = pass->end;
      for (const SliceId call : pass->calls) {
        found.calls.insert(raw(call));
        if (is_weighted(trace.name(call))) on_both.insert(weight_key(trace, call));
      }
      if (found.passes++ == 0) found.first = *std::move(pass);
    }
  }
  if (found.passes == 0 || found.passes < facts.selection.steady.size()) return std::nullopt;
  for (const CallSequence& calls : call_sequences(facts))
    for (const SliceId call : calls)
      if (is_weighted(trace.name(call)))
        if (const auto size = size_of_first(trace, call);
            size && size->front() * 2 == found.first.rows)
          on_one_half.insert(weight_key(trace, call));
  // The program leaves out one half already where it can.
  for (const std::string& key : on_both)
    if (on_one_half.contains(key)) return std::nullopt;
  found.whole_ns = std::min(cost_of_calls(facts, found.calls), facts.steady_wall_ns());
  if (share_of(found.whole_ns / 2, facts.steady_wall_ns()) < kLeastHalvesShare) return std::nullopt;
  return found;
}

Finding tell_blended_halves(const Facts& facts, const BlendedHalves& found) {
  const Value passes = count(found.passes / step_count(facts)),
              rows = count(static_cast<std::uint64_t>(found.first.rows));
  Finding finding;
  finding.verdict = say(
      facts,
      "{} [pass|passes] [per step] compute {} rows in two halves, which are mixed as a + s * (b - "
      "a): {} [per step] ({}). Where s is 1, only b counts, and where it is 0, only a.",
      {passes, rows, ns(facts.per_step(found.whole_ns)),
       ratio(found.whole_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.whole_ns / 2, found.passes, finding);
  finding.sample_noun = "pass";
  finding.gain_is_bound = true;  // the trace does not have s
  finding.arithmetic.push_back(
      say("counted: from torch.cat of two tensors of one size to the split of the result into "
          "halves, the calls on that many rows; at stake is half of their time. No pass of the "
          "step runs on one half. The values of s are not recorded"));
  finding.evidence.push_back(called_at(facts, found.first.product, say("the first product")));
  finding.evidence.push_back(
      called_at(facts, found.first.calls.front(), say("where the halves are joined")));
  finding.try_next = {
      "print s (guidance_scale) of each pass: where it is 1, run the half with the prompt only",
      "guidance in only a part of the steps is often enough (it changes results: compare them); if "
      "s is never 1 and all passes need it, no change is needed"};
  finding.brief =
      say("Each pass computes {} rows as two halves a and b, mixed as a + s * (b - a)", {rows});
  finding.action = say("Check s (the guidance scale): where it is 1, compute only the half b");
  return finding;
}

}  // namespace

extern constinit const Rule blended_halves_rule = {
    .id = "blended-halves",
    .question = "do passes compute two halves of which only one may count?",
    .meant_by = "guidance scale diffusion classifier-free doubled batch unconditional",
    .order = 452,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_blended_halves, tell_blended_halves>,
};

}  // namespace lanescope::explain::rules

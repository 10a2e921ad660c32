// Tensors are joined into one and copied back from it, and nothing is sent in between: the code that averages gradients over
// ranks runs with a single rank.
//
// Problem: cat, a division and copies are right where a collective takes the joined tensor. Idea: follow the calls after a cat. If
// only in-place scaling and views take as many elements as it made, copies put all of them back, and the trace has no collective,
// the way there and back does nothing but scale. Example: cat of 12 x [16777216], div_ of [201326592], 12 x slice and copy_ to
// [4096, 4096].
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/json_value.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::TensorArguments;

namespace {

constexpr double kLeastBucketShare = 0.03;
constexpr double kLeastBucketElements = 1 << 16;
constexpr std::size_t kFewestJoined = 2;

bool joins(std::string_view op) { return op == "aten::cat" || op == "aten::flatten_dense_tensors"; }

bool scales_in_place(std::string_view op) { return op == "aten::div_" || op == "aten::mul_"; }

bool gives_pieces(std::string_view op) {
  return is_view(op) || op == "aten::unflatten_dense_tensors";
}

// Elements of the tensors in a call's first list.
std::vector<double> listed_elements(const Trace& trace, SliceId op) {
  const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
  const auto shapes = dims ? parse_json(trace.text(*dims)) : std::nullopt;
  std::vector<double> found;
  if (!shapes || shapes->items.empty()) return found;
  for (const JsonValue& each : shapes->items.front().items) {
    const auto sizes = analysis::sizes_of(each);
    if (!sizes) return {};
    found.push_back(analysis::element_count(*sizes));
  }
  return found;
}

double elements_of_all(const std::vector<double>& elements) {
  double sum = 0;
  for (const double each : elements) sum += each;
  return sum;
}

struct Bucket {
  std::vector<SliceId> calls;
  std::uint64_t tensors = 0;
  SliceId scale = kNone<SliceId>;
};

// Elements that this call puts back; nothing: it does something else.
std::optional<double> put_back(const Trace& trace, SliceId call) {
  const std::string_view op = trace.name(call);
  if (op == "aten::_foreach_copy_") return elements_of_all(listed_elements(trace, call));
  if (op != "aten::copy_") return std::nullopt;
  const TensorArguments inputs = operator_inputs(trace, call);
  const auto to = inputs.tensor(0), from = inputs.tensor(1);
  if (!to || !from || to->dims != from->dims) return std::nullopt;
  return to->elements();
}

std::optional<Bucket> bucket_at(const Trace& trace, const CallSequence& calls, std::size_t at) {
  if (!joins(trace.name(calls[at]))) return std::nullopt;
  const std::vector<double> joined = listed_elements(trace, calls[at]);
  const double elements = elements_of_all(joined);
  if (joined.size() < kFewestJoined || elements < kLeastBucketElements) return std::nullopt;
  Bucket found{{calls[at]}, joined.size(), kNone<SliceId>};
  double back = 0;
  std::size_t next = at + 1;
  for (; next < calls.size() && back < elements; ++next) {
    const std::string_view op = trace.name(calls[next]);
    if (gives_pieces(op)) continue;
    const auto first = operator_inputs(trace, calls[next]).tensor(0);
    if (const auto copied = put_back(trace, calls[next]))
      back += *copied;
    else if (scales_in_place(op) && first && first->elements() == elements)
      found.scale = calls[next];
    else
      return std::nullopt;
    found.calls.push_back(calls[next]);
  }
  if (back != elements) return std::nullopt;
  for (; next < calls.size(); ++next)
    if (const auto first = operator_inputs(trace, calls[next]).tensor(0);
        first && first->elements() == elements)
      return std::nullopt;
  return found;
}

struct UnsentBuckets {
  Bucket first;
  std::uint64_t times = 0;
  std::vector<SliceId> spared;
  std::int64_t cost_ns = 0;
};

std::optional<UnsentBuckets> measure_unsent_bucket(const Facts& facts) {
  const Trace& trace = *facts.trace;
  if (has_collectives(facts)) return std::nullopt;
  UnsentBuckets found;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto bucket = bucket_at(trace, calls, i);
      if (!bucket) continue;
      found.spared.insert(found.spared.end(), bucket->calls.begin(), bucket->calls.end());
      if (found.times++ == 0) found.first = *std::move(bucket);
    }
  if (found.times == 0 || found.times < facts.selection.steady.size()) return std::nullopt;
  found.cost_ns = cost_of_spared(facts, found.spared);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastBucketShare) return std::nullopt;
  return found;
}

Finding tell_unsent_bucket(const Facts& facts, const UnsentBuckets& found) {
  const Trace& trace = *facts.trace;
  const Value tensors = count(found.first.tensors), join = name(trace.name(found.first.calls[0]));
  const bool scales = found.first.scale != kNone<SliceId>;
  Finding finding;
  finding.verdict =
      say(facts,
          scales ? "{} joins {} tensors, {} scales the result, and copies put all of it back: {} "
                   "[per step] ({}). No collective takes it."
                 : "{} joins {} tensors,{} and copies put all of it back: {} [per step] ({}). No "
                   "collective takes it.",
          {join, tensors, scales ? name(trace.name(found.first.scale)) : text(""),
           ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.times, finding);
  finding.sample_noun = "joined tensor";
  finding.spared_calls = found.spared;
  finding.arithmetic.push_back(
      say("counted: cat or flatten_dense_tensors, scaling in place, and copies of as many elements "
          "as were joined; nothing else takes the joined tensor, and the trace has no collective"));
  finding.evidence.push_back(called_at(facts, found.first.calls.front(), say("the join")));
  finding.evidence.push_back(called_at(facts, found.first.calls.back(), say("the last copy back")));
  finding.try_next = {
      "gradients of a single rank need no averaging: return early where the world size is 1",
      "where the scale is wanted: scale the tensors in place, torch._foreach_div_(tensors, n)"};
  for (const char* covered : {"exposed-copy", "copy-before-gemm", "hotspot-kernel", "memory-roof",
                              "small-copies", "unfused-chain"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say(scales ? "{} tensors are joined, scaled and copied back, and nothing is sent in between"
                 : "{} tensors are joined and copied back, and nothing is sent in between",
          {tensors});
  finding.action =
      say(scales ? "With a single rank leave it out; a scale alone: torch._foreach_div_ in place"
                 : "With a single rank leave it out");
  return finding;
}

}  // namespace

extern constinit const Rule unsent_bucket_rule = {
    .id = "unsent-bucket",
    .question = "are tensors joined for a collective that nobody calls?",
    .meant_by = "flatten bucket average gradients world size one rank all-reduce cat",
    .order = 459,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_unsent_bucket, tell_unsent_bucket>,
};

}  // namespace lanescope::explain::rules

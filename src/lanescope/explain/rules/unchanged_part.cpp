// A part of each step takes nothing that is new in the step: a text encoder that gets the same prompts for each batch of images.
//
// Problem: a trace does not show which tensor an operator took. Idea: start where rows of a table are looked up by whole numbers of
// a size that no operator of the steps may make, so they are there before the step. Then follow what depends on them and on weights
// alone. A tensor counts as new if an operator of the steps may have made one of its size. The part ends at the first call that takes
// such a tensor, and at random numbers. Example: embedding [1000, 32], 12 layers, then a product with the images' features.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/needs.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/operator_results.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/result_elements.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::TensorArguments;

namespace {

constexpr double kLeastUnchangedShare = 0.1;
constexpr std::size_t kLeastUnchangedCalls = 8;
constexpr std::int64_t kLeastNewBytes = 64 << 10;

bool draws_random_numbers(const Trace& trace, SliceId op) {
  constexpr std::string_view kRandom[] = {"dropout", "rand",        "bernoulli", "multinomial",
                                          "normal",  "exponential", "rrelu"};
  const std::string_view name = trace.name(op);
  if (std::none_of(std::begin(kRandom), std::end(kRandom), [&](std::string_view word) {
        return name.find(word) != std::string_view::npos;
      }))
    return false;
  // Dropout of a model in eval mode.
  return name != "aten::dropout" || operator_inputs(trace, op).flag(2).value_or(true);
}

// What the operators of the steady steps make.
class MadeInSteps {
 public:
  explicit MadeInSteps(const Facts& facts) {
    const Trace& trace = *facts.trace;
    for (const CallSequence& calls : call_sequences(facts))
      for (const SliceId op : calls) {
        const std::string_view name = trace.name(op);
        const auto elements = result_elements(trace, op);
        // A view of floating-point numbers makes no new ones. A view of whole numbers may show other rows in each step.
        const bool is_whole = may_make_whole_numbers(trace, op);
        if (is_view(name) && (!is_whole || shows_all(trace, op, elements))) continue;
        (elements ? sizes_ : unknown_)[elements.value_or(0)] |= is_whole ? kWhole : kOther;
      }
  }

  bool may_make_whole(double elements) const {
    const auto found = sizes_.find(elements);
    return (found != sizes_.end() && (found->second & kWhole) != 0) ||
           std::any_of(unknown_.begin(), unknown_.end(),
                       [](const auto& each) { return (each.second & kWhole) != 0; });
  }
  bool may_make(double elements) const { return !unknown_.empty() || sizes_.contains(elements); }

 private:
  static bool shows_all(const Trace& trace, SliceId view, std::optional<double> elements) {
    const auto from = operator_inputs(trace, view).tensor(0);
    return from && elements == from->elements();
  }

  static constexpr int kWhole = 1, kOther = 2;
  std::map<double, int> sizes_, unknown_;  // elements, and what they may be
};

struct Part {
  std::vector<SliceId> calls;
  bool has_product = false;
  std::size_t end = 0;  // the place of the call that ended it
};

enum class Depends : std::uint8_t { kOnPart, kOnNothing, kOnNew };

class PartFollower {
 public:
  PartFollower(const Trace& trace, const MadeInSteps& made) : trace_(trace), made_(made) {}

  // From the lookup at `first` on.
  Part follow(const CallSequence& calls, std::size_t first) {
    Part part;
    const auto rows = operator_inputs(trace_, calls[first]).tensor(1);
    own_ = {rows->elements()};
    part.end = calls.size();
    for (std::size_t i = first; i < calls.size(); ++i) {
      const std::string_view name = trace_.name(calls[i]);
      const Depends depends = dependence_of(calls[i]);
      const bool is_only_view = is_view(name) || name == "aten::chunk" || name == "aten::split" ||
                                name == "aten::unbind" || name == "aten::detach";
      if (depends == Depends::kOnNew && is_only_view) continue;  // its reader decides
      if (depends == Depends::kOnNew || draws_random_numbers(trace_, calls[i]) ||
          writes_other(calls[i])) {
        part.end = i;
        break;
      }
      if (const auto elements = result_elements(trace_, calls[i])) own_.insert(*elements);
      if (is_only_view || depends == Depends::kOnNothing) continue;
      part.calls.push_back(calls[i]);
      part.has_product = part.has_product || maker_kind(name) == MakerKind::kProduct;
    }
    return part;
  }

 private:
  // In place, into a tensor that does not depend on the lookup.
  bool writes_other(SliceId op) const {
    if (!trace_.name(op).ends_with('_')) return false;
    const auto first = operator_inputs(trace_, op).tensor(0);
    return !first || !own_.contains(first->elements());
  }

  std::vector<double> taken_elements(SliceId op) const {
    std::vector<double> elements;
    if (const auto inputs = taken_tensors(trace_, op); inputs && inputs->is_list) {
      for (const analysis::Sizes& each : inputs->tensors)
        elements.push_back(analysis::element_count(each));
      return elements;
    }
    const TensorArguments inputs = operator_inputs(trace_, op);
    const DataArguments data = data_arguments(trace_.name(op));
    for (std::size_t k = data.first; k <= data.last; ++k)
      if (const auto tensor = inputs.tensor(k); tensor && tensor->rank() > 0)
        elements.push_back(tensor->elements());
    return elements;
  }

  Depends dependence_of(SliceId op) const {
    bool takes_own = false, takes_other = false;
    for (const double elements : taken_elements(op)) {
      if (own_.contains(elements))
        takes_own = true;
      else if (made_.may_make(elements))
        return Depends::kOnNew;
      else
        takes_other = true;
    }
    if (takes_own) return Depends::kOnPart;
    return takes_other || !result_elements(trace_, op) ? Depends::kOnNew : Depends::kOnNothing;
  }

  const Trace& trace_;
  const MadeInSteps& made_;
  std::set<double> own_;  // sizes of the tensors that depend on the lookup, in elements
};

struct UnchangedPart {
  Part first;
  std::vector<SliceId> calls;
  std::int64_t cost_ns = 0, copied_bytes = 0;
};

// What comes from the CPU in the steps: these must have a new input.
std::int64_t copied_to_gpu(const Facts& facts) {
  std::int64_t bytes = 0;
  for (const analysis::DeviceWork* work : steady_work(facts))
    if (facts.trace->name(work->slice).starts_with("Memcpy HtoD"))
      bytes += bytes_of(facts, work->slice);
  return bytes;
}

std::optional<UnchangedPart> measure_unchanged_part(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::uint64_t steps = facts.selection.steady.size();
  UnchangedPart found;
  found.copied_bytes = copied_to_gpu(facts);
  if (steps < 2 || found.copied_bytes < kLeastNewBytes * static_cast<std::int64_t>(steps) ||
      trains(facts))
    return std::nullopt;
  std::optional<MadeInSteps> made;
  std::size_t parts = 0;
  for (const CallSequence& calls : call_sequences(facts)) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (trace.name(calls[i]) != "aten::embedding") continue;
      const auto rows = operator_inputs(trace, calls[i]).tensor(1);
      if (!rows || rows->rank() == 0 || rows->type->is_floating) continue;
      if (!made) made.emplace(facts);
      if (made->may_make_whole(rows->elements())) continue;
      Part part = PartFollower(trace, *made).follow(calls, i);
      if (!part.has_product || part.calls.size() < kLeastUnchangedCalls) {
        i = std::max(i + 1, part.end) - 1;  // a lookup inside would follow some of the same calls
        continue;
      }
      if (parts > 0 && part.calls.size() != found.first.calls.size()) continue;
      ++parts;
      found.calls.insert(found.calls.end(), part.calls.begin(), part.calls.end());
      if (parts == 1) found.first = std::move(part);
      break;
    }
  }
  if (parts != steps) return std::nullopt;
  found.cost_ns = cost_of_spared(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastUnchangedShare) return std::nullopt;
  return found;
}

Finding tell_unchanged_part(const Facts& facts, const UnchangedPart& found) {
  const Trace& trace = *facts.trace;
  const SliceId begin = found.first.calls.front();
  const Value op = name(trace.name(begin)), calls = count(found.first.calls.size() - 1);
  Finding finding;
  finding.verdict = say(
      facts,
      "By their sizes, {} and the {} calls after it take nothing that a step makes or copies to "
      "the GPU: {} [per step] ({}). If their input stays the same, so does their result.",
      {op, calls, ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.spared_calls = found.calls;
  const auto indices = operator_inputs(trace, begin).tensor(1);
  finding.arithmetic.push_back(
      say("the lookup's indices have the size {}; by the recorded sizes, no operator of the steps "
          "makes as many whole numbers",
          {text(analysis::shape_text(indices->dims))}));
  finding.arithmetic.push_back(
      say(facts,
          "counted: the calls that depend on it and on weights alone, up to the first that takes "
          "something else or random numbers. New in a step: {} copied to the GPU [per step]",
          {bytes(facts.per_step(found.copied_bytes))}));
  finding.evidence.push_back(called_at(facts, begin, say("the first of these calls")));
  finding.evidence.push_back(
      called_at(facts, found.first.calls.back(), say("the last of these calls")));
  finding.try_next = {
      "compute the result once, before the loop, and pass it to each step",
      "if each step takes other rows, such as tensors of a list that is on the GPU already, this "
      "does not apply: a trace does not show which tensor a call takes"};
  finding.brief =
      say("{} and the {} calls after it depend on nothing that is new in a step", {op, calls});
  finding.action =
      say("If their input is the same in each step: compute the result once, before "
          "the loop");
  return finding;
}

}  // namespace

extern constinit const Rule unchanged_part_rule = {
    .id = "unchanged-part",
    .question = "does each step compute a result from inputs that stay the same?",
    .meant_by = "same text prompt encoder again once cache constant input",
    .order = 478,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_unchanged_part, tell_unchanged_part>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules

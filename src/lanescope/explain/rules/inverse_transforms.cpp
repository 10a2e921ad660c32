// A Fourier transform of a result of its inverse, with nothing between them: the two cancel, and the program could have
// stayed where it was.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;

namespace {

constexpr double kLeastInverseShare = 0.05;

struct TransformPair {
  std::string_view forward, inverse;
  bool is_of_reals;  // the spectrum of n numbers has n / 2 + 1
};
// Not stft: istft of any spectrum gives a sound whose spectrum may be another one.
constexpr auto kTransformPairs = std::to_array<TransformPair>({
    {"aten::fft_fft", "aten::fft_ifft", false},
    {"aten::fft_fft2", "aten::fft_ifft2", false},
    {"aten::fft_fftn", "aten::fft_ifftn", false},
    {"aten::fft_rfft", "aten::fft_irfft", true},
    {"aten::fft_rfft2", "aten::fft_irfft2", true},
    {"aten::fft_rfftn", "aten::fft_irfftn", true},
});

// What `first` makes from a tensor of size `given` may be what the next transform takes.
bool may_make(const Sizes& given, const Sizes& taken, bool is_of_reals, bool is_inverse) {
  if (given.size() != taken.size()) return false;
  if (!is_of_reals) return given == taken;
  const Sizes &numbers = is_inverse ? taken : given, &spectrum = is_inverse ? given : taken;
  std::size_t changed = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == spectrum[i]) continue;
    if (spectrum[i] != numbers[i] / 2 + 1) return false;
    ++changed;
  }
  return changed == 1;
}

bool works_on_equal_dimensions(const Trace& trace, SliceId first, SliceId second) {
  constexpr std::size_t kDimensions = 2;  // after the tensor and the size
  const auto a = operator_inputs(trace, first), b = operator_inputs(trace, second);
  return a.numbers(kDimensions) == b.numbers(kDimensions) &&
         a.number(kDimensions) == b.number(kDimensions);
}

bool cancels(const Trace& trace, SliceId first, SliceId second) {
  const std::string_view a = trace.name(first), b = trace.name(second);
  const auto* const pair =
      std::find_if(kTransformPairs.begin(), kTransformPairs.end(), [&](const TransformPair& each) {
        return (each.forward == a && each.inverse == b) || (each.inverse == a && each.forward == b);
      });
  if (pair == kTransformPairs.end()) return false;
  const auto given = first_input_shapes(trace, first), taken = first_input_shapes(trace, second);
  return given.size() == 1 && taken.size() == 1 &&
         may_make(given[0], taken[0], pair->is_of_reals, pair->inverse == a) &&
         works_on_equal_dimensions(trace, first, second);
}

// A view of the whole tensor.
bool keeps_elements(std::string_view op) {
  return is_view(op) && op != "aten::select" && op != "aten::slice" && op != "aten::expand";
}

struct InverseTransforms {
  std::uint64_t pairs = 0;
  std::unordered_set<std::uint32_t> calls;
  SliceId first = kNone<SliceId>, second = kNone<SliceId>;  // of the longest pair
  std::int64_t cost_ns = 0;
};

void find_inverses(const Trace& trace, const CallSequence& calls, InverseTransforms& found) {
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) {
    std::size_t next = i + 1;
    while (next + 1 < calls.size() && keeps_elements(trace.name(calls[next]))) ++next;
    if (!cancels(trace, calls[i], calls[next])) continue;
    ++found.pairs;
    found.calls.insert({raw(calls[i]), raw(calls[next])});
    if (found.first == kNone<SliceId> || trace.dur_ns(calls[i]) > trace.dur_ns(found.first)) {
      found.first = calls[i];
      found.second = calls[next];
    }
    i = next;
  }
}

std::optional<InverseTransforms> measure_inverse_transforms(const Facts& facts) {
  if (!any_named(facts, [](std::string_view op) { return op.starts_with("aten::fft_"); }))
    return std::nullopt;
  InverseTransforms found;
  for (const CallSequence& calls : call_sequences(facts)) find_inverses(*facts.trace, calls, found);
  if (found.pairs == 0 || found.pairs < facts.selection.steady.size()) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, with_backward_nodes(facts, found.calls));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastInverseShare) return std::nullopt;
  return found;
}

Finding tell_inverse_transforms(const Facts& facts, const InverseTransforms& found) {
  const Value first = name(facts.trace->name(found.first)),
              second = name(facts.trace->name(found.second));
  const Value pairs = count(a_step(facts, found.pairs));
  Finding finding;
  finding.verdict = say(
      facts,
      "{} undoes {} [time|times] [per step] what {} has just done: nothing runs between them. Both "
      "take {} [per step] ({}).",
      {second, pairs, first, ns(facts.per_step(found.cost_ns)),
       ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      say("counted: a Fourier transform and its inverse over the same dimensions, one right after "
          "the other on their thread, the second of the size that the first makes; with their "
          "nodes of the backward pass"));
  finding.evidence.push_back(called_at(facts, found.first, say("the first of such a pair")));
  finding.evidence.push_back({found.second, say("what undoes it")});
  finding.try_next = {
      "go to the spectrum once, do there what belongs there, and come back once after the last",
      "a spectrum that is not that of real numbers comes back from irfft changed: compare the "
      "results"};
  finding.brief =
      say(facts, "{} right after {} undoes it, {} [time|times] [per step]", {second, first, pairs});
  finding.action = say("Leave both out: stay in the spectrum, and go back once after the last");
  for (const char* covered : {"costly-operator", "memory-roof", "exposed-copy"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  return finding;
}

}  // namespace

extern constinit const Rule inverse_transforms_rule = {
    .id = "inverse-transforms",
    .question = "does the program transform a result back and forth?",
    .meant_by = "fft ifft spectrum inverse transform fourier",
    .order = 465,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_inverse_transforms, tell_inverse_transforms>,
};

}  // namespace lanescope::explain::rules

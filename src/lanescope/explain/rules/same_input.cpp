// The same calls run several times on one tensor in a step: each loss makes the spectrum of the same sound. The backward pass adds
// the gradients of such calls up, which is how a trace shows that their tensor is one.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
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

constexpr double kLeastSameInputShare = 0.05;

// Name, shapes, types and other arguments of a call, by the ids of their texts.
using SameCallKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

SameCallKey call_key_of(const Trace& trace, SliceId op) {
  const ArgsView args = trace.slice_args(op);
  const auto id = [&](ArgKey key) {
    const auto text = args.text(key);
    return text ? raw(*text) : ~std::uint32_t{0};
  };
  return {raw(trace.slices().name[raw(op)]), id(ArgKey::kInputDims), id(ArgKey::kInputType),
          id(ArgKey::kConcreteInputs)};
}

// Equal calls on equal tensors give equal results: it takes one tensor and no random numbers. A window is all that a
// spectrum takes besides.
bool depends_on_one_tensor(const Trace& trace, SliceId op) {
  const std::string_view label = trace.name(op);
  constexpr std::string_view kRandom[] = {"dropout", "rand",        "bernoulli", "multinomial",
                                          "normal",  "exponential", "rrelu"};
  if (std::any_of(std::begin(kRandom), std::end(kRandom), [&](std::string_view word) {
        return label.find(word) != std::string_view::npos;
      }))
    return false;
  return label.starts_with("aten::") &&
         (label == "aten::stft" || label == "aten::istft" || input_shapes(trace, op).size() == 1);
}

// The gradient that autograd adds to one that came before it, at the end of a node. Empty: it adds none, or several.
Sizes added_in(const Facts& facts, SliceId node) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(node);
  Sizes added;
  for (std::uint32_t i = raw(node) + 1;
       i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < trace.end_ns(node);
       ++i) {
    const SliceId id{i};
    if (facts.nesting.parent[i] != node ||
        (trace.name(id) != "aten::add" && trace.name(id) != "aten::add_"))
      continue;
    const auto shapes = input_shapes(trace, id);
    if (!added.empty() || shapes.size() != 2 || shapes[0] != shapes[1]) return {};
    added = shapes[0];
  }
  return added;
}

// Chains of equal calls, as indices into a sequence: `begins` of each, and their length.
struct EqualChains {
  std::vector<std::size_t> begins;
  std::size_t length = 1;
};

struct SameInput {
  std::uint64_t times = 0;       // chains on one tensor
  std::uint64_t more_times = 0;  // equal chains on tensors without a gradient
  std::uint64_t tensors = 0;     // that have such chains
  std::uint64_t length = 0;      // calls of a chain
  std::unordered_set<std::uint32_t> calls, more_calls;
  std::int64_t whole_ns = 0, cost_ns = 0;
  std::int64_t most_ns = -1;
  SliceId most = kNone<SliceId>;  // the call of a chain with most GPU work, its nodes' included
};

class SameInputFinder {
 public:
  explicit SameInputFinder(const Facts& facts)
      : facts_(facts), trace_(*facts.trace), pairs_(autograd_pairs(facts)) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) pair_of_.emplace(raw(pairs_[i].forward), i);
    for (const BackwardPass& pass : backward_passes(facts))
      for (const SliceId node : pass.nodes) nodes_.push_back(node);
  }

  SameInput run() {
    if (pairs_.empty()) return {};
    for (const CallSequence& calls : call_sequences(facts_)) find_in(calls);
    return std::move(found_);
  }

 private:
  const AutogradPair* pair_of(SliceId op) const {
    const auto at = pair_of_.find(raw(op));
    return at == pair_of_.end() ? nullptr : &pairs_[at->second];
  }

  // The node that runs last makes the gradient of what the call took.
  SliceId last_node(SliceId op) const {
    const AutogradPair& pair = *pair_of(op);
    return *std::max_element(pair.nodes.begin(), pair.nodes.end(), [&](SliceId a, SliceId b) {
      return trace_.start_ns(a) < trace_.start_ns(b);
    });
  }

  void find_in(const CallSequence& calls) {
    std::map<SameCallKey, std::vector<std::size_t>> equal;
    keys_.clear();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      keys_.push_back(call_key_of(trace_, calls[i]));
      if (pair_of(calls[i])) equal[keys_.back()].push_back(i);
    }
    for (const auto& [key, begins] : equal) {
      if (begins.size() < 2 || !depends_on_one_tensor(trace_, calls[begins[0]])) continue;
      const EqualChains chains = extended(calls, begins);
      if (take_one_tensor(calls, chains)) add(calls, chains);
    }
  }

  // As far as the calls after them are equal, and depend on these alone.
  EqualChains extended(const CallSequence& calls, const std::vector<std::size_t>& begins) const {
    EqualChains chains{begins, 1};
    const auto is_equal_at = [&](std::size_t offset) {
      for (std::size_t i = 0; i < begins.size(); ++i) {
        const std::size_t at = begins[i] + offset;
        if (at >= (i + 1 < begins.size() ? begins[i + 1] : calls.size()) ||
            keys_[at] != keys_[begins[0] + offset] || keys_[at] == keys_[begins[0]] ||
            !depends_on_one_tensor(trace_, calls[at]))
          return false;
      }
      return true;
    };
    while (is_equal_at(chains.length)) ++chains.length;
    return chains;
  }

  // All gradients of the calls but one are added to another, and in between no other node takes a gradient of that shape: no
  // operator between the calls made a tensor of it.
  bool take_one_tensor(const CallSequence& calls, const EqualChains& chains) const {
    const auto taken = input_shapes(trace_, calls[chains.begins[0]]);
    if (taken.empty()) return false;
    std::size_t added = 0;
    std::int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    std::unordered_set<std::uint32_t> own;
    for (const std::size_t begin : chains.begins) {
      const SliceId node = last_node(calls[begin]);
      first_ns = std::min(first_ns, trace_.start_ns(node));
      last_ns = std::max(last_ns, trace_.start_ns(node));
      const Sizes sum = added_in(facts_, node);
      if (!sum.empty() && sum != taken[0]) return false;
      added += sum.empty() ? 0 : 1;
      for (std::size_t i = 0; i < chains.length; ++i)
        if (const AutogradPair* const pair = pair_of(calls[begin + i]))
          for (const SliceId each : pair->nodes) own.insert(raw(each));
    }
    if (added + 1 != chains.begins.size()) return false;
    return std::none_of(nodes_.begin(), nodes_.end(), [&](SliceId node) {
      if (own.contains(raw(node)) || trace_.start_ns(node) < first_ns ||
          trace_.start_ns(node) > last_ns || raw(node) + 1 >= trace_.slices().size())
        return false;
      const auto gradients = input_shapes(trace_, SliceId{raw(node) + 1});
      return std::find(gradients.begin(), gradients.end(), taken[0]) != gradients.end();
    });
  }

  bool is_equal_chain(std::size_t at, const EqualChains& chains) const {
    if (at + chains.length > keys_.size()) return false;
    return std::equal(keys_.begin() + static_cast<std::ptrdiff_t>(at),
                      keys_.begin() + static_cast<std::ptrdiff_t>(at + chains.length),
                      keys_.begin() + static_cast<std::ptrdiff_t>(chains.begins[0]));
  }

  void add(const CallSequence& calls, const EqualChains& chains) {
    ++found_.tensors;
    found_.times += chains.begins.size();
    found_.length = std::max<std::uint64_t>(found_.length, chains.length);
    for (std::size_t i = 0; i < chains.length; ++i) {
      std::int64_t work_ns = 0;
      for (const std::size_t begin : chains.begins) {
        found_.calls.insert(raw(calls[begin + i]));
        if (const AutogradPair* const pair = pair_of(calls[begin + i]))
          work_ns += pair->forward_ns + pair->backward_ns;
      }
      if (work_ns <= found_.most_ns) continue;
      found_.most_ns = work_ns;
      found_.most = calls[chains.begins[0] + i];
    }
    for (std::size_t at = 0; at < calls.size(); ++at) {
      if (pair_of(calls[at]) || !is_equal_chain(at, chains)) continue;
      ++found_.more_times;
      for (std::size_t i = 0; i < chains.length; ++i) found_.more_calls.insert(raw(calls[at + i]));
    }
  }

  const Facts& facts_;
  const Trace& trace_;
  const std::vector<AutogradPair>& pairs_;
  std::unordered_map<std::uint32_t, std::size_t> pair_of_;
  std::vector<SliceId> nodes_;
  std::vector<SameCallKey> keys_;  // of the sequence that is looked at
  SameInput found_;
};

std::int64_t part_without(std::int64_t whole_ns, std::uint64_t times, std::uint64_t needed) {
  return static_cast<std::int64_t>(static_cast<double>(whole_ns) *
                                   static_cast<double>(times - needed) /
                                   static_cast<double>(times));
}

std::optional<SameInput> measure_same_input(const Facts& facts) {
  SameInput found = SameInputFinder(facts).run();
  if (found.tensors == 0 || found.tensors < facts.selection.steady.size()) return std::nullopt;
  const std::int64_t proven_ns = cost_of_calls(facts, with_backward_nodes(facts, found.calls));
  found.whole_ns = proven_ns;
  found.cost_ns = part_without(proven_ns, found.times, found.tensors);
  // As many on tensors without a gradient: what the others are compared with.
  if (found.more_times == found.times) {
    const std::int64_t more_ns = cost_of_calls(facts, found.more_calls);
    found.whole_ns += more_ns;
    found.cost_ns += part_without(more_ns, found.times, found.tensors);
  }
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastSameInputShare) return std::nullopt;
  return found;
}

Finding tell_same_input(const Facts& facts, const SameInput& found) {
  const Value op = name(facts.trace->name(found.most));
  const Value times = count(a_step(facts, found.times));
  const bool has_more = found.more_times == found.times;
  Finding finding;
  finding.verdict = say(
      facts,
      "{} and the calls around it run {} times [per step] on the same tensor; with their backward "
      "pass they take {} [per step] ({}).",
      {op, times, ns(facts.per_step(found.whole_ns)),
       ratio(found.whole_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.times, finding);
  finding.arithmetic.push_back(
      say(facts,
          "counted: {} equal [call|calls] in a row, which depend on one tensor each, {} times [per "
          "step]; all but one of each {} can go",
          {count(found.length), times, count(found.times / found.tensors)}));
  finding.arithmetic.push_back(
      say("the same tensor: the backward pass adds the gradients of these calls to one of its "
          "shape, and takes no other gradient of that shape between them"));
  if (has_more)
    finding.arithmetic.push_back(
        say(facts,
            "as many run on tensors of that shape without a gradient, which are counted as if they "
            "were one tensor, too: the trace does not show it",
            {}));
  finding.evidence.push_back(called_at(facts, found.most, say("the longest of these calls")));
  finding.try_next = {"make the result once in the step, and pass it to all that use it",
                      "if the calls take different tensors of one shape, this does not apply"};
  for (const char* covered : {"slow-backward", "unfused-chain", "costly-operator", "memory-roof"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say(facts, "{} is made {} times [per step] from the same tensor, with its backward pass",
          {op, times});
  finding.action = has_more ? say("Make it once, also that of the target, and use the result again")
                            : say("Make it once, and use the result again");
  return finding;
}

}  // namespace

extern constinit const Rule same_input_rule = {
    .id = "same-input",
    .question = "do the same calls run several times on one tensor?",
    .meant_by = "same input stft spectrogram duplicate",
    .order = 434,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_same_input, tell_same_input>,
};

}  // namespace lanescope::explain::rules

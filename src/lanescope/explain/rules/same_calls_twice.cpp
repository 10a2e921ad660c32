// The same calls run twice in a row without a backward pass: one model is called for two inputs, as in classifier-free
// guidance, where one batch of both would launch half as much.
//
// Problem: equal layers follow each other, too, and two halves of their stack are equal. Idea: a model has calls around
// its layers that are unlike them. So the repeated part must hold both: layers that repeat inside of it, and
// calls that it has once. Example: in_proj, 6 x layer, out_proj, in_proj, 6 x layer, out_proj.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastTwiceShare = 0.05;
constexpr std::size_t kLeastTwiceCalls = 16;  // of one half
constexpr std::size_t kLeastLayerCalls = 3;   // that repeat inside it
constexpr std::size_t kLeastLongPart = 100;   // calls: no single layer is that long

using TwiceKey = std::pair<std::uint32_t, std::uint32_t>;  // name, shapes

std::vector<TwiceKey> twice_keys_of(const Trace& trace, const CallSequence& calls) {
  std::vector<TwiceKey> keys;
  keys.reserve(calls.size());
  for (const SliceId op : calls) {
    const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
    keys.emplace_back(raw(trace.slices().name[raw(op)]), dims ? raw(*dims) : ~std::uint32_t{0});
  }
  return keys;
}

// A part [begin, begin + length) that comes again right after it, and not a third time.
struct Twice {
  std::size_t begin = 0, length = 0;
};

// Equal layers in a row: a shorter period that holds for two rounds or more. In a short part they are half of it: what one
// layer repeats, such as its projections to queries, keys and values, is less.
bool has_layers_inside(const std::vector<TwiceKey>& keys, std::size_t begin, std::size_t end) {
  const std::size_t length = end - begin;
  const std::size_t least = length < kLeastLongPart ? length / 2 : 0;
  for (std::size_t period = kLeastLayerCalls; period * 2 < length; ++period) {
    std::size_t equal = 0;
    for (std::size_t i = begin; i + period < end; ++i) {
      equal = keys[i] == keys[i + period] ? equal + 1 : 0;
      if (equal >= period && equal + period >= least) return true;
    }
  }
  return false;
}

// A call that the part has once: it is no stack of layers.
bool has_single_call(const std::vector<TwiceKey>& keys, std::size_t begin, std::size_t end) {
  std::map<TwiceKey, int> counts;
  for (std::size_t i = begin; i < end; ++i) ++counts[keys[i]];
  return std::any_of(counts.begin(), counts.end(),
                     [](const auto& each) { return each.second == 1; });
}

// The four distances with most votes, largest first.
template <class Votes>
void add_lengths(const std::map<std::size_t, Votes>& distances, std::vector<std::size_t>& lengths) {
  std::vector<std::pair<Votes, std::size_t>> ranked;
  for (const auto& [distance, votes] : distances) ranked.emplace_back(-votes, distance);
  std::sort(ranked.begin(), ranked.end());
  for (std::size_t i = 0; i < ranked.size() && i < 4; ++i)
    if (std::find(lengths.begin(), lengths.end(), ranked[i].second) == lengths.end())
      lengths.push_back(ranked[i].second);
}

// Calls of one kind that are rare tell where the part may begin again. Each pair of neighbours has a vote; and where layers have most of
// these, each kind of call has one vote in all, so that those that a model makes once decide. O(n) for each distance tried.
std::vector<std::size_t> likely_lengths(const std::vector<TwiceKey>& keys) {
  std::map<TwiceKey, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < keys.size(); ++i) places[keys[i]].push_back(i);
  std::map<std::size_t, int> distances;
  std::map<std::size_t, double> of_kinds;
  for (const auto& [key, at] : places)
    if (at.size() <= 64)
      for (std::size_t i = 1; i < at.size(); ++i)
        if (at[i] - at[i - 1] >= kLeastTwiceCalls) {
          ++distances[at[i] - at[i - 1]];
          of_kinds[at[i] - at[i - 1]] += 1.0 / static_cast<double>(at.size() - 1);
        }
  std::vector<std::size_t> lengths;
  add_lengths(distances, lengths);
  add_lengths(of_kinds, lengths);
  return lengths;
}

// The program reads a value on the CPU: what it calls next may depend on it.
bool reads_a_value(const Trace& trace, const CallSequence& calls, std::size_t begin,
                   std::size_t end) {
  return std::any_of(calls.begin() + static_cast<std::ptrdiff_t>(begin),
                     calls.begin() + static_cast<std::ptrdiff_t>(end), [&](SliceId op) {
                       const std::string_view label = trace.name(op);
                       return label == "aten::item" || label == "aten::is_nonzero" ||
                              label == "aten::nonzero" || label == "aten::_local_scalar_dense";
                     });
}

// Is the pair a part of each round of a loop, as the two attentions of a decoder's layer are? Rounds of a loop of layers are short,
// follow one another in one step, and the second half of each works on what the first made.
bool is_part_of_layer(const Facts& facts, const CallSequence& calls,
                      const std::vector<TwiceKey>& keys, const Twice& twice) {
  const std::size_t pair = twice.length * 2;
  const auto is_round_again = [&](std::size_t begin, std::size_t period) {
    for (std::size_t i = begin; i < begin + period; ++i)
      if (keys[i] != keys[i + period]) return false;
    const auto step_of = [&](std::size_t i) {
      return steady_step_at(facts, facts.trace->start_ns(calls[i]));
    };
    return step_of(begin) == step_of(begin + period);
  };
  for (std::size_t period = pair + 1; period < kLeastLongPart; ++period) {
    // The next round, or the one before: the calls around the pair belong to it, too.
    if (twice.begin + period * 2 <= keys.size() && is_round_again(twice.begin, period)) return true;
    if (twice.begin + pair >= period * 2 && is_round_again(twice.begin + pair - period * 2, period))
      return true;
  }
  return false;
}

std::vector<Twice> find_twice(const Trace& trace, const CallSequence& calls,
                              const std::vector<TwiceKey>& keys, std::size_t length) {
  std::vector<Twice> found;
  for (std::size_t i = 0; i + length < keys.size();) {
    std::size_t run = 0;
    while (i + run + length < keys.size() && keys[i + run] == keys[i + run + length]) ++run;
    // A longer run is a loop of three rounds or more, of which each may need the one before it.
    if (run >= length && run < length * 2 && !reads_a_value(trace, calls, i, i + length) &&
        has_single_call(keys, i, i + length) && has_layers_inside(keys, i, i + length))
      found.push_back({i, length});
    i += run + 1;
  }
  return found;
}

struct SameCallsTwice {
  std::uint64_t times = 0;
  std::size_t length = 0;
  std::vector<Window> second;  // the second halves
  std::vector<SliceId> second_calls;
  std::int64_t waiting_ns = 0;
  SliceId first = kNone<SliceId>;
};

std::optional<SameCallsTwice> measure_same_calls_twice(const Facts& facts) {
  const Trace& trace = *facts.trace;
  SameCallsTwice found;
  for (const CallSequence& calls : call_sequences(facts)) {
    if (std::any_of(calls.begin(), calls.end(),
                    [&](SliceId op) { return trace.name(op).starts_with(kEvaluateNode); }))
      return std::nullopt;  // forward-twice reports training
    const std::vector<TwiceKey> keys = twice_keys_of(trace, calls);
    for (const std::size_t length : likely_lengths(keys)) {
      std::vector<Twice> all = find_twice(trace, calls, keys, length);
      std::erase_if(
          all, [&](const Twice& twice) { return is_part_of_layer(facts, calls, keys, twice); });
      for (const Twice& twice : all) {
        if (found.times++ == 0) found.first = calls[twice.begin];
        const std::size_t second = twice.begin + twice.length;
        found.second.push_back(
            {trace.start_ns(calls[second]), trace.end_ns(calls[second + twice.length - 1])});
        const auto from = calls.begin() + static_cast<std::ptrdiff_t>(second);
        found.second_calls.insert(found.second_calls.end(), from,
                                  from + static_cast<std::ptrdiff_t>(twice.length));
      }
      if (all.empty()) continue;
      found.length = length;
      break;
    }
  }
  if (found.times == 0) return std::nullopt;
  found.waiting_ns = lost_in(facts, steady_parts(facts, joined(found.second))).waiting_for_cpu_ns;
  if (share_of(found.waiting_ns, facts.steady_wall_ns()) < kLeastTwiceShare) return std::nullopt;
  return found;
}

Finding tell_same_calls_twice(const Facts& facts, const SameCallsTwice& found) {
  const std::uint64_t steps = step_count(facts);
  Finding finding;
  finding.verdict =
      say(facts,
          "The same {} calls run twice in a row, {} [time|times] [in {} steps], and no backward "
          "pass follows: in the second runs the GPU waits {} [per step] for launches.",
          {count(found.length), count(found.times), count(steps),
           ns(facts.per_step(found.waiting_ns))});
  rate_cost(facts, found.waiting_ns, found.times, finding);
  finding.waiting_ns = facts.per_step(found.waiting_ns);
  // A batch of both spares the second calls at most.
  finding.spared_calls = found.second_calls;
  finding.gain_is_bound = true;
  finding.most_ratio = 0.5;  // of a step that is nothing but the two runs
  finding.arithmetic.push_back(
      say("one run over both inputs saves at most this waiting; the GPU's work stays, in kernels "
          "twice as large"));
  finding.arithmetic.push_back(
      say("the repeated calls hold layers that repeat inside of them, and calls that they have "
          "once: they are no half of a stack of layers"));
  Sentence line = say("the first call of the first pair");
  add_line(facts, found.first, line);
  finding.evidence.push_back({found.first, std::move(line)});
  finding.try_next = {
      "call the model once on a batch of both inputs and chunk() its result: torch.cat of the "
      "conditions in classifier-free guidance, of both images of a pair",
      "if the second run needs the result of the first, or is of another model, this does not "
      "apply"};
  finding.explains.push_back({"graph-opportunity", facts.per_step(found.waiting_ns) / 2});
  finding.brief =
      say(facts, "The same {} calls run twice in a row, {} [time|times] [per step], from {} on",
          {count(found.length), count(std::max<std::uint64_t>(1, found.times / steps)),
           name(facts.trace->name(found.first))});
  finding.action =
      say("If it is one model for two inputs: call it once on both (torch.cat, then chunk())");
  return finding;
}

}  // namespace

extern constinit const Rule same_calls_twice_rule = {
    .id = "same-calls-twice",
    .question = "does one model run twice where one batch would do?",
    .meant_by = "guidance batch duplicate inference",
    .order = 617,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_same_calls_twice, tell_same_calls_twice>,
};

}  // namespace lanescope::explain::rules

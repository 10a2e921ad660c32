#include "lanescope/explain/rules/layer_casts.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::uint64_t kFewestCastRounds = 4;

struct CastingLayer {
  std::uint32_t name = 0;      // raw
  std::vector<SliceId> casts;  // of weights and biases
};
using CastingRound = std::vector<CastingLayer>;

bool is_layer_with_weight(std::string_view op) {
  return op == "aten::linear" || op == "aten::conv1d" || op == "aten::conv2d" ||
         op == "aten::conv3d";
}

// autocast casts what a layer takes in this order: input, weight, bias. It casts no input that has the type already, and no
// weight that its cache holds. Of two casts, both are of weights only if the layer has a bias for sure.
CastingLayer casts_in(const Facts& facts, SliceId layer) {
  const Trace& trace = *facts.trace;
  CastingLayer found{raw(trace.slices().name[raw(layer)]), {}};
  const Track& track = trace.track(layer);
  bool has_bias = false;
  for (std::uint32_t i = raw(layer) + 1; i < track.first_slice + track.slice_count &&
                                         trace.start_ns(SliceId{i}) < trace.end_ns(layer);
       ++i) {
    const SliceId id{i};
    has_bias = has_bias || trace.name(id) == "aten::addmm";
    if (trace.name(id) == "aten::to" && facts.nesting.parent[i] == layer &&
        any_inside(facts, id, [](std::string_view name) { return name == "aten::_to_copy"; }))
      found.casts.push_back(id);
  }
  const bool are_both = found.casts.size() == 2 && has_bias;
  if (!found.casts.empty() && !are_both) found.casts.erase(found.casts.begin());
  if (found.casts.size() > 2) found.casts.clear();
  return found;
}

// Marked steps, or what follows each lookup of indices: a pass of the model over tokens.
std::vector<CastingRound> casting_rounds(const Facts& facts, bool are_steps) {
  const Trace& trace = *facts.trace;
  std::vector<CastingRound> rounds;
  for (const CallSequence& calls : call_sequences(facts)) {
    bool is_open = are_steps;
    if (are_steps) rounds.emplace_back();
    for (const SliceId call : calls) {
      if (!are_steps && trace.name(call) == "aten::embedding") {
        is_open = true;
        rounds.emplace_back();
      }
      if (!is_open || !is_layer_with_weight(trace.name(call))) continue;
      if (CastingLayer layer = casts_in(facts, call); !layer.casts.empty())
        rounds.back().push_back(std::move(layer));
    }
  }
  std::erase_if(rounds, [](const CastingRound& round) { return round.empty(); });
  return rounds;
}

using Signature = std::vector<std::pair<std::uint32_t, std::size_t>>;

Signature signature_of(const CastingRound& round, std::size_t layers) {
  Signature signature;
  for (std::size_t i = 0; i < layers; ++i)
    signature.emplace_back(round[i].name, round[i].casts.size());
  return signature;
}

// The most frequent round. Others that begin with its layers are such rounds, too: after the last one comes something else.
Signature usual_round(const std::vector<CastingRound>& rounds) {
  std::map<Signature, std::uint64_t> counts;
  Signature usual;
  std::uint64_t most = 0;
  for (const CastingRound& round : rounds) {
    Signature signature = signature_of(round, round.size());
    const std::uint64_t times = ++counts[signature];
    if (times <= most) continue;
    most = times;
    usual = std::move(signature);
  }
  return usual;
}

// By the name of the kernel that casts.
std::string_view type_of_casts(const Facts& facts, const std::vector<SliceId>& casts) {
  std::unordered_set<std::uint32_t> calls;
  for (const SliceId cast : casts) calls.insert(raw(cast));
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    SliceId op = facts.links.op_of[raw(work->slice)];
    while (op != kNone<SliceId> && !calls.contains(raw(op))) op = facts.nesting.parent[raw(op)];
    if (op == kNone<SliceId>) continue;
    const std::string_view kernel = facts.trace->name(work->slice);
    if (kernel.find("bfloat16_copy_kernel") != kernel.npos) return "bfloat16";
    if (kernel.find("float16_copy_kernel") != kernel.npos) return "float16";
  }
  return {};
}

}  // namespace

std::optional<LayerCasts> find_layer_casts(const Facts& facts) {
  if (!facts.main_device || !backward_nodes(facts).empty()) return std::nullopt;
  LayerCasts found;
  found.are_steps = facts.steps.marked && facts.selection.steady.size() >= 2;
  const std::vector<CastingRound> rounds = casting_rounds(facts, found.are_steps);
  const Signature usual = usual_round(rounds);
  for (const CastingRound& round : rounds) {
    if (round.size() < usual.size() || signature_of(round, usual.size()) != usual) continue;
    ++found.rounds;
    for (std::size_t i = 0; i < usual.size(); ++i)
      found.calls.insert(found.calls.end(), round[i].casts.begin(), round[i].casts.end());
  }
  if (found.rounds < (found.are_steps ? 2 : kFewestCastRounds)) return std::nullopt;
  found.casts = found.calls.size() / found.rounds;
  found.to = type_of_casts(facts, found.calls);
  return found.to.empty() ? std::nullopt : std::optional(std::move(found));
}

}  // namespace lanescope::explain::rules

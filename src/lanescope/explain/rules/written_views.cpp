// An activation that writes into a view (F.relu(x, inplace=True) after an instance norm) makes autograd copy the whole gradient:
// its node is wrapped in CopySlices, and another node, AsStridedBackward0, copies once more.
//
// A write into a slice of a tensor (x[:, 0] = y) makes CopySlices, too, and is not meant: the program needs the write.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastWrittenShare = 0.02;
constexpr std::uint64_t kFewestWrites = 2;  // of a step

// "LeakyReluBackward1" of an activation; null: of something else.
const char* activation_of_node(std::string_view node) {
  struct Activation {
    std::string_view node;
    const char* words;
  };
  static constexpr auto kActivations = std::to_array<Activation>({
      {"CeluBackward", "CELU"},
      {"EluBackward", "ELU"},
      {"HardsigmoidBackward", "hard sigmoid"},
      {"HardswishBackward", "hard swish"},
      {"HardtanhBackward", "ReLU6 or hard tanh"},
      {"LeakyReluBackward", "leaky ReLU"},
      {"MishBackward", "Mish"},
      {"ReluBackward", "ReLU"},
      {"SigmoidBackward", "sigmoid"},
      {"SiluBackward", "SiLU"},
      {"TanhBackward", "tanh"},
      {"ThresholdBackward", "threshold"},
  });
  for (const Activation& each : kActivations)
    if (node.starts_with(each.node)) return each.words;
  return nullptr;
}

struct WrittenViews {
  std::uint64_t writes = 0;     // nodes CopySlices around an activation
  std::vector<SliceId> spared;  // calls that only copy
  std::map<std::string, std::uint64_t> by_activation;
  SliceId longest = kNone<SliceId>;
  std::int64_t cost_ns = 0;
};

// The operators and nodes directly inside of a slice.
std::vector<SliceId> directly_inside(const Facts& facts, SliceId around) {
  const Trace& trace = *facts.trace;
  std::vector<SliceId> found;
  const Track& track = trace.track(around);
  const std::uint32_t track_end = track.first_slice + track.slice_count;
  for (std::uint32_t i = raw(around) + 1;
       i < track_end && trace.start_ns(SliceId{i}) < trace.end_ns(around); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp && facts.nesting.parent[i] == around)
      found.push_back(SliceId{i});
  return found;
}

std::optional<WrittenViews> measure_written_views(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  const auto number_of = [&](SliceId node) {
    return trace.slice_args(node).integer(ArgKey::kSequenceNumber).value_or(-1);
  };
  const auto nodes_named = [&](std::string_view name) {
    std::vector<SliceId> nodes;
    for (const SliceId id :
         slices_starting_with(facts, std::string(kEvaluateNode) + std::string(name)))
      if (trace.kind(id) == CategoryKind::kCpuOp && inside(windows, trace.start_ns(id)))
        nodes.push_back(id);
    return nodes;
  };
  // By sequence number: the node of the view that the program goes on with has the next one.
  std::map<std::int64_t, SliceId> views;
  for (const SliceId node : nodes_named("AsStridedBackward0")) views.emplace(number_of(node), node);
  WrittenViews found;
  for (const SliceId node : nodes_named("torch::autograd::CopySlices")) {
    const std::vector<SliceId> own = directly_inside(facts, node);
    if (own.size() != 1) continue;
    const std::vector<SliceId> calls = directly_inside(facts, own.front());
    const char* activation = nullptr;
    for (const SliceId call : calls)
      if (const char* words = activation_of_node(trace.name(call))) activation = words;
    if (!activation) continue;
    ++found.writes;
    ++found.by_activation[activation];
    for (const SliceId call : calls)
      if (!activation_of_node(trace.name(call))) found.spared.push_back(call);
    if (const auto view = views.find(number_of(node) + 1);
        number_of(node) >= 0 && view != views.end())
      found.spared.push_back(view->second);
    if (found.longest == kNone<SliceId> || trace.dur_ns(node) > trace.dur_ns(found.longest))
      found.longest = node;
  }
  if (found.writes < kFewestWrites * step_count(facts)) return std::nullopt;
  std::sort(found.spared.begin(), found.spared.end());
  found.cost_ns = cost_of_spared(facts, found.spared);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastWrittenShare) return std::nullopt;
  return found;
}

Finding tell_written_views(const Facts& facts, const WrittenViews& found) {
  const auto most =
      std::max_element(found.by_activation.begin(), found.by_activation.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  Finding finding;
  finding.verdict = say(
      facts,
      "{} activations [per step], mostly {}, write into a view of a tensor (inplace=True): their "
      "backward pass copies the whole gradient in CopySlices, and again in AsStridedBackward0: {} "
      "[per step] ({}).",
      {count(a_step(facts, found.writes)), text(most->first), ns(facts.per_step(found.cost_ns)),
       ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.writes, finding);
  finding.spared_calls = found.spared;
  finding.sample_noun = "node";
  finding.arithmetic.push_back(say(
      "counted: what torch::autograd::CopySlices runs beside the activation's own node, and the "
      "AsStridedBackward0 of the view, with their GPU work and the GPU's idle time during them"));
  finding.evidence.push_back({found.longest, say("the longest of these nodes")});
  finding.try_next = {
      "use the form that is not in place: inplace=False for the module, F.relu(x) instead of "
      "F.relu_(x). It needs memory for one more result",
      "instance_norm returns a view, so does x.view(...) or x[...]: an activation in place after "
      "batch_norm or a convolution needs no such copies"};
  finding.brief = say(facts,
                      "{} in place writes into a view, {} times [per step]: CopySlices copies "
                      "the gradient",
                      {text(most->first), count(a_step(facts, found.writes))});
  finding.action = say("Use inplace=False for activations after instance_norm, or after any view");
  return finding;
}

}  // namespace

extern constinit const Rule written_views_rule = {
    .id = "written-views",
    .question = "do activations write into views?",
    .meant_by = "inplace copyslices asstridedbackward0",
    .order = 438,
    .needs = {need::kAnyWork, need::kLaunchCallsOfGpu},
    .run = measure_and_tell<measure_written_views, tell_written_views>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules

// An activation that writes into a view (F.relu(x, inplace=True) after an instance norm) makes autograd copy the whole gradient:
// its node is wrapped in CopySlices, and another node, AsStridedBackward0, copies once more.
//
// A write into a slice of a tensor (x[:, 0] = y) makes CopySlices, too, and is not meant: the program needs the write.
// The same holds for an activation of a part (x[..., :2].sigmoid_()).
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastWrittenShare = 0.02;
constexpr std::uint64_t kFewestWrites = 2;  // of a step

struct WrittenViews {
  std::uint64_t writes = 0;     // nodes CopySlices around an activation
  std::vector<SliceId> spared;  // calls that only copy
  std::map<std::string, std::uint64_t> by_activation;
  SliceId longest = kNone<SliceId>;
  std::int64_t cost_ns = 0;
  std::int64_t nodes_ns = 0;  // of the nodes as a whole, with the activations' own
  bool has_shapes = true;     // of every write: it covers the whole tensor
};

std::optional<WrittenViews> measure_written_views(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  // Of the thread that recorded it: threads count for themselves.
  using Number = std::pair<std::int64_t, std::int64_t>;
  const auto number_of = [&](SliceId node) {
    const ArgsView args = trace.slice_args(node);
    return Number(args.integer(ArgKey::kFwdThreadId).value_or(0),
                  args.integer(ArgKey::kSequenceNumber).value_or(-1));
  };
  const auto nodes_named = [&](std::string_view name) {
    std::vector<SliceId> nodes;
    for (const SliceId id : backward_nodes(facts))
      if (without_evaluate(trace.name(id)).starts_with(name) && inside(windows, trace.start_ns(id)))
        nodes.push_back(id);
    return nodes;
  };
  // By sequence number: the node of the view that the program goes on with has the next one.
  std::map<Number, SliceId> views;
  for (const SliceId node : nodes_named("AsStridedBackward0")) views.emplace(number_of(node), node);
  WrittenViews found;
  std::vector<SliceId> whole;
  for (const SliceId node : nodes_named("torch::autograd::CopySlices")) {
    const ActivationWrite write = write_of_activation(facts, node);
    if (!write.activation || write.is_of_part == true) continue;
    if (!write.is_of_part) found.has_shapes = false;
    ++found.writes;
    ++found.by_activation[write.activation];
    found.spared.insert(found.spared.end(), write.copies.begin(), write.copies.end());
    const auto [thread, number] = number_of(node);
    if (const auto view = views.find({thread, number + 1}); number >= 0 && view != views.end()) {
      found.spared.push_back(view->second);
      whole.push_back(view->second);
    }
    whole.push_back(node);
    if (found.longest == kNone<SliceId> || trace.dur_ns(node) > trace.dur_ns(found.longest))
      found.longest = node;
  }
  if (found.writes < kFewestWrites * step_count(facts)) return std::nullopt;
  found.cost_ns = cost_of_spared(facts, found.spared);
  found.nodes_ns = cost_of_spared(facts, whole);
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
      "counted: the calls in torch::autograd::CopySlices without the activation's own node, and "
      "the AsStridedBackward0 of the view, with their GPU work and the GPU's idle time meanwhile"));
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
  finding.action =
      found.has_shapes
          ? say("Use inplace=False for activations after instance_norm, or after any view")
          : say("If nothing reads the tensor behind the view: use inplace=False for the "
                "activations");
  finding.explains = {{"costly-operator", facts.per_step(found.nodes_ns)},
                      {"exposed-copy", finding.at_stake_ns},
                      {"slow-backward", finding.at_stake_ns}};
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

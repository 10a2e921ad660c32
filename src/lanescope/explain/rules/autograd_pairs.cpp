#include "lanescope/explain/rules/autograd_pairs.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/operator_inputs.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;

namespace {

constexpr std::uint32_t kNoPair = ~std::uint32_t{0};

// Only letters and digits of what comes after the last "::", in lower case.
std::string plain_letters(std::string_view label) {
  if (const std::size_t colons = label.rfind("::"); colons != label.npos)
    label.remove_prefix(colons + 2);
  std::string letters;
  for (const char c : label) {
    if (c >= 'A' && c <= 'Z') letters += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) letters += c;
  }
  return letters;
}

// kEvaluateNode + "UnsafeViewBackward0" -> "unsafeview", which aten::_unsafe_view made. Empty: a
// node of C++ code that is not named after an operator.
std::string operator_of_node(std::string_view node) {
  node = without_evaluate(node);
  const std::size_t end = node.rfind("Backward");
  return end == node.npos || node.find('<') != node.npos ? std::string()
                                                         : plain_letters(node.substr(0, end));
}

bool makes(std::string_view op, std::string_view node_operator) {
  constexpr std::size_t kShort =
      4;  // aten::to makes no TBackward0, nll_loss_forward NllLossBackward0
  const std::string letters = plain_letters(op);
  return letters == node_operator ||
         (node_operator.size() >= kShort && std::string_view(letters).starts_with(node_operator));
}

// Sequence numbers count for each thread.
using Number = std::pair<std::uint32_t, std::int64_t>;  // raw TrackId, sequence number

struct PairsAndOthers {
  std::vector<AutogradPair> pairs;
  std::vector<SliceId> recording;  // as forward_of_recording_nodes()
};

class PairFinder {
 public:
  explicit PairFinder(const Facts& facts)
      : facts_(facts), trace_(*facts.trace), node_of_(trace_.slices().size(), kNone<SliceId>) {}

  PairsAndOthers run() {
    if (backward_nodes(facts_).empty()) return {};  // no backward pass: nothing to sort
    read_operators();
    if (nodes_.empty() || made_by_.empty()) return {};
    find_threads();
    pair_up();
    add_times();
    std::erase_if(pairs_, [](const AutogradPair& pair) { return pair.nodes.empty(); });
    std::sort(recording_.begin(), recording_.end());
    recording_.erase(std::unique(recording_.begin(), recording_.end()), recording_.end());
    return {std::move(pairs_), std::move(recording_)};
  }

 private:
  struct Node {
    SliceId slice{};
    std::int64_t sequence = 0, forward_thread = 0;
    std::string made_by;   // as operator_of_node()
    bool records = false;  // operators in it are recorded for a later backward
  };
  struct Maker {
    SliceId op{};
    SliceId outermost{};  // of the operators with a number around it
  };

  // Parents are before their children, in order of start.
  void read_operators() {
    std::vector<SliceId> outermost(trace_.slices().size(), kNone<SliceId>);
    std::unordered_map<std::uint32_t, std::size_t> index_of;  // into nodes_, by raw SliceId
    std::vector<std::uint32_t> order(trace_.slices().size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const SliceId left{a}, right{b};
      return trace_.start_ns(left) != trace_.start_ns(right)
                 ? trace_.start_ns(left) < trace_.start_ns(right)
                 : trace_.dur_ns(left) > trace_.dur_ns(right);
    });
    for (const std::uint32_t i : order) {
      const SliceId id{i}, parent = facts_.nesting.parent[i];
      if (parent != kNone<SliceId>) {
        node_of_[i] = node_of_[raw(parent)];
        outermost[i] = outermost[raw(parent)];
      }
      if (trace_.kind(id) != CategoryKind::kCpuOp) continue;
      const ArgsView args = trace_.slice_args(id);
      const std::int64_t sequence = args.integer(ArgKey::kSequenceNumber).value_or(-1);
      if (sequence < 0) continue;
      const std::int64_t thread = args.integer(ArgKey::kFwdThreadId).value_or(0);
      if (node_of_[i] != kNone<SliceId>) {
        if (thread == 0) nodes_[index_of.at(raw(node_of_[i]))].records = true;
        continue;
      }
      if (trace_.name(id).starts_with(kEvaluateNode)) {
        index_of.emplace(i, nodes_.size());
        nodes_.push_back({id, sequence, thread, operator_of_node(trace_.name(id)), false});
        node_of_[i] = id;
      } else if (thread == 0) {
        if (outermost[i] == kNone<SliceId>) outermost[i] = id;
        // An operator that makes no node leaves its number to the next one.
        made_by_[{raw(trace_.slices().track[i]), sequence}].push_back({id, outermost[i]});
      }
    }
  }

  // The last operator with the node's number and name before it; null: none is in the trace.
  const Maker* maker_of(std::uint32_t track, const Node& node) const {
    const auto found = made_by_.find({track, node.sequence});
    if (found == made_by_.end() || node.made_by.empty()) return nullptr;
    for (auto maker = found->second.rbegin(); maker != found->second.rend(); ++maker)
      if (trace_.start_ns(maker->op) < trace_.start_ns(node.slice) &&
          makes(trace_.name(maker->op), node.made_by))
        return &*maker;
    return nullptr;
  }

  // Torch has its own numbers for threads: the track of a number is the one that made its nodes.
  void find_threads() {
    std::vector<std::uint32_t> tracks;
    for (const auto& [number, makers] : made_by_)
      if (tracks.empty() || tracks.back() != number.first) tracks.push_back(number.first);
    std::map<std::int64_t, std::map<std::uint32_t, std::uint64_t>> matches;
    for (const Node& node : nodes_)
      for (const std::uint32_t track : tracks)
        if (maker_of(track, node)) ++matches[node.forward_thread][track];
    for (const auto& [thread, counts] : matches) {
      std::pair<std::uint32_t, std::uint64_t> best{0, 0};
      std::uint64_t second = 0;
      for (const auto& [track, count] : counts)
        if (count > best.second) {
          second = best.second;
          best = {track, count};
        } else {
          second = std::max(second, count);
        }
      if (best.second > 2 * second) track_of_.emplace(thread, best.first);
    }
  }

  void pair_up() {
    const auto windows = facts_.steady_cpu_windows();
    std::map<std::uint32_t, std::uint32_t> pair_of;  // by raw SliceId of the forward operator
    std::map<std::tuple<std::int64_t, std::int64_t, std::uint32_t>, bool> seen;
    for (const Node& node : nodes_) {
      const std::string_view label = trace_.name(node.slice);
      if (is_accumulating_node(label) || !inside(windows, trace_.start_ns(node.slice))) continue;
      const auto track = track_of_.find(node.forward_thread);
      if (track == track_of_.end()) continue;
      const Maker* maker = maker_of(track->second, node);
      if (node.records) {
        if (maker) recording_.push_back(maker->outermost);
        continue;
      }
      // A second pass over the same node does not count as a cost of its forward operator.
      if (!maker || !inside(windows, trace_.start_ns(maker->outermost)) ||
          !seen.emplace(std::tuple(node.sequence, node.forward_thread,
                                   raw(trace_.slices().name[raw(node.slice)])),
                        true)
               .second)
        continue;
      const auto [at, is_new] = pair_of.emplace(raw(maker->outermost), pairs_.size());
      if (is_new) pairs_.push_back({maker->outermost, {}, 0, 0});
      pairs_[at->second].nodes.push_back(node.slice);
      pair_of_node_.emplace(raw(node.slice), at->second);
    }
    for (const auto& [forward, pair] : pair_of) pair_of_forward_.emplace(forward, pair);
  }

  std::uint32_t find_pair(const std::unordered_map<std::uint32_t, std::uint32_t>& pairs,
                          SliceId slice) const {
    const auto found = pairs.find(raw(slice));
    return found == pairs.end() ? kNoPair : found->second;
  }

  void add_times() {
    if (!facts_.main_device) {
      for (AutogradPair& pair : pairs_) {
        pair.forward_ns = trace_.dur_ns(pair.forward);
        for (const SliceId node : pair.nodes) pair.backward_ns += trace_.dur_ns(node);
      }
      return;
    }
    for (const DeviceWork* work : steady_work(facts_)) {
      if (work->work == analysis::WorkClass::kCommunication) continue;
      const std::int64_t time_ns = work->end_ns - work->start_ns;
      for (SliceId op = facts_.links.op_of[raw(work->slice)]; op != kNone<SliceId>;
           op = facts_.nesting.parent[raw(op)]) {
        if (const std::uint32_t pair = find_pair(pair_of_node_, op); pair != kNoPair) {
          pairs_[pair].backward_ns += time_ns;
          break;
        }
        if (const std::uint32_t pair = find_pair(pair_of_forward_, op); pair != kNoPair) {
          pairs_[pair].forward_ns += time_ns;
          break;
        }
      }
    }
  }

  const Facts& facts_;
  const Trace& trace_;
  std::vector<SliceId> node_of_;  // by slice: the outermost node around it
  std::vector<Node> nodes_;
  std::map<Number, std::vector<Maker>> made_by_;
  std::map<std::int64_t, std::uint32_t> track_of_;  // by torch's number of the forward thread
  std::vector<AutogradPair> pairs_;
  std::vector<SliceId> recording_;
  std::unordered_map<std::uint32_t, std::uint32_t> pair_of_node_, pair_of_forward_;
};

PairsAndOthers make_autograd_pairs(const Facts& facts) { return PairFinder(facts).run(); }

// By the raw SliceId of the node.
std::unordered_map<std::uint32_t, SliceId> make_forward_of_nodes(const Facts& facts) {
  std::unordered_map<std::uint32_t, SliceId> forward;
  for (const AutogradPair& pair : autograd_pairs(facts))
    for (const SliceId node : pair.nodes) forward.emplace(raw(node), pair.forward);
  return forward;
}

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

// The elements of the first argument; nothing: not recorded.
std::optional<double> elements_of_input(const Facts& facts, SliceId op) {
  const auto tensor = operator_inputs(*facts.trace, op).tensor(0);
  return tensor ? std::optional(tensor->elements()) : std::nullopt;
}

}  // namespace

std::string_view without_evaluate(std::string_view label) {
  if (label.starts_with(kEvaluateNode)) label.remove_prefix(std::string_view(kEvaluateNode).size());
  return label;
}

bool is_accumulating_node(std::string_view label) { return label.ends_with("AccumulateGrad"); }

SliceId forward_of_node(const Facts& facts, SliceId node) {
  const auto& forward = made_once<make_forward_of_nodes>(facts);
  const auto found = forward.find(raw(node));
  return found == forward.end() ? kNone<SliceId> : found->second;
}

ActivationWrite write_of_activation(const Facts& facts, SliceId node) {
  const Trace& trace = *facts.trace;
  ActivationWrite found;
  const std::vector<SliceId> own = directly_inside(facts, node);
  if (own.size() != 1) return found;
  std::optional<double> written, all;
  for (const SliceId call : directly_inside(facts, own.front())) {
    if (const char* words = activation_of_node(trace.name(call))) {
      found.activation = words;
      for (const SliceId op : directly_inside(facts, call))
        if (!written) written = elements_of_input(facts, op);
      continue;
    }
    // First it copies the gradient of the tensor behind the view.
    if (!all && trace.name(call) == "aten::copy_") all = elements_of_input(facts, call);
    found.copies.push_back(call);
  }
  if (written && all) found.is_of_part = *written < *all;
  return found;
}

namespace {

std::vector<SliceId> find_backward_nodes(const Facts& facts) {
  std::vector<SliceId> nodes = slices_starting_with(facts, kEvaluateNode);
  std::erase_if(nodes, [&](SliceId id) { return facts.trace->kind(id) != CategoryKind::kCpuOp; });
  return nodes;
}

}  // namespace

const std::vector<SliceId>& backward_nodes(const Facts& facts) {
  return made_once<find_backward_nodes>(facts);
}

const std::vector<AutogradPair>& autograd_pairs(const Facts& facts) {
  return made_once<make_autograd_pairs>(facts).pairs;
}

const std::vector<SliceId>& forward_of_recording_nodes(const Facts& facts) {
  return made_once<make_autograd_pairs>(facts).recording;
}

std::unordered_set<std::uint32_t> with_backward_nodes(const Facts& facts,
                                                      std::unordered_set<std::uint32_t> calls) {
  std::vector<SliceId> nodes;  // apart: a node is no forward operator of another pair
  for (const AutogradPair& pair : autograd_pairs(facts))
    if (calls.contains(raw(pair.forward)))
      nodes.insert(nodes.end(), pair.nodes.begin(), pair.nodes.end());
  for (const SliceId node : nodes) calls.insert(raw(node));
  return calls;
}

}  // namespace lanescope::explain::rules

#include "lanescope/explain/call_tree.h"

#include <algorithm>
#include <cctype>

#include "lanescope/explain/enclosing_facts.h"
#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::explain {
namespace {

using analysis::Repeat;
using simulate::PathPiece;

constexpr std::size_t kMostCellNames = 64;

bool is_step(std::string_view label) {
  return label.starts_with("ProfilerStep#") || label.starts_with("Iteration ");
}

// "layer_3" as "layer_*", so that equal parts of a model are one; "conv2d" stays.
std::string without_numbers(std::string_view label) {
  std::string key;
  for (std::size_t i = 0; i < label.size(); ++i) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(label[i])) != 0;
    const bool follows_word = i > 0 && std::isalnum(static_cast<unsigned char>(label[i - 1])) != 0;
    if (!is_digit || (follows_word && key.back() != '*'))
      key += label[i];
    else if (key.empty() || key.back() != '*')
      key += '*';
  }
  return key;
}

std::string container_key(OwnerKind kind, const std::string& label) {
  return kind == OwnerKind::kRange ? without_numbers(label) : label;
}

}  // namespace

SliceId cpu_side(const Facts& facts, SliceId slice) {
  return slice != kNone<SliceId> && is_device_work(facts.trace->kind(slice))
             ? facts.links.launch_of[raw(slice)]
             : slice;
}

CallTree::CallTree(const Facts& facts, const StepPath& path)
    : facts_(facts),
      trace_(*facts.trace),
      thread_(path.thread),
      has_frames_(has_python_frames(trace_)),
      nesting_(nesting_with_frames(facts)),
      containers_(trace_, nesting_, facts.frames),
      units_(facts, containers_) {
  nodes_.emplace_back();
  find_outermost();
  units_.find(outermost_);
  node_of_loop_.assign(units_.loops().size(), 0);
  leaf_of_.assign(trace_.slices().size(), 0);
  for (const bool of_autograd : {false, true})  // its loops may lie in those of others
    for (const auto& [thread, sequence] : units_.sequences())
      if (units_.is_of_autograd(sequence) == of_autograd)
        for (std::size_t unit = 0; unit < sequence.units.size(); ++unit) make_leaf(sequence, unit);
  node_of_piece_.reserve(path.pieces.size());
  for (const PathPiece& piece : path.pieces) {
    std::uint32_t node = piece.slice == kNone<SliceId> ? 0 : node_of(piece.slice);
    is_code_.push_back(node == 0);
    if (node == 0) node = node_of_code(piece);
    node_of_piece_.push_back(node);
    add(node, piece);
  }
  count_waits();
  for (std::size_t i = nodes_.size(); i-- > 1;) {
    CallNode& parent = nodes_[nodes_[i].parent];
    parent.waits += nodes_[i].waits;
    parent.total_ns += nodes_[i].total_ns;
    for (std::size_t k = 0; k < parent.time_ns.size(); ++k)
      parent.time_ns[k] += nodes_[i].time_ns[k];
  }
}

// Calls of steady steps in which the CPU may wait, but for copies.
void CallTree::count_waits() {
  const auto windows = facts_.steady_cpu_windows();
  for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
    const SliceId id{i};
    const ApiCall call = trace_.api_call(id);
    if (!call.does(api_effect::kBlocks) || call.does(api_effect::kAllocates | api_effect::kFrees) ||
        !inside(windows, trace_.start_ns(id)))
      continue;
    const SliceId around = facts_.nesting.parent[i];
    if (around == kNone<SliceId> || !is_api_call(trace_.kind(around))) ++nodes_[node_of(id)].waits;
  }
}

void CallTree::add(std::uint32_t index, const PathPiece& piece) {
  CallNode& node = nodes_[index];
  const std::int64_t time = piece.end_ns - piece.start_ns;
  node.total_ns += time;
  node.time_ns[static_cast<std::size_t>(piece.kind)] += time;
  if (piece.slice != kNone<SliceId> && time > node.longest_ns) {
    node.longest_ns = time;
    node.example = piece.slice;
  }
}

void CallTree::find_outermost() {
  const auto is_unit = [&](SliceId id) {
    if (trace_.kind(id) == CategoryKind::kCpuOp)
      return !is_step(trace_.name(id)) && !is_container(trace_.name(id));
    return is_api_call(trace_.kind(id));
  };
  outermost_.assign(trace_.slices().size(), kNone<SliceId>);
  for (std::uint32_t i = 0; i < outermost_.size(); ++i) {
    if (nesting_.depth[i] == analysis::SliceNesting::kNotNested) continue;
    const SliceId parent = nesting_.parent[i];
    if (parent != kNone<SliceId>) outermost_[i] = outermost_[raw(parent)];
    if (outermost_[i] == kNone<SliceId> && is_unit(SliceId{i})) outermost_[i] = SliceId{i};
  }
}

std::uint32_t CallTree::container_node(SliceId container, std::uint32_t parent) {
  const OwnerKind kind = containers_.kind(container);
  const std::string label = containers_.label(container, kind);
  const std::uint32_t node = child(parent, kind, container_key(kind, label), label);
  node_of_container_[raw(container)] = node;
  return node;
}

// The node of the innermost container of a slice that is in no loop, or whose loops are known.
std::uint32_t CallTree::containers_node(SliceId slice) {
  std::vector<SliceId> unknown;
  std::uint32_t node = 0;
  for (; slice != kNone<SliceId>; slice = nesting_.parent[raw(slice)]) {
    if (const auto known = node_of_container_.find(raw(slice)); known != node_of_container_.end()) {
      node = known->second;
      break;
    }
    if (containers_.kind(slice) != OwnerKind::kStep) unknown.push_back(slice);
  }
  for (std::size_t i = unknown.size(); i-- > 0;) node = container_node(unknown[i], node);
  return node;
}

std::uint32_t CallTree::child(std::uint32_t parent, OwnerKind kind, const std::string& key,
                              std::string_view label) {
  const auto [entry, is_new] =
      children_.try_emplace({parent, kind, key}, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) {
    CallNode node;
    node.parent = parent;
    node.kind = kind;
    node.name = label;
    nodes_.push_back(std::move(node));
  } else if (nodes_[entry->second].name != label) {
    nodes_[entry->second].name = key;  // "layer_*"
  }
  return entry->second;
}

std::uint32_t CallTree::loop_node(std::uint32_t index, std::uint32_t parent) {
  if (node_of_loop_[index] != 0) return node_of_loop_[index];
  const UnitLoop& loop = units_.loops()[index];
  std::string key;
  std::vector<std::string> cell;
  for (const SliceId unit : loop.cell) {
    key += std::to_string(units_.symbol(unit)) + ",";
    std::string label = units_.name(unit);
    if (cell.size() < kMostCellNames && (cell.empty() || cell.back() != label))
      cell.push_back(std::move(label));
  }
  const std::uint32_t made = node_of_loop_[index] = child(parent, OwnerKind::kLoop, key, "");
  CallNode& node = nodes_[made];
  node.name.clear();
  node.rounds += loop.rounds;
  node.fewest_rounds =
      node.loops == 0 ? loop.rounds : std::min<std::uint64_t>(node.fewest_rounds, loop.rounds);
  node.most_rounds = std::max<std::uint64_t>(node.most_rounds, loop.rounds);
  ++node.loops;
  node.cell_size = loop.cell.size();
  if (loop.backward != Repeat::kNoRepeat) {
    const UnitLoop& backward = units_.loops()[loop.backward];
    node.cell_size += backward.cell.size();
    node.has_backward = true;
    node.repeats_graph = units_.repeats_graph(backward);
    node.adds_gradients = node.adds_gradients || units_.adds_gradients(backward);
    node.backward_passes = std::max(node.backward_passes, units_.backward_passes(loop, backward));
  }
  if (node.sizes.op.empty()) node.sizes = loop.sizes;
  node.has_large_products =
      node.has_large_products || std::any_of(loop.cell.begin(), loop.cell.end(), [&](SliceId unit) {
        return is_large_product(trace_, unit);
      });
  node.has_layers =
      node.has_layers || std::any_of(loop.cell.begin(), loop.cell.end(), [&](SliceId unit) {
        return units_.is_backward(unit) || is_layer_operator(trace_.name(unit));
      });
  if (node.cell.empty()) node.cell = std::move(cell);
  return made;
}

void CallTree::make_leaf(const UnitSequence& sequence, std::size_t unit) {
  const std::vector<UnitLoop>& all = units_.loops();
  const SliceId slice = sequence.units[unit];
  std::vector<std::uint32_t> loops;  // from the inside
  std::uint32_t node = 0;
  for (std::uint32_t l = sequence.loop_of[unit]; l != Repeat::kNoRepeat; l = all[l].parent) {
    if (all[l].started_by != Repeat::kNoRepeat) {
      node = node_of_loop_[l] = node_of_loop_[all[l].started_by];
      break;
    }
    if (all[l].rounds >= kFewestLoopRounds) loops.push_back(l);
  }
  const bool is_inside = node != 0;  // of a loop of another thread
  const auto containers = containers_.around(slice);
  std::size_t depth = is_inside ? 0 : containers.size();
  while (depth > 0) {
    const auto known = node_of_container_.find(raw(containers[depth - 1]));
    if (known != node_of_container_.end()) {
      node = known->second;
      break;
    }
    --depth;
  }
  // Loops outside of a known container are on its way already.
  if (depth > 0)
    while (!loops.empty() && all[loops.back()].depth < depth) loops.pop_back();
  for (; depth <= containers.size(); ++depth) {
    while (!loops.empty() && all[loops.back()].depth <= depth) {
      node = loop_node(loops.back(), node);
      loops.pop_back();
    }
    if (depth < containers.size()) node = container_node(containers[depth], node);
  }
  if (units_.is_backward(slice)) node = child(node, OwnerKind::kBackward, "backward", "backward");
  const bool is_call = is_api_call(trace_.kind(slice));
  const std::string& label = units_.name(slice);
  node = child(node, is_call ? OwnerKind::kCall : OwnerKind::kOperator, label, label);
  leaf_of_[raw(slice)] = node;
}

// The node of a unit outside of the steady steps, such as one that launched what runs in the first of them.
std::uint32_t CallTree::node_without_loop(SliceId unit) {
  std::uint32_t node = containers_node(unit);
  if (units_.is_backward(unit)) node = child(node, OwnerKind::kBackward, "backward", "backward");
  const std::string& label = units_.name(unit);
  return child(node, is_api_call(trace_.kind(unit)) ? OwnerKind::kCall : OwnerKind::kOperator,
               label, label);
}

std::uint32_t CallTree::node_of(SliceId slice) {
  const SliceId call = cpu_side(facts_, slice);
  if (call == kNone<SliceId>) {  // GPU work without a launch call
    const std::string label = names::readable_kernel_name(trace_.name(slice));
    return child(0, OwnerKind::kCall, label, label);
  }
  if (nesting_.depth[raw(call)] == analysis::SliceNesting::kNotNested) return 0;
  const SliceId unit = outermost_[raw(call)];
  if (unit == kNone<SliceId>) return 0;
  if (leaf_of_[raw(unit)] == 0) leaf_of_[raw(unit)] = node_without_loop(unit);
  return leaf_of_[raw(unit)];
}

// An operator before or after some code is named by the range that it opens or ends, where it has one.
std::string CallTree::neighbour_name(SliceId unit, const PathPiece& piece) {
  for (const SliceId each : containers_.around(unit))
    if (containers_.kind(each) == OwnerKind::kRange &&
        (trace_.end_ns(each) <= piece.start_ns || trace_.start_ns(each) >= piece.end_ns))
      return std::string(trace_.name(each));
  return units_.name(unit);
}

// Did autograd's own thread work since the last operator of this one?
bool CallTree::comes_after_backward(TrackId track, SliceId last, std::int64_t time_ns) const {
  for (const auto& [thread, sequence] : units_.sequences()) {
    if (thread == raw(track) || sequence.units.empty() || !units_.is_of_autograd(sequence))
      continue;
    const auto next = std::upper_bound(
        sequence.units.begin(), sequence.units.end(), time_ns,
        [&](std::int64_t time, SliceId unit) { return time < trace_.start_ns(unit); });
    if (next != sequence.units.begin() &&
        (last == kNone<SliceId> || trace_.start_ns(*(next - 1)) > trace_.start_ns(last)))
      return true;
  }
  return false;
}

// Time of a thread outside of operators and calls: inside a loop it is the loop's, else it lies
// between two units.
std::uint32_t CallTree::node_of_code(const PathPiece& piece) {
  const SliceId slice = cpu_side(facts_, piece.slice);
  const TrackId track = slice == kNone<SliceId> ? thread_ : trace_.slices().track[raw(slice)];
  const auto found =
      track == kNone<TrackId> ? units_.sequences().end() : units_.sequences().find(raw(track));
  const UnitSequence* sequence = found == units_.sequences().end() ? nullptr : &found->second;
  const std::size_t size = sequence ? sequence->units.size() : 0;
  std::size_t next = 0;
  if (sequence)
    next = static_cast<std::size_t>(
        std::upper_bound(
            sequence->units.begin(), sequence->units.end(), piece.start_ns,
            [&](std::int64_t time, SliceId unit) { return time < trace_.start_ns(unit); }) -
        sequence->units.begin());
  // The innermost loop around both neighbours.
  const std::vector<UnitLoop>& loops = units_.loops();
  if (next > 0 && next < size)
    for (std::uint32_t l = sequence->loop_of[next - 1]; l != Repeat::kNoRepeat; l = loops[l].parent)
      if (loops[l].rounds >= kFewestLoopRounds &&
          trace_.start_ns(loops[l].last) >= trace_.start_ns(sequence->units[next]))
        return node_of_loop_[l];
  const std::uint32_t node = containers_node(slice);
  if (is_loader(nodes_[node].name)) return node;
  if (nodes_[node].kind == OwnerKind::kLine)
    return child(node, OwnerKind::kCode, "", "");  // the line says where
  std::string before, after;
  // Steps come one after the other: what follows the last operator is the first one.
  const bool is_loop = facts_.selection.steady.size() > 1;
  if (size > 0 && (next > 0 || is_loop))
    before = neighbour_name(sequence->units[(next + size - 1) % size], piece);
  if (size > 0 && (next < size || is_loop))
    after = neighbour_name(sequence->units[next % size], piece);
  const SliceId last = next > 0 ? sequence->units[next - 1] : kNone<SliceId>;
  if (comes_after_backward(track, last, piece.start_ns)) before = "backward";
  const std::uint32_t code = child(node, OwnerKind::kCode, before + '\n' + after, before);
  nodes_[code].name = std::move(before);
  nodes_[code].next_name = std::move(after);
  return code;
}

}  // namespace lanescope::explain

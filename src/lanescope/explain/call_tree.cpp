#include "lanescope/explain/call_tree.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <tuple>

#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/names/library_frames.h"

namespace lanescope::explain {
namespace {

using analysis::Repeat;
using simulate::PathPiece;

constexpr std::string_view kAutograd = "autograd::engine::evaluate_function: ";
// Fewer rounds are more likely written out than a loop.
constexpr std::uint64_t kFewestLoopRounds = 4;
constexpr std::size_t kMostCellNames = 12;

// Rows of the CPU that only enclose what the program called.
bool is_container(std::string_view op) {
  return op.find("::") == std::string_view::npos && op.find("Backward") == std::string_view::npos &&
         op != "detach" && op != "to";
}

bool is_step(std::string_view label) {
  return label.starts_with("ProfilerStep#") || label.starts_with("Iteration ");
}

// Ranges of the program, and those of torch that its users know.
bool is_range(std::string_view label) {
  return is_own_range(label) || is_loader(label) || label.starts_with("Torch-Compiled Region");
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

bool is_loader(std::string_view label) { return label.starts_with("enumerate(DataLoader)"); }

SliceId cpu_side(const Facts& facts, SliceId slice) {
  return slice != kNone<SliceId> && is_device_work(facts.trace->kind(slice))
             ? facts.links.launch_of[raw(slice)]
             : slice;
}

CallTree::CallTree(const Facts& facts, const StepPath& path)
    : facts_(facts), trace_(*facts.trace), thread_(path.thread) {
  has_frames_ =
      std::any_of(trace_.categories().begin(), trace_.categories().end(),
                  [](const Category& each) { return each.kind == CategoryKind::kPythonFunction; });
  if (has_frames_)
    frames_nesting_ = analysis::compute_slice_nesting(trace_, {.python_frames = true});
  nesting_ = has_frames_ ? &frames_nesting_ : &facts.nesting;
  nodes_.emplace_back();
  find_outermost();
  find_units();
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
    if (nesting_->depth[i] == analysis::SliceNesting::kNotNested) continue;
    const SliceId parent = nesting_->parent[i];
    if (parent != kNone<SliceId>) outermost_[i] = outermost_[raw(parent)];
    if (outermost_[i] == kNone<SliceId> && is_unit(SliceId{i})) outermost_[i] = SliceId{i};
  }
}

// What a graph holds has many names, its launch has one.
bool CallTree::is_graph(SliceId call) const {
  return trace_.api_call(call).does(api_effect::kLaunchesGraph);
}

const std::string& CallTree::unit_name(SliceId unit) {
  const auto [entry, is_new] = unit_names_.try_emplace(unit_symbol(unit));
  if (!is_new) return entry->second;
  std::string_view label = trace_.name(unit);
  if (label.starts_with(kAutograd)) label.remove_prefix(kAutograd.size());
  entry->second = label;
  if (is_api_call(trace_.kind(unit)))
    if (const auto work = facts_.links.launched_by(unit); !work.empty() && !is_graph(unit))
      entry->second = names::readable_kernel_name(trace_.name(work.front()));
  return entry->second;
}

// Equal for units with equal names.
std::uint32_t CallTree::unit_symbol(SliceId unit) const {
  if (is_api_call(trace_.kind(unit)))
    if (const auto work = facts_.links.launched_by(unit); !work.empty() && !is_graph(unit))
      return raw(trace_.slices().name[raw(work.front())]);
  return raw(trace_.slices().name[raw(unit)]);
}

void CallTree::find_units() {
  const auto windows = facts_.steady_cpu_windows();
  for (std::uint32_t i = 0; i < outermost_.size(); ++i) {
    const SliceId id{i};
    if (outermost_[i] != id || !inside(windows, trace_.start_ns(id))) continue;
    sequences_[raw(trace_.slices().track[i])].units.push_back(id);
    units_.push_back(id);
  }
  for (auto& [thread, sequence] : sequences_) {
    sequence.loop_of.assign(sequence.units.size(), Repeat::kNoRepeat);
    sequence.leaf.assign(sequence.units.size(), 0);
    // A loop does not go on in the next step: else the steps themselves would be its rounds.
    for (std::size_t first = 0; first < sequence.units.size();) {
      std::size_t end = first, step = 0;
      const auto step_at = [&](std::size_t unit) {
        const std::int64_t time = trace_.start_ns(sequence.units[unit]);
        const auto& steps = facts_.steps.steps;
        const auto after = std::upper_bound(
            steps.begin(), steps.end(), time,
            [](std::int64_t t, const analysis::StepRange& s) { return t < s.cpu_start_ns; });
        return static_cast<std::size_t>(after - steps.begin());
      };
      step = step_at(first);
      while (end < sequence.units.size() && step_at(end) == step) ++end;
      fold(thread, sequence, first, end);
      first = end;
    }
  }
  find_backward_rounds();
  for (const bool of_autograd : {false, true})  // its loops may lie in those of others
    for (auto& [thread, sequence] : sequences_)
      if (is_of_autograd(sequence) == of_autograd)
        for (std::size_t unit = 0; unit < sequence.units.size(); ++unit) make_leaf(sequence, unit);
}

bool CallTree::is_of_autograd(const Sequence& sequence) const {
  return !sequence.units.empty() && is_backward(sequence.units.front());
}

std::vector<std::int64_t> CallTree::round_starts(const Loop& loop) const {
  const Sequence& sequence = sequences_.at(loop.thread);
  std::vector<std::int64_t> starts;
  for (std::uint64_t round = 0; round < loop.rounds; ++round)
    starts.push_back(trace_.start_ns(sequence.units[loop.first_unit + round * loop.cell.size()]));
  return starts;
}

// One round of `backward` begins for each that begins of `loop`. Where the rounds are cut does not matter.
bool CallTree::starts_rounds_of(const Loop& loop, const Loop& backward) const {
  const auto starts = round_starts(loop), inner = round_starts(backward);
  const auto before = [&](std::int64_t time) {
    return std::lower_bound(starts.begin(), starts.end(), time) - starts.begin();
  };
  for (std::size_t i = 1; i < inner.size(); ++i)
    if (before(inner[i]) != before(inner[i - 1]) + 1) return false;
  return true;
}

// Autograd works on a thread of its own while the program's thread waits. A loop with a backward pass in
// each round is one loop all the same.
void CallTree::find_backward_rounds() {
  constexpr std::size_t kMostLooked = 64;  // loops of as many rounds at the same time
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_rounds;
  for (std::uint32_t l = 0; l < loops_.size(); ++l)
    if (loops_[l].rounds >= kFewestLoopRounds && !is_of_autograd(sequences_.at(loops_[l].thread)))
      by_rounds[loops_[l].rounds].push_back(l);
  const auto end_of = [&](std::uint32_t l) { return trace_.start_ns(loops_[l].last); };
  for (auto& [rounds, loops] : by_rounds)
    std::stable_sort(loops.begin(), loops.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return end_of(a) < end_of(b); });
  for (std::uint32_t b = 0; b < loops_.size(); ++b) {
    Loop& backward = loops_[b];
    if (backward.rounds < kFewestLoopRounds || !is_of_autograd(sequences_.at(backward.thread)))
      continue;
    const std::int64_t from = trace_.start_ns(backward.first), to = end_of(b);
    // Where the first round differs a little, its calls are outside of the loop.
    for (const std::uint64_t rounds : {backward.rounds, backward.rounds - 1, backward.rounds + 1}) {
      const std::vector<std::uint32_t>& loops = by_rounds[rounds];
      auto each =
          std::lower_bound(loops.begin(), loops.end(), from,
                           [&](std::uint32_t l, std::int64_t time) { return end_of(l) < time; });
      for (std::size_t i = 0; i < kMostLooked && each != loops.end(); ++i, ++each) {
        Loop& loop = loops_[*each];
        if (loop.backward != Repeat::kNoRepeat || trace_.start_ns(loop.first) > to ||
            !starts_rounds_of(loop, backward))
          continue;
        backward.started_by = *each;
        loop.backward = b;
        break;
      }
      if (backward.started_by != Repeat::kNoRepeat) break;
    }
  }
}

void CallTree::add_backward(const Loop& loop, CallNode& node) {
  const Loop& backward = loops_[loop.backward];
  const auto& units = sequences_.at(backward.thread).units;
  const auto number_of = [&](std::size_t unit) {
    return trace_.slice_args(units[unit]).integer(ArgKey::kSequenceNumber).value_or(-1);
  };
  node.cell_size += backward.cell.size();
  node.has_backward = true;
  // The nodes of one graph keep their numbers; a few of each round may be new, such as those of the row it takes.
  std::size_t same = 0;
  for (std::size_t i = 0; i < backward.cell.size(); ++i) {
    const std::int64_t number = number_of(backward.first_unit + i);
    if (number >= 0 && number == number_of(backward.first_unit + backward.cell.size() + i)) ++same;
  }
  node.repeats_graph = same * 2 >= backward.cell.size();
}

void CallTree::fold(std::uint32_t thread, Sequence& sequence, std::size_t first, std::size_t end) {
  std::vector<std::uint32_t> symbols;
  for (std::size_t i = first; i < end; ++i) symbols.push_back(unit_symbol(sequence.units[i]));
  const std::vector<Repeat> repeats = analysis::find_repeats(symbols);
  const auto base = static_cast<std::uint32_t>(loops_.size());
  for (std::size_t r = 0; r < repeats.size(); ++r) {
    const Repeat& repeat = repeats[r];
    Loop loop;
    loop.rounds = repeat.rounds;
    loop.thread = thread;
    loop.first_unit = static_cast<std::uint32_t>(first + repeat.first);
    loop.first = sequence.units[first + repeat.first];
    loop.last = sequence.units[first + repeat.end - 1];
    if (repeat.parent != Repeat::kNoRepeat) loop.parent = base + repeat.parent;
    for (std::uint32_t i = 0; i < repeat.round_size(); ++i)
      loop.cell.push_back(sequence.units[first + repeat.first + i]);
    loop.sizes = size_change(trace_, std::span(sequence.units).subspan(first + repeat.first),
                             repeat.rounds, repeat.round_size());
    loops_.push_back(std::move(loop));
    // Inner repeats come first and keep their units.
    for (std::uint32_t i = repeat.first; i < repeat.end; ++i)
      if (sequence.loop_of[first + i] == Repeat::kNoRepeat)
        sequence.loop_of[first + i] = base + static_cast<std::uint32_t>(r);
  }
  for (std::uint32_t l = base; l < loops_.size(); ++l) {
    const auto from = containers_of(loops_[l].first), to = containers_of(loops_[l].last);
    std::size_t& depth = loops_[l].depth;
    while (depth < from.size() && depth < to.size() && from[depth] == to[depth]) ++depth;
  }
}

// What a slice is as something around operators; kStep: nothing.
OwnerKind CallTree::container_kind(SliceId slice) {
  // Deep stacks repeat few names.
  const auto key = std::pair(raw(trace_.slices().name[raw(slice)]), trace_.kind(slice));
  const auto [entry, is_new] = container_kinds_.try_emplace(key, OwnerKind::kStep);
  if (is_new) entry->second = find_container_kind(slice);
  return entry->second;
}

OwnerKind CallTree::find_container_kind(SliceId slice) const {
  const std::string_view label = trace_.name(slice);
  switch (trace_.kind(slice)) {
    case CategoryKind::kPythonFunction:
      if (is_module_frame(label)) return OwnerKind::kModule;
      return label.find(".py(") != std::string_view::npos && !names::is_of_library(label)
                 ? OwnerKind::kLine
                 : OwnerKind::kStep;
    case CategoryKind::kUserAnnotation:
      return is_range(label) ? OwnerKind::kRange : OwnerKind::kStep;
    case CategoryKind::kCpuOp:
      return is_container(label) && is_range(label) ? OwnerKind::kRange : OwnerKind::kStep;
    default:
      return OwnerKind::kStep;
  }
}

std::string CallTree::container_label(SliceId slice, OwnerKind kind) const {
  const std::string_view label = trace_.name(slice);
  if (kind == OwnerKind::kModule) return module_class(label);
  return kind == OwnerKind::kLine ? short_line(label) : std::string(label);
}

std::vector<SliceId> CallTree::containers_of(SliceId slice) {
  std::vector<SliceId> found;
  for (; slice != kNone<SliceId>; slice = nesting_->parent[raw(slice)])
    if (container_kind(slice) != OwnerKind::kStep) found.push_back(slice);
  std::reverse(found.begin(), found.end());
  return found;
}

std::uint32_t CallTree::container_node(SliceId container, std::uint32_t parent) {
  const OwnerKind kind = container_kind(container);
  const std::string label = container_label(container, kind);
  const std::uint32_t node = child(parent, kind, container_key(kind, label), label);
  node_of_container_[raw(container)] = node;
  return node;
}

// The node of the innermost container of a slice that is in no loop, or whose loops are known.
std::uint32_t CallTree::containers_node(SliceId slice) {
  std::vector<SliceId> unknown;
  std::uint32_t node = 0;
  for (; slice != kNone<SliceId>; slice = nesting_->parent[raw(slice)]) {
    if (const auto known = node_of_container_.find(raw(slice)); known != node_of_container_.end()) {
      node = known->second;
      break;
    }
    if (container_kind(slice) != OwnerKind::kStep) unknown.push_back(slice);
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
  Loop& loop = loops_[index];
  if (loop.node != 0) return loop.node;
  std::string key;
  std::vector<std::string> cell;
  for (const SliceId unit : loop.cell) {
    key += std::to_string(unit_symbol(unit)) + ",";
    std::string label = unit_name(unit);
    if (cell.size() < kMostCellNames && (cell.empty() || cell.back() != label))
      cell.push_back(std::move(label));
  }
  loop.node = child(parent, OwnerKind::kLoop, key, "");
  CallNode& node = nodes_[loop.node];
  node.name.clear();
  node.rounds += loop.rounds;
  ++node.loops;
  node.cell_size = loop.cell.size();
  if (loop.backward != Repeat::kNoRepeat) add_backward(loop, node);
  if (node.sizes.op.empty()) node.sizes = loop.sizes;
  node.has_large_products =
      node.has_large_products || std::any_of(loop.cell.begin(), loop.cell.end(), [&](SliceId unit) {
        return is_large_product(trace_, unit);
      });
  node.has_layers =
      node.has_layers || std::any_of(loop.cell.begin(), loop.cell.end(), [&](SliceId unit) {
        return is_backward(unit) || is_product(trace_.name(unit));
      });
  if (node.cell.empty()) node.cell = std::move(cell);
  return loop.node;
}

void CallTree::make_leaf(Sequence& sequence, std::size_t unit) {
  const SliceId slice = sequence.units[unit];
  std::vector<std::uint32_t> loops;  // from the inside
  std::uint32_t node = 0;
  for (std::uint32_t l = sequence.loop_of[unit]; l != Repeat::kNoRepeat; l = loops_[l].parent) {
    if (loops_[l].started_by != Repeat::kNoRepeat) {
      node = loops_[l].node = loops_[loops_[l].started_by].node;
      break;
    }
    if (loops_[l].rounds >= kFewestLoopRounds) loops.push_back(l);
  }
  const bool is_inside = node != 0;  // of a loop of another thread
  const auto containers = containers_of(slice);
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
    while (!loops.empty() && loops_[loops.back()].depth < depth) loops.pop_back();
  for (; depth <= containers.size(); ++depth) {
    while (!loops.empty() && loops_[loops.back()].depth <= depth) {
      node = loop_node(loops.back(), node);
      loops.pop_back();
    }
    if (depth < containers.size()) node = container_node(containers[depth], node);
  }
  if (is_backward(slice)) node = child(node, OwnerKind::kBackward, "backward", "backward");
  const bool is_call = is_api_call(trace_.kind(slice));
  const std::string& label = unit_name(slice);
  node = child(node, is_call ? OwnerKind::kCall : OwnerKind::kOperator, label, label);
  leaf_of_[raw(slice)] = node;
  sequence.leaf[unit] = node;
}

// Of a unit outside of the steady steps, such as one that launched what runs in the first of them.
std::uint32_t CallTree::node_without_loop(SliceId unit) {
  std::uint32_t node = containers_node(unit);
  if (is_backward(unit)) node = child(node, OwnerKind::kBackward, "backward", "backward");
  const std::string& label = unit_name(unit);
  return child(node, is_api_call(trace_.kind(unit)) ? OwnerKind::kCall : OwnerKind::kOperator,
               label, label);
}

bool CallTree::is_backward(SliceId unit) const { return trace_.name(unit).starts_with(kAutograd); }

std::uint32_t CallTree::node_of(SliceId slice) {
  const SliceId call = cpu_side(facts_, slice);
  if (call == kNone<SliceId>) {  // GPU work without a launch call
    const std::string label = names::readable_kernel_name(trace_.name(slice));
    return child(0, OwnerKind::kCall, label, label);
  }
  if (nesting_->depth[raw(call)] == analysis::SliceNesting::kNotNested) return 0;
  const SliceId unit = outermost_[raw(call)];
  if (unit == kNone<SliceId>) return 0;
  const auto known = leaf_of_.find(raw(unit));
  if (known != leaf_of_.end()) return known->second;
  const std::uint32_t node = node_without_loop(unit);
  leaf_of_[raw(unit)] = node;
  return node;
}

// An operator before or after some code is named by the range that it opens or ends, where it has one.
std::string CallTree::neighbour_name(SliceId unit, const PathPiece& piece) {
  for (const SliceId each : containers_of(unit))
    if (container_kind(each) == OwnerKind::kRange &&
        (trace_.end_ns(each) <= piece.start_ns || trace_.start_ns(each) >= piece.end_ns))
      return std::string(trace_.name(each));
  return unit_name(unit);
}

// Did autograd's own thread work since the last operator of this one?
bool CallTree::comes_after_backward(TrackId track, SliceId last, std::int64_t time_ns) const {
  for (const auto& [thread, sequence] : sequences_) {
    if (thread == raw(track) || sequence.units.empty() ||
        !trace_.name(sequence.units.front()).starts_with(kAutograd))
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
  const auto found = track == kNone<TrackId> ? sequences_.end() : sequences_.find(raw(track));
  const Sequence* sequence = found == sequences_.end() ? nullptr : &found->second;
  const std::size_t size = sequence ? sequence->units.size() : 0;
  std::size_t next = 0;
  if (sequence)
    next = static_cast<std::size_t>(
        std::upper_bound(
            sequence->units.begin(), sequence->units.end(), piece.start_ns,
            [&](std::int64_t time, SliceId unit) { return time < trace_.start_ns(unit); }) -
        sequence->units.begin());
  // The innermost loop around both neighbours.
  if (next > 0 && next < size)
    for (std::uint32_t l = sequence->loop_of[next - 1]; l != Repeat::kNoRepeat;
         l = loops_[l].parent)
      if (loops_[l].rounds >= kFewestLoopRounds &&
          trace_.start_ns(loops_[l].last) >= trace_.start_ns(sequence->units[next]))
        return loops_[l].node;
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

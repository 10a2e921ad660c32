#include "lanescope/explain/owners.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/choose_owners.h"
#include "lanescope/explain/owner_code.h"
#include "lanescope/explain/owner_work.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/step_state.h"

namespace lanescope::explain {

struct OwnersSlot {
  std::once_flag once;
  std::optional<Owners> owners;
};

namespace {

using simulate::PathPiece;

constexpr std::uint32_t kNoOwner = ~std::uint32_t{0};
constexpr std::size_t kMostParts = 5;

class OwnerFinder {
 public:
  OwnerFinder(const Facts& facts, const StepPath& path)
      : facts_(facts), path_(path), tree_(facts, path), code_(facts, path, tree_.has_stacks()) {}

  Owners run() {
    result_.total_ns = path_.total_ns;
    result_.time_ns = tree_.nodes()[0].time_ns;
    result_.has_stacks = tree_.has_stacks();
    for (const OwnerChoice& choice : choose_owners(tree_.nodes(), facts_.steps.marked)) {
      Owner owner = describe(choice.node, choice.is_rest);
      // The same operator inside and outside of a loop, or in two loops, is one owner.
      const auto same =
          std::find_if(result_.owners.begin(), result_.owners.end(), [&](const Owner& each) {
            return owner.kind == OwnerKind::kOperator && each.kind == owner.kind &&
                   each.name == owner.name && each.around == owner.around;
          });
      chosen_[choice.node] = static_cast<std::uint32_t>(same - result_.owners.begin());
      if (same == result_.owners.end()) result_.owners.push_back(std::move(owner));
    }
    add_path();
    sort();
    add_parts();
    add_functions();
    add_inside();
    count_owner_work(facts_, tree_, [this](SliceId slice) { return owner_of(slice); });
    // The profiler's own step() is no part of the program.
    std::erase_if(result_.owners, [](const Owner& owner) { return owner.is_profilers; });
    if (rules::is_host_bound(facts_))
      for (const PathPiece& piece : path_.pieces)
        if (piece.kind == simulate::PathKind::kCompute)
          result_.compute_windows.push_back({piece.start_ns, piece.end_ns});
    return std::move(result_);
  }

 private:
  Owner describe(std::uint32_t index, bool is_rest) const {
    const auto& nodes = tree_.nodes();
    const CallNode& node = nodes[index];
    Owner owner;
    owner.kind = node.kind;
    owner.name = node.name;
    owner.next_name = node.next_name;
    owner.example = node.example;
    owner.is_rest = is_rest;
    bool has_loop = false;
    for (std::uint32_t up = index; up != 0; up = nodes[up].parent) {
      const CallNode& each = nodes[up];
      if (each.kind == OwnerKind::kLoop && !has_loop) {
        has_loop = true;
        owner.rounds = each.rounds;
        owner.loops = each.loops;
        owner.fewest_rounds = each.fewest_rounds;
        owner.most_rounds = each.most_rounds;
        owner.cell = each.cell;
        owner.cell_size = each.cell_size;
        owner.sizes = each.sizes;
        owner.has_large_products = each.has_large_products;
        owner.has_layers = each.has_layers;
        owner.has_backward = each.has_backward;
        owner.repeats_graph = each.repeats_graph;
        owner.adds_gradients = each.adds_gradients;
        owner.backward_passes = each.backward_passes;
      }
      if (up == index || each.kind == OwnerKind::kLoop) continue;
      if (owner.around.empty()) owner.around_kind = each.kind;
      owner.around.insert(owner.around.begin(), each.name);
    }
    return owner;
  }

  void sort() {
    auto& owners = result_.owners;
    std::vector<std::uint32_t> order(owners.size()), place(owners.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto rank = [&](const Owner& owner) {
      const double share =
          static_cast<double>(owner.total_ns) / static_cast<double>(result_.total_ns);
      return std::pair(rank_of_owner(owner.kind == OwnerKind::kStep, share), -owner.total_ns);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return rank(owners[a]) < rank(owners[b]);
    });
    std::vector<Owner> sorted;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(std::move(owners[order[i]]));
    }
    owners = std::move(sorted);
    for (auto& [node, owner] : chosen_) owner = place[owner];
    owner_of_node_.clear();
  }

  // The owner that a node belongs to: the chosen node nearest above it.
  std::uint32_t owner_index(std::uint32_t node) {
    const auto& nodes = tree_.nodes();
    // The tree may have grown since the last call. Parents come before children.
    for (auto i = static_cast<std::uint32_t>(owner_of_node_.size()); i < nodes.size(); ++i) {
      const auto found = chosen_.find(i);
      owner_of_node_.push_back(found != chosen_.end() ? found->second
                               : i == 0               ? kNoOwner
                                                      : owner_of_node_[nodes[i].parent]);
    }
    return owner_of_node_[node];
  }
  Owner* owner_of(SliceId slice) {
    const std::uint32_t node = tree_.node_of(slice);
    if (node == 0) return nullptr;
    const std::uint32_t index = owner_index(node);
    return index == kNoOwner ? nullptr : &result_.owners[index];
  }

  void add_path() {
    struct StepTime {
      std::size_t step = 0;
      std::int64_t time_ns = 0;
    };
    std::vector<StepTime> in_step(result_.owners.size());  // of each owner in its last step so far
    std::vector<std::int64_t> longest(result_.owners.size(), -1);
    const auto& steady = facts_.selection.steady;
    std::size_t at = 0;
    for (std::size_t i = 0; i < path_.pieces.size(); ++i) {
      const PathPiece& piece = path_.pieces[i];
      while (at + 1 < steady.size() && facts_.step_window(steady[at]).end_ns < piece.end_ns) ++at;
      const std::uint32_t index = owner_index(tree_.node_of_piece()[i]);
      if (index == kNoOwner) continue;
      Owner& owner = result_.owners[index];
      const std::int64_t time = piece.end_ns - piece.start_ns;
      owner.total_ns += time;
      owner.time_ns[static_cast<std::size_t>(piece.kind)] += time;
      StepTime& step = in_step[index];
      if (step.step != at) step = {at, 0};  // pieces are in order of time
      step.time_ns += time;
      owner.most_in_a_step_ns = std::max(owner.most_in_a_step_ns, step.time_ns);
      if (tree_.is_code(i)) {
        owner.code_ns += time;
        if (owner.kind == OwnerKind::kCode) code_.add(index, piece);
        if (owner.kind == OwnerKind::kLoop) code_.add_frames(index, piece);
      }
      if (piece.slice != kNone<SliceId> && time > longest[index] &&
          !(owner.has_backward && is_of_backward(piece.slice))) {
        longest[index] = time;
        owner.example = piece.slice;
      }
    }
    code_.finish(result_.owners);
  }

  // In a loop with a backward pass in each round, the program's own calls have a place in the backward pass.
  bool is_of_backward(SliceId slice) const {
    return rules::ancestor_named(facts_, cpu_side(facts_, slice), "autograd::engine::") !=
           kNone<SliceId>;
  }

  void add_parts() {
    const auto& nodes = tree_.nodes();
    std::vector<std::map<std::string, std::int64_t>> parts(result_.owners.size());
    for (std::uint32_t i = 1; i < nodes.size(); ++i) {
      if (nodes[i].kind != OwnerKind::kOperator && nodes[i].kind != OwnerKind::kCall) continue;
      const std::uint32_t index = owner_index(i);
      if (index != kNoOwner) parts[index][nodes[i].name] += nodes[i].total_ns;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto& sorted = result_.owners[i].parts;
      for (const auto& [label, time] : parts[i])
        if (time > 0) sorted.push_back({label, time});
      sort_rows(sorted.begin(), sorted.end(),
                [](const OwnerPart& a, const OwnerPart& b) { return a.time_ns > b.time_ns; });
      if (sorted.size() > kMostParts) sorted.resize(kMostParts);
    }
  }

  // The function inside of an owner that has most of its operators: of those that call them, not of those around the whole owner.
  void add_functions() {
    struct Times {
      std::int64_t own_ns = 0, all_ns = 0;  // of operators that it calls itself, and of all in it
      std::set<std::string> calls;
    };
    const auto& nodes = tree_.nodes();
    std::vector<std::map<std::string, Times>> functions(result_.owners.size());
    for (std::uint32_t i = 1; i < nodes.size(); ++i) {
      if (nodes[i].kind != OwnerKind::kOperator && nodes[i].kind != OwnerKind::kCall) continue;
      const std::uint32_t index = owner_index(i);
      if (index == kNoOwner) continue;
      std::vector<std::string> around;  // from the inside, each once
      for (std::uint32_t up = i; up != 0 && !chosen_.contains(up); up = nodes[up].parent)
        if (nodes[up].kind == OwnerKind::kLine &&
            std::find(around.begin(), around.end(), nodes[up].name) == around.end())
          around.push_back(nodes[up].name);
      for (const std::string& each : around) {
        functions[index][each].all_ns += nodes[i].total_ns;
        functions[index][each].calls.insert(nodes[i].name);
      }
      if (!around.empty()) functions[index][around.front()].own_ns += nodes[i].total_ns;
    }
    for (std::uint32_t i = 0; i < result_.owners.size(); ++i) {
      Owner& owner = result_.owners[i];
      std::int64_t most_ns = 0;
      for (const auto& [label, times] : functions[i]) {
        const bool is_part =
            times.all_ns * 4 >= owner.total_ns && times.all_ns * 5 < owner.total_ns * 4;
        if (!is_part || times.own_ns <= most_ns) continue;
        most_ns = times.own_ns;
        owner.function = label;
        owner.function_ns = times.all_ns;
        owner.function_calls.assign(times.calls.begin(), times.calls.end());
      }
    }
  }

  // Operators inside the longest call of each owner that is an operator.
  void add_inside() {
    const Trace& trace = *facts_.trace;
    for (Owner& owner : result_.owners) {
      SliceId slice = cpu_side(facts_, owner.example);
      for (; slice != kNone<SliceId>; slice = facts_.nesting.parent[raw(slice)])
        if (trace.kind(slice) == CategoryKind::kCpuOp)
          owner.inside.insert(owner.inside.begin(), std::string(trace.name(slice)));
    }
  }

  const Facts& facts_;
  const StepPath& path_;
  CallTree tree_;
  std::map<std::uint32_t, std::uint32_t> chosen_;  // node -> owner
  std::vector<std::uint32_t> owner_of_node_;       // as owner_index()
  OwnerCode code_;
  Owners result_;
};

}  // namespace

const char* owner_kind_name(OwnerKind kind) {
  constexpr const char* kNames[] = {"step", "range",    "module", "line", "backward",
                                    "loop", "operator", "call",   "code"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::shared_ptr<OwnersSlot> make_owners_slot() { return std::make_shared<OwnersSlot>(); }

const Owners* step_owners(const Facts& facts) {
  OwnersSlot& slot = *facts.owners;
  std::call_once(slot.once, [&] {
    if (const std::optional<StepPath> path = find_step_path(facts))
      slot.owners = OwnerFinder(facts, *path).run();
  });
  return slot.owners ? &*slot.owners : nullptr;
}

}  // namespace lanescope::explain

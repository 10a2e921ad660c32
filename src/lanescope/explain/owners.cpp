#include "lanescope/explain/owners.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/start_up_calls.h"

namespace lanescope::explain {

struct OwnersSlot {
  std::once_flag once;
  std::optional<Owners> owners;
};

namespace {

using analysis::DeviceWork;
using simulate::PathKind;
using simulate::PathPiece;

constexpr std::uint32_t kNoOwner = ~std::uint32_t{0};
// A child with so much of its parent's time replaces it.
constexpr double kStandsFor = 0.8;
// A range of the CPU whose largest child has less than this is named as a whole.
constexpr double kScattered = 0.4;
constexpr std::size_t kMostParts = 5;

bool is_mostly_cpu(const CallNode& node) {
  const auto of = [&](PathKind kind) { return node.time_ns[static_cast<std::size_t>(kind)]; };
  return (of(PathKind::kHost) + of(PathKind::kCall) + of(PathKind::kDelay)) * 2 > node.total_ns;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Spread spread_of(const std::vector<std::int64_t>& times) {
  constexpr std::size_t kFewest = 8;
  if (times.size() < kFewest) return {};
  Spread spread;
  spread.median_ns = analysis::lower_median(times);
  for (const std::int64_t time : times) {
    spread.longest_ns = std::max(spread.longest_ns, time);
    spread.excess_ns += std::max<std::int64_t>(0, time - 2 * spread.median_ns);
  }
  return spread;
}

// Chooses the nodes that are owners.
class Chooser {
 public:
  explicit Chooser(const std::vector<CallNode>& nodes) : nodes_(nodes), children_(nodes.size()) {
    for (std::uint32_t i = 1; i < nodes.size(); ++i) children_[nodes[i].parent].push_back(i);
    for (auto& each : children_)
      std::stable_sort(each.begin(), each.end(), [&](std::uint32_t a, std::uint32_t b) {
        return nodes_[a].total_ns > nodes_[b].total_ns;
      });
    least_ns_ = static_cast<std::int64_t>(kLeastOwner * static_cast<double>(nodes[0].total_ns));
    choose(0);
  }

  struct Choice {
    std::uint32_t node = 0;
    std::int64_t total_ns = 0;  // less what others took
    bool is_rest = false;
  };
  std::vector<Choice> choices;

 private:
  bool is_whole(std::uint32_t index) const {
    const CallNode& node = nodes_[index];
    if (children_[index].empty()) return true;
    const CallNode& largest = nodes_[children_[index].front()];
    switch (node.kind) {
      case OwnerKind::kOperator:
      case OwnerKind::kCall:
        return true;
      case OwnerKind::kLoop:
        return is_mostly_cpu(node) || node.waits >= node.rounds;
      case OwnerKind::kStep:
        return false;
      case OwnerKind::kRange:
        if (is_loader(node.name)) return true;
        [[fallthrough]];
      default:
        return is_mostly_cpu(node) && share(largest.total_ns, node.total_ns) < kScattered;
    }
  }

  void choose(std::uint32_t index) {
    while (!is_whole(index) &&
           share(nodes_[children_[index].front()].total_ns, nodes_[index].total_ns) >= kStandsFor)
      index = children_[index].front();
    const std::int64_t total_ns = nodes_[index].total_ns;
    if (is_whole(index)) {
      choices.push_back({index, total_ns, false});
      return;
    }
    std::int64_t rest_ns = total_ns;
    for (const std::uint32_t child : children_[index]) {
      if (nodes_[child].total_ns < least_ns_) break;
      rest_ns -= nodes_[child].total_ns;
      choose(child);
    }
    if (rest_ns >= least_ns_) choices.push_back({index, rest_ns, rest_ns != total_ns});
  }

  const std::vector<CallNode>& nodes_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::int64_t least_ns_ = 0;
};

class OwnerFinder {
 public:
  OwnerFinder(const Facts& facts, const StepPath& path)
      : facts_(facts), path_(path), tree_(facts, path) {}

  Owners run() {
    result_.total_ns = path_.total_ns;
    result_.time_ns = tree_.nodes()[0].time_ns;
    result_.has_stacks = tree_.has_stacks();
    Chooser chooser(tree_.nodes());
    std::stable_sort(chooser.choices.begin(), chooser.choices.end(),
                     [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
    if (chooser.choices.size() > kMostOwners) chooser.choices.resize(kMostOwners);
    for (const auto& choice : chooser.choices) {
      Owner owner = describe(choice.node, choice.is_rest);
      // The same operator in a loop and beside it, or in two loops, is one owner.
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
    for (const SliceId unit : tree_.units())
      if (Owner* owner = owner_of(unit)) ++owner->work.calls;
    add_inside();
    add_calls();
    if (facts_.main_device) {
      add_gpu_work();
      add_rates();
    } else {
      add_uneven_calls();
    }
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
        owner.cell = each.cell;
        owner.cell_size = each.cell_size;
        owner.sizes = each.sizes;
        owner.has_large_products = each.has_large_products;
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
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return owners[a].total_ns > owners[b].total_ns;
    });
    std::vector<Owner> sorted;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(std::move(owners[order[i]]));
    }
    owners = std::move(sorted);
    for (auto& [node, owner] : chosen_) owner = place[owner];
  }

  // The owner that a node belongs to: the chosen node nearest above it.
  std::uint32_t owner_index(std::uint32_t node) const {
    const auto& nodes = tree_.nodes();
    for (;; node = nodes[node].parent) {
      if (const auto found = chosen_.find(node); found != chosen_.end()) return found->second;
      if (node == 0) return kNoOwner;
    }
  }
  Owner* owner_of(SliceId slice) {
    const std::uint32_t node = tree_.node_of(slice);
    if (node == 0) return nullptr;
    const std::uint32_t index = owner_index(node);
    return index == kNoOwner ? nullptr : &result_.owners[index];
  }

  void add_path() {
    std::map<std::pair<std::uint32_t, std::size_t>, std::int64_t> by_step;
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
      by_step[{index, at}] += time;
      if (tree_.is_code(i)) {
        owner.code_ns += time;
        if (owner.kind == OwnerKind::kCode) {
          see_other_threads(index, piece);
          see_frames(index, piece);
        }
      }
      if (piece.slice != kNone<SliceId> && time > longest[index]) {
        longest[index] = time;
        owner.example = piece.slice;
      }
    }
    for (const auto& [key, time] : elsewhere_) {
      Owner& owner = result_.owners[std::get<0>(key)];
      if (time <= owner.other_ns || time * 2 < owner.total_ns) continue;
      const Track& track = facts_.trace->track(TrackId{std::get<1>(key)});
      owner.other_ns = time;
      owner.other_thread = track.tid.is_text ? std::string(facts_.trace->text(track.tid.text))
                                             : std::to_string(track.tid.number);
      owner.other_event = std::get<2>(key);
    }
    for (const auto& [key, time] : frames_) {
      Owner& owner = result_.owners[key.first];
      if (time <= owner.frame_ns || time * 2 < owner.total_ns) continue;
      owner.frame_ns = time;
      owner.frame = facts_.trace->text(StringId{key.second});
    }
    for (const auto& [key, time] : by_step) {
      std::int64_t& most = result_.owners[key.first].most_in_a_step_ns;
      most = std::max(most, time);
    }
  }

  // What other threads of the process do while this one runs code: it may wait for them.
  void see_other_threads(std::uint32_t owner, const PathPiece& piece) {
    constexpr std::int64_t kShortestNs = 50'000;
    const Trace& trace = *facts_.trace;
    if (piece.end_ns - piece.start_ns < kShortestNs || !facts_.host) return;
    const TrackId own =
        piece.slice == kNone<SliceId> ? path_.thread : trace.slices().track[raw(piece.slice)];
    if (own == kNone<TrackId>) return;
    for (std::uint32_t t = 0; t < trace.tracks().size(); ++t) {
      const Track& track = trace.track(TrackId{t});
      if (TrackId{t} == own || track.kind != TrackKind::kThread || track.slice_count == 0 ||
          track.process != trace.track(own).process)
        continue;
      facts_.host->visit(TrackId{t}, piece.start_ns, piece.end_ns,
                         [&](SliceId slice, std::int64_t from, std::int64_t to) {
                           if (slice != kNone<SliceId>)
                             elsewhere_[{owner, t, std::string(trace.name(slice))}] += to - from;
                         });
    }
  }

  // Own time of the Python frames that began in a piece of code, on its thread.
  void see_frames(std::uint32_t owner, const PathPiece& piece) {
    const Trace& trace = *facts_.trace;
    if (!tree_.has_stacks()) return;
    const TrackId own = piece.slice == kNone<SliceId> || is_device_work(trace.kind(piece.slice))
                            ? path_.thread
                            : trace.slices().track[raw(piece.slice)];
    if (own == kNone<TrackId>) return;
    if (!frames_of_.contains(raw(own)))
      for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
        if (trace.slices().track[i] == own &&
            trace.kind(SliceId{i}) == CategoryKind::kPythonFunction)
          frames_of_[raw(own)].push_back(SliceId{i});
    const std::vector<SliceId>& frames = frames_of_[raw(own)];
    std::vector<SliceId> open;
    const auto clipped = [&](SliceId frame) {
      return std::min(trace.end_ns(frame), piece.end_ns) - trace.start_ns(frame);
    };
    for (auto at = std::lower_bound(
             frames.begin(), frames.end(), piece.start_ns,
             [&](SliceId frame, std::int64_t time) { return trace.start_ns(frame) < time; });
         at != frames.end() && trace.start_ns(*at) < piece.end_ns; ++at) {
      while (!open.empty() && trace.end_ns(open.back()) <= trace.start_ns(*at)) open.pop_back();
      frames_[{owner, raw(trace.slices().name[raw(*at)])}] += clipped(*at);
      if (!open.empty())
        frames_[{owner, raw(trace.slices().name[raw(open.back())])}] -= clipped(*at);
      open.push_back(*at);
    }
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
      std::stable_sort(sorted.begin(), sorted.end(), [](const OwnerPart& a, const OwnerPart& b) {
        return a.time_ns > b.time_ns;
      });
      if (sorted.size() > kMostParts) sorted.resize(kMostParts);
    }
  }

  // Operators inside the longest call of each owner that is an operator.
  void add_inside() {
    const Trace& trace = *facts_.trace;
    for (Owner& owner : result_.owners) {
      if (owner.example == kNone<SliceId>) continue;
      SliceId slice = owner.example;
      if (is_device_work(trace.kind(slice))) slice = facts_.links.launch_of[raw(slice)];
      for (; slice != kNone<SliceId>; slice = facts_.nesting.parent[raw(slice)])
        if (trace.kind(slice) == CategoryKind::kCpuOp)
          owner.inside.insert(owner.inside.begin(), std::string(trace.name(slice)));
    }
  }

  void add_calls() {
    const Trace& trace = *facts_.trace;
    const auto windows = facts_.steady_cpu_windows();
    std::unordered_set<std::uint32_t> start_up;
    if (facts_.main_device)
      for (const SliceId id : rules::first_use_calls(facts_)) {
        if (!inside(windows, trace.start_ns(id))) continue;
        start_up.insert(raw(id));
        if (Owner* owner = owner_of(id)) {
          ++owner->work.start_up_calls;
          owner->work.start_up_ns += trace.dur_ns(id);
        }
      }
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
      const SliceId id{i};
      const ApiCall call = trace.api_call(id);
      if (start_up.contains(i)) continue;
      if (!call.does(api_effect::kAllocates | api_effect::kFrees | api_effect::kBlocks)) continue;
      const SliceId around = facts_.nesting.parent[i];
      if (around != kNone<SliceId> && is_api_call(trace.kind(around))) continue;
      if (!inside(windows, trace.start_ns(id))) continue;
      Owner* owner = owner_of(id);
      if (!owner) continue;
      if (call.does(api_effect::kAllocates | api_effect::kFrees)) {
        ++owner->work.allocator_calls;
        owner->work.allocator_ns += trace.dur_ns(id);
      } else {
        ++owner->work.waits;
      }
    }
  }

  // Equal calls take equal time where the core is theirs.
  void add_uneven_calls() {
    const Trace& trace = *facts_.trace;
    std::map<std::tuple<Owner*, std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> equal;
    for (const SliceId unit : tree_.units()) {
      const auto dims = trace.slice_args(unit).text(ArgKey::kInputDims);
      if (Owner* owner = owner_of(unit); owner && dims)
        equal[{owner, raw(trace.slices().name[raw(unit)]), raw(*dims)}].push_back(
            trace.dur_ns(unit));
    }
    for (const auto& [key, times] : equal)
      std::get<0>(key)->work.uneven_ns += spread_of(times).excess_ns;
  }

  void add_gpu_work() {
    struct Kernels {
      std::uint64_t count = 0;
      std::int64_t time_ns = 0, longest_ns = -1;
      SliceId longest = kNone<SliceId>;
      std::vector<std::int64_t> times;
    };
    const Trace& trace = *facts_.trace;
    std::map<std::pair<Owner*, std::uint32_t>, Kernels> by_name;  // owner, name
    std::unordered_set<std::uint32_t> calls;
    std::map<Owner*, std::vector<std::int64_t>> launch_times;
    for (const DeviceWork* work : rules::steady_work(facts_)) {
      Owner* owner = owner_of(work->slice);
      if (!owner) continue;
      OwnerWork& sum = owner->work;
      const std::int64_t time = work->end_ns - work->start_ns;
      ++sum.launches;
      sum.gpu_ns += time;
      const SliceId launch = facts_.links.launch_of[raw(work->slice)];
      if (launch != kNone<SliceId> && calls.insert(raw(launch)).second) {
        sum.launch_calls_ns += trace.dur_ns(launch);
        launch_times[owner].push_back(trace.dur_ns(launch));
      }
      if (trace.kind(work->slice) == CategoryKind::kGpuMemcpy) {
        ++sum.copies;
        sum.copies_ns += time;
        sum.copied_bytes += rules::bytes_of(facts_, work->slice);
        if (sum.longest_copy == kNone<SliceId> || trace.dur_ns(sum.longest_copy) < time)
          sum.longest_copy = work->slice;
        continue;
      }
      Kernels& kernels = by_name[{owner, raw(trace.slices().name[raw(work->slice)])}];
      ++kernels.count;
      kernels.time_ns += time;
      kernels.times.push_back(time);
      if (time > kernels.longest_ns) {
        kernels.longest_ns = time;
        kernels.longest = work->slice;
      }
    }
    for (const auto& [key, kernels] : by_name) {
      OwnerWork& sum = key.first->work;
      if (kernels.time_ns <= sum.top_kernel_ns) continue;
      sum.top_kernel_ns = kernels.time_ns;
      sum.top_kernel_count = kernels.count;
      sum.top_kernel = kernels.longest;
      sum.kernel_spread = spread_of(kernels.times);
    }
    for (const auto& [owner, times] : launch_times) owner->work.launch_spread = spread_of(times);
  }

  void add_rates() {
    const analysis::Roofline& roofline = kernel_facts(facts_).roofline;
    for (const analysis::RooflineCall& call : roofline.calls) {
      if (call.kind != analysis::RooflineClass::kCompute &&
          call.kind != analysis::RooflineClass::kMemory)
        continue;
      Owner* owner = owner_of(call.op);
      if (!owner) continue;
      owner->work.rated_ns += call.time_ns;
      owner->work.rated_floor_ns += std::min(call.floor_ns(), static_cast<double>(call.time_ns));
      if (call.kind == analysis::RooflineClass::kMemory)
        owner->work.rated_by_memory_ns += call.time_ns;
    }
  }

  const Facts& facts_;
  const StepPath& path_;
  CallTree tree_;
  std::map<std::uint32_t, std::uint32_t> chosen_;  // node -> owner
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::int64_t>
      elsewhere_;                                                           // owner, track, event
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> frames_;  // owner, name
  std::map<std::uint32_t, std::vector<SliceId>> frames_of_;                 // by track, by start
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

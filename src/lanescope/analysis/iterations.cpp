// Problem: without marks the whole recording is one window, and its start-up, which may be most of
// it, decides what the program looks like. Idea: a mark (a range that the program opens, or a wait)
// that comes again and again cuts the work into periods. They are iterations if neighbours hold
// nearly the same work and together they hold most of it. Example: Optimizer.step ends at 100, 110,
// 120, 130, with gemm, relu, gemm between any two of them -> three iterations of 10.
// A model's layers repeat too. So launches alone never make iterations: the program must name a
// range, or wait for the GPU once in each of them.
#include "lanescope/analysis/iterations.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/model/api_calls.h"

namespace lanescope::analysis {
namespace {

constexpr std::size_t kFewestIterations = 3;
constexpr std::size_t kFewestPieces = 3;  // of work in an iteration

struct Piece {
  std::int64_t time_ns;  // of the launch call; without a device, of the operator's start
  std::uint32_t name;
};

bool contains_any(std::string_view name, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != name.npos; });
}

bool is_optimizer_step(std::string_view name) { return name.starts_with("Optimizer.step#"); }
bool is_loader(std::string_view name) { return name.starts_with("enumerate(DataLoader)"); }

// Ranges of libraries, of compilers, and of parts of a model: they repeat within an iteration.
bool is_part_of_iteration(std::string_view name) {
  constexpr std::array<std::string_view, 16> kLibrary = {
      "TSL:",        "CCCL:",    "Torch-Compiled", "CompiledFxGraph",
      "TorchDynamo", "Pregraph", "AOTDisp",        "aten::",
      "autograd::",  "nccl:",    "c10d",           "gloo:",
      "dynamo",      "triton",   "Optimizer.",     "record_param_comms"};
  constexpr std::array<std::string_view, 9> kModel = {"layer", "block",  "attention", "attn", "mlp",
                                                      "norm",  "expert", "embed",     "head"};
  if (contains_any(name, kLibrary)) return true;
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return contains_any(lower, kModel);
}

// The work in order of its launch. Empty: it is unknown when the work was launched.
std::vector<Piece> find_pieces(const Trace& trace, const LaunchLinks& links) {
  std::vector<Piece> pieces;
  if (links.device_work_count > 0 && links.launched_count * 2 <= links.device_work_count)
    return pieces;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const bool on_device = is_device_work(trace.kind(id)) && links.launch_of[i] != kNone<SliceId>;
    if (on_device)
      pieces.push_back({trace.start_ns(links.launch_of[i]), raw(trace.slices().name[i])});
    else if (links.device_work_count == 0 && trace.kind(id) == CategoryKind::kCpuOp)
      pieces.push_back({trace.start_ns(id), raw(trace.slices().name[i])});
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.time_ns, a.name) < std::tie(b.time_ns, b.name);
  });
  return pieces;
}

class Periods {
 public:
  explicit Periods(const std::vector<Piece>& pieces) : pieces_(pieces) {}

  // Do the bounds cut most of the work from the first one on, and at least a third of all, into
  // periods of nearly the same work?
  bool repeat(const std::vector<std::int64_t>& bounds) const {
    if (bounds.size() < kFewestIterations + 1) return false;
    std::vector<std::size_t> at;
    for (const std::int64_t bound : bounds) at.push_back(index_of(bound));
    const std::size_t held = at.back() - at.front();
    if (held * 3 < (pieces_.size() - at.front()) * 2 || held * 3 < pieces_.size()) return false;
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i + 1 < at.size(); ++i) sizes.push_back(at[i + 1] - at[i]);
    std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2),
                     sizes.end());
    if (sizes[sizes.size() / 2] < kFewestPieces) return false;
    // The first period may hold start-up.
    const std::size_t first = at.size() > kFewestIterations + 1 ? 1 : 0;
    std::size_t pairs = 0, alike = 0;
    for (std::size_t i = first; i + 2 < at.size(); ++i, ++pairs)
      alike += are_alike(at[i], at[i + 1], at[i + 2]) ? 1 : 0;
    return alike * 4 >= pairs * 3;
  }

  // Does the work before the first bound look like that of the first period?
  bool begins_alike(std::int64_t start_ns, const std::vector<std::int64_t>& bounds) const {
    return bounds.size() >= 2 &&
           are_alike(index_of(start_ns), index_of(bounds[0]), index_of(bounds[1]));
  }

  // Would periods with the work of the middle one hold half of it? Otherwise they are a few waits
  // close together, next to a period in which the program does its work.
  bool hold_the_work(const std::vector<std::int64_t>& bounds) const {
    std::vector<std::size_t> sizes;
    for (std::size_t i = 1; i + 1 < bounds.size(); ++i)
      sizes.push_back(index_of(bounds[i + 1]) - index_of(bounds[i]));
    if (sizes.size() < kFewestIterations) return true;
    std::sort(sizes.begin(), sizes.end());
    return sizes[sizes.size() / 2] * sizes.size() * 2 >=
           std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  }

 private:
  std::size_t index_of(std::int64_t time_ns) const {
    const auto after = std::lower_bound(
        pieces_.begin(), pieces_.end(), time_ns,
        [](const Piece& piece, std::int64_t time) { return piece.time_ns < time; });
    return static_cast<std::size_t>(after - pieces_.begin());
  }

  // Four fifths of the pieces of the longer one of [a, b), [b, c) have an equal in the other one.
  bool are_alike(std::size_t a, std::size_t b, std::size_t c) const {
    const std::size_t longer = std::max(b - a, c - b);
    if (longer == 0 || std::min(b - a, c - b) * 5 < longer * 4) return false;
    std::unordered_map<std::uint32_t, std::int64_t> left;
    for (std::size_t i = a; i < b; ++i) ++left[pieces_[i].name];
    std::size_t common = 0;
    for (std::size_t i = b; i < c; ++i)
      if (left[pieces_[i].name]-- > 0) ++common;
    return common * 5 >= longer * 4;
  }

  const std::vector<Piece>& pieces_;
};

// Would iterations that are all as long as the middle one hold half of the time? Otherwise they are
// rounds of a loop inside of real iterations, which lie between some of them. The first may be
// start-up, and one may be a checkpoint.
bool hold_the_time(const std::vector<std::int64_t>& bounds) {
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 1; i + 1 < bounds.size(); ++i) lengths.push_back(bounds[i + 1] - bounds[i]);
  if (lengths.size() < kFewestIterations) return true;
  std::sort(lengths.begin(), lengths.end());
  lengths.pop_back();
  const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const auto count = static_cast<std::int64_t>(lengths.size());
  return wide(lengths[lengths.size() / 2]) * count * 2 >= total;
}

// Optimizer steps say most surely what an iteration is, waits least.
enum class Rank : std::uint8_t { kOptimizer, kRange, kLoader, kWait };

struct Candidate {
  Rank rank = Rank::kRange;
  std::vector<SliceId> marks;  // on one thread, in order
};

using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // track, name, owner's name

class Finder {
 public:
  Finder(const Trace& trace, const LaunchLinks& links, ProcessId process)
      : trace_(trace),
        links_(links),
        process_(process),
        nesting_(compute_slice_nesting(trace)),
        pieces_(find_pieces(trace, links)),
        periods_(pieces_) {}

  std::optional<Iterations> find() {
    if (pieces_.size() < kFewestPieces * kFewestIterations) return std::nullopt;
    collect();
    std::vector<const Candidate*> order;
    for (const auto& [key, candidate] : by_key_)
      if (candidate.marks.size() >= kFewestIterations &&
          !(candidate.rank == Rank::kWait && (compiles_with_xla_ || is_inside_training(candidate))))
        order.push_back(&candidate);
    // Within a rank the longest iterations; ties: what begins first.
    sort_rows(order.begin(), order.end(), [&](const Candidate* a, const Candidate* b) {
      return std::tuple(a->rank, a->marks.size(), trace_.start_ns(a->marks.front()),
                        raw(a->marks.front())) < std::tuple(b->rank, b->marks.size(),
                                                            trace_.start_ns(b->marks.front()),
                                                            raw(b->marks.front()));
    });
    for (const Candidate* each : order)
      if (auto found = iterations_of(*each)) return found;
    return std::nullopt;
  }

 private:
  void collect() {
    for (const Track& track : trace_.tracks()) {
      if (process_ != kNone<ProcessId> && track.process != process_) continue;
      for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
        add(SliceId{i});
    }
  }

  void add(SliceId id) {
    const std::string_view name = trace_.name(id);
    const std::uint32_t track = raw(trace_.slices().track[raw(id)]);
    const std::uint32_t name_id = raw(trace_.slices().name[raw(id)]);
    if (is_api_call(trace_.kind(id))) {
      if (links_.device_work_count == 0 ||
          !trace_.api_call(id).does(api_effect::kBlocks | api_effect::kWaitsForDevice))
        return;
      const SliceId owner = owner_of(id);
      const std::uint32_t owner_name =
          owner == kNone<SliceId> ? raw(kNone<StringId>) : raw(trace_.slices().name[raw(owner)]);
      put({track, name_id, owner_name}, Rank::kWait, id);
      return;
    }
    if (!is_front_end(trace_.kind(id))) return;
    compiles_with_xla_ = compiles_with_xla_ || name.starts_with("TSL: XlaCompile");
    const Key key{track, name_id, raw(kNone<StringId>)};
    // torch before 1.11 writes its own ranges as operators.
    if (is_optimizer_step(name))
      put(key, Rank::kOptimizer, id);
    else if (is_loader(name))
      put(key, Rank::kLoader, id);
    else if (trace_.kind(id) == CategoryKind::kUserAnnotation && !is_part_of_iteration(name))
      put(key, Rank::kRange, id);
  }

  void put(const Key& key, Rank rank, SliceId id) {
    Candidate& candidate = by_key_[key];
    candidate.rank = rank;
    candidate.marks.push_back(id);
  }

  // The outermost operator around a call.
  SliceId owner_of(SliceId call) const {
    SliceId owner = kNone<SliceId>;
    for (SliceId at = links_.op_of[raw(call)]; at != kNone<SliceId>; at = nesting_.parent[raw(at)])
      if (trace_.kind(at) == CategoryKind::kCpuOp) owner = at;
    return owner;
  }

  // Several waits between two steps of an optimizer are rounds of something inside, such as a solver.
  bool is_inside_training(const Candidate& waits) const {
    constexpr std::size_t kFewestSteps = 2, kWaitsOfAStep = 3;
    std::size_t steps = 0;
    for (const auto& [key, candidate] : by_key_)
      if (candidate.rank == Rank::kOptimizer) steps = std::max(steps, candidate.marks.size());
    return steps >= kFewestSteps && waits.marks.size() >= kWaitsOfAStep * steps;
  }

  // When the first operator of a thread begins.
  std::optional<std::int64_t> first_operator_ns(SliceId mark) const {
    const Track& track = trace_.track(mark);
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
      if (trace_.kind(SliceId{i}) == CategoryKind::kCpuOp) return trace_.start_ns(SliceId{i});
    return std::nullopt;
  }

  // Three steps of an optimizer end three iterations. The first one began with the recording, if it has the work and about
  // the length of the second.
  bool add_first(const Candidate& candidate, std::vector<std::int64_t>& bounds) const {
    if (candidate.rank != Rank::kOptimizer || bounds.size() != kFewestIterations) return false;
    const auto start_ns = first_operator_ns(candidate.marks.front());
    if (!start_ns || *start_ns >= bounds[0] ||
        bounds[0] - *start_ns > 2 * (bounds[1] - bounds[0]) ||
        !periods_.begins_alike(*start_ns, bounds))
      return false;
    bounds.insert(bounds.begin(), *start_ns);
    return true;
  }

  std::optional<Iterations> iterations_of(const Candidate& candidate) const {
    const auto& marks = candidate.marks;
    for (std::size_t i = 1; i < marks.size(); ++i)
      if (trace_.start_ns(marks[i]) < trace_.end_ns(marks[i - 1])) return std::nullopt;
    const bool by_start = candidate.rank == Rank::kRange || candidate.rank == Rank::kLoader;
    std::vector<std::int64_t> bounds;
    for (const SliceId mark : marks)
      bounds.push_back(by_start ? trace_.start_ns(mark) : trace_.end_ns(mark));
    // A range of the program's own holds the last iteration as well. What follows the last batch
    // is unknown: asking for one more may only have ended the loop.
    if (candidate.rank == Rank::kRange) bounds.push_back(trace_.end_ns(marks.back()));
    const bool has_first = add_first(candidate, bounds);
    if (!periods_.repeat(bounds)) return std::nullopt;
    if (candidate.rank == Rank::kWait && !(hold_the_time(bounds) && periods_.hold_the_work(bounds)))
      return std::nullopt;
    Iterations found;
    found.kind = by_start                        ? IterationMark::kRangeStart
                 : candidate.rank == Rank::kWait ? IterationMark::kWait
                                                 : IterationMark::kRangeEnd;
    found.mark = trace_.name(marks.front());
    if (candidate.rank == Rank::kWait)
      if (const SliceId owner = owner_of(marks.front()); owner != kNone<SliceId>)
        found.owner = trace_.name(owner);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
      found.ranges.push_back({marks[by_start || has_first ? i : i + 1], bounds[i], bounds[i + 1]});
    return found;
  }

  const Trace& trace_;
  const LaunchLinks& links_;
  const ProcessId process_;
  const SliceNesting nesting_;
  const std::vector<Piece> pieces_;
  const Periods periods_;
  // XLA's search for the best kernels launches, waits and repeats, too.
  bool compiles_with_xla_ = false;
  std::map<Key, Candidate> by_key_;
};

}  // namespace

std::optional<Iterations> find_iterations(const Trace& trace, const LaunchLinks& links,
                                          ProcessId process) {
  return Finder(trace, links, process).find();
}

}  // namespace lanescope::analysis

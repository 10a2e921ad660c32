// Problem: without marks the whole recording is one window, and its start-up, which may be most of
// it, decides what the program looks like. Idea: a mark (a range that the program opens, or a wait)
// that comes again and again cuts the work into periods. They are iterations if neighbours hold
// nearly the same work and together they hold most of it. Example: Optimizer.step ends at 100, 110,
// 120, 130, with gemm, relu, gemm between any two of them -> three iterations of 10.
// A model's layers repeat too. So operators that repeat make iterations only if next to nothing lies
// outside of them, as embeddings and a head lie outside of layers, or if each of them exchanges data
// with the CPU.
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
constexpr std::size_t kFewestPieces = 3;     // of work in an iteration
constexpr std::size_t kFewestOperators = 8;  // outermost ones in an iteration that they mark

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

// torch before 1.11 writes its own ranges as operators.
bool is_step_of_loop(std::string_view name) {
  return is_optimizer_step(name) || is_loader(name) || name.starts_with("ProfilerStep#");
}

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
  bool repeat(const std::vector<std::int64_t>& bounds, bool any_length = false) const {
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
      alike += (any_length ? have_same_kinds(at[i], at[i + 1], at[i + 2])
                           : are_alike(at[i], at[i + 1], at[i + 2]))
                   ? 1
                   : 0;
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

  // Is less work outside of the periods than a tenth of one? Around layers there is more: embeddings, a head.
  bool hold_nearly_all(const std::vector<std::int64_t>& bounds) const {
    constexpr std::size_t kTenth = 10;
    const std::size_t held = index_of(bounds.back()) - index_of(bounds.front());
    return (pieces_.size() - held) * kTenth * (bounds.size() - 1) < held;
  }

  // The part of the pieces of the two least alike neighbours that both have.
  double likeness(const std::vector<Iterations::Range>& ranges) const {
    double least = 1;
    for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
      const std::size_t a = index_of(ranges[i].start_ns), b = index_of(ranges[i].end_ns),
                        c = index_of(ranges[i + 1].end_ns);
      least = std::min(least,
                       static_cast<double>(common_pieces(a, b, c)) /
                           static_cast<double>(std::max<std::size_t>(1, std::max(b - a, c - b))));
    }
    return least;
  }

  std::size_t pieces_in(std::int64_t from_ns, std::int64_t to_ns) const {
    return index_of(to_ns) - index_of(from_ns);
  }

  // Is the work of the last period like that of the one before?
  bool are_alike_at_end(const std::vector<std::int64_t>& bounds) const {
    const std::size_t last = bounds.size() - 1;
    return are_alike(index_of(bounds[last - 2]), index_of(bounds[last - 1]),
                     index_of(bounds[last]));
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
    return common_pieces(a, b, c) * 5 >= longer * 4;
  }

  // How many pieces of [b, c) have an equal in [a, b).
  std::size_t common_pieces(std::size_t a, std::size_t b, std::size_t c) const {
    std::unordered_map<std::uint32_t, std::int64_t> left;
    for (std::size_t i = a; i < b; ++i) ++left[pieces_[i].name];
    std::size_t common = 0;
    for (std::size_t i = b; i < c; ++i)
      if (left[pieces_[i].name]-- > 0) ++common;
    return common;
  }

  // Four fifths of the kinds of pieces of either stretch are in the other one, and neither is four times as long.
  bool have_same_kinds(std::size_t a, std::size_t b, std::size_t c) const {
    constexpr std::size_t kLonger = 4;
    if (std::max(b - a, c - b) >= kLonger * std::min(b - a, c - b)) return false;
    std::unordered_map<std::uint32_t, std::uint8_t> kinds;  // 1: in the first, 2: in the second
    for (std::size_t i = a; i < b; ++i) kinds[pieces_[i].name] |= 1;
    for (std::size_t i = b; i < c; ++i) kinds[pieces_[i].name] |= 2;
    std::size_t in_both = 0;
    for (const auto& [kind, in] : kinds) in_both += in == 3 ? 1 : 0;
    return in_both * 5 >= kinds.size() * 4;
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

// Does the last one take more than the two before it together?
bool is_long_at_end(const std::vector<std::int64_t>& bounds) {
  const std::size_t last = bounds.size() - 1;
  return last >= 3 && bounds[last] - bounds[last - 1] > bounds[last - 1] - bounds[last - 3];
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
          !(candidate.rank == Rank::kWait &&
            (compiles_with_xla_ || is_inside_training(candidate.marks.size()))))
        order.push_back(&candidate);
    // Within a rank the longest iterations; ties: what begins first.
    sort_rows(order.begin(), order.end(), [&](const Candidate* a, const Candidate* b) {
      return std::tuple(a->rank, a->marks.size(), trace_.start_ns(a->marks.front()),
                        raw(a->marks.front())) < std::tuple(b->rank, b->marks.size(),
                                                            trace_.start_ns(b->marks.front()),
                                                            raw(b->marks.front()));
    });
    for (const Candidate* each : order)
      if (auto found = each->rank == Rank::kOptimizer ? iterations_of_optimizer(*each)
                       : each->rank == Rank::kWait    ? iterations_of_waits(*each)
                                                      : iterations_of(*each))
        return found;
    return iterations_of_operators();
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

  // Several waits or operators between two steps of an optimizer are rounds of something inside, such as a solver.
  bool is_inside_training(std::size_t mark_count) const {
    constexpr std::size_t kFewestSteps = 2, kMarksOfAStep = 3;
    std::size_t steps = 0;
    for (const auto& [key, candidate] : by_key_)
      if (candidate.rank == Rank::kOptimizer) steps = std::max(steps, candidate.marks.size());
    return steps >= kFewestSteps && mark_count >= kMarksOfAStep * steps;
  }

  // When the first operator of a thread begins.
  std::optional<std::int64_t> first_operator_ns(SliceId mark) const {
    const Track& track = trace_.track(mark);
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
      if (trace_.kind(SliceId{i}) == CategoryKind::kCpuOp) return trace_.start_ns(SliceId{i});
    return std::nullopt;
  }

  // Three steps of an optimizer, or three waits, end three iterations. The first one began with the recording, if it has the work
  // and about the length of the second.
  bool add_first(const Candidate& candidate, std::vector<std::int64_t>& bounds) const {
    if ((candidate.rank != Rank::kOptimizer && candidate.rank != Rank::kWait) ||
        bounds.size() != kFewestIterations)
      return false;
    const auto start_ns = first_operator_ns(candidate.marks.front());
    if (!start_ns || *start_ns >= bounds[0] ||
        bounds[0] - *start_ns > 2 * (bounds[1] - bounds[0]) ||
        !periods_.begins_alike(*start_ns, bounds))
      return false;
    bounds.insert(bounds.begin(), *start_ns);
    return true;
  }

  // An iteration may hold several steps: of one optimizer for each parameter, of a GAN's two parts.
  std::optional<Iterations> iterations_of_optimizer(const Candidate& all) const {
    constexpr std::size_t kMostSteps = 8;
    if (const std::size_t steps = marks_between_long_periods(all, {2, 3}); steps > 0)
      if (auto found = iterations_of(every(steps, all))) {
        found->owner = std::to_string(steps);
        return found;
      }
    if (auto found = iterations_of(all)) return found;
    std::size_t best = 0;
    double most_alike = 0;
    for (std::size_t steps = 2;
         steps <= kMostSteps && steps * kFewestIterations <= all.marks.size(); ++steps) {
      const auto found = iterations_of(every(steps, all));
      if (!found) continue;
      const double alike = periods_.likeness(found->ranges);
      if (alike <= most_alike) continue;
      most_alike = alike;
      best = steps;
    }
    // Closures and solvers make steps of any length.
    if (best == 0) return iterations_of(all, true);
    auto found = iterations_of(every(best, all));
    if (found) found->owner = std::to_string(best);
    return found;
  }

  // A program may wait once for each request or row of a batch. Every n-th period between two waits then holds what it does for
  // the whole batch, and n waits are one iteration.
  std::optional<Iterations> iterations_of_waits(const Candidate& all) const {
    if (const std::size_t waits = marks_between_long_periods(all, {3, 2}); waits > 0)
      if (auto found = iterations_of(every(waits, all))) {
        found->waits = waits;
        return found;
      }
    return iterations_of(all);
  }

  struct LongPeriods {
    std::size_t fewest = 2;
    std::int64_t least_tenths = 3;  // of the time
  };

  // Reinforcement learning plays with the policy, then makes many optimizer steps on what it saw. Every n-th period between two
  // steps then holds the play: it is long, and has work that the others have not. Returns n; 0: there are no such periods, or
  // fewer than `least`, or they have less of the time.
  std::size_t marks_between_long_periods(const Candidate& all, LongPeriods least) const {
    constexpr std::int64_t kLonger = 3;  // times the median
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 0; i + 1 < all.marks.size(); ++i)
      lengths.push_back(trace_.end_ns(all.marks[i + 1]) - trace_.end_ns(all.marks[i]));
    if (lengths.size() < kFewestIterations) return 0;
    std::vector<std::int64_t> sorted = lengths;
    std::sort(sorted.begin(), sorted.end());
    const std::int64_t usual_ns = sorted[sorted.size() / 2];
    std::vector<std::size_t> at;
    std::int64_t long_ns = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] < kLonger * usual_ns) continue;
      at.push_back(i);
      long_ns += lengths[i];
    }
    if (at.size() < least.fewest || wide(long_ns) * 10 < wide(trace_.end_ns(all.marks.back()) -
                                                              trace_.end_ns(all.marks.front())) *
                                                             least.least_tenths)
      return 0;
    const std::size_t steps = at[1] - at[0];
    if (steps < 2 || at.front() >= steps || at.back() + steps < lengths.size()) return 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i] != at.front() + i * steps) return 0;
      // The period next to it is a usual one, since steps are two or more.
      const std::size_t usual = at[i] > 0 ? at[i] - 1 : at[i] + 1;
      if (!has_other_work(all, at[i], usual)) return 0;
    }
    return steps;
  }

  // Does the period hold a quarter more work than the usual one?
  bool has_other_work(const Candidate& all, std::size_t period, std::size_t usual) const {
    const auto pieces = [&](std::size_t i) {
      return periods_.pieces_in(trace_.end_ns(all.marks[i]), trace_.end_ns(all.marks[i + 1]));
    };
    return pieces(period) * 4 >= pieces(usual) * 5;
  }

  // The last of each `steps` marks in a row: those after which most time passes until the next mark.
  Candidate every(std::size_t steps, const Candidate& all) const {
    Candidate best = all;
    std::int64_t most_ns = -1;
    for (std::size_t first = 0; first < steps && steps > 1; ++first) {
      Candidate chosen{all.rank, {}};
      std::int64_t after_ns = 0, pauses = 0;
      for (std::size_t i = first; i < all.marks.size(); i += steps) {
        chosen.marks.push_back(all.marks[i]);
        if (i + 1 < all.marks.size() && ++pauses > 0)
          after_ns += trace_.start_ns(all.marks[i + 1]) - trace_.end_ns(all.marks[i]);
      }
      after_ns /= std::max<std::int64_t>(1, pauses);
      if (after_ns < most_ns) continue;  // ties: the recording ends with an iteration
      most_ns = after_ns;
      best = std::move(chosen);
    }
    return best;
  }

  std::optional<Iterations> iterations_of(const Candidate& candidate,
                                          bool any_length = false) const {
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
    if (!periods_.repeat(bounds, any_length)) return std::nullopt;
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

  // Operators and nodes of autograd that lie in no other, of the first thread with many of them.
  std::vector<SliceId> outermost_operators() const {
    constexpr std::size_t kMany = 4;  // a quarter of the most
    std::vector<std::vector<SliceId>> threads;
    for (const Track& track : trace_.tracks()) {
      if (process_ != kNone<ProcessId> && track.process != process_) continue;
      std::vector<SliceId>& found = threads.emplace_back();
      for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
        const SliceId id{i};
        if (trace_.kind(id) == CategoryKind::kCpuOp && !is_step_of_loop(trace_.name(id)) &&
            (found.empty() || trace_.start_ns(id) >= trace_.end_ns(found.back())))
          found.push_back(id);
      }
    }
    std::size_t most = 0;
    for (const auto& each : threads) most = std::max(most, each.size());
    std::vector<SliceId> first;
    for (auto& each : threads)
      if (!each.empty() && each.size() * kMany >= most &&
          (first.empty() || trace_.start_ns(each.front()) < trace_.start_ns(first.front())))
        first = std::move(each);
    return first;
  }

  // Operators of one name are told apart by the work that they launch.
  std::vector<std::uint64_t> symbols_of(const std::vector<SliceId>& operators) const {
    constexpr std::uint64_t kFactor = 0x9E37'79B9'7F4A'7C15;
    std::vector<std::uint64_t> symbols;
    std::unordered_map<std::uint32_t, std::uint64_t> work;  // by the operator that launched it
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      if (!is_device_work(trace_.kind(SliceId{i})) || links_.launch_of[i] == kNone<SliceId>)
        continue;
      const SliceId owner = owner_of(links_.launch_of[i]);
      if (owner != kNone<SliceId>)
        work[raw(owner)] = work[raw(owner)] * kFactor + raw(trace_.slices().name[i]) + 1;
    }
    for (const SliceId id : operators) {
      const auto launched = work.find(raw(id));
      symbols.push_back((launched == work.end() ? 0 : launched->second) * kFactor +
                        raw(trace_.slices().name[raw(id)]));
    }
    return symbols;
  }

  // When data went between CPU and GPU, other than the sizes that nonzero() reads.
  std::vector<std::int64_t> exchanges() const {
    std::vector<std::int64_t> times;
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      const SliceId id{i}, launch = links_.launch_of[i];
      if (trace_.kind(id) != CategoryKind::kGpuMemcpy || launch == kNone<SliceId>) continue;
      const bool is_of_host =
          contains_any(trace_.name(id), std::array<std::string_view, 2>{"HtoD", "DtoH"});
      bool is_size = false;
      for (SliceId at = links_.op_of[raw(launch)]; at != kNone<SliceId>;
           at = nesting_.parent[raw(at)])
        is_size = is_size || trace_.name(at) == "aten::nonzero";
      if (is_of_host && !is_size) times.push_back(trace_.start_ns(launch));
    }
    std::sort(times.begin(), times.end());
    return times;
  }

  std::optional<Iterations> iterations_of_operators() const {
    constexpr std::size_t kMostTried = 64;
    if (compiles_with_xla_) return std::nullopt;
    const std::vector<SliceId> operators = outermost_operators();
    if (operators.size() < kFewestIterations * kFewestOperators) return std::nullopt;
    const std::vector<std::uint64_t> symbols = symbols_of(operators);
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < symbols.size(); ++i) places[symbols[i]].push_back(i);
    std::vector<const std::vector<std::size_t>*> order;
    for (const auto& [symbol, each] : places)
      if (each.size() >= kFewestIterations && !is_inside_training(each.size()))
        order.push_back(&each);
    sort_rows(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::pair(a->size(), a->front()) < std::pair(b->size(), b->front());
    });
    if (order.size() > kMostTried) order.resize(kMostTried);
    const std::vector<std::int64_t> exchanged = exchanges();
    for (const auto* each : order)
      if (auto found = iterations_from(operators, *each, exchanged)) return found;
    return std::nullopt;
  }

  std::optional<Iterations> iterations_from(const std::vector<SliceId>& operators,
                                            const std::vector<std::size_t>& places,
                                            const std::vector<std::int64_t>& exchanged) const {
    if ((places.back() - places.front()) / (places.size() - 1) < kFewestOperators)
      return std::nullopt;
    std::vector<std::int64_t> bounds;
    for (const std::size_t place : places) bounds.push_back(trace_.start_ns(operators[place]));
    bounds.push_back(trace_.end_ns(operators.back()));
    const std::int64_t end_ns = bounds.back();
    if (!periods_.are_alike_at_end(bounds)) bounds.pop_back();
    if (is_long_at_end(bounds)) bounds.pop_back();
    // What comes after them on the CPU, such as work on the result, may be more than they are.
    if (wide(bounds.back() - bounds.front()) * 3 < wide(end_ns - bounds.front()) * 2)
      return std::nullopt;
    if (!periods_.repeat(bounds) || !hold_the_time(bounds) || !periods_.hold_the_work(bounds))
      return std::nullopt;
    if (!periods_.hold_nearly_all(bounds) && !exchange_in_each(bounds, exchanged))
      return std::nullopt;
    Iterations found;
    found.kind = IterationMark::kRangeStart;
    found.mark = trace_.name(operators[places.front()]);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
      found.ranges.push_back({operators[places[i]], bounds[i], bounds[i + 1]});
    return found;
  }

  static bool exchange_in_each(const std::vector<std::int64_t>& bounds,
                               const std::vector<std::int64_t>& exchanged) {
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto next = std::lower_bound(exchanged.begin(), exchanged.end(), bounds[i]);
      if (next == exchanged.end() || *next >= bounds[i + 1]) return false;
    }
    return true;
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

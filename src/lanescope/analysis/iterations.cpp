// Problem: without marks the whole recording is one window, and its start-up, which may be most of
// it, decides what the program looks like. Idea: a mark (a range that the program opens, or a wait)
// that comes again and again cuts the work into periods. They are iterations if neighbours hold
// nearly the same work and together they hold most of it. Example: Optimizer.step ends at 100, 110,
// 120, 130, with gemm, relu, gemm between any two of them -> three iterations of 10.
#include "lanescope/analysis/iterations.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "lanescope/analysis/iteration_marks.h"
#include "lanescope/analysis/iteration_work.h"
#include "lanescope/analysis/nested_iterations.h"
#include "lanescope/analysis/operator_iterations.h"
#include "lanescope/analysis/outermost_iterations.h"
#include "lanescope/analysis/range_iterations.h"
#include "lanescope/analysis/replay_iterations.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/model/api_calls.h"
#include "lanescope/model/names_where.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::analysis {
namespace {

// Optimizer steps say most surely what an iteration is, waits least.
enum class Rank : std::uint8_t { kOptimizer, kRange, kLoader, kWait };

// What neighbours have to have in common; kMoreInSome: Periods::repeat_with_more.
enum class Likeness : std::uint8_t { kUsual, kAnyLength, kMoreInSome };

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
    auto found = iterations_of_ranges(trace_, periods_, process_);
    if (!found) {
      collect();
      found = find_marked();
      if (!compiles_with_xla_)
        found = choose_outermost(input(), nest(), std::move(found), only_optimizer_step());
      if (!found && !compiles_with_xla_)
        found = choose_outermost(input(), std::nullopt, iterations_of_two_steps(), {});
    }
    if (found) {
      found->before = find_phase_before(input(), *found);
      found->before_comes_again =
          found->before.count > 0 && nest() &&
          found->before.start_ns >= nest()->iterations.ranges.front().start_ns;
    }
    return found;
  }

 private:
  std::optional<Iterations> find_marked() {
    const std::size_t too_many = marks_of_a_solver();
    std::vector<const Candidate*> order;
    for (const auto& [key, candidate] : by_key_)
      if (candidate.marks.size() >= kFewestIterations &&
          !(candidate.rank == Rank::kWait &&
            (compiles_with_xla_ || candidate.marks.size() >= too_many)))
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
        return each->rank == Rank::kWait && are_rounds_of_whole_texts(*found) ? whole_texts()
                                                                              : found;
    if (compiles_with_xla_) return std::nullopt;
    if (auto found = iterations_of_operators(input(), too_many)) return found;
    if (auto found = iterations_of_replays(input(), too_many)) return found;
    return whole_texts();
  }

  IterationInput input() const { return {trace_, links_, nesting_, periods_, process_}; }

  // Asked for only where marks leave a question.
  const std::optional<Iterations>& whole_texts() {
    if (!whole_texts_) whole_texts_ = iterations_of_whole_texts(input());
    return *whole_texts_;
  }

  const std::optional<Nest>& nest() {
    if (!nest_) nest_ = find_nest(input());
    return *nest_;
  }

  // Its name; empty: there are none, or several.
  std::string only_optimizer_step() const {
    std::string name;
    for (const auto& [key, candidate] : by_key_) {
      if (candidate.rank != Rank::kOptimizer) continue;
      if (!name.empty() || candidate.marks.size() != 1) return {};
      name = trace_.name(candidate.marks.front());
    }
    return name;
  }

  // Two steps of the only optimizer, with work that is alike though not equal: lengths differ from batch to batch. The first one
  // began with the recording.
  std::optional<Iterations> iterations_of_two_steps() const {
    const Candidate* only = nullptr;
    for (const auto& [key, candidate] : by_key_) {
      if (candidate.rank != Rank::kOptimizer) continue;
      if (only) return std::nullopt;
      only = &candidate;
    }
    if (!only || only->marks.size() != 2) return std::nullopt;
    const SliceId first = only->marks.front(), second = only->marks.back();
    const auto start_ns = first_operator_ns(first);
    if (!start_ns || *start_ns >= trace_.start_ns(first) ||
        trace_.start_ns(second) < trace_.end_ns(first) ||
        !periods_.are_two_alike({*start_ns, trace_.end_ns(first), trace_.end_ns(second)}))
      return std::nullopt;
    Iterations found;
    found.kind = IterationMark::kRangeEnd;
    found.mark = trace_.name(first);
    found.ranges = {{first, *start_ns, trace_.end_ns(first)},
                    {second, trace_.end_ns(first), trace_.end_ns(second)}};
    return found;
  }

  // Words of a request, groups of a clustering: two or more of them lie in each text that the whole recording repeats.
  bool are_rounds_of_whole_texts(const Iterations& found) {
    return whole_texts() && found.ranges.size() + 1 >= 2 * whole_texts()->ranges.size();
  }

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
      const SliceId owner = outermost_operator_of(input(), id);
      const std::uint32_t owner_name =
          owner == kNone<SliceId> ? raw(kNone<StringId>) : raw(trace_.slices().name[raw(owner)]);
      put({track, name_id, owner_name}, Rank::kWait, id);
      return;
    }
    if (!is_front_end(trace_.kind(id))) return;
    compiles_with_xla_ = compiles_with_xla_ || name.starts_with("TSL: XlaCompile");
    const Key key{track, name_id, raw(kNone<StringId>)};
    // torch before 1.11 writes its own ranges as operators.
    if (names::is_optimizer_step(name))
      put(key, Rank::kOptimizer, id);
    else if (names::is_data_loader(name))
      put(key, Rank::kLoader, id);
    else if (trace_.kind(id) == CategoryKind::kUserAnnotation && !is_part_(id))
      put(key, Rank::kRange, id);
  }

  void put(const Key& key, Rank rank, SliceId id) {
    Candidate& candidate = by_key_[key];
    candidate.rank = rank;
    candidate.marks.push_back(id);
  }

  // Several waits or operators between two steps of an optimizer are rounds of something inside, such as a solver. So many of one
  // kind.
  std::size_t marks_of_a_solver() const {
    constexpr std::size_t kFewestSteps = 2, kMarksOfAStep = 3;
    std::size_t steps = 0;
    for (const auto& [key, candidate] : by_key_)
      if (candidate.rank == Rank::kOptimizer) steps = std::max(steps, candidate.marks.size());
    return steps >= kFewestSteps ? kMarksOfAStep * steps : std::numeric_limits<std::size_t>::max();
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
  std::optional<Iterations> iterations_of_optimizer(const Candidate& all) {
    constexpr std::size_t kMostSteps = 8;
    if (auto found = iterations_of_several_optimizers(all)) return found;
    if (const std::size_t steps = marks_between_long_periods(all, {2, 3});
        steps > 0 && !(nest() && nest()->optimizer_steps == steps && !has_phases(*nest())))
      if (auto found = iterations_of(every(steps, all))) {
        found->owner = std::to_string(steps);
        return found;
      }
    if (auto found = iterations_of(all)) return found;
    if (auto found = iterations_of(all, Likeness::kMoreInSome)) return found;
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
    if (best == 0) return iterations_of(all, Likeness::kAnyLength);
    auto found = iterations_of(every(best, all));
    if (found) found->owner = std::to_string(best);
    return found;
  }

  // Ten critics and an actor have an optimizer each: ten periods between two steps are equal, and the one with the actor's step
  // lacks part of their work. A period with an evaluation lacks nothing, however often it comes: then a step is an iteration.
  std::optional<Iterations> iterations_of_several_optimizers(const Candidate& all) {
    constexpr std::size_t kFewestSteps = 3;  // of an iteration
    constexpr double kNearlyAll = 0.95;
    const std::vector<SliceId>& marks = all.marks;
    if (marks.size() < 2 * kFewestSteps || (!whole_texts() && !nest())) return std::nullopt;
    Iterations found = whole_texts() ? *whole_texts() : nest()->iterations;
    const std::size_t steps = marks.size() / found.ranges.size();
    if (steps < kFewestSteps || marks.size() % found.ranges.size() != 0) return std::nullopt;
    for (std::size_t i = 0; i < marks.size(); ++i)
      if (trace_.start_ns(marks[i]) < found.ranges[i / steps].start_ns ||
          trace_.start_ns(marks[i]) >= found.ranges[i / steps].end_ns)
        return std::nullopt;
    const auto period = [&](std::size_t i) {
      return std::pair(trace_.end_ns(marks[i]), trace_.end_ns(marks[i + 1]));
    };
    std::map<std::uint64_t, std::vector<std::size_t>> equal;  // periods of the first iteration
    for (std::size_t i = 0; i < steps; ++i)  // the last one reaches into the second
      equal[periods_.symbol_of(period(i).first, period(i).second)].push_back(i);
    const auto usual = std::max_element(
        equal.begin(), equal.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (usual->second.size() * 2 < steps) return std::nullopt;
    // A last batch with fewer rows has other kernels, but as many.
    const auto pieces_in = [&](const std::vector<std::size_t>& which) {
      return periods_.pieces_in(period(which.front()).first, period(which.front()).second);
    };
    const std::size_t pieces = pieces_in(usual->second);
    const bool is_other = std::any_of(equal.begin(), equal.end(), [&](const auto& each) {
      const std::size_t its = pieces_in(each.second);
      return (std::max(its, pieces) - std::min(its, pieces)) * 10 >= pieces &&
             periods_.part_found_in(period(usual->second.front()), period(each.second.front())) <
                 kNearlyAll;
    });
    if (!is_other) return std::nullopt;
    found.kind = IterationMark::kRangeEnd;
    found.mark = trace_.name(marks.front());
    found.owner = std::to_string(steps);
    for (std::size_t i = 0; i < found.ranges.size(); ++i)
      found.ranges[i].mark = marks[(i + 1) * steps - 1];
    return found;
  }

  // A program may wait once for each request or row of a batch. Every n-th period between two waits then holds what it does for
  // the whole batch, and n waits are one iteration. Or it waits for different things in turn.
  std::optional<Iterations> iterations_of_waits(const Candidate& all) const {
    const auto of_several = [&](std::size_t waits) {
      auto found = waits == 0 ? std::nullopt : iterations_of(every(waits, all));
      if (found) found->waits = waits;
      return found;
    };
    if (auto found = of_several(marks_between_long_periods(all, {3, 2}))) return found;
    auto of_one = iterations_of(all);
    if (!of_one) return std::nullopt;
    auto in_turn = of_several(waits_in_turn(all));
    return in_turn ? in_turn : of_one;
  }

  // A search reads three counts in each round, and begins again for the next batch. Fewer than half of the periods between two
  // waits then hold the work of the one before, but each holds exactly that of the n-th before. Returns n; 0: there is none.
  std::size_t waits_in_turn(const Candidate& all) const {
    std::vector<std::uint64_t> periods;
    for (std::size_t i = 0; i + 1 < all.marks.size(); ++i)
      periods.push_back(
          periods_.symbol_of(trace_.end_ns(all.marks[i]), trace_.end_ns(all.marks[i + 1])));
    std::size_t equal = 0;
    for (std::size_t i = 0; i + 1 < periods.size(); ++i) equal += periods[i] == periods[i + 1];
    if (equal * 2 >= periods.size()) return 0;
    const std::size_t waits = shortest_period(periods);
    return waits * kFewestIterations <= all.marks.size() ? waits : 0;
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
                                          Likeness likeness = Likeness::kUsual) const {
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
    if (likeness == Likeness::kMoreInSome
            ? !periods_.repeat_with_more(bounds)
            : !periods_.repeat(bounds, likeness == Likeness::kAnyLength))
      return std::nullopt;
    if (candidate.rank == Rank::kWait && !(hold_the_time(bounds) && periods_.hold_the_work(bounds)))
      return std::nullopt;
    Iterations found;
    found.kind = by_start                        ? IterationMark::kRangeStart
                 : candidate.rank == Rank::kWait ? IterationMark::kWait
                                                 : IterationMark::kRangeEnd;
    found.mark = trace_.name(marks.front());
    if (candidate.rank == Rank::kWait)
      if (const SliceId owner = outermost_operator_of(input(), marks.front());
          owner != kNone<SliceId>)
        found.owner = trace_.name(owner);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
      found.ranges.push_back({marks[by_start || has_first ? i : i + 1], bounds[i], bounds[i + 1]});
    return found;
  }

  const Trace& trace_;
  const LaunchLinks& links_;
  const ProcessId process_;
  const SliceNesting nesting_;
  const std::vector<LaunchedPiece> pieces_;
  const Periods periods_;
  NamesWhere<bool (*)(std::string_view)> is_part_{trace_, is_part_of_iteration};
  // XLA's search for the best kernels launches, waits and repeats, too.
  bool compiles_with_xla_ = false;
  std::map<Key, Candidate> by_key_;
  std::optional<std::optional<Iterations>> whole_texts_;
  std::optional<std::optional<Nest>> nest_;
};

}  // namespace

std::optional<Iterations> find_iterations(const Trace& trace, const LaunchLinks& links,
                                          ProcessId process) {
  return Finder(trace, links, process).find();
}

}  // namespace lanescope::analysis

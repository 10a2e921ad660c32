// Problem: a rollout and then 20 steps on what it showed, tiles and then one step, words of a request: the marks that come most
// often are those of an inner loop. Example, a letter an operator, two rounds: s m a m a m a t s m a m a m a t. The period 2 holds
// within one round only, the period 8 holds everywhere.
#include "lanescope/analysis/nested_iterations.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lanescope/analysis/iteration_marks.h"
#include "lanescope/analysis/repeats.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::analysis {
namespace {

constexpr std::size_t kShortestRound = 8;  // operators
constexpr std::size_t kFewestNestRounds = 2;

// What a thread does, in order: operators that lie in no other, launches outside of operators, and steps of an optimizer. What lies in
// a step is left out: the first one of Adam makes its moments, too.
struct ThreadText {
  std::vector<SliceId> slices;
  std::vector<std::uint32_t> symbols;     // names; of a launch, the name of what it launched
  std::vector<std::size_t> optimizer_at;  // places of the steps of optimizers

  std::size_t size() const { return slices.size(); }
};

ThreadText text_of(const IterationInput& input, const Track& track) {
  const Trace& trace = input.trace;
  ThreadText text;
  std::int64_t until_ns = std::numeric_limits<std::int64_t>::min(), until_step_ns = until_ns;
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    const CategoryKind kind = trace.kind(id);
    std::uint32_t symbol = raw(trace.slices().name[i]);
    if (kind == CategoryKind::kCpuOp || kind == CategoryKind::kUserAnnotation) {
      const bool is_step = names::is_optimizer_step(trace.name(id));
      // An operator that fills all of a step may come before it.
      if (trace.start_ns(id) < (is_step ? until_step_ns : until_ns) ||
          (!is_step && (kind == CategoryKind::kUserAnnotation || is_step_of_loop(trace.name(id)))))
        continue;
      if (is_step) text.optimizer_at.push_back(text.size());
      until_ns = std::max(until_ns, trace.end_ns(id));
      if (is_step) until_step_ns = until_ns;
    } else if (is_api_call(kind) && trace.start_ns(id) >= until_ns &&
               trace.api_call(id).does(api_effect::kStartsKernels)) {
      if (const auto launched = input.links.launched_by(id); launched.size() == 1)
        symbol = raw(trace.slices().name[raw(launched.front())]);
      until_ns = trace.end_ns(id);
    } else {
      continue;
    }
    text.slices.push_back(id);
    text.symbols.push_back(symbol);
  }
  return text;
}

// That of the first thread with a quarter or more of the operators of the busiest.
ThreadText text_of_program(const IterationInput& input) {
  constexpr std::size_t kMany = 4;
  std::vector<ThreadText> threads;
  std::size_t most = 0;
  for (const Track& track : input.trace.tracks()) {
    if (input.process != kNone<ProcessId> && track.process != input.process) continue;
    threads.push_back(text_of(input, track));
    most = std::max(most, threads.back().size());
  }
  ThreadText first;
  for (ThreadText& each : threads)
    if (each.size() > 0 && each.size() * kMany >= most &&
        (first.size() == 0 ||
         input.trace.start_ns(each.slices.front()) < input.trace.start_ns(first.slices.front())))
      first = std::move(each);
  return first;
}

// The distances at which stretches of eight symbols come again: those that most stretches have, and those that bridge most.
std::vector<std::size_t> likely_periods(const std::vector<std::uint32_t>& symbols) {
  constexpr std::size_t kStretch = 8, kMost = 16;
  constexpr std::uint64_t kFactor = 0x9E37'79B9'7F4A'7C15;
  if (symbols.size() < kFewestNestRounds * kShortestRound) return {};
  std::uint64_t hash = 0, first_factor = 1;  // hash: of the stretch that ends here
  for (std::size_t i = 1; i < kStretch; ++i) first_factor *= kFactor;
  std::unordered_map<std::uint64_t, std::size_t> last_seen;
  last_seen.reserve(symbols.size());
  std::unordered_map<std::size_t, std::size_t> times;  // by distance
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (i >= kStretch) hash -= (symbols[i - kStretch] + std::uint64_t{1}) * first_factor;
    hash = hash * kFactor + symbols[i] + 1;
    if (i + 1 < kStretch) continue;
    const auto [seen, is_new] = last_seen.try_emplace(hash, i);
    if (is_new) continue;
    const std::size_t distance = i - seen->second;
    seen->second = i;
    if (distance >= kShortestRound && distance * kFewestNestRounds <= symbols.size() + kStretch)
      ++times[distance];
  }
  std::vector<std::pair<std::size_t, std::size_t>> ranked(times.begin(), times.end());
  std::vector<std::size_t> periods;
  const auto take = [&](const auto& weight) {
    sort_rows(ranked.begin(), ranked.end(), [&](const auto& a, const auto& b) {
      return std::pair(weight(b), a.first) < std::pair(weight(a), b.first);
    });
    for (std::size_t i = 0; i < ranked.size() && i < kMost; ++i)
      if (std::find(periods.begin(), periods.end(), ranked[i].first) == periods.end())
        periods.push_back(ranked[i].first);
  };
  take([](const auto& each) { return each.second; });
  take([](const auto& each) { return each.first * each.second; });
  return periods;
}

struct Run {
  std::size_t period = 0, first = 0, end = 0;  // [first, end) has that period
  std::size_t rounds() const { return period == 0 ? 0 : (end - first) / period; }
  std::size_t held() const { return rounds() * period; }
};

// The longest stretch that has the period.
Run longest_run(const std::vector<std::uint32_t>& symbols, std::size_t period) {
  Run best{period, 0, 0};
  for (std::size_t i = 0; i + period < symbols.size();) {
    std::size_t end = i;
    while (end + period < symbols.size() && symbols[end] == symbols[end + period]) ++end;
    if (end > i && end + period - i > best.end - best.first) best = {period, i, end + period};
    i = end + 1;
  }
  return best;
}

// The run of the outermost loop: the shortest period of those that hold nine tenths of what any holds.
std::optional<Run> outermost_run(const std::vector<std::uint32_t>& symbols) {
  std::vector<Run> runs;
  std::size_t most = 0;
  for (const std::size_t period : likely_periods(symbols)) {
    const Run run = longest_run(symbols, period);
    if (run.rounds() < kFewestNestRounds) continue;
    most = std::max(most, run.held());
    runs.push_back(run);
  }
  std::optional<Run> best;
  for (const Run& run : runs)
    if (run.held() * 10 >= most * 9 && (!best || run.period < best->period)) best = run;
  return best;
}

// Stretches of four symbols.
class Stretches {
 public:
  Stretches(const std::vector<std::uint32_t>& symbols, std::size_t from, std::size_t to)
      : symbols_(symbols) {
    for (std::size_t i = from; i < to && is_stretch(i); ++i) known_.insert(hash_at(i));
  }
  bool has(std::size_t place) const { return is_stretch(place) && known_.contains(hash_at(place)); }
  static constexpr std::size_t kSize = 4;

 private:
  bool is_stretch(std::size_t place) const { return place + kSize <= symbols_.size(); }
  std::uint64_t hash_at(std::size_t place) const {
    constexpr std::uint64_t kFactor = 0x9E37'79B9'7F4A'7C15;
    std::uint64_t hash = 0;
    for (std::size_t i = place; i < place + kSize; ++i) hash = hash * kFactor + symbols_[i] + 1;
    return hash;
  }
  const std::vector<std::uint32_t>& symbols_;
  std::unordered_set<std::uint64_t> known_;
};

// Does a backward pass begin, or run, in these operators? With its first gradient it begins on the thread of the program.
bool runs_backward(const Trace& trace, const ThreadText& text, std::size_t from, std::size_t to) {
  return std::any_of(text.slices.begin() + static_cast<std::ptrdiff_t>(from),
                     text.slices.begin() + static_cast<std::ptrdiff_t>(to), [&](SliceId id) {
                       return trace.name(id) == "aten::ones_like" ||
                              trace.name(id).starts_with("autograd::engine::");
                     });
}

class NestFinder {
 public:
  explicit NestFinder(const IterationInput& input)
      : input_(input), trace_(input.trace), text_(text_of_program(input)) {}

  std::optional<Nest> find() {
    const auto run = outermost_run(text_.symbols);
    if (!run) return std::nullopt;
    choose_begins(*run);
    Nest nest;
    if (!step_equally(nest.optimizer_steps)) return std::nullopt;
    for (const std::size_t begin : begins_) bounds_.push_back(trace_.start_ns(text_.slices[begin]));
    bounds_.push_back(end_of(begins_.back() + run->period));
    if (!hold_the_work()) return std::nullopt;
    nest.is_all = input_.periods.hold_nearly_all(bounds_);
    nest.has_exchanges = exchange_in_each();
    if (nest.optimizer_steps > 1) measure_other_work(nest, run->period);
    fill(nest, run->period);
    nest.iterations.inner = find_inner_loops(input_, nest.iterations);
    std::erase_if(nest.iterations.inner, [&](const InnerLoop& each) {
      return each.name == nest.iterations.mark && each.count != nest.optimizer_steps;
    });
    return nest;
  }

 private:
  // A recording that begins with a loop begins with a round. Where something precedes, and optimizers step, a round begins after
  // the step that is followed by most operators without one.
  void choose_begins(const Run& run) {
    std::size_t begin = run.first;
    if (run.first > 0)  // what is cut may be a part of a round
      if (const auto after = after_last_step(run);
          after && (run.end - *after) / run.period >= std::max(kFewestNestRounds, run.rounds() - 1))
        begin = *after;
    for (; begin + run.period <= run.end; begin += run.period) begins_.push_back(begin);
    end_ = begin;
  }

  std::optional<std::size_t> after_last_step(const Run& run) const {
    const auto& at = text_.optimizer_at;
    const auto first = std::lower_bound(at.begin(), at.end(), run.first);
    std::size_t longest = 0;
    std::optional<std::size_t> after;
    for (auto it = first; it != at.end() && *it < run.first + run.period; ++it) {
      const std::size_t next = std::next(it) == at.end() ? run.end : *std::next(it);
      if (next - *it <= longest) continue;
      longest = next - *it;
      after = *it + 1;
    }
    return after;
  }

  bool step_equally(std::size_t& steps) const {
    const auto& at = text_.optimizer_at;
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      const std::size_t end = i + 1 < begins_.size() ? begins_[i + 1] : end_;
      const auto count =
          static_cast<std::size_t>(std::lower_bound(at.begin(), at.end(), end) -
                                   std::lower_bound(at.begin(), at.end(), begins_[i]));
      if (i > 0 && count != steps) return false;
      steps = count;
    }
    return true;
  }

  // Where the operator before this place ends, or the next one begins.
  std::int64_t end_of(std::size_t place) const {
    if (place < text_.size()) return trace_.start_ns(text_.slices[place]);
    std::int64_t end_ns = trace_.end_ns(text_.slices.back());
    if (!text_.optimizer_at.empty())
      end_ns = std::max(end_ns, trace_.end_ns(text_.slices[text_.optimizer_at.back()]));
    return end_ns;
  }

  bool hold_the_work() const {
    const Periods& periods = input_.periods;
    const std::size_t held = periods.pieces_in(bounds_.front(), bounds_.back());
    const std::size_t after =
        periods.pieces_in(bounds_.front(), std::numeric_limits<std::int64_t>::max());
    return held * 3 >= after * 2 && held * 3 >= periods.all_pieces() &&
           periods.are_neighbours_alike(bounds_);
  }

  bool exchange_in_each() const {
    std::vector<std::int64_t> times;
    const Track& track = trace_.track(text_.slices.front());
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
      if (const SliceId id{i};
          is_api_call(trace_.kind(id)) &&
          trace_.api_call(id).does(api_effect::kBlocks | api_effect::kWaitsForDevice))
        times.push_back(trace_.start_ns(id));
    for (std::size_t i = 0; i + 1 < bounds_.size(); ++i) {
      const auto next = std::lower_bound(times.begin(), times.end(), bounds_[i]);
      const bool is_last = i + 2 == bounds_.size();  // it may wait after its last operator
      if (next == times.end() || (!is_last && *next >= bounds_[i + 1])) return false;
    }
    return true;
  }

  void measure_other_work(Nest& nest, std::size_t period) const {
    const std::size_t begin = begins_[begins_.size() / 2];
    const auto& at = text_.optimizer_at;
    const auto first = std::lower_bound(at.begin(), at.end(), begin);
    const auto last = std::lower_bound(at.begin(), at.end(), begin + period);
    struct Period {
      std::int64_t length_ns;
      std::size_t from, to;
    };
    std::vector<Period> between;
    for (auto it = first; std::next(it) != last; ++it)
      between.push_back(
          {trace_.start_ns(text_.slices[*std::next(it)]) - trace_.start_ns(text_.slices[*it]), *it,
           *std::next(it)});
    std::sort(between.begin(), between.end(),
              [](const Period& a, const Period& b) { return a.length_ns < b.length_ns; });
    const Period usual = between[between.size() / 2];
    const std::int64_t length_ns = end_of(begin + period) - trace_.start_ns(text_.slices[begin]);
    const double usual_ns =
        static_cast<double>(usual.length_ns) * static_cast<double>(nest.optimizer_steps);
    nest.part_of_other_time =
        std::max(0.0, 1 - usual_ns / static_cast<double>(std::max<std::int64_t>(1, length_ns)));
    nest.part_of_new_operators = part_of_new_operators(
        usual.from, usual.to, begin, period, (usual.to - usual.from) * nest.optimizer_steps);
  }

  // Of the operators of a round that exceed its usual periods: the part that lies in no stretch of four that a usual period has. An
  // evaluation runs the model of the training steps, a simulation something else.
  double part_of_new_operators(std::size_t usual_from, std::size_t usual_to, std::size_t begin,
                               std::size_t period, std::size_t in_usual_periods) const {
    const Stretches known(text_.symbols, usual_from, usual_to);
    std::size_t unknown = 0, known_until = begin;
    for (std::size_t i = begin; i < begin + period; ++i) {
      if (known.has(i)) known_until = i + Stretches::kSize;
      unknown += i >= known_until ? 1 : 0;
    }
    const std::size_t other = period > in_usual_periods ? period - in_usual_periods : 0;
    return static_cast<double>(unknown) /
           static_cast<double>(std::max({std::size_t{1}, other, unknown}));
  }

  void fill(Nest& nest, std::size_t period) const {
    Iterations& found = nest.iterations;
    const bool trains = nest.optimizer_steps > 0;
    found.kind = trains ? IterationMark::kRangeEnd : IterationMark::kRangeStart;
    found.mark = trains ? std::string(trace_.name(last_step_before(begins_[0] + period)))
                        : name_of_round(trace_, text_.slices, begins_.front(), period);
    if (nest.optimizer_steps > 1) found.owner = std::to_string(nest.optimizer_steps);
    for (std::size_t i = 0; i < begins_.size(); ++i)
      found.ranges.push_back(
          {trains ? last_step_before(begins_[i] + period) : text_.slices[begins_[i]], bounds_[i],
           bounds_[i + 1]});
  }

  SliceId last_step_before(std::size_t place) const {
    const auto& at = text_.optimizer_at;
    return text_.slices[*std::prev(std::lower_bound(at.begin(), at.end(), place))];
  }

  const IterationInput& input_;
  const Trace& trace_;
  const ThreadText text_;
  std::vector<std::size_t> begins_;   // of the rounds
  std::size_t end_ = 0;               // of the last one
  std::vector<std::int64_t> bounds_;  // of the rounds, in time
};

}  // namespace

std::optional<Nest> find_nest(const IterationInput& input) { return NestFinder(input).find(); }

namespace {

// The place of the first symbol at this time or later.
std::size_t place_of(const Trace& trace, const ThreadText& text, std::int64_t time_ns) {
  const auto at =
      std::lower_bound(text.slices.begin(), text.slices.end(), time_ns,
                       [&](SliceId id, std::int64_t time) { return trace.start_ns(id) < time; });
  return static_cast<std::size_t>(at - text.slices.begin());
}

// "aten::mm", "2 operators (aten::mm, aten::add)", "8 operators (aten::mm, aten::add, ...)"
std::string name_of_loop(const Trace& trace, const ThreadText& text, std::size_t first,
                         std::size_t size) {
  std::string name(trace.name(text.slices[first]));
  if (size == 1) return name;
  if (size == 2)
    return "2 operators (" + name.append(", ").append(trace.name(text.slices[first + 1])) + ")";
  return name_of_round(trace, text.slices, first, size)
      .substr(std::string_view("round of ").size());
}

struct Loop {
  std::size_t from = 0, to = 0, size = 0;  // places, and that of a round
  std::size_t rounds() const { return (to - from) / size; }
};

// The fold takes operators that come right before a loop, and also end its rounds, for a part of the loop: b a b a b a. If the recording
// begins without them, the first round of a loop around it has another text: a b a b a c b, a b a b a c b. So each loop is made as long as
// the operators themselves repeat, and what then lies in it is none of its own.
std::vector<Loop> outermost_loops(const std::vector<std::uint32_t>& symbols, std::size_t begin,
                                  std::size_t end) {
  std::vector<Loop> loops;
  for (const Repeat& each : find_repeats(std::span(symbols).subspan(begin, end - begin))) {
    if (each.parent != Repeat::kNoRepeat) continue;
    Loop loop{begin + each.first, begin + each.end, each.round_size()};
    std::size_t from = loop.from, to = loop.to;
    while (from > begin && symbols[from - 1] == symbols[from - 1 + loop.size]) --from;
    while (to < end && symbols[to] == symbols[to - loop.size]) ++to;
    if (const std::size_t rounds = (to - from) / loop.size; rounds > loop.rounds())
      loop = {from, from + rounds * loop.size, loop.size};
    loops.push_back(loop);
  }
  sort_rows(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) {
    return std::tie(a.from, b.to) < std::tie(b.from, a.to);
  });
  std::vector<Loop> apart;  // what lies in an earlier one is left out
  std::size_t taken_until = begin;
  for (Loop each : loops) {
    while (each.from < taken_until && each.from < each.to) each.from += each.size;
    if (each.from == each.to) continue;
    taken_until = each.to;
    apart.push_back(each);
  }
  return apart;
}

std::vector<InnerLoop> loops_within(const IterationInput& input, const ThreadText& text,
                                    std::int64_t start_ns, std::int64_t end_ns, double least_part) {
  constexpr std::size_t kMostSymbols = 100'000, kMostLoops = 2;
  const Trace& trace = input.trace;
  const std::size_t begin = place_of(trace, text, start_ns), end = place_of(trace, text, end_ns);
  if (end - begin < kShortestRound || end - begin > kMostSymbols) return {};
  const auto time_at = [&](std::size_t place) {
    return place < end ? trace.start_ns(text.slices[place]) : end_ns;
  };
  std::vector<InnerLoop> loops;
  InnerLoop steps;  // loops in which an optimizer steps are one
  const auto steps_in = [&](std::size_t from, std::size_t to) {
    const auto& at = text.optimizer_at;
    return static_cast<std::size_t>(std::lower_bound(at.begin(), at.end(), to) -
                                    std::lower_bound(at.begin(), at.end(), from));
  };
  for (const auto& [from, to, size] : outermost_loops(text.symbols, begin, end)) {
    const std::int64_t time_ns = time_at(to) - time_at(from);
    if (const std::size_t count = steps_in(from, to); count > 0) {
      const auto first = std::lower_bound(text.optimizer_at.begin(), text.optimizer_at.end(), from);
      steps.name = trace.name(text.slices[*first]);
      steps.count += count;
      steps.time_ns += time_ns;
      continue;
    }
    loops.push_back({name_of_loop(trace, text, from, size), (to - from) / size, time_ns,
                     runs_backward(trace, text, from, from + size), time_at(from),
                     time_at(from + size)});
  }
  const double least_ns = least_part * static_cast<double>(end_ns - start_ns);
  std::erase_if(
      loops, [&](const InnerLoop& each) { return static_cast<double>(each.time_ns) < least_ns; });
  sort_rows(loops.begin(), loops.end(), [](const InnerLoop& a, const InnerLoop& b) {
    return std::tie(b.time_ns, a.name) < std::tie(a.time_ns, b.name);
  });
  if (loops.size() > kMostLoops) loops.resize(kMostLoops);
  if (steps.count > 0) loops.insert(loops.begin(), steps);
  return loops;
}

}  // namespace

std::vector<InnerLoop> find_inner_loops(const IterationInput& input, const Iterations& iterations) {
  constexpr double kLeastPart = 0.1;
  const Iterations::Range& middle = iterations.ranges[iterations.ranges.size() / 2];
  return loops_within(input, text_of(input, input.trace.track(middle.mark)), middle.start_ns,
                      middle.end_ns, kLeastPart);
}

InnerLoop find_phase_before(const IterationInput& input, const Iterations& iterations) {
  constexpr double kLeastPart = 0.5;
  const Trace& trace = input.trace;
  const Track& thread = trace.track(iterations.ranges.front().mark);
  const std::int64_t start_ns = trace.start_ns(SliceId{thread.first_slice}),
                     end_ns = iterations.ranges.front().start_ns;
  const Iterations::Range& middle = iterations.ranges[iterations.ranges.size() / 2];
  if (wide(end_ns - start_ns) * 2 < wide(middle.end_ns - middle.start_ns) * 3) return {};
  const ThreadText text = text_of(input, thread);
  const Stretches known(text.symbols, place_of(trace, text, middle.start_ns),
                        place_of(trace, text, middle.end_ns));
  for (InnerLoop& loop : loops_within(input, text, start_ns, end_ns, kLeastPart)) {
    if (loop.name == iterations.mark) continue;
    const std::size_t end = place_of(trace, text, loop.second_ns);
    for (std::size_t i = place_of(trace, text, loop.start_ns); i + Stretches::kSize <= end; ++i)
      if (known.has(i)) return std::move(loop);
  }
  return {};
}

}  // namespace lanescope::analysis

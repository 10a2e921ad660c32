#include "lanescope/explain/unit_loops.h"

#include <algorithm>
#include <span>

#include "lanescope/base/sort_rows.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::explain {
namespace {

using analysis::Repeat;

constexpr std::string_view kAutograd = "autograd::engine::evaluate_function: ";

}  // namespace

// What a graph holds has many names, its launch has one.
bool UnitLoops::is_graph(SliceId call) const {
  return trace_.api_call(call).does(api_effect::kLaunchesGraph);
}

const std::string& UnitLoops::name(SliceId unit) {
  const auto [entry, is_new] = names_.try_emplace(symbol(unit));
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
std::uint32_t UnitLoops::symbol(SliceId unit) const {
  if (is_api_call(trace_.kind(unit)))
    if (const auto work = facts_.links.launched_by(unit); !work.empty() && !is_graph(unit))
      return raw(trace_.slices().name[raw(work.front())]);
  return raw(trace_.slices().name[raw(unit)]);
}

bool UnitLoops::is_backward(SliceId unit) const { return trace_.name(unit).starts_with(kAutograd); }

void UnitLoops::find(const std::vector<SliceId>& outermost) {
  const auto windows = facts_.steady_cpu_windows();
  for (std::uint32_t i = 0; i < outermost.size(); ++i) {
    const SliceId id{i};
    if (outermost[i] != id || !inside(windows, trace_.start_ns(id))) continue;
    sequences_[raw(trace_.slices().track[i])].units.push_back(id);
    units_.push_back(id);
  }
  for (auto& [thread, sequence] : sequences_) {
    sequence.loop_of.assign(sequence.units.size(), Repeat::kNoRepeat);
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
}

bool UnitLoops::is_of_autograd(const UnitSequence& sequence) const {
  return !sequence.units.empty() && is_backward(sequence.units.front());
}

std::vector<std::int64_t> UnitLoops::round_starts(const UnitLoop& loop) const {
  const UnitSequence& sequence = sequences_.at(loop.thread);
  std::vector<std::int64_t> starts;
  for (std::uint64_t round = 0; round < loop.rounds; ++round)
    starts.push_back(trace_.start_ns(sequence.units[loop.first_unit + round * loop.cell.size()]));
  return starts;
}

// One round of `backward` begins for each that begins of `loop`. Where the rounds are cut does not matter.
bool UnitLoops::starts_rounds_of(const UnitLoop& loop, const UnitLoop& backward) const {
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
void UnitLoops::find_backward_rounds() {
  constexpr std::size_t kMostLooked = 64;  // loops of as many rounds at the same time
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_rounds;
  for (std::uint32_t l = 0; l < loops_.size(); ++l)
    if (loops_[l].rounds >= kFewestLoopRounds && !is_of_autograd(sequences_.at(loops_[l].thread)))
      by_rounds[loops_[l].rounds].push_back(l);
  const auto end_of = [&](std::uint32_t l) { return trace_.start_ns(loops_[l].last); };
  for (auto& [rounds, loops] : by_rounds)
    sort_rows(loops.begin(), loops.end(),
              [&](std::uint32_t a, std::uint32_t b) { return end_of(a) < end_of(b); });
  for (std::uint32_t b = 0; b < loops_.size(); ++b) {
    UnitLoop& backward = loops_[b];
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
        UnitLoop& loop = loops_[*each];
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

bool UnitLoops::adds_gradients(const UnitLoop& backward) const {
  return std::any_of(backward.cell.begin(), backward.cell.end(), [&](SliceId node) {
    return trace_.name(node).find("AccumulateGrad") != std::string_view::npos;
  });
}

std::size_t UnitLoops::backward_passes(const UnitLoop& loop, const UnitLoop& backward) const {
  const auto& calls = sequences_.at(loop.thread).units;
  const auto& nodes = sequences_.at(backward.thread).units;
  // Between the starts of the first two rounds of the backward loop, wherever they are cut.
  const std::int64_t from = trace_.start_ns(nodes[backward.first_unit]),
                     to = trace_.start_ns(nodes[backward.first_unit + backward.cell.size()]);
  std::size_t passes = 0;
  std::int64_t last = -1;  // the program's last call before the node before
  for (std::size_t i = 0; i < backward.cell.size(); ++i) {
    const std::int64_t time = trace_.start_ns(nodes[backward.first_unit + i]);
    if (time < from || time >= to) continue;
    const auto next =
        std::upper_bound(calls.begin(), calls.end(), time,
                         [&](std::int64_t t, SliceId call) { return t < trace_.start_ns(call); });
    const std::int64_t before = next - calls.begin();
    if (before != last) ++passes;
    last = before;
  }
  return passes;
}

bool UnitLoops::repeats_graph(const UnitLoop& backward) const {
  const auto& units = sequences_.at(backward.thread).units;
  const auto number_of = [&](std::size_t unit) {
    return trace_.slice_args(units[unit]).integer(ArgKey::kSequenceNumber).value_or(-1);
  };
  std::size_t same = 0;
  for (std::size_t i = 0; i < backward.cell.size(); ++i) {
    const std::int64_t number = number_of(backward.first_unit + i);
    if (number >= 0 && number == number_of(backward.first_unit + backward.cell.size() + i)) ++same;
  }
  return same * 2 >= backward.cell.size();
}

// A round at either end may belong to another part of the program, whose calls happen to be alike: a detach of the loss before
// those of a function that copies weights. It does if it lies in a function or range without the other rounds, together with at least a
// round's number of calls that are not of the loop.
void UnitLoops::cut_to_container(UnitSequence& sequence, std::uint32_t index) {
  UnitLoop& loop = loops_[index];
  const auto& units = sequence.units;
  const std::size_t size = loop.cell.size();
  while (loop.rounds > 1) {
    const std::size_t first = loop.first_unit, end = first + loop.rounds * size;
    const auto from = containers_.around(loop.first), to = containers_.around(loop.last);
    std::size_t depth = 0;
    while (depth < from.size() && depth < to.size() && from[depth] == to[depth]) ++depth;
    const bool is_first = depth < from.size() && first >= size &&
                          trace_.start_ns(units[first - size]) >= trace_.start_ns(from[depth]);
    const bool is_last = depth < to.size() && end + size <= units.size() &&
                         trace_.start_ns(units[end + size - 1]) < trace_.end_ns(to[depth]);
    if (!is_first && !is_last) return;
    const std::size_t cut = is_first ? first : end - size;
    for (std::size_t i = cut; i < cut + size; ++i)
      if (sequence.loop_of[i] == index) sequence.loop_of[i] = loop.parent;
    for (UnitLoop& inner : loops_)
      if (inner.parent == index && inner.first_unit >= cut && inner.first_unit < cut + size)
        inner.parent = loop.parent;
    --loop.rounds;
    if (!is_first) {
      loop.last = units[cut - 1];
      continue;
    }
    loop.first_unit = static_cast<std::uint32_t>(first + size);
    loop.first = units[loop.first_unit];
    for (std::size_t i = 0; i < size; ++i) loop.cell[i] = units[loop.first_unit + i];
  }
}

void UnitLoops::fold(std::uint32_t thread, UnitSequence& sequence, std::size_t first,
                     std::size_t end) {
  std::vector<std::uint32_t> symbols;
  for (std::size_t i = first; i < end; ++i) symbols.push_back(symbol(sequence.units[i]));
  const std::vector<Repeat> repeats = analysis::find_repeats(symbols);
  const auto base = static_cast<std::uint32_t>(loops_.size());
  for (std::size_t r = 0; r < repeats.size(); ++r) {
    const Repeat& repeat = repeats[r];
    UnitLoop loop;
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
    cut_to_container(sequence, l);
    const auto from = containers_.around(loops_[l].first), to = containers_.around(loops_[l].last);
    std::size_t& depth = loops_[l].depth;
    while (depth < from.size() && depth < to.size() && from[depth] == to[depth]) ++depth;
  }
}

}  // namespace lanescope::explain

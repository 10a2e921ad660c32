// Problem: a mean over all steps describes none of them when the first one pays for start-up, the
// last one was cut, or one took longer than the others together. A recording that stops in the
// middle of a step, loses its GPU side early, or ends with the empty step that step() opens after
// the last one, cuts steps. Idea: count per step how much is launched, and how much of that comes
// after the last launch with work. Example: 40, 40, 40, 12 launches -> the last step is cut.
#include "lanescope/analysis/step_selection.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "lanescope/analysis/wall_partition.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"

namespace lanescope::analysis {
namespace {

struct Counts {
  std::uint64_t units = 0;  // kernel launches; without any, device work; without any, operators
  std::uint64_t lost = 0;   // launches after the last one with work
};

std::vector<Counts> counts_of(const StepEvidence& evidence) {
  const auto& steps = evidence.steps.steps;
  std::vector<Counts> counts(steps.size());
  const auto step_at = [&](std::int64_t time_ns) -> Counts* {
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), time_ns,
        [](std::int64_t time, const auto& step) { return time < step.cpu_start_ns; });
    if (after == steps.begin() || time_ns >= std::prev(after)->cpu_end_ns) return nullptr;
    return &counts[static_cast<std::size_t>(std::prev(after) - steps.begin())];
  };
  const auto add = [&](SliceId slice) {
    if (Counts* step = step_at(evidence.trace.start_ns(slice))) ++step->units;
  };
  const auto& launches = evidence.launches;
  for (std::size_t i = 0; i < launches.calls.size(); ++i) {
    Counts* step = step_at(evidence.trace.start_ns(launches.calls[i]));
    if (!step) continue;
    ++step->units;
    if (i >= launches.recorded && evidence.device) ++step->lost;
  }
  if (!launches.calls.empty()) return counts;
  if (evidence.device) {
    for (const auto& work : evidence.device->work) add(work.slice);
    return counts;
  }
  for (std::uint32_t i = 0; i < evidence.trace.slices().size(); ++i)
    if (evidence.trace.kind(SliceId{i}) == CategoryKind::kCpuOp) add(SliceId{i});
  return counts;
}

// More than a twentieth of the step's launches come after the last launch with work.
bool has_lost_work(const Counts& step) { return step.lost * 20 > step.units; }

// Does the last one have fewer than half the launches of every other step? In a file without its
// end: fewer than 95 % of their median.
bool is_last_short(const std::vector<std::size_t>& steady, const std::vector<Counts>& counts,
                   bool is_truncated) {
  std::vector<std::int64_t> others;
  for (std::size_t i = 0; i + 1 < steady.size(); ++i)
    others.push_back(static_cast<std::int64_t>(counts[steady[i]].units));
  if (others.empty()) return false;
  const auto own = static_cast<std::int64_t>(counts[steady.back()].units);
  // An empty step is short even if other steps are empty too, as long as one is not.
  if (own == 0) return *std::max_element(others.begin(), others.end()) > 0;
  if (own * 2 < *std::min_element(others.begin(), others.end())) return true;
  return is_truncated && wide(own) * 20 < wide(median_of_steps(others)) * 19;
}

void leave_out_cut_steps(const StepEvidence& evidence, StepSelection& selection) {
  const std::vector<Counts> counts = counts_of(evidence);
  const bool stops = evidence.device && evidence.launches.gpu_stops_early();
  const bool is_truncated = evidence.trace.import_stats().is_truncated();
  auto& steady = selection.steady;
  const auto is_last_cut = [&] {
    return (stops && has_lost_work(counts[steady.back()])) ||
           is_last_short(steady, counts, is_truncated);
  };
  while (!selection.one_chosen && steady.size() > 1 && is_last_cut()) {
    selection.left_out.push_back({steady.back(), LeftOutReason::kCut});
    steady.pop_back();
  }
  selection.lacks_gpu_work = stops && !steady.empty() && has_lost_work(counts[steady.back()]);
}

// Lengths come in turns of so many, two turns or more: each is like the one a turn before it, within a quarter of the
// difference between the longest and the shortest of a turn, and that longest is half as long again as the shortest. 0: they do not.
std::size_t turn_of(const std::vector<std::int64_t>& lengths_ns) {
  for (std::size_t turn = 2; 2 * turn <= lengths_ns.size(); ++turn) {
    std::int64_t widest_ns = 0;  // difference between equal places of a turn
    std::int64_t shortest_ns = std::numeric_limits<std::int64_t>::max(), longest_ns = 0;
    for (std::size_t place = 0; place < turn; ++place) {
      std::int64_t least_ns = lengths_ns[place], most_ns = least_ns;
      for (std::size_t i = place; i < lengths_ns.size(); i += turn) {
        least_ns = std::min(least_ns, lengths_ns[i]);
        most_ns = std::max(most_ns, lengths_ns[i]);
      }
      widest_ns = std::max(widest_ns, most_ns - least_ns);
      shortest_ns = std::min(shortest_ns, most_ns);
      longest_ns = std::max(longest_ns, least_ns);
    }
    if (longest_ns > shortest_ns && wide(longest_ns) * 2 >= wide(shortest_ns) * 3 &&
        wide(widest_ns) * 4 <= wide(longest_ns - shortest_ns))
      return turn;
  }
  return 0;
}

// Of an odd number of steps that are long and short in turns, the mean would be that of neither: 502, 29, 515 ms have a mean of
// 349, and the program takes 266 a step. The first step shows the turns, too, if it is a short one: a long one may be start-up.
// Of six steps or more the mean is near enough, and they show by themselves that they are uneven. True: there are turns.
bool leave_out_part_of_turn(const StepEvidence& evidence, StepSelection& selection) {
  constexpr std::size_t kEnoughForTheMean = 6;
  auto& steady = selection.steady;
  if (selection.one_chosen || steady.empty() || steady.size() >= kEnoughForTheMean) return false;
  std::vector<std::int64_t> lengths;
  for (const std::size_t step : steady) lengths.push_back(evidence.windows[step].length_ns());
  std::size_t turn = turn_of(lengths), seen = lengths.size();
  if (steady.front() > 0) {
    lengths.insert(lengths.begin(), evidence.windows[steady.front() - 1].length_ns());
    const std::int64_t longest_ns = *std::max_element(lengths.begin(), lengths.end());
    const bool is_evidence = wide(lengths.front()) * 3 <= wide(longest_ns) * 2;
    const std::size_t with_first = is_evidence ? turn_of(lengths) : 0;
    if (turn == 0) turn = with_first;
    if (with_first == turn) seen = lengths.size();
  }
  if (turn == 0 || steady.size() < turn) return false;
  selection.turn = turn;
  selection.turns_seen = seen / turn;
  while (steady.size() % turn != 0) {
    selection.left_out.push_back({steady.back(), LeftOutReason::kInTurn});
    steady.pop_back();
  }
  return true;
}

// How long the loop waited for its next batch in each step, as the DataLoader's ranges say.
std::vector<std::int64_t> loader_ns_of(const StepEvidence& evidence) {
  const auto& steps = evidence.steps.steps;
  std::vector<std::int64_t> waited(steps.size());
  const Trace& trace = evidence.trace;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (is_device_work(trace.kind(id)) || !is_front_end(trace.kind(id)) ||
        !trace.name(id).starts_with("enumerate(DataLoader)"))
      continue;
    for (std::size_t step = 0; step < steps.size(); ++step)
      waited[step] +=
          std::max<std::int64_t>(0, std::min(trace.end_ns(id), steps[step].cpu_end_ns) -
                                        std::max(trace.start_ns(id), steps[step].cpu_start_ns));
  }
  return waited;
}

// Worker processes finish their batches at about the same time: then one step waits for all of
// them, and the next few for none. Another step waited half as long, and without its wait this one is not long.
bool waits_for_batches_in_turn(const StepEvidence& evidence, std::size_t step,
                               std::int64_t length_ns, std::int64_t others_ns) {
  const std::vector<std::int64_t> waited = loader_ns_of(evidence);
  if (length_ns - waited[step] > others_ns) return false;
  for (std::size_t other = 0; other < waited.size(); ++other)
    if (other != step && waited[other] * 2 >= waited[step]) return true;
  return false;
}

// The longest, if it is longer than all others together and three or more of these have work of the
// device: a mean with it would describe none of them.
void leave_out_long_step(const StepEvidence& evidence, StepSelection& selection) {
  constexpr std::size_t kFewestOthers = 3;
  auto& steady = selection.steady;
  if (selection.one_chosen || steady.size() <= kFewestOthers) return;
  const auto length = [&](std::size_t step) { return evidence.windows[step].length_ns(); };
  const auto longest =
      std::max_element(steady.begin(), steady.end(),
                       [&](std::size_t a, std::size_t b) { return length(a) < length(b); });
  std::int64_t others_ns = -length(*longest);
  for (const std::size_t step : steady) others_ns += length(step);
  if (length(*longest) <= others_ns ||
      waits_for_batches_in_turn(evidence, *longest, length(*longest), others_ns))
    return;
  const auto has_work = [&](std::size_t step) {
    return !evidence.device ||
           compute_wall_partition(*evidence.device, evidence.windows[step]).busy_ns() > 0;
  };
  const auto with_work = std::count_if(steady.begin(), steady.end(), [&](std::size_t step) {
    return step != *longest && has_work(step);
  });
  if (static_cast<std::size_t>(with_work) < kFewestOthers) return;
  selection.long_step = *longest;
  selection.left_out.push_back({*longest, LeftOutReason::kLong});
  steady.erase(longest);
}

// Calls and ranges of the step's thread by name: how often, and for how long together.
struct NamedCalls {
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
};
using CallsByName = std::map<std::uint32_t, NamedCalls>;

CallsByName calls_of(const StepEvidence& evidence, const StepRange& step) {
  CallsByName calls;
  if (step.slice == kNone<SliceId>) return calls;
  const Trace& trace = evidence.trace;
  const Track& track = trace.track(step.slice);
  // From the step's own slice: a search from the track's beginning would take time in the square of steps.
  std::uint32_t first = raw(step.slice);
  while (first > track.first_slice && trace.start_ns(SliceId{first - 1}) >= step.cpu_start_ns)
    --first;
  for (std::uint32_t i = first; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) < step.cpu_start_ns || id == step.slice) continue;
    if (trace.start_ns(id) >= step.cpu_end_ns) break;
    NamedCalls& named = calls[raw(trace.slices().name[i])];
    ++named.count;
    named.time_ns += trace.dur_ns(id);
  }
  return calls;
}

// Is half of the additional time, or more, in calls that the step has more often than each of the others, or in its wait for
// a batch? Then it is a part of what the program does.
bool has_work_of_its_own(const StepEvidence& evidence, std::size_t step,
                         const std::vector<std::size_t>& others, std::int64_t excess_ns) {
  const auto& steps = evidence.steps.steps;
  const CallsByName own = calls_of(evidence, steps[step]);
  std::vector<CallsByName> usual;
  for (const std::size_t other : others) usual.push_back(calls_of(evidence, steps[other]));
  const std::vector<std::int64_t> waited = loader_ns_of(evidence);
  for (const auto& [name, named] : own) {
    std::int64_t most_ns = 0;
    std::uint64_t most = 0;
    for (const CallsByName& each : usual)
      if (const auto found = each.find(name); found != each.end()) {
        most = std::max(most, found->second.count);
        most_ns = std::max(most_ns, found->second.time_ns);
      }
    if (named.count > most && (named.time_ns - most_ns) * 2 >= excess_ns) return true;
  }
  std::int64_t most_waited_ns = 0;
  for (const std::size_t other : others) most_waited_ns = std::max(most_waited_ns, waited[other]);
  return (waited[step] - most_waited_ns) * 2 >= excess_ns;
}

// Two other steps or more are alike, and one with the same launches and as much work of the device takes a quarter longer than
// each of them, so much that their mean would be a tenth too high. Something held it up that the program does not do in a
// step.
void leave_out_held_up_step(const StepEvidence& evidence, StepSelection& selection) {
  constexpr std::size_t kFewestOthers = 2;
  auto& steady = selection.steady;
  if (selection.one_chosen || selection.long_step || !evidence.device ||
      steady.size() < kFewestOthers)
    return;
  const auto length = [&](std::size_t step) { return evidence.windows[step].length_ns(); };
  const auto busy = [&](std::size_t step) {
    return compute_wall_partition(*evidence.device, evidence.windows[step]).busy_ns();
  };
  const std::size_t longest =
      *std::max_element(steady.begin(), steady.end(),
                        [&](std::size_t a, std::size_t b) { return length(a) < length(b); });
  std::vector<std::size_t> others;
  std::vector<std::int64_t> lengths;
  for (const std::size_t step : steady)
    if (step != longest) {
      others.push_back(step);
      lengths.push_back(length(step));
    }
  // Of two steady steps nobody knows which is usual. The first step, where it is like one of them, shows it. On the device it may
  // begin with a wait for work from before the recording, so its time on the CPU counts where that is shorter.
  if (others.size() == 1 && steady.front() > 0) {
    const std::size_t first = steady.front() - 1;
    const StepRange& range = evidence.steps.steps[first];
    others.push_back(first);
    lengths.push_back(std::min(length(first), range.cpu_end_ns - range.cpu_start_ns));
  }
  if (others.size() < kFewestOthers) return;
  const auto [shortest_ns, most_ns] = std::minmax_element(lengths.begin(), lengths.end());
  const std::int64_t usual_ns = median_of_steps(lengths);
  const std::int64_t excess_ns = length(longest) - usual_ns;
  const bool are_alike = wide(*most_ns) * 10 <= wide(*shortest_ns) * 11;
  const bool is_longer = wide(length(longest)) * 4 >= wide(*most_ns) * 5;
  const bool decides_mean =
      wide(excess_ns) * 10 >= wide(usual_ns) * static_cast<std::int64_t>(steady.size());
  if (!are_alike || !is_longer || !decides_mean) return;
  const std::vector<Counts> counts = counts_of(evidence);
  const std::int64_t own_busy_ns = busy(longest);
  for (const std::size_t other : others)
    if (const std::int64_t busy_ns = busy(other);
        busy_ns == 0 || counts[other].units != counts[longest].units ||
        (own_busy_ns - busy_ns) * 10 > std::min(excess_ns, busy_ns) ||
        (busy_ns - own_busy_ns) * 10 > busy_ns)
      return;
  if (has_work_of_its_own(evidence, longest, others, excess_ns)) return;
  selection.long_step = longest;
  selection.is_held_up = true;
  selection.left_out.push_back({longest, LeftOutReason::kHeldUp});
  steady.erase(std::find(steady.begin(), steady.end(), longest));
}

Error no_such_step(const Steps& steps, std::int64_t number) {
  return Error{Errc::kInvalidArgument,
               steps.device_behind
                   ? "expected no step: the GPU works later than the marked steps, and the trace "
                     "has no launch calls that say which step its work belongs to"
               : !steps.marked
                   ? "expected a step's number, but the trace marks no steps"
                   : "expected a step from " + std::to_string(*steps.steps.front().number) +
                         " to " + std::to_string(*steps.steps.back().number) + ", found " +
                         std::to_string(number)};
}

}  // namespace

std::vector<std::size_t> StepSelection::left_out_for(LeftOutReason reason) const {
  std::vector<std::size_t> steps;
  for (const LeftOutStep& each : left_out)
    if (each.reason == reason) steps.push_back(each.step);
  return steps;
}

std::vector<std::size_t> StepSelection::cut() const { return left_out_for(LeftOutReason::kCut); }

std::vector<std::size_t> StepSelection::later() const {
  std::vector<std::size_t> steps = steady;
  if (long_step) steps.insert(std::lower_bound(steps.begin(), steps.end(), *long_step), *long_step);
  return steps;
}

std::optional<LeftOutReason> StepSelection::reason(std::size_t step) const {
  const auto found = std::lower_bound(
      left_out.begin(), left_out.end(), step,
      [](const LeftOutStep& each, std::size_t index) { return each.step < index; });
  return found == left_out.end() || found->step != step ? std::nullopt
                                                        : std::optional(found->reason);
}

Result<StepSelection> select_steps(const StepEvidence& evidence, const StepOptions& options) {
  const auto& steps = evidence.steps.steps;
  StepSelection selection;
  selection.one_chosen = options.step.has_value();
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const StepRange& each) {
    return each.number == options.step;
  });
  if (options.step && found == steps.end()) return no_such_step(evidence.steps, *options.step);
  const auto chosen = static_cast<std::size_t>(found - steps.begin());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (options.step && i != chosen)
      selection.left_out.push_back({i, LeftOutReason::kNotChosen});
    else if (!options.step && i < evidence.steps.start_up_count)
      selection.left_out.push_back({i, LeftOutReason::kStartUp});
    else
      selection.steady.push_back(i);
  }
  if (evidence.steps.marked) {
    leave_out_cut_steps(evidence, selection);
    if (!options.count_long_step && !leave_out_part_of_turn(evidence, selection)) {
      leave_out_long_step(evidence, selection);
      leave_out_held_up_step(evidence, selection);
    }
  }
  sort_rows(selection.left_out.begin(), selection.left_out.end(),
            [](const LeftOutStep& a, const LeftOutStep& b) { return a.step < b.step; });
  return selection;
}

}  // namespace lanescope::analysis

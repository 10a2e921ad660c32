// Problem: a recording that stops in the middle of a step, loses its GPU side early, or ends with
// the empty step that step() opens after the last one, makes a mean of steps wrong. Idea: count per
// step how much is launched, and how much of that comes after the last launch with work.
// Example: 40, 40, 40, 12 launches -> the last step is left out.
#include "lanescope/explain/cut_steps.h"
#include "lanescope/base/wide.h"

#include <algorithm>

namespace lanescope::explain {
namespace {

struct Counts {
  std::uint64_t units = 0;  // kernel launches; without any, device work; without any, operators
  std::uint64_t lost = 0;   // launches after the last one with work
};

std::vector<Counts> counts_of(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& steps = facts.steps.steps;
  std::vector<Counts> counts(steps.size());
  const auto step_at = [&](std::int64_t time_ns) -> Counts* {
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), time_ns,
        [](std::int64_t time, const auto& step) { return time < step.cpu_start_ns; });
    if (after == steps.begin() || time_ns >= std::prev(after)->cpu_end_ns) return nullptr;
    return &counts[static_cast<std::size_t>(std::prev(after) - steps.begin())];
  };
  const auto add = [&](SliceId slice) {
    if (Counts* step = step_at(trace.start_ns(slice))) ++step->units;
  };
  const auto& launches = facts.kernel_launches;
  for (std::size_t i = 0; i < launches.calls.size(); ++i) {
    Counts* step = step_at(trace.start_ns(launches.calls[i]));
    if (!step) continue;
    ++step->units;
    if (i >= launches.recorded && facts.main_device) ++step->lost;
  }
  if (!launches.calls.empty()) return counts;
  if (facts.main_device) {
    for (const auto& work : facts.device().timeline.work) add(work.slice);
    return counts;
  }
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp) add(SliceId{i});
  return counts;
}

// More than a twentieth of the step's launches come after the last launch with work.
bool has_lost_work(const Counts& step) { return step.lost * 20 > step.units; }

// Fewer than half the launches of every other step; in a file without its end, fewer than 95 % of
// their median.
bool is_short(const Facts& facts, const std::vector<Counts>& counts) {
  std::vector<std::int64_t> others;
  for (std::size_t i = 0; i + 1 < facts.steady.size(); ++i)
    others.push_back(static_cast<std::int64_t>(counts[facts.steady[i]].units));
  if (others.empty()) return false;
  const auto own = static_cast<std::int64_t>(counts[facts.steady.back()].units);
  // An empty step is short even if other steps are empty too, as long as one is not.
  if (own == 0) return *std::max_element(others.begin(), others.end()) > 0;
  if (own * 2 < *std::min_element(others.begin(), others.end())) return true;
  return is_truncated(*facts.trace) &&
         wide(own) * 20 < wide(analysis::median_of_steps(others)) * 19;
}

}  // namespace

bool is_truncated(const Trace& trace) {
  const ImportStats& stats = trace.import_stats();
  return stats[ImportIssue::kTruncatedFile].count > 0 ||
         stats[ImportIssue::kTruncatedStream].count > 0;
}

void leave_out_cut_steps(Facts& facts) {
  if (!facts.steps.marked) return;
  const std::vector<Counts> counts = counts_of(facts);
  const bool stops = facts.main_device && facts.kernel_launches.gpu_stops_early();
  if (!facts.one_step_chosen) {
    while (facts.steady.size() > 1 &&
           ((stops && has_lost_work(counts[facts.steady.back()])) || is_short(facts, counts))) {
      facts.cut_steps.insert(facts.cut_steps.begin(), facts.steady.back());
      facts.steady.pop_back();
    }
  }
  facts.is_cut = stops && !facts.steady.empty() && has_lost_work(counts[facts.steady.back()]);
}

Sentence cut_steps_note(const Facts& facts) {
  const auto& launches = facts.kernel_launches;
  const bool stops = facts.main_device && launches.gpu_stops_early();
  Sentence note;
  if (!facts.cut_steps.empty() && !facts.is_cut) {
    const std::size_t first = facts.cut_steps.front(), last = facts.cut_steps.back();
    note = first == last ? say("Step {} is left out", {step_number(facts, first)})
                         : say(last - first == 1 ? "Steps {} and {} are left out"
                                                 : "Steps {} to {} are left out",
                               {step_number(facts, first), step_number(facts, last)});
    if (!stops) {
      note.pattern +=
          first == last
              ? ": it holds far less work than each of the others; the recording may end in it."
              : ": they hold far less work than each of the others; the recording may end in them.";
      return note;
    }
    note.pattern += ": ";
  }
  if (!stops) return note;
  const Trace& trace = *facts.trace;
  note.pattern += note.pattern.empty() ? "No GPU work is in the trace for the last {} kernel "
                                         "launches, from {} on."
                                       : "no GPU work is in the trace for the last {} kernel "
                                         "launches, from {} on.";
  note.values.push_back(count(launches.lost_at_end()));
  note.values.push_back(
      ns(trace.start_ns(launches.calls[launches.recorded]) - trace.window_start_ns()));
  return note;
}

}  // namespace lanescope::explain

// Gaps in multiples of Python's switch interval: another thread runs Python and holds the lock (GIL).
//
// A thread that wants the lock waits for 5 ms, CPython's default switch interval, before it asks the holder to give it
// up. Where another thread runs plain Python, each call that let go of the lock (a launch, an allocation, a copy) costs
// the launching thread 5 ms or a multiple, more or less at random. A program that sleeps or polls for 5 ms does so at
// one place, or for as long in each step.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/python_lock.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr std::int64_t kIntervalNs = 5'000'000;
// A wait ends up to so much after its interval, and the thread needs a little time to go on.
constexpr std::int64_t kLateNs = 400'000, kOnceNs = 100'000;
constexpr std::int64_t kLongGapNs = 2'500'000, kMostIntervals = 6;
constexpr std::size_t kFewestGaps = 8, kFewestPlaces = 4, kFewestIrregular = 2;

struct LockGap {
  Window window;
  std::int64_t intervals = 0;  // 0: its length is no multiple
  std::size_t step = 0, place = 0;
  SliceId after = kNone<SliceId>;  // the event that ends it
};

std::int64_t intervals_of(std::int64_t length_ns) {
  const std::int64_t intervals = length_ns / kIntervalNs;
  if (intervals < 1 || intervals > kMostIntervals) return 0;
  return length_ns % kIntervalNs <= intervals * kLateNs + kOnceNs ? intervals : 0;
}

// Long stretches inside steps in which no CPU thread has an operator or a call; in order of time.
std::vector<LockGap> long_gaps(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<std::pair<Window, SliceId>> events;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const bool is_op = trace.kind(id) == CategoryKind::kCpuOp &&
                       !trace.name(id).starts_with("ProfilerStep") &&
                       !trace.name(id).starts_with("enumerate(DataLoader)");
    if (is_op || is_api_call(trace.kind(id)) || trace.kind(id) == CategoryKind::kOverhead)
      events.push_back({{trace.start_ns(id), trace.end_ns(id)}, id});
  }
  sort_rows(events.begin(), events.end(),
            [](const auto& a, const auto& b) { return a.first.start_ns < b.first.start_ns; });
  std::vector<LockGap> gaps;
  const auto& steps = facts.steps.steps;
  std::size_t step = 0, place = 0;
  std::int64_t end_ns = events.empty() ? 0 : events.front().first.end_ns;
  for (const auto& [event, slice] : events) {
    while (step < steps.size() && steps[step].cpu_end_ns <= event.start_ns) {
      ++step;
      place = 0;
    }
    if (step == steps.size()) break;
    // One that began in the step before is the first of this one.
    if (event.start_ns > end_ns && event.start_ns >= steps[step].cpu_start_ns) {
      ++place;
      if (event.start_ns - end_ns >= kLongGapNs && end_ns >= steps.front().cpu_start_ns)
        gaps.push_back(
            {{end_ns, event.start_ns}, intervals_of(event.start_ns - end_ns), step, place, slice});
    }
    end_ns = std::max(end_ns, event.end_ns);
  }
  return gaps;
}

struct SwitchIntervals {
  std::vector<LockGap> gaps;  // multiples of the interval
  std::size_t long_gaps = 0;
  std::int64_t waiting_ns = 0;  // in steady steps; with a GPU, while it is idle
  LockGap longest;
};

std::optional<SwitchIntervals> measure_switch_intervals(const Facts& facts) {
  if (has_lock_samples(facts)) return std::nullopt;  // gil-contention knows who holds it
  SwitchIntervals found;
  for (const LockGap& gap : long_gaps(facts)) {
    ++found.long_gaps;
    if (gap.intervals > 0) found.gaps.push_back(gap);
  }
  // Nine of ten long gaps are multiples: of gaps of any length, a tenth to a fifth would be.
  if (found.gaps.size() < kFewestGaps || found.gaps.size() * 10 < found.long_gaps * 9)
    return std::nullopt;
  std::map<std::size_t, std::set<std::int64_t>> by_place;
  for (const LockGap& gap : found.gaps) by_place[gap.place].insert(gap.intervals);
  const auto irregular = static_cast<std::size_t>(std::count_if(
      by_place.begin(), by_place.end(), [](const auto& each) { return each.second.size() > 1; }));
  if (by_place.size() < kFewestPlaces || irregular < kFewestIrregular) return std::nullopt;
  const auto cpu_windows = facts.steady_cpu_windows();
  std::vector<Window> windows;
  for (const LockGap& gap : found.gaps) {
    if (!inside(cpu_windows, gap.window.start_ns)) continue;
    windows.push_back(gap.window);
    if (gap.window.length_ns() > found.longest.window.length_ns()) found.longest = gap;
  }
  found.waiting_ns = facts.main_device ? device_idle_during(facts, windows) : total_length(windows);
  if (windows.empty() || share_of(found.waiting_ns, facts.steady_wall_ns()) < 0.05)
    return std::nullopt;
  return found;
}

Finding tell_switch_intervals(const Facts& facts, const SwitchIntervals& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "Another thread probably runs Python and holds its lock (GIL): {} of {} long stretches "
          "without events last 5 ms, the lock's switch interval, or a multiple of it, at changing "
          "places; {} [per step] ({}).",
          {count(found.gaps.size()), count(found.long_gaps), ns(facts.per_step(found.waiting_ns)),
           ratio(found.waiting_ns, facts.steady_wall_ns())});
  finding.at_stake_ns = facts.per_step(found.waiting_ns);
  finding.at_stake_ratio = share_of(found.waiting_ns, facts.steady_wall_ns());
  std::map<std::int64_t, std::uint64_t> by_intervals;
  for (const LockGap& gap : found.gaps) ++by_intervals[gap.intervals];
  Sentence lengths = say("stretches of 2.5 ms or more by their length:");
  for (const auto& [intervals, gaps] : by_intervals)
    append(lengths, say(" {} of about {}", {count(gaps), ns(intervals * kIntervalNs)}));
  finding.arithmetic.push_back(std::move(lengths));
  finding.arithmetic.push_back(
      say("a multiple: up to 400 us longer for each interval, and 100 us once; a program that "
          "sleeps or polls would do so at one place, or for as long in each step"));
  // Without the event: what ends a wait for the lock is no place of its cause.
  finding.evidence.push_back({kNone<SliceId>, say("the longest of them, {}, ends with {}",
                                                  {ns(found.longest.window.length_ns()),
                                                   name(facts.trace->name(found.longest.after))})});
  finding.try_next = {
      "move that thread's work into a process of its own (DataLoader workers, multiprocessing), or "
      "into code that releases the lock",
      "lanescope record --sample-python names the thread and the function that hold the lock"};
  finding.confidence = found.gaps.size() >= 30 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = found.gaps.size();
  finding.sample_noun = "stretch";
  finding.explains = {{"python-hole", finding.at_stake_ns},
                      {"graph-opportunity", finding.at_stake_ns}};
  finding.brief =
      say("Another thread probably holds Python's lock (GIL): gaps of 5 ms and multiples");
  finding.action =
      say("Move its work into a process; lanescope record --sample-python names the thread");
  return finding;
}

}  // namespace

extern constinit const Rule switch_intervals_rule = {
    .id = "switch-intervals",
    .question = "do gaps of one length show that another thread holds Python's lock (GIL)?",
    .meant_by = "gil lock thread python interval",
    .order = 94,
    .needs = {need::kAnyWork, need::kTwoMarkedSteps},
    .run = measure_and_tell<measure_switch_intervals, tell_switch_intervals>,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules

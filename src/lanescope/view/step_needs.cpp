// Problem: analyses of one step join launches with work, and work with operators. A part that lacks one of them gives another
// answer. Idea: begin with the time of the step on the CPU and on the device, take in the launches of the work that is
// there, and all work of these launches, until nothing is added. Other work of the time before is not needed, so streams have
// a window of their own. Example: step [100, 200); a kernel launched at 40 runs [90, 120), one launched at 190 runs [190, 230)
//   -> work [90, 230), calls [39, 202).
// Where joins could find something else in the part than in the whole (ids that repeat, several devices, work without a launch),
// no part is known, and the whole trace is read.
#include "lanescope/view/step_needs.h"

#include <algorithm>
#include <limits>

#include "lanescope/analysis/hardware_lanes.h"

namespace lanescope::view {
namespace {

using analysis::DeviceWork;

// True: two API calls have the same correlation id, or External ids join uncorrelated calls.
bool correlation_ids_repeat(const Trace& trace) {
  std::vector<std::int64_t> ids;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (is_api_call(trace.kind(SliceId{i})))
      if (const auto id = trace.slice_args(SliceId{i}).integer(ArgKey::kCorrelation).value_or(0))
        ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return std::adjacent_find(ids.begin(), ids.end()) != ids.end();
}

// Steps as they are marked, none left out, none twice, all of one process.
bool steps_are_plain(const explain::Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& steps = facts.steps.steps;
  if (!facts.steps.marked || facts.steps.found || facts.steps.others_mark || steps.empty() ||
      steps.size() != trace.steps().size())
    return false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].slice == kNone<SliceId> || !steps[i].number) return false;
    if (trace.track(steps[i].slice).process != trace.track(steps.front().slice).process)
      return false;
    if (i > 0 && *steps[i - 1].number >= *steps[i].number) return false;
  }
  return true;
}

bool parts_can_answer(const explain::Facts& facts) {
  const Trace& trace = *facts.trace;
  return facts.main_device && facts.devices.size() == 1 && steps_are_plain(facts) &&
         facts.device().timeline.work.size() == facts.links.device_work_count &&
         !trace.metadata_json("lanescope_merged_ranks") &&
         !analysis::hardware_description(trace, facts.device().timeline.device) &&
         !correlation_ids_repeat(trace);
}

class NeedsFinder {
 public:
  explicit NeedsFinder(const explain::Facts& facts)
      : facts_(facts), trace_(*facts.trace), work_(facts.device().timeline.work) {
    std::int64_t latest = std::numeric_limits<std::int64_t>::min();
    latest_end_.reserve(work_.size());
    for (const DeviceWork& each : work_)
      latest_end_.push_back(latest = std::max(latest, each.end_ns));
    for (const DeviceWork& each : work_)
      if (const SliceId launch = launch_of(each.slice); launch != kNone<SliceId>)
        launched_.push_back({trace_.start_ns(launch), each.start_ns, each.end_ns});
    std::sort(launched_.begin(), launched_.end(),
              [](const Launched& a, const Launched& b) { return a.launch_ns < b.launch_ns; });
    find_ends_of_begun();
  }

  StepNeeds of(std::size_t step) {
    const auto& range = facts_.steps.steps[step];
    const analysis::Window device = facts_.step_window(step);
    calls_ = {range.cpu_start_ns, std::max(range.cpu_end_ns, ends_of_begun_[step]) + 1};
    needed_ = {std::min(range.cpu_start_ns, device.start_ns),
               std::max(range.cpu_end_ns, device.end_ns)};
    take_launched();
    constexpr int kMostRounds = 8;  // usually two
    for (int round = 0; round < kMostRounds; ++round) {
      const TraceWindow calls = calls_, needed = needed_;
      if (!take_launches()) return {};
      if (calls == calls_ && needed == needed_)
        return {{calls_.start_ns - 1, calls_.end_ns + 1}, needed_};
    }
    return {};
  }

 private:
  struct Launched {
    std::int64_t launch_ns, start_ns, end_ns;
  };

  SliceId launch_of(SliceId slice) const { return facts_.links.launch_of[raw(slice)]; }

  // What threads begin during a step and end after it belongs to it, too.
  void find_ends_of_begun() {
    const auto& steps = facts_.steps.steps;
    ends_of_begun_.assign(steps.size(), std::numeric_limits<std::int64_t>::min());
    for (const Track& track : trace_.tracks()) {
      if (track.kind == TrackKind::kStream) continue;
      std::size_t step = 0;
      for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
        const std::int64_t start = trace_.start_ns(SliceId{i});
        while (step < steps.size() && steps[step].cpu_end_ns <= start) ++step;
        if (step == steps.size()) break;
        if (start >= steps[step].cpu_start_ns)
          ends_of_begun_[step] = std::max(ends_of_begun_[step], trace_.end_ns(SliceId{i}));
      }
    }
  }

  // All that the calls in the window started.
  void take_launched() {
    auto at = std::lower_bound(
        launched_.begin(), launched_.end(), calls_.start_ns,
        [](const Launched& each, std::int64_t time) { return each.launch_ns < time; });
    for (; at != launched_.end() && at->launch_ns < calls_.end_ns; ++at, ++visited_)
      take(at->start_ns, at->end_ns);
  }

  // A window is half-open, so work that begins where this ends is no part of it: on a busy device, all that follows would be.
  void take(std::int64_t start_ns, std::int64_t end_ns) {
    needed_.start_ns = std::min(needed_.start_ns, start_ns);
    needed_.end_ns = std::max({needed_.end_ns, end_ns, start_ns + 1});
  }

  // The launches of the work in the window, and all work of these. False: a piece has none, or has to
  // be joined by other ids; or there is no work.
  bool take_launches() {
    const auto begin = work_.begin();
    auto at = begin + (std::upper_bound(latest_end_.begin(), latest_end_.end(), needed_.start_ns) -
                       latest_end_.begin());
    const TraceWindow window = needed_;
    // A piece of no length that begins with the window has an end that is not after its begin.
    while (at != begin && std::prev(at)->start_ns >= window.start_ns) --at;
    bool any = false;
    for (; at != work_.end() && at->start_ns < window.end_ns; ++at) {
      if (++visited_ > kMostVisits * (work_.size() + 1)) return false;
      if (at->end_ns <= window.start_ns && at->start_ns < window.start_ns) continue;
      const SliceId launch = launch_of(at->slice);
      if (launch == kNone<SliceId>) return false;
      if (facts_.links.op_of[raw(at->slice)] == kNone<SliceId> &&
          trace_.slice_args(at->slice).integer(ArgKey::kExternalId).value_or(0) != 0)
        return false;
      any = true;
      calls_.start_ns = std::min(calls_.start_ns, trace_.start_ns(launch));
      calls_.end_ns = std::max(calls_.end_ns, trace_.end_ns(launch) + 1);
      for (const SliceId other : facts_.links.launched_by(launch))
        take(trace_.start_ns(other), trace_.end_ns(other));
    }
    return any;
  }

  static constexpr std::size_t kMostVisits =
      32;  // of each piece of work; more: steps that overlap widely

  const explain::Facts& facts_;
  const Trace& trace_;
  const std::vector<DeviceWork>& work_;
  std::vector<std::int64_t> latest_end_;  // of the work up to each piece
  std::vector<Launched> launched_;        // by launch
  std::vector<std::int64_t> ends_of_begun_;
  TraceWindow calls_, needed_;
  std::size_t visited_ = 0;
};

}  // namespace

std::vector<StepNeeds> step_needs(const explain::Facts& facts) {
  std::vector<StepNeeds> needs(facts.steps.steps.size());
  if (!parts_can_answer(facts)) return needs;
  NeedsFinder finder(facts);
  for (std::size_t i = 0; i < needs.size(); ++i) needs[i] = finder.of(i);
  return needs;
}

}  // namespace lanescope::view

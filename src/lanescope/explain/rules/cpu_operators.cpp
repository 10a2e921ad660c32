// Operators that compute on the CPU while the GPU waits for them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/rules/cpu_computing.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/event_holes.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

// The copy that brings an operator's result to the GPU. One that works on what was just read makes a result of the program;
// the copy after it is another tensor's, such as the next input, unless it has the size of what was read.
const LaunchedWork* upload_of(const Facts& facts, const Neighbours& around) {
  return around.read && around.upload &&
                 bytes_of(facts, around.read->work->slice) !=
                     bytes_of(facts, around.upload->work->slice)
             ? nullptr
             : around.upload;
}

// Operators that compute on the CPU in few of the steps, such as those that prepare each request of a recording whose steps are
// words: over the whole recording, while the GPU has nothing to do.
struct RareOperators {
  std::map<std::string_view, Named> by_name;  // of the main thread
  std::uint64_t steps = 0;                    // recorded ones in which they run
  std::int64_t computing_ns = 0, wall_ns = 0;
  // Unlike operators that take the same time: it is that of something else, such as threads that wait for a core.
  std::uint64_t equal_names = 0;
  std::int64_t equal_least_ns = 0, equal_most_ns = 0;
};

std::int64_t without_gpu_work(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  std::int64_t left_ns = trace.dur_ns(op);
  for (const std::int64_t busy_ns :
       facts.device().timeline.time_within(trace.start_ns(op), trace.end_ns(op)))
    left_ns -= busy_ns;
  return left_ns;
}

// The most names whose mean durations lie within a tenth of each other, each of 1 ms or more.
void find_equal_times(RareOperators& found) {
  constexpr std::int64_t kLeastEqualNs = 1'000'000;
  std::vector<std::int64_t> means;
  for (const auto& [label, calls] : found.by_name)
    means.push_back(calls.time_ns / static_cast<std::int64_t>(calls.count));
  std::sort(means.begin(), means.end());
  std::size_t first = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    while (means[i] * 10 > means[first] * 11) ++first;
    if (means[first] < kLeastEqualNs || i + 1 - first <= found.equal_names) continue;
    found.equal_names = i + 1 - first;
    found.equal_least_ns = means[first];
    found.equal_most_ns = means[i];
  }
}

// The recorded step in which a time lies, or the one before it; what comes before all steps counts as the first.
std::size_t recorded_step_at(const Facts& facts, std::int64_t time_ns) {
  const auto& steps = facts.steps.steps;
  const auto after = std::upper_bound(
      steps.begin(), steps.end(), time_ns,
      [](std::int64_t time, const auto& step) { return time < step.cpu_start_ns; });
  return after == steps.begin() ? 0 : static_cast<std::size_t>(after - steps.begin()) - 1;
}

// Those that run in two steps or more: what runs in one is start-up, or an operator that something delayed.
std::optional<RareOperators> measure_rare_operators(const Facts& facts) {
  constexpr double kLeastOfRecording = 0.1;
  const Trace& trace = *facts.trace;
  const auto& work = facts.device().timeline.work;
  if (work.empty()) return std::nullopt;
  const TrackId thread = facts.main_thread;
  RareOperators found;
  std::map<std::string_view, std::set<std::size_t>> steps_of;
  Window recording{work.front().start_ns, work.back().end_ns};
  for (const SliceId op : cpu_operators_of_recording(facts)) {
    if (trace.slices().track[raw(op)] != thread) continue;
    recording.start_ns = std::min(recording.start_ns, trace.start_ns(op));
    recording.end_ns = std::max(recording.end_ns, trace.end_ns(op));
    found.by_name[trace.name(op)].add(op, trace.dur_ns(op));
    steps_of[trace.name(op)].insert(recorded_step_at(facts, trace.start_ns(op)));
  }
  std::erase_if(found.by_name, [&](const auto& each) { return steps_of[each.first].size() < 2; });
  for (const SliceId op : cpu_operators_of_recording(facts))
    if (trace.slices().track[raw(op)] == thread && found.by_name.contains(trace.name(op)))
      found.computing_ns += without_gpu_work(facts, op);
  found.wall_ns = recording.length_ns();
  if (share_of(found.computing_ns, found.wall_ns) < kLeastOfRecording) return std::nullopt;
  std::set<std::size_t> in_steps;
  for (const auto& [label, calls] : found.by_name)
    in_steps.insert(steps_of[label].begin(), steps_of[label].end());
  found.steps = in_steps.size();
  find_equal_times(found);
  return found;
}

struct CpuOperators {
  std::optional<RareOperators> rare;  // they run in fewer of the steps than there are
  std::map<std::string, Named> by_name;
  std::uint64_t calls = 0;
  std::int64_t computing_ns = 0;  // the GPU was idle while they ran
  LostTime uploading;             // while their results were copied
  std::uint64_t uploads = 0;
  std::int64_t upload_bytes = 0;
  std::int64_t after_reads_ns = 0;  // of the operators that work on what was just read from the GPU
  std::int64_t freeing_ns = 0;      // the GPU was idle in holes right after them
  std::string main_name;            // with most time
};

// Large operators of one thread that compute on the CPU: when each ends, and how long all up to it take together.
struct LargeOperators {
  std::vector<SliceId> ops;
  std::vector<std::int64_t> ends_ns, sums_ns;
};

std::map<std::uint32_t, LargeOperators> large_operators(const Facts& facts) {  // by thread
  constexpr std::int64_t kLargeNs = 1'000'000;
  const Trace& trace = *facts.trace;
  std::map<std::uint32_t, LargeOperators> found;
  for (const SliceId op : long_cpu_operators(facts)) {
    if (trace.dur_ns(op) < kLargeNs) continue;
    LargeOperators& own = found[raw(trace.slices().track[raw(op)])];
    own.ops.push_back(op);
    own.ends_ns.push_back(trace.end_ns(op));
    own.sums_ns.push_back(trace.dur_ns(op) + (own.sums_ns.empty() ? 0 : own.sums_ns.back()));
  }
  return found;
}

// The time of holes at one place that begin at most 1 ms after a large operator of the same function, and are no longer than those since
// the hole before.
std::int64_t time_after_operators(const Facts& facts, const EventHole& hole,
                                  const LargeOperators& large) {
  constexpr std::int64_t kNearNs = 1'000'000;
  std::int64_t found_ns = 0, counted_ns = 0;
  for (const Window& window : hole.windows) {
    const auto after =
        std::upper_bound(large.ends_ns.begin(), large.ends_ns.end(), window.start_ns);
    if (after == large.ends_ns.begin()) continue;
    const auto last = static_cast<std::size_t>(after - large.ends_ns.begin()) - 1;
    const std::int64_t computed_ns = large.sums_ns[last] - counted_ns;
    counted_ns = large.sums_ns[last];
    if (window.start_ns - large.ends_ns[last] > kNearNs || window.length_ns() > computed_ns)
      continue;
    if (window.start_ns == hole.longest.start_ns &&
        python_line(facts, large.ops[last]) != python_line(facts, hole.place.before))
      return 0;
    found_ns += window.length_ns();
  }
  return found_ns;
}

// The GPU's waits in code without events that follows large operators in the same function: the CPU gives back the memory of what they
// made, as where a function returns. Without the operators it is gone, too.
std::int64_t holes_after_operators(const Facts& facts) {
  constexpr std::size_t kMostPlaces = 8;
  const auto large = large_operators(facts);
  if (large.empty()) return 0;
  const auto holes = find_event_holes(facts);
  std::int64_t found_ns = 0;
  for (std::size_t i = 0; holes && i < holes->places.size() && i < kMostPlaces; ++i) {
    const EventHole& hole = holes->places[i];
    const auto own = large.find(raw(facts.trace->slices().track[raw(hole.place.after)]));
    if (own != large.end()) found_ns += time_after_operators(facts, hole, own->second);
  }
  return found_ns;
}

// Steps that bring several values back to the CPU and train nothing: the next input may depend on them, as in a tracker.
bool may_depend_on_results(const Facts& facts) {
  constexpr std::int64_t kOneNumber = 16;  // bytes: a complex one is the largest
  const auto windows = facts.steady_cpu_windows();
  if (trains(facts, &windows)) return false;
  std::size_t reads = 0;
  for (const analysis::DeviceWork& work : facts.device().timeline.work)
    reads += facts.trace->name(work.slice).starts_with("Memcpy DtoH") &&
                     inside(facts.steady_windows, work.start_ns) &&
                     bytes_of(facts, work.slice) > kOneNumber
                 ? 1
                 : 0;
  return reads > 0 && reads >= facts.selection.steady.size();
}

std::optional<CpuOperators> measure_cpu_operators(const Facts& facts) {
  const Trace& trace = *facts.trace;
  CpuOperators found;
  std::map<std::uint32_t, std::vector<Window>> computing;  // by thread
  std::vector<Window> uploading;
  const LaunchedWork* last_upload = nullptr;
  // Any operator can be delayed once in a while. What a program computes on the CPU, it computes in
  // each step, or again and again.
  if (long_cpu_operators(facts).size() < facts.selection.steady.size()) {
    found.rare = measure_rare_operators(facts);
    if (!found.rare) return std::nullopt;
  }
  const auto is_counted = [&](SliceId op) {
    return !found.rare || (trace.slices().track[raw(op)] == facts.main_thread &&
                           found.rare->by_name.contains(trace.name(op)));
  };
  for (const SliceId op : long_cpu_operators(facts)) {
    if (!is_counted(op)) continue;
    ++found.calls;
    found.by_name[std::string(trace.name(op))].add(op, trace.dur_ns(op));
    computing[raw(trace.slices().track[raw(op)])].push_back({trace.start_ns(op), trace.end_ns(op)});
    const Neighbours around = copies_around(facts, op);
    if (around.read) found.after_reads_ns += trace.dur_ns(op);
    const LaunchedWork* upload = upload_of(facts, around);
    if (!upload) continue;
    if (upload ==
        last_upload) {  // this operator is nearer to the copy; its own time is counted above
      uploading.back().start_ns = std::max(uploading.back().start_ns, trace.end_ns(op));
      continue;
    }
    last_upload = upload;
    ++found.uploads;
    found.upload_bytes += bytes_of(facts, upload->work->slice);
    uploading.push_back({trace.end_ns(op), next_work_ns(facts, upload->work->end_ns)});
  }
  const auto& waits = host_late_stretches(facts);
  for (auto& [thread, windows] : computing) {
    std::vector<HostStretch> of_thread;
    for (const HostStretch& wait : waits)
      if (raw(wait.thread) == thread) of_thread.push_back(wait);
    for (const HostStretch& part : parts_within(of_thread, joined(std::move(windows))))
      found.computing_ns += part.end_ns - part.start_ns;
  }
  found.uploading = lost_in(facts, steady_parts(facts, joined(std::move(uploading))));
  if (wall_share(facts, found.computing_ns) < 0.05) return std::nullopt;
  found.freeing_ns = holes_after_operators(facts);
  std::int64_t most_ns = -1;
  for (const auto& [label, calls] : found.by_name)
    if (calls.time_ns > most_ns) {
      most_ns = calls.time_ns;
      found.main_name = label;
    }
  return found;
}

bool looks_up(std::string_view op) {
  return op == "aten::embedding" || op == "aten::index_select" || op == "aten::embedding_bag" ||
         op == "aten::_embedding_bag" || op == "aten::index" || op == "aten::gather";
}

void tell_rare_operators(const Facts& facts, const CpuOperators& found, Finding& finding) {
  constexpr std::uint64_t kFewestEqualNames = 5;
  const RareOperators& rare = *found.rare;
  const std::uint64_t steps = std::max<std::uint64_t>(1, facts.steps.steps.size());
  const std::int64_t each_ns =
      rare.computing_ns / static_cast<std::int64_t>(std::max<std::uint64_t>(1, rare.steps));
  finding.arithmetic.push_back(
      say("they run in {} of the recording's {} steps, {} in each of these, {} of the whole "
          "recording; per step counts what lies in the steps that are measured",
          {count(rare.steps), count(steps), ns(each_ns), ratio(rare.computing_ns, rare.wall_ns)}));
  finding.brief =
      say(facts,
          "{} and {} other [operator runs|operators run] on the CPU while the GPU waits, in {} of "
          "the recording's {} steps, {} in each",
          {name(found.main_name), count(rare.by_name.size() - 1), count(rare.steps), count(steps),
           ns(each_ns)});
  if (rare.by_name.size() == 1)
    finding.brief =
        say("{} runs on the CPU while the GPU waits, in {} of the recording's {} steps, {} in each",
            {name(found.main_name), count(rare.steps), count(steps), ns(each_ns)});
  finding.action =
      say("Compute this on the GPU, or prepare it ahead (in another thread or process)");
  if (rare.equal_names < kFewestEqualNames) return;
  append(finding.action,
         say(". If PyTorch has more CPU threads than free cores: torch.set_num_threads(n), because "
             "{} unlike operators take {} to {} each",
             {count(rare.equal_names), ns(rare.equal_least_ns), ns(rare.equal_most_ns)}));
}

Sentence where_to_compute(const Facts& facts) {
  return may_depend_on_results(facts)
             ? say("Bring the inputs to the GPU first, and compute this there")
             : say("Make the inputs on the GPU and compute this there; or compute it ahead, in "
                   "DataLoader workers");
}

Finding tell_cpu_operators(const Facts& facts, const CpuOperators& found) {
  const std::int64_t total_ns = found.computing_ns + found.uploading.total_ns() + found.freeing_ns;
  const auto steps = static_cast<std::uint64_t>(facts.selection.steady.size());
  Finding finding;
  const std::string who = found.by_name.size() == 1 ? "{} runs" : "{} and other work runs";
  finding.verdict = say(facts,
                        who +
                            " on the CPU: in {} [call|calls] [in {} steps] the operators launch "
                            "nothing, and the GPU waits {} [per step] ({}) for them.",
                        {name(found.main_name), count(found.calls), count(steps),
                         ns(facts.per_step(found.computing_ns)),
                         ratio(found.computing_ns, facts.wall.partition.wall_ns)});
  finding.at_stake_ns = facts.per_step(total_ns);
  finding.at_stake_ratio = wall_share(facts, total_ns);
  finding.gone_work_ns = facts.per_step(found.uploading.copies_ns);
  finding.arithmetic.push_back(
      say("counted: operators of at least 100 us without any call of the GPU's runtime, outside of "
          "the DataLoader, while the GPU had nothing to do"));
  if (found.uploads > 0)
    finding.arithmetic.push_back(
        say(facts,
            "then {} [copy brings|copies bring] {} of results to the GPU: another {} [per step] in "
            "which the GPU computes nothing",
            {count(found.uploads), bytes(found.upload_bytes),
             ns(facts.per_step(found.uploading.total_ns()))}));
  if (found.freeing_ns > 0)
    finding.arithmetic.push_back(
        say(facts,
            "then code without events in the same function: another {} [per step]. Mostly it gives "
            "back the memory of what they made, so it goes with them",
            {ns(facts.per_step(found.freeing_ns))}));
  add_named(facts, found.by_name, finding);
  const bool is_table = looks_up(found.main_name);
  if (is_table)
    finding.try_next.push_back(
        "move the table to the GPU (the module's .to(device)), and copy only the indices");
  else
    finding.try_next.push_back("move the operators' inputs to the GPU first, then compute there");
  finding.try_next.push_back(
      "what prepares input: do it in DataLoader workers (num_workers), not in the step");
  finding.confidence = facts.confidence();
  finding.sample_count = found.calls;
  finding.sample_noun = "call";
  finding.explains = {{"pageable-copy", facts.per_step(found.uploading.in_copy_calls_ns +
                                                       found.uploading.copies_ns)},
                      {"host-sync", facts.per_step(found.uploading.after_waits_ns)},
                      {"exposed-copy", facts.per_step(found.uploading.copies_ns)},
                      {"python-hole", facts.per_step(found.uploading.quiet_ns + found.freeing_ns)},
                      {"python-indexing", facts.per_step(total_ns)}};
  finding.brief =
      say(facts, "{} runs on the CPU while the GPU waits, {} [time|times] [in {} steps]",
          {name(found.main_name), count(found.by_name.at(found.main_name).count), count(steps)});
  // Where the longest is less than two thirds of them, the time is not its own.
  std::int64_t all_ns = 0;
  for (const auto& [label, calls] : found.by_name) all_ns += calls.time_ns;
  const bool is_after_reads = found.after_reads_ns * 3 >= all_ns * 2;
  if (is_after_reads)
    finding.try_next.insert(
        finding.try_next.begin(),
        "they work on what was just copied from the GPU: compute there, and copy the end result "
        "only (for windows or tiles: add them up in a tensor on the GPU)");
  if (found.by_name.at(found.main_name).time_ns * 3 < all_ns * 2)
    finding.brief = say(
        facts,
        "{} and {} other [operator runs|operators run] on the CPU while the GPU "
        "waits, {} [call|calls] [in {} steps]",
        {name(found.main_name), count(found.by_name.size() - 1), count(found.calls), count(steps)});
  if (found.rare) {
    tell_rare_operators(facts, found, finding);
    return finding;
  }
  if (is_after_reads && !is_table) {
    finding.action =
        say("They work on what was just copied from the GPU: compute there, copy only the result");
    return finding;
  }
  finding.action = is_table ? say("Move the table to the GPU if it fits, and copy only the indices")
                            : where_to_compute(facts);
  return finding;
}

}  // namespace

extern constinit const Rule cpu_operators_rule = {
    .id = "cpu-operators",
    .question = "do operators of the model run on the CPU?",
    .meant_by = "embedding host",
    .order = 86,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_cpu_operators, tell_cpu_operators>,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules

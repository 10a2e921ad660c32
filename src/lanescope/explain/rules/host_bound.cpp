// The GPU runs out of work because the CPU has not launched the next piece yet.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/explain/owner_rounds.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/gloo_waits.h"
#include "lanescope/explain/rules/launch_kind.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/launch_waits.h"
#include "lanescope/explain/rules/long_gaps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/queued_launches.h"
#include "lanescope/explain/rules/quiet_code.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/start_up_calls.h"
#include "lanescope/explain/sampled_code.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {

// Whose evidence the verdict links to.
extern const Rule dataloader_wait_rule, allocator_calls_rule, library_setup_rule,
    cudnn_benchmark_rule;

namespace {

// What caused most of the wait, as far as calls and ranges show.
enum class Mostly { kUnknown, kBatches, kAllocating, kLaunching, kFirstUses, kTrials };
struct MainCause {
  Mostly what = Mostly::kUnknown;
  std::int64_t time_ns = 0;
};

MainCause main_cause_of(const Facts& facts, const std::vector<HostShare>& shares,
                        std::int64_t waiting_ns) {
  const std::int64_t for_batches = waiting_for_batches(facts).time_ns;
  if (for_batches * 2 > waiting_ns) return {Mostly::kBatches, for_batches};
  if (const std::int64_t first_uses = idle_in_first_uses(facts); first_uses * 2 > waiting_ns)
    return {Mostly::kFirstUses, std::min(first_uses, waiting_ns)};
  if (const std::int64_t again = idle_in_repeated_calls(facts); again * 2 > waiting_ns)
    return {Mostly::kTrials, std::min(again, waiting_ns)};
  std::int64_t allocating = 0, launching = 0;
  for (const HostShare& share : shares) {
    if (!is_api_call(share.kind)) continue;
    const ApiCall call = find_api_call(share.name);
    if (call.does(api_effect::kAllocates | api_effect::kFrees))
      allocating += share.time_ns;
    else if (call.does(api_effect::kStartsKernels | api_effect::kLoadsCode))
      launching += share.time_ns;
  }
  if (allocating * 2 > waiting_ns) return {Mostly::kAllocating, allocating};
  if (launching * 2 > waiting_ns) return {Mostly::kLaunching, launching};
  return {};
}

// True: the verdict names the cause, with its time.
bool is_measured(Mostly what) {
  return what == Mostly::kBatches || what == Mostly::kAllocating || what == Mostly::kFirstUses ||
         what == Mostly::kTrials;
}

// The rule whose evidence shows it.
const Rule& rule_about(Mostly what) {
  return what == Mostly::kBatches      ? dataloader_wait_rule
         : what == Mostly::kAllocating ? allocator_calls_rule
         : what == Mostly::kTrials     ? cudnn_benchmark_rule
                                       : library_setup_rule;
}

const char* verdict_pattern(Mostly what) {
  switch (what) {
    case Mostly::kBatches:
      return "Input-bound: of the {} [a step takes], the GPU works {} and waits for the CPU {} "
             "({}), most of it for the next batch: {}.";
    case Mostly::kAllocating:
      return "[limit CPU|CPU-bound:] of the {} [a step takes], the GPU works {} and waits for the "
             "CPU {} ({}), "
             "most of it while memory is allocated or freed at the driver: {}.";
    case Mostly::kFirstUses:
      return "Start-up: of the {} [a step takes], the GPU works {} and waits for the CPU {} ({}), "
             "most of it while libraries and kernels are used for the first time: {}.";
    case Mostly::kTrials:
      return "[limit CPU|CPU-bound:] of the {} [a step takes], the GPU works {} and waits for the "
             "CPU {} ({}), "
             "most of it while libraries try out or plan what they run, in each step: {}.";
    default:
      return "[limit CPU|CPU-bound:] of the {} [a step takes], the GPU works {} and waits for the "
             "CPU {} ({}).";
  }
}

// Most of the time in long launch calls of the steady steps is in calls of kernels that the recording launched before. Those are no
// first uses: something else holds the thread up.
bool had_kernels_run_before(const Facts& facts) {
  constexpr std::int64_t kLongCallNs = 100'000;
  const Trace& trace = *facts.trace;
  std::unordered_map<std::uint32_t, SliceId> first_launches;  // by raw name of the kernel
  std::vector<std::pair<SliceId, std::uint32_t>> long_calls;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId call = facts.links.launch_of[raw(work.slice)];
    if (call == kNone<SliceId>) continue;
    const std::uint32_t label = raw(trace.slices().name[raw(work.slice)]);
    const auto [first, is_new] = first_launches.try_emplace(label, call);
    if (!is_new && trace.start_ns(call) < trace.start_ns(first->second)) first->second = call;
    if (trace.dur_ns(call) >= kLongCallNs) long_calls.emplace_back(call, label);
  }
  const auto windows = facts.steady_cpu_windows();
  std::unordered_set<std::uint32_t> counted;
  std::int64_t first_ns = 0, later_ns = 0;
  for (const auto& [call, label] : long_calls) {
    if (!inside(windows, trace.start_ns(call)) || !counted.insert(raw(call)).second) continue;
    (first_launches.at(label) == call ? first_ns : later_ns) += trace.dur_ns(call);
  }
  return later_ns > first_ns;
}

// What to do about long gaps. If it is known what the CPU did in most of them, that decides.
std::vector<std::string> advice_for(const Facts& facts, Mostly what, bool is_held_up) {
  if (is_held_up)
    return {
        "look at what holds the launching thread up: other threads and programs on its core, or "
        "threads of this program that call CUDA at the same time",
        "lanescope record --sample-python shows what the other threads of Python do meanwhile"};
  switch (what) {
    case Mostly::kBatches:
      return {"see dataloader-wait: most of the wait is for the next batch"};
    case Mostly::kAllocating:
      return {"see allocator-calls: most of the wait is the driver allocating and freeing memory"};
    case Mostly::kLaunching:
      return {
          "run a few steps before recording, then look again: most of the wait is inside launch "
          "calls, as when kernels are loaded on first use"};
    case Mostly::kFirstUses:
      return {
          "run a few steps before recording, then look again: most of the wait is start-up, which "
          "steady work does not repeat (library-setup, lazy-loading)"};
    case Mostly::kTrials:
      return {
          "keep shapes the same, or pad them to a few lengths: a library tries out or plans anew "
          "for each new shape (torch.backends.cudnn.benchmark, see cudnn-benchmark and "
          "library-setup)"};
    case Mostly::kUnknown:
      break;
  }
  return {
      "shorten what the CPU does in the long gaps, or move it out of the step: input, logging, "
      "checkpoints, Python",
      advise_python_frames(*facts.trace,
                           "the Python frames in the long gaps show what it is: lanescope tree "
                           "--stacks",
                           "the Python frames show what it is where no event does")};
}

// What to do about launches, without what the program already does.
std::vector<std::string> ways_to_launch_less(const Facts& facts) {
  static constexpr char kRecordingCosts[] =
      "time the step without a profiler: recording slows the CPU and causes part of the wait";
  switch (launch_mode_of(facts)) {
    case LaunchMode::kReplayed:
      return {
          "CUDA graphs are in use: graph-gaps shows what the GPU waits for between replays, "
          "outside-graphs what is launched one by one",
          words_for(facts,
                    "put more work into one replay:[if batch| a larger batch;] input copies, "
                    "sampling or several steps in one graph"),
          kRecordingCosts};
    case LaunchMode::kCompiled:
      return {words_for(facts,
                        "torch.compile is in use: give each launch more work by[if batch| a larger "
                        "batch or] larger compiled functions; graph-breaks and compile-overhead "
                        "show where the CPU is between them"),
              "mode=\"reduce-overhead\" replays the compiled code as a CUDA graph, if its shapes "
              "stay the same",
              kRecordingCosts};
    case LaunchMode::kEager:
      break;
  }
  return {words_for(facts,
                    "give each launch more work: [if batch|a larger batch, ]fused operators, "
                    "torch.compile"),
          "replay the step as a CUDA graph (torch.compile(mode=\"reduce-overhead\"), "
          "torch.cuda.make_graphed_callables) if its shapes stay the same",
          kRecordingCosts};
}

LaunchAdvice usual_launch_advice(const Facts& facts) {
  switch (launch_mode_of(facts)) {
    case LaunchMode::kReplayed:
      return {say(facts,
                  "Give each replay more work: [if a batch spares launches|a larger batch, or "
                  "]several steps in one graph")};
    case LaunchMode::kCompiled:
      return {say(facts,
                  "Use torch.compile(mode=\"reduce-overhead\")[if a batch spares launches|, or a "
                  "larger batch]"),
              true};
    case LaunchMode::kEager:
      break;
  }
  return graph_advice(facts);
}

void add_first_screen(Mostly what, bool in_long_gaps, bool is_held_up, Finding& finding) {
  if (is_held_up) {
    finding.brief = say("Launch calls take long, though their kernels had run before");
    finding.action = say(kKeepOffThisCore);
    return;
  }
  switch (what) {
    case Mostly::kBatches:
      finding.brief = say("The GPU waits for the next batch");
      finding.action =
          say("Use DataLoader(num_workers=..., pin_memory=True), or make decoding cheaper");
      return;
    case Mostly::kAllocating:
      finding.brief = say("The GPU waits while memory is allocated or freed at the driver");
      finding.action = say("Keep shapes the same; remove torch.cuda.empty_cache() from the loop");
      return;
    case Mostly::kLaunching:
      if (!in_long_gaps) break;
      finding.brief = say("The GPU waits while launch calls take long, as on first use of kernels");
      finding.action = say("Run a few warm-up steps before you record");
      return;
    case Mostly::kFirstUses:
      finding.brief = say("The GPU waits for the first use of libraries and kernels");
      finding.action = say("Run a few warm-up steps before you record");
      return;
    case Mostly::kTrials:
      finding.brief = say("The GPU waits while libraries try out or plan what they run");
      finding.action = say("Keep shapes the same (pad), or torch.backends.cudnn.benchmark=False");
      return;
    case Mostly::kUnknown:
      break;
  }
  if (in_long_gaps) {
    finding.brief = say("The GPU waits in long gaps while the CPU does something else");
    finding.action = say("Move that out of the step: input, logging, checkpoints, Python code");
  }
}

// An operator whose slow first calls are most of the waits.
void tell_first_calls(const std::vector<FirstCallsOfOperator>& operators, std::int64_t waiting_ns,
                      Finding& finding) {
  if (operators.empty() || operators.front().slow_ns * 4 < waiting_ns) return;
  const FirstCallsOfOperator& first = operators.front();
  if (first.usual_ns == 0) {
    finding.brief = say("The first call of {} took {}", {name(first.name), ns(first.slow_ns)});
  } else if (first.slow.size() == 1) {
    finding.brief = say("The first call of {} took {}, the others {}",
                        {name(first.name), ns(first.slow_ns), ns(first.usual_ns)});
  } else {
    finding.brief =
        say("{} took {} on average in {} of {} calls, the others {}",
            {name(first.name), ns(first.slow_ns / static_cast<std::int64_t>(first.slow.size())),
             count(first.slow.size()), count(first.calls), ns(first.usual_ns)});
  }
  if (first.again == 0) {
    finding.action = say("That is paid once: run a few warm-up steps before you record");
    return;
  }
  finding.action = say(
      "Each new shape seems to pay it: pad to a few lengths, and run each once before measuring");
  finding.try_next = {
      "a library plans anew for a shape that it has not seen: pad inputs to a few lengths "
      "(buckets), or use another implementation, such as another backend of "
      "scaled_dot_product_attention",
      "run each shape once before measuring; record_shapes=True shows which calls are slow"};
}

struct HostBound {
  std::int64_t waiting = 0;       // of the GPU for the CPU
  std::vector<HostShare> shares;  // of the CPU meanwhile
  MainCause mostly;
  LongGaps long_gaps;
  QuietCode quiet;
  bool in_long_gaps = false;  // most of the wait
  bool is_held_up = false;    // inside long launch calls, which are no first uses of kernels
};

// True: launches are not the cause. Code of the program without operators takes a third of the waits or more.
bool tell_quiet_code(const Facts& facts, const HostBound& found, Finding& finding) {
  constexpr std::int64_t kPartOfWaits = 33;  // percent
  // Without frames, such code may be torch's: an optimizer's, or backward() that wakes autograd's thread.
  if (!has_python_frames(*facts.trace) || found.quiet.usual_ns * 100 < found.waiting * kPartOfWaits)
    return false;
  finding.brief =
      say(facts, "The GPU waits while the CPU runs code without operators, {} [per step]",
          {ns(facts.per_step(found.quiet.usual_ns))});
  finding.action =
      say("Make that code faster, or move it out of the step: another thread or process, or every "
          "n steps");
  finding.gain.most_ns = facts.per_step(found.quiet.usual_ns);
  if (found.quiet.longest_frame != kNone<SliceId>)
    finding.evidence.insert(finding.evidence.begin(),
                            {found.quiet.longest_frame,
                             say("the longest such code takes {}", {ns(found.quiet.longest_ns)})});
  finding.try_next = {
      "shorten the Python or NumPy code between the launches, or move it out of the step",
      advise_python_frames(*facts.trace,
                           "the Python frames show what it is: lanescope tree --stacks",
                           "the Python frames show what it is where no event does")};
  return true;
}

// The thread that launches sleeps in most of the waits: time.sleep, as in a loop that asks for a batch.
bool is_asleep(const std::vector<HostShare>& shares, std::int64_t waiting) {
  return !shares.empty() &&
         shares.front().name.find("<built-in function sleep>") != std::string::npos &&
         shares.front().time_ns * 2 > waiting;
}

std::optional<HostBound> measure_host_bound(const Facts& facts) {
  if (find_bound(facts) != Bound::kHost) return std::nullopt;
  const std::int64_t waiting = waiting_for_cpu_without_gloo_ns(facts);
  const std::vector<HostStretch>& stretches = host_late_stretches(facts);
  const std::vector<HostShare>& shares = host_late_shares(facts);
  const MainCause mostly = main_cause_of(facts, shares, waiting);
  const LongGaps long_gaps = find_long_gaps(facts);
  const bool in_long_gaps = long_gaps.waiting_ns * 2 > waiting &&
                            (!long_gaps.is_launching || mostly.what == Mostly::kLaunching);
  return HostBound{.waiting = waiting,
                   .shares = shares,
                   .mostly = mostly,
                   .long_gaps = long_gaps,
                   .quiet = quiet_code(facts, stretches),
                   .in_long_gaps = in_long_gaps,
                   .is_held_up = in_long_gaps && mostly.what == Mostly::kLaunching &&
                                 had_kernels_run_before(facts)};
}

void add_long_gaps(const Facts& facts, const HostBound& found, Finding& finding) {
  const analysis::Gap& longest = *found.long_gaps.longest;
  finding.arithmetic.push_back(
      say(facts,
          found.mostly.what == Mostly::kLaunching
              ? "most of it, {}, is in {} [gap|gaps] longer than 500 us; more than half of "
                "the wait is inside launch calls, which are usually much shorter"
              : "most of it, {}, is in {} [gap|gaps] longer than 500 us: too long for "
                "launches, the CPU did something else there",
          {ratio(found.long_gaps.waiting_ns, found.waiting), count(found.long_gaps.gap_count)}));
  if (longest.next_work != kNone<SliceId>)
    finding.evidence.push_back(
        {longest.next_work,
         say("the longest gap, {}, ends with {}", {ns(longest.end_ns - longest.start_ns),
                                                   kernel(facts.trace->name(longest.next_work))})});
}

// The Python function in which the launching thread was most often while the GPU waited for it.
void tell_samples(const Facts& facts, Finding& finding) {
  const TrackId thread = facts.main_thread;
  std::vector<analysis::Window> waits;
  for (const HostStretch& stretch : host_late_stretches(facts))
    if (stretch.thread == thread) waits.push_back({stretch.start_ns, stretch.end_ns});
  const auto code = find_sampled_code(*facts.trace, thread, joined(std::move(waits)));
  if (!code) return;
  Sentence line = say("samples of the launching thread's Python stack in these waits: ");
  append(line, describe(*code));
  finding.arithmetic.push_back(std::move(line));
}

Finding tell_host_bound(const Facts& facts, const HostBound& found) {
  const auto& part = facts.wall.partition;
  const auto& launches = facts.launches;
  Finding finding;
  finding.kind = FindingKind::kBound;
  finding.verdict = say(facts, verdict_pattern(found.mostly.what),
                        {linked(ns(facts.per_step(part.wall_ns)), shows::kStep),
                         linked(ns(facts.per_step(part.busy_ns())), shows::kBusy),
                         linked(ns(facts.per_step(found.waiting)), shows::kIdle),
                         linked(ratio(found.waiting, part.wall_ns), shows::kIdle)});
  if (is_measured(found.mostly.what))
    finding.verdict.values.push_back(
        linked(ns(facts.per_step(found.mostly.time_ns)), rule_about(found.mostly.what).id));
  finding.at_stake_ns = facts.per_step(found.waiting);
  finding.at_stake_ratio = share_of(found.waiting, part.wall_ns);
  finding.explains = {{"gpu-idle", facts.per_step(part.idle_ns)}};
  const IdleTimes times = idle_without_gloo(facts);
  const auto idle = [&](analysis::IdleCause cause) {
    return times[static_cast<std::size_t>(cause)];
  };
  const std::int64_t at_ends_ns =
      !facts.steps.marked
          ? 0
          : idle(analysis::IdleCause::kBeforeFirstWork) + idle(analysis::IdleCause::kAfterLastWork);
  Sentence parts = sum_of(
      {{"not yet launched", facts.per_step(idle(analysis::IdleCause::kHostLate))},
       {"after the CPU waited for the GPU", facts.per_step(idle(analysis::IdleCause::kAfterSync))},
       {"launch latency", facts.per_step(idle(analysis::IdleCause::kLaunchLatency))},
       {"before the first and after the last launch of the recording",
        facts.per_step(at_ends_ns)}});
  parts.pattern = "waiting for the CPU = " + parts.pattern;
  finding.arithmetic.push_back(std::move(parts));
  finding.arithmetic.push_back(
      say("no other work was queued when {} of {} kernels, copies and memsets began",
          {count(launches.empty_queue_count), count(launches.linked_count)}));
  if (launches.median_kernel_ns > 0)
    finding.arithmetic.push_back(
        say("median kernel {}, median launch call {}, from launch to start {}",
            {ns(launches.median_kernel_ns), ns(launches.median_launch_ns),
             ns(launches.median_latency_ns)}));
  add_host_evidence(facts, found.shares, finding);
  tell_samples(facts, finding);
  const bool in_long_gaps = found.in_long_gaps;
  if (in_long_gaps) add_long_gaps(facts, found, finding);
  // Faster launches do not shorten waits for batches, for the driver or for start-up.
  finding.try_next = in_long_gaps || is_measured(found.mostly.what)
                         ? advice_for(facts, found.mostly.what, found.is_held_up)
                         : ways_to_launch_less(facts);
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  add_first_screen(found.mostly.what, in_long_gaps, found.is_held_up, finding);
  const StartUpCalls& calls = start_up_calls(facts);
  if (found.mostly.what == Mostly::kFirstUses || found.mostly.what == Mostly::kTrials)
    tell_first_calls(found.mostly.what == Mostly::kTrials ? calls.repeated : calls.operators,
                     found.waiting, finding);
  const bool are_launches = !in_long_gaps && (found.mostly.what == Mostly::kUnknown ||
                                              found.mostly.what == Mostly::kLaunching);
  const bool is_quiet_code = are_launches && tell_quiet_code(facts, found, finding);
  if (are_launches && !is_quiet_code) {
    finding.is_about_all_work = true;
    finding.brief = say("The CPU launches work too slowly for the GPU");
    advise_about_launches(facts, usual_launch_advice(facts), finding);
  }
  // What launches cost without that is unknown, so nothing else is advised (blocking-launches).
  if (launches_block(facts)) {
    finding.brief = say("Each launch waits until its kernel is done");
    finding.action = say("Unset CUDA_LAUNCH_BLOCKING, which is for finding errors");
  }
  if (is_asleep(found.shares, found.waiting)) advise_about_sleep(finding);
  if (!in_long_gaps && !is_measured(found.mostly.what) && !is_quiet_code)
    advise_about_sizes(facts, finding);
  return finding;
}

}  // namespace

extern constinit const Rule host_bound_rule = {
    .id = "host-bound",
    .question = "is the GPU waiting for the CPU?",
    .meant_by = "overhead starve gap batchsize python cudalaunchkernel",
    .order = 10,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_host_bound, tell_host_bound>,
    .bounds_step = true,
    .is_regression = true,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules

// A function of the program copies results to the CPU and works there, as a metric in NumPy does. The GPU gets nothing to compute until
// it returns. Its waits, its copies and its Python are one time, and one change removes it.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_frames.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/known_frames.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr double kLeastOnCpuShare = 0.1;
constexpr std::uint64_t kMostCallsOfStep = 8;  // more are helpers, such as one that reads a number

// A function, by its frame's name. `windows` are its outermost calls in the steady steps.
struct ReadingFunction {
  std::vector<Window> windows;
  SliceId longest = kNone<SliceId>;
};

// What the thread launched: copies to the CPU, and anything else.
struct LaunchedByThread {
  std::vector<std::int64_t> reads_ns, others_ns;  // sorted: when the calls began
};

LaunchedByThread launched_by(const Facts& facts, TrackId thread) {
  const Trace& trace = *facts.trace;
  LaunchedByThread found;
  for (const DeviceWork& work : facts.device().timeline.work) {
    const SliceId call = facts.links.launch_of[raw(work.slice)];
    if (call == kNone<SliceId> || trace.slices().track[raw(call)] != thread) continue;
    (trace.name(work.slice).starts_with("Memcpy DtoH") ? found.reads_ns : found.others_ns)
        .push_back(trace.start_ns(call));
  }
  std::sort(found.reads_ns.begin(), found.reads_ns.end());
  std::sort(found.others_ns.begin(), found.others_ns.end());
  return found;
}

bool any_within(const std::vector<std::int64_t>& times_ns, const Window& window) {
  const auto first = std::lower_bound(times_ns.begin(), times_ns.end(), window.start_ns);
  return first != times_ns.end() && *first < window.end_ns;
}

// Functions of the program that launch copies to the CPU and nothing else. Of nested ones the outermost.
std::map<std::string_view, ReadingFunction> reading_functions(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto steady = facts.steady_cpu_windows();
  const LaunchedByThread launched = launched_by(facts, facts.main_thread);
  std::map<std::string_view, ReadingFunction> found;
  const Track& track = trace.track(facts.main_thread);
  std::int64_t until_ns =
      std::numeric_limits<std::int64_t>::min();  // the end of the outermost such function
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kPythonFunction || trace.start_ns(id) < until_ns ||
        !inside(steady, trace.start_ns(id)))
      continue;
    const names::PythonFrame* const frame = facts.frames.find(trace.slices().name[i]);
    const Window window{trace.start_ns(id), trace.end_ns(id)};
    if (!frame || !frame->is_of_program() || !any_within(launched.reads_ns, window) ||
        any_within(launched.others_ns, window))
      continue;
    until_ns = window.end_ns;
    ReadingFunction& function = found[trace.name(id)];
    function.windows.push_back(window);
    if (function.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(function.longest))
      function.longest = id;
  }
  return found;
}

struct ValuesOnCpu {
  std::string_view frame;
  ReadingFunction function;
  std::int64_t time_ns = 0;
  std::int64_t lost_ns = 0, idle_ns = 0;  // the GPU computes nothing; and copies nothing either
  std::int64_t quiet_ns = 0;              // outside of operators and calls of the runtime
};

// The time of these windows in which the thread is in no operator and no call of the runtime.
std::int64_t quiet_time(const Facts& facts, const std::vector<Window>& windows) {
  const Trace& trace = *facts.trace;
  std::int64_t total_ns = 0;
  for (const Window& window : windows)
    facts.host->visit(
        facts.main_thread, window.start_ns, window.end_ns,
        [&](SliceId slice, std::int64_t from, std::int64_t to) {
          for (; slice != kNone<SliceId>; slice = facts.nesting.parent[raw(slice)])
            if (trace.kind(slice) == CategoryKind::kCpuOp || is_api_call(trace.kind(slice))) return;
          total_ns += to - from;
        });
  return total_ns;
}

// The outermost frames on this thread for which another rule has advice, such as torch.save or json.dumps.
std::vector<Window> known_frames_of(const Facts& facts, TrackId thread) {
  const Trace& trace = *facts.trace;
  std::vector<Window> found;
  for (const SliceId id : slices_named(facts, [](std::string_view name) {
         return is_known_library_frame(name) || is_saving_frame(name);
       }))
    if (trace.kind(id) == CategoryKind::kPythonFunction && trace.slices().track[raw(id)] == thread)
      found.push_back({trace.start_ns(id), trace.end_ns(id)});
  return joined(std::move(found));
}

std::vector<Window> starting_in(const std::vector<Window>& windows,
                                const std::vector<Window>& outer) {
  std::vector<Window> found;
  for (const Window& each : windows)
    if (inside(outer, each.start_ns)) found.push_back(each);
  return found;
}

std::optional<ValuesOnCpu> measure_values_on_cpu(const Facts& facts) {
  if (facts.main_thread == kNone<TrackId> || !facts.host) return std::nullopt;
  std::optional<std::vector<Window>> known;  // made when it is needed
  ValuesOnCpu most;
  for (auto& [frame, function] : reading_functions(facts)) {
    const std::uint64_t calls = function.windows.size();
    if (calls < facts.selection.steady.size() ||
        calls > kMostCallsOfStep * facts.selection.steady.size())
      continue;
    ValuesOnCpu each{.frame = frame, .function = {}};
    std::int64_t compute_ns = 0, steady_ns = 0;
    for (const Window& window : function.windows) each.time_ns += window.length_ns();
    for (const Window& window : within_steady(facts, function.windows)) {
      const auto times = facts.device().timeline.time_within(window.start_ns, window.end_ns);
      steady_ns += window.length_ns();
      compute_ns += times[static_cast<std::size_t>(analysis::WorkClass::kCompute)] +
                    times[static_cast<std::size_t>(analysis::WorkClass::kCommunication)];
    }
    each.lost_ns = steady_ns - compute_ns;
    each.idle_ns = device_idle_during(facts, function.windows);
    each.quiet_ns = quiet_time(facts, function.windows);
    // It waits for earlier work, or only reads: then its waits say all.
    if (each.lost_ns * 5 < each.time_ns * 4 || each.quiet_ns * 4 < each.time_ns ||
        each.lost_ns <= most.lost_ns)
      continue;
    if (!known) known = known_frames_of(facts, facts.main_thread);
    if (quiet_time(facts, starting_in(*known, function.windows)) * 2 >= each.quiet_ns) continue;
    each.function = std::move(function);
    most = std::move(each);
  }
  if (share_of(most.lost_ns, facts.steady_wall_ns()) < kLeastOnCpuShare) return std::nullopt;
  return most;
}

Finding tell_values_on_cpu(const Facts& facts, const ValuesOnCpu& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "{} copies results to the CPU and works there, {} [per step]. The GPU computes nothing "
          "meanwhile for {} ({}).",
          {name(function_first(short_frame(found.frame))), ns(facts.per_step(found.time_ns)),
           ns(facts.per_step(found.lost_ns)), ratio(found.lost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.lost_ns, found.function.windows.size(), finding);
  finding.waiting_ns = facts.per_step(found.idle_ns);
  finding.told_thread = facts.main_thread;
  finding.told_windows = found.function.windows;
  finding.arithmetic.push_back(
      say(facts,
          "the function launches copies to the CPU and nothing else; {} of its {} [per step] are "
          "outside of operators and calls of the runtime; the GPU copies for {} and is idle for {}",
          {ns(facts.per_step(found.quiet_ns)), ns(facts.per_step(found.time_ns)),
           ns(facts.per_step(found.lost_ns - found.idle_ns)), ns(facts.per_step(found.idle_ns))}));
  finding.evidence.push_back({found.function.longest, say("its longest call")});
  finding.try_next = {
      "if it computes: do so on the GPU with torch and read one number; then its copies, its waits "
      "and its "
      "Python go together",
      "where the result is only reported: call it every n steps, or hand the copy to another "
      "thread "
      "or process"};
  finding.explains = {{"own-python", finding.at_stake_ns}, {"python-hole", finding.at_stake_ns}};
  finding.brief =
      say(facts, "{} copies results to the CPU and works there, {} [per step]",
          {name(function_first(short_frame(found.frame))), ns(facts.per_step(found.time_ns))});
  const auto windows = facts.steady_cpu_windows();
  finding.action = trains(facts, &windows) ? say("If it computes: on the GPU, and read one number; "
                                                 "if it saves or logs: every n steps")
                                           : say("If it computes: on the GPU, and copy only the "
                                                 "result; if it saves or logs: in another thread");
  return finding;
}

}  // namespace

extern constinit const Rule values_on_cpu_rule = {
    .id = "values-on-cpu",
    .question = "does a function work on results on the CPU?",
    .meant_by = "metric numpy dice score evaluation",
    .order = 91,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = [](const Facts& facts) { return has_python_frames(*facts.trace); },
    .run = measure_and_tell<measure_values_on_cpu, tell_values_on_cpu>,
};

}  // namespace lanescope::explain::rules

// A function of a library, which the program calls in its steps, takes much of the CPU's time without an operator in it, and
// the GPU waits meanwhile: json.dumps, inspect.stack, named_parameters, a queue's get.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_frames.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/known_frames.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastLibraryCallShare = 0.1;

// Who does the work that a function waits for.
enum class WaitsFor : std::uint8_t { kNobody, kThreads, kProcess };

// What to do instead.
struct LibraryAdvice {
  // The parts of a frame "file(line): function". No file: a frame "<built-in method function of ...>".
  std::string_view file, function;
  const char* action;
  WaitsFor waits_for = WaitsFor::kNobody;
};

constexpr char kListOnce[] = "Make the list once, before the loop, and go over the list";
constexpr char kAskLater[] =
    "If that work begins only now: start it before this step's own work, and wait for it "
    "afterwards";
constexpr char kFurtherAhead[] =
    "Let that process work further ahead (ask for several at once), or use more of them";
constexpr char kSharesMemory[] =
    "Large messages are copied and unpickled: put the data into shared memory "
    "(torch.multiprocessing), and send only a word";
constexpr char kManyGets[] =
    "Hand over whole batches, many items at once: each call takes a lock and may switch threads";
constexpr char kJoinAhead[] =
    "Join the next arrays while the GPU works: ahead, in a thread or process";
constexpr char kJoinIntoPinned[] =
    "Join into pinned memory that is kept (out=): no new memory, no second copy; or ahead, in a "
    "thread";
constexpr char kNoText[] =
    "Send numbers as bytes (numpy, base64) instead of text, or do it in another thread or process";
constexpr char kReadsSource[] =
    "Remove it from the step, or use sys._getframe(1).f_code: it reads source files for each frame";
constexpr char kLogLess[] = "Log every n steps, or through a QueueHandler in another thread";
constexpr char kDrawAtOnce[] =
    "Draw all indices in one call: torch.randint, or torch.randperm(n)[:k] if none may repeat";
constexpr char kNoProcess[] = "Start no process in the step: do it once, or in another thread";
constexpr char kAskAhead[] =
    "It waits for an answer: ask for the next one in a thread while the step runs, and keep the "
    "connection open";
constexpr char kOneFile[] =
    "Keep all samples in one file (np.load(mmap_mode=\"r\")), or read ahead in DataLoader workers";
constexpr char kReadAhead[] =
    "It may wait for the disk: read ahead, in a thread or in DataLoader workers";
constexpr char kLargerTasks[] =
    "Hand over fewer and larger pieces; if tasks are short, do all in one NumPy or torch call";
constexpr char kCompileOnce[] =
    "Compile once, before the loop, and keep what it returns; what changes goes in as an argument";
constexpr char kKeepOrder[] =
    "Keep it in order as it changes (heapq, bisect.insort), or sort numbers in NumPy";
constexpr char kModuleFile[] = "torch/nn/modules/module.py";

constexpr auto kLibraryAdvice = std::to_array<LibraryAdvice>({
    {"", "sort", kKeepOrder},
    {"", "sorted", kKeepOrder},
    {"concurrent/futures/_base.py", "as_completed", kAskLater, WaitsFor::kThreads},
    {"concurrent/futures/_base.py", "map", kLargerTasks},
    {"concurrent/futures/_base.py", "result", kAskLater, WaitsFor::kThreads},
    {"concurrent/futures/_base.py", "result_iterator", kAskLater, WaitsFor::kThreads},
    {"concurrent/futures/_base.py", "wait", kAskLater, WaitsFor::kThreads},
    {"concurrent/futures/process.py", "map", kLargerTasks},
    {"concurrent/futures/process.py", "submit", kLargerTasks},
    {"concurrent/futures/thread.py", "submit", kLargerTasks},
    {"copy.py", "deepcopy",
     "Copy only what changes (copy.copy, dataclasses.replace); tensors into tensors that exist "
     "(torch._foreach_copy_)"},
    {"inspect.py", "currentframe", kReadsSource},
    {"inspect.py", "getouterframes", kReadsSource},
    {"inspect.py", "stack", kReadsSource},
    {"json/__init__.py", "dump", kNoText},
    {"json/__init__.py", "dumps", kNoText},
    {"logging/__init__.py", "debug", kLogLess},
    {"logging/__init__.py", "info", kLogLess},
    {"logging/__init__.py", "warning", kLogLess},
    {"multiprocessing/connection.py", "poll", kFurtherAhead, WaitsFor::kProcess},
    {"multiprocessing/connection.py", "recv", kFurtherAhead, WaitsFor::kProcess},
    {"multiprocessing/connection.py", "recv_bytes", kFurtherAhead, WaitsFor::kProcess},
    {"multiprocessing/connection.py", "wait", kFurtherAhead, WaitsFor::kProcess},
    {"multiprocessing/pool.py", "get", kAskLater, WaitsFor::kProcess},
    {"multiprocessing/pool.py", "map", kAskLater, WaitsFor::kProcess},
    {"multiprocessing/pool.py", "next", kAskLater, WaitsFor::kProcess},
    {"multiprocessing/pool.py", "starmap", kAskLater, WaitsFor::kProcess},
    {"multiprocessing/pool.py", "wait", kAskLater, WaitsFor::kProcess},
    {"multiprocessing/process.py", "join", kFurtherAhead, WaitsFor::kProcess},
    {"multiprocessing/queues.py", "get", kFurtherAhead, WaitsFor::kProcess},
    {"numpy/_core/memmap.py", "__getitem__", kReadAhead},
    {"numpy/_core/shape_base.py", "hstack", kJoinAhead},
    {"numpy/_core/shape_base.py", "stack", kJoinAhead},
    {"numpy/_core/shape_base.py", "vstack", kJoinAhead},
    {"numpy/core/memmap.py", "__getitem__", kReadAhead},
    {"numpy/core/shape_base.py", "hstack", kJoinAhead},
    {"numpy/core/shape_base.py", "stack", kJoinAhead},
    {"numpy/core/shape_base.py", "vstack", kJoinAhead},
    {"numpy/lib/_npyio_impl.py", "load", kOneFile},
    {"numpy/lib/npyio.py", "load", kOneFile},
    {"queue.py", "get",
     "If one request at a time is under way: do its work in this thread; else keep several under "
     "way",
     WaitsFor::kThreads},
    {"random.py", "choices", kDrawAtOnce},
    {"random.py", "sample", kDrawAtOnce},
    {"subprocess.py", "check_output", kNoProcess},
    {"subprocess.py", "run", kNoProcess},
    {"threading.py", "join", kAskLater, WaitsFor::kThreads},
    {"threading.py", "start",
     "Start threads once, before the loop, and give them work: ThreadPoolExecutor, a queue"},
    {"threading.py", "wait", kAskLater, WaitsFor::kThreads},
    {"requests/api.py", "get", kAskAhead},
    {"requests/api.py", "post", kAskAhead},
    {"requests/sessions.py", "get", kAskAhead},
    {"requests/sessions.py", "post", kAskAhead},
    {"torch/__init__.py", "compile", kCompileOnce},
    {"torch/jit/_script.py", "script", kCompileOnce},
    {"torch/jit/_trace.py", "trace", kCompileOnce},
    {kModuleFile, "buffers", kListOnce},
    {kModuleFile, "modules", kListOnce},
    {kModuleFile, "named_buffers", kListOnce},
    {kModuleFile, "named_modules", kListOnce},
    {kModuleFile, "named_parameters", kListOnce},
    {kModuleFile, "parameters", kListOnce},
    {kModuleFile, "state_dict", "Take the state once, or every n steps: its tensors stay the same"},
    {"traceback.py", "extract_stack", kReadsSource},
    {"traceback.py", "format_stack", kReadsSource},
    {"traceback.py", "print_stack", kReadsSource},
    {"urllib/request.py", "urlopen", kAskAhead},
});

// Null: none is known.
const LibraryAdvice* advice_for_frame(std::string_view frame) {
  constexpr std::string_view kBuiltIn = "built-in ";
  const std::string plain = is_frame_of_torch(frame) ? std::string() : short_frame(frame);
  const std::string_view built_in =
      plain.starts_with(kBuiltIn) ? std::string_view(plain).substr(kBuiltIn.size()) : "";
  const std::size_t colon = frame.find("): ");
  const std::string_view function = colon == frame.npos ? "" : frame.substr(colon + 3),
                         file = frame.substr(0, frame.rfind('(', colon));
  const auto found =
      std::find_if(kLibraryAdvice.begin(), kLibraryAdvice.end(), [&](const LibraryAdvice& each) {
        return each.file.empty() ? built_in == each.function
                                 : function == each.function && file.ends_with(each.file);
      });
  return found == kLibraryAdvice.end() ? nullptr : &*found;
}

bool is_own_code(const Facts& facts, SliceId slice) {
  const names::PythonFrame* const frame = facts.frames.find(facts.trace->slices().name[raw(slice)]);
  return frame && !frame->is_module && !frame->is_of_library;
}

// Those of torch make operators, or wait for them: only what the table knows counts.
bool may_be_called(std::string_view frame) {
  // host-bound says how a program that sleeps should wait.
  if (frame.find("lanescope/") != frame.npos || is_module_frame(frame) ||
      frame.find(" sleep>") != frame.npos || frame.find(" sleep of ") != frame.npos)
    return false;
  return advice_for_frame(frame) || !is_frame_of_torch(frame);
}

// What the trace shows of a call beyond its name.
enum class CallFacts : std::uint8_t {
  kNone,
  kManyCalls,
  kLargeMessages,
  kNewHostMemory,
  kManyTasks
};

// Without a GPU a call may be long because other work took its core: few calls count as three of the shortest each at most.
constexpr std::size_t kFewCalls = 5;
constexpr std::int64_t kUneven = 3;

// queue.get with a timeout, in which nothing came before its end: it waits, and takes nothing from the queue.
bool waits_in_vain(const Facts& facts, SliceId call) {
  const auto ends_with = [&](std::string_view end) {
    return any_inside(facts, call, [&](std::string_view frame) { return frame.ends_with(end); });
  };
  return advice_for_frame(facts.trace->name(call)) &&
         facts.trace->name(call).find("queue.py(") != std::string_view::npos &&
         ends_with("): wait") && !ends_with("): _get");
}

struct LibraryCall {
  std::string frame;
  CallFacts facts = CallFacts::kNone;
  std::uint64_t calls = 0;
  std::int64_t time_ns = 0, waiting_ns = 0;  // waiting: of the GPU meanwhile
  std::int64_t in_vain_ns = 0;               // of time_ns: nothing came before a timeout
  std::uint64_t tasks = 0;                   // that these calls hand to an executor
  std::vector<Window> windows;
  SliceId longest = kNone<SliceId>;
};

TrackId thread_of_steps(const Facts& facts) {
  for (const analysis::StepRange& step : facts.steps.steps)
    if (step.slice != kNone<SliceId> && !is_device_work(facts.trace->kind(step.slice)))
      return facts.trace->slices().track[raw(step.slice)];
  return facts.main_thread;
}

// Where this thread asks a DataLoader for a batch.
std::vector<Window> batch_loads_of(const Facts& facts, const Track& track) {
  std::vector<Window> ranges;
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
    if (const SliceId id{i}; facts.trace->name(id).starts_with("enumerate(DataLoader)#"))
      ranges.push_back({facts.trace->start_ns(id), facts.trace->end_ns(id)});
  return joined(std::move(ranges));
}

// Half of the call or more is a part of loading, or is loading itself: dataloader-wait reports that time.
bool is_loading(const std::vector<Window>& loading, const Window& call) {
  auto range = std::lower_bound(
      loading.begin(), loading.end(), call.start_ns,
      [](const Window& each, std::int64_t start_ns) { return each.end_ns <= start_ns; });
  std::int64_t inside_ns = 0;
  for (; range != loading.end() && range->start_ns < call.end_ns; ++range)
    inside_ns += std::min(range->end_ns, call.end_ns) - std::max(range->start_ns, call.start_ns);
  return inside_ns > 0 && inside_ns * 2 >= call.length_ns();
}

// By name: functions of libraries that the program's own code calls itself, on this thread in the steady steps.
std::map<std::string_view, LibraryCall> calls_of_libraries(const Facts& facts, TrackId thread) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(thread);
  const auto steady = facts.steady_cpu_windows();
  const std::vector<Window> loading = batch_loads_of(facts, track);
  std::map<std::string_view, LibraryCall> found;
  std::vector<std::pair<std::int64_t, bool>> open;  // end, is the program's own
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kPythonFunction) continue;
    while (!open.empty() && open.back().first <= trace.start_ns(id)) open.pop_back();
    const std::string_view frame = trace.name(id);
    const bool is_called_by_program = !open.empty() && open.back().second;
    open.emplace_back(trace.end_ns(id), is_own_code(facts, id));
    if (!is_called_by_program || open.back().second || !inside(steady, trace.start_ns(id)) ||
        !may_be_called(frame) || is_loading(loading, {trace.start_ns(id), trace.end_ns(id)}))
      continue;
    LibraryCall& call = found[frame];
    ++call.calls;
    call.time_ns += trace.dur_ns(id);
    if (waits_in_vain(facts, id)) call.in_vain_ns += trace.dur_ns(id);
    call.windows.push_back({trace.start_ns(id), trace.end_ns(id)});
    if (call.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(call.longest))
      call.longest = id;
  }
  return found;
}

// Time of operators and calls to the runtime on the thread in these windows.
std::int64_t time_with_events(const Facts& facts, TrackId thread, const LibraryCall& call) {
  std::int64_t total_ns = 0;
  for (const Window& window : call.windows)
    facts.host->visit(thread, window.start_ns, window.end_ns,
                      [&](SliceId slice, std::int64_t from, std::int64_t to) {
                        if (slice == kNone<SliceId>) return;
                        const CategoryKind kind = facts.trace->kind(slice);
                        if (kind == CategoryKind::kCpuOp || is_api_call(kind))
                          total_ns += to - from;
                      });
  return total_ns;
}

// What few calls would take together, were each as long as is usual.
std::int64_t usual_total_ns(const LibraryCall& call) {
  std::int64_t total_ns = 0, shortest_ns = INT64_MAX;
  for (const Window& window : call.windows) {
    total_ns += window.length_ns();
    shortest_ns = std::min(shortest_ns, window.length_ns());
  }
  if (call.windows.size() >= kFewCalls) return total_ns;
  return std::min(total_ns, kUneven * shortest_ns * static_cast<std::int64_t>(call.windows.size()));
}

// Messages whose bytes take a tenth of the time to be put together and unpickled.
bool has_large_messages(const Facts& facts, TrackId thread, const LibraryCall& call) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(thread);
  std::int64_t total_ns = 0;
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const std::string_view frame = trace.name(SliceId{i});
    if ((frame.starts_with("<built-in function loads>") ||
         frame.starts_with("<built-in method write of _io.BytesIO")) &&
        inside(call.windows, trace.start_ns(SliceId{i})))
      total_ns += trace.dur_ns(SliceId{i});
  }
  return total_ns * 10 > call.time_ns;
}

// The arrays that the longest call joined are copied once more on the CPU, or leave from pageable memory: what comes next
// on the thread, up to the first copy to the GPU.
bool joins_into_new_memory(const Facts& facts, TrackId thread, const LibraryCall& call) {
  constexpr std::int64_t kShortestCopyNs = 100'000;  // on the CPU
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(thread);
  for (std::uint32_t i = raw(call.longest); i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) < trace.end_ns(call.longest)) continue;
    for (const SliceId work : facts.links.launched_by(id))
      if (trace.name(work).starts_with("Memcpy HtoD"))
        return trace.name(work).starts_with("Memcpy HtoD (Pageable");
    if (trace.name(id) == "aten::copy_" && trace.dur_ns(id) >= kShortestCopyNs &&
        !any_inside(facts, id,
                    [](std::string_view name) { return find_api_call(name).is_known(); }))
      return true;
  }
  return false;
}

bool hands_over_task(std::string_view frame) {
  return frame.ends_with("): submit") && frame.find("concurrent/futures/") != frame.npos;
}

// By this function of an executor, itself or inside.
std::uint64_t tasks_of_call(const Facts& facts, TrackId thread, const LibraryCall& call) {
  if (hands_over_task(call.frame)) return call.calls;
  const Track& track = facts.trace->track(thread);
  std::uint64_t tasks = 0;
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
    if (const SliceId id{i};
        hands_over_task(facts.trace->name(id)) && inside(call.windows, facts.trace->start_ns(id)))
      ++tasks;
  return tasks;
}

CallFacts facts_of_call(const Facts& facts, TrackId thread, const LibraryCall& call) {
  constexpr std::uint64_t kManyCalls = 16;  // of a step
  const LibraryAdvice* const advice = advice_for_frame(call.frame);
  if (!advice) return CallFacts::kNone;
  if (advice->action == kLargerTasks)
    return a_step(facts, call.tasks) >= kManyCalls ? CallFacts::kManyTasks : CallFacts::kNone;
  if (advice->action == kJoinAhead)
    return joins_into_new_memory(facts, thread, call) ? CallFacts::kNewHostMemory
                                                      : CallFacts::kNone;
  if (advice->waits_for == WaitsFor::kProcess && has_large_messages(facts, thread, call))
    return CallFacts::kLargeMessages;
  return advice->waits_for != WaitsFor::kNobody && advice->function == "get" &&
                 a_step(facts, call.calls) >= kManyCalls
             ? CallFacts::kManyCalls
             : CallFacts::kNone;
}

Sentence action_of_call(const LibraryCall& found) {
  switch (found.facts) {
    case CallFacts::kManyCalls:
      return say(kManyGets);
    case CallFacts::kLargeMessages:
      return say(kSharesMemory);
    case CallFacts::kNewHostMemory:
      return say(kJoinIntoPinned);
    case CallFacts::kManyTasks:
    case CallFacts::kNone:
      break;
  }
  const LibraryAdvice* const advice = advice_for_frame(found.frame);
  return advice ? say(advice->action)
                : say("If its result stays the same: once, before the loop; else something "
                      "cheaper, or ahead in another process");
}

std::optional<LibraryCall> measure_library_call(const Facts& facts) {
  const TrackId thread = thread_of_steps(facts);
  if (thread == kNone<TrackId> || !facts.host) return std::nullopt;
  std::optional<LibraryCall> best;
  for (auto& [frame, call] : calls_of_libraries(facts, thread)) {
    if (call.calls < facts.selection.steady.size() ||
        share_of(call.time_ns, facts.steady_wall_ns()) < kLeastLibraryCallShare ||
        time_with_events(facts, thread, call) * 5 > call.time_ns ||
        (!facts.main_device &&
         share_of(usual_total_ns(call), facts.steady_wall_ns()) < kLeastLibraryCallShare))
      continue;
    call.waiting_ns =
        facts.main_device
            ? lost_in(facts, steady_parts(facts, joined(call.windows))).waiting_for_cpu_ns
            : total_length(call.windows);
    if (best && best->waiting_ns >= call.waiting_ns) continue;
    call.frame = frame;
    best = std::move(call);
  }
  if (!best || share_of(best->waiting_ns, facts.steady_wall_ns()) < kLeastLibraryCallShare)
    return std::nullopt;
  best->tasks = tasks_of_call(facts, thread, *best);
  best->facts = facts_of_call(facts, thread, *best);
  return best;
}

Finding tell_library_call(const Facts& facts, const LibraryCall& found) {
  const LibraryAdvice* advice = advice_for_frame(found.frame);
  const Value function = name(short_frame(found.frame));
  const Value time = ns(facts.per_step(found.time_ns));
  const std::uint64_t calls =
      std::max<std::uint64_t>(1, (found.calls + step_count(facts) / 2) / step_count(facts));
  Finding finding;
  finding.verdict =
      say(facts,
          "The program calls {} {} [time|times] [per step]; this takes {} [per step] without an "
          "operator in it",
          {function, count(calls), time});
  append(finding.verdict, facts.main_device ? say(", and the GPU waits meanwhile for {} ({}).",
                                                  {ns(facts.per_step(found.waiting_ns)),
                                                   ratio(found.waiting_ns, facts.steady_wall_ns())})
                                            : say("."));
  rate_cost(facts, found.waiting_ns, found.calls, finding);
  finding.spared_thread = facts.trace->slices().track[raw(found.longest)];
  finding.spared_windows = joined(found.windows);
  finding.arithmetic.push_back(
      say("counted: functions of libraries that the program's own code calls on the thread of the "
          "steps; less than a fifth of their time is in operators and calls to the runtime"));
  finding.evidence.push_back({found.longest, say("the longest of these calls")});
  finding.action = action_of_call(found);
  finding.try_next = {finding.action.pattern};
  for (const char* covered : {"python-hole", "graph-opportunity", "looped-calls", "slow-launches"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  const WaitsFor waits_for = advice ? advice->waits_for : WaitsFor::kNobody;
  finding.brief =
      waits_for == WaitsFor::kNobody
          ? say(facts, "{} takes {} [per step], in {} [call|calls]", {function, time, count(calls)})
          : say(facts, "The thread of the steps waits for {} in {}, {} [per step]",
                {text(waits_for == WaitsFor::kThreads ? "other threads" : "another process"),
                 function, time});
  if (found.facts == CallFacts::kManyCalls)
    append(finding.brief, say(facts, ", in {} calls", {count(calls)}));
  if (found.facts == CallFacts::kManyTasks) {
    const Value tasks = count(a_step(facts, found.tasks));
    finding.brief = say(facts, "Handing {} tasks to a pool takes {} [per step], in {}",
                        {tasks, time, function});
    append(finding.verdict, say(facts, " It hands {} tasks to a pool [per step].", {tasks}));
  }
  if (found.in_vain_ns * 2 > found.time_ns) {
    finding.brief = say(facts, "{} waits out its timeout, {} [per step]: nothing came",
                        {function, ns(facts.per_step(found.in_vain_ns))});
    finding.action = say(
        "Do not wait when there is enough to do, such as a full batch; else wait for less time");
    finding.try_next = {finding.action.pattern};
  }
  return finding;
}

}  // namespace

bool is_known_library_frame(std::string_view frame) { return advice_for_frame(frame) != nullptr; }

bool is_saving_frame(std::string_view frame) { return frame.ends_with("): save"); }

extern constinit const Rule library_call_rule = {
    .id = "library-call",
    .question = "does a library's function hold up the steps?",
    .meant_by = "json inspect logging thread queue python library function",
    .order = 93,
    .needs = {need::kAnyWork},
    .only_if = [](const Facts& facts) { return has_python_frames(*facts.trace); },
    .run = measure_and_tell<measure_library_call, tell_library_call>,
    .fix = Fix::kCpu,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules

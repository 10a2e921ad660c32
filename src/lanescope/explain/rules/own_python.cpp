// The GPU waits while the thread of the steps runs plain Python of the program, without operators: it walks a tree number by
// number, or builds a list or a text.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_frames.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastOwnPythonShare = 0.1;
constexpr double kLeastNamedShare = 0.03;  // of a function that is named
constexpr std::size_t kMostNamedFunctions = 2;
constexpr std::uint64_t kManyPythonCalls = 16;  // of a step

// A function of the program, in which no operator and no call of the runtime begins.
struct PlainFunction {
  std::string_view frame;
  std::uint64_t calls = 0;
  std::vector<Window> windows;  // without functions inside that count themselves
  std::int64_t time_ns = 0, waiting_ns = 0;
  SliceId longest = kNone<SliceId>;
};

// One frame that is open while a thread's slices are read in order.
struct OpenFrame {
  SliceId slice = kNone<SliceId>;
  bool is_own = false, is_plain = true;
  std::vector<Window> inside;  // of frames in it that are counted apart, or are not the program's
  bool may_count() const { return is_own && is_plain; }
};

// Built into Python, and a part of plain code: len, list.append. Not those that wait or compute elsewhere.
bool is_part_of_plain_code(const names::PythonFrame& frame) {
  constexpr std::string_view kPlainObjects[] = {"list", "dict", "set", "str", "deque", "tuple"};
  constexpr std::string_view kPlainFunctions[] = {"len", "isinstance", "min",   "max",  "abs",
                                                  "sum", "sorted",     "round", "hash", "ord"};
  if (!frame.file.empty()) return false;
  return std::find(std::begin(kPlainObjects), std::end(kPlainObjects), frame.object) !=
             std::end(kPlainObjects) ||
         (frame.object.empty() && std::find(std::begin(kPlainFunctions), std::end(kPlainFunctions),
                                            frame.function) != std::end(kPlainFunctions));
}

std::vector<Window> without(const Window& whole, const std::vector<Window>& parts) {
  std::vector<Window> left;
  std::int64_t from_ns = whole.start_ns;
  for (const Window& part : joined(parts)) {
    if (part.start_ns > from_ns) left.push_back({from_ns, part.start_ns});
    from_ns = std::max(from_ns, part.end_ns);
  }
  if (from_ns < whole.end_ns) left.push_back({from_ns, whole.end_ns});
  return left;
}

class PlainCode {
 public:
  PlainCode(const Facts& facts, TrackId thread)
      : facts_(facts), trace_(*facts.trace), thread_(thread), steady_(facts.steady_cpu_windows()) {}

  std::map<std::string_view, PlainFunction> run() {
    const Track& track = trace_.track(thread_);
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      close_until(trace_.start_ns(id));
      const CategoryKind kind = trace_.kind(id);
      if (kind == CategoryKind::kCpuOp || is_api_call(kind)) {
        mark_not_plain();
        continue;
      }
      const names::PythonFrame* const frame =
          kind == CategoryKind::kPythonFunction ? facts_.frames.find(trace_.slices().name[raw(id)])
                                                : nullptr;
      if (!frame || is_part_of_plain_code(*frame)) continue;
      open_.push_back({id, frame->is_of_program(), true, {}});
    }
    close_until(INT64_MAX);
    return std::move(found_);
  }

 private:
  // What is around a frame that is not plain is not plain either.
  void mark_not_plain() {
    for (auto open = open_.rbegin(); open != open_.rend() && open->is_plain; ++open)
      open->is_plain = false;
  }

  void close_until(std::int64_t time_ns) {
    while (!open_.empty() && trace_.end_ns(open_.back().slice) <= time_ns) close();
  }

  void close() {
    OpenFrame frame = std::move(open_.back());
    open_.pop_back();
    const Window whole{trace_.start_ns(frame.slice), trace_.end_ns(frame.slice)};
    if (frame.may_count() && inside(steady_, whole.start_ns)) count(frame, whole);
    if (!open_.empty() && open_.back().may_count()) open_.back().inside.push_back(whole);
  }

  void count(const OpenFrame& frame, const Window& whole) {
    PlainFunction& function = found_[trace_.name(frame.slice)];
    ++function.calls;
    for (const Window& window : without(whole, frame.inside)) {
      function.time_ns += window.end_ns - window.start_ns;
      function.windows.push_back(window);
    }
    if (function.longest == kNone<SliceId> ||
        trace_.dur_ns(frame.slice) > trace_.dur_ns(function.longest))
      function.longest = frame.slice;
  }

  const Facts& facts_;
  const Trace& trace_;
  TrackId thread_;
  std::vector<Window> steady_;
  std::vector<OpenFrame> open_;
  std::map<std::string_view, PlainFunction> found_;
};

TrackId thread_with_steps(const Facts& facts) {
  for (const analysis::StepRange& step : facts.steps.steps)
    if (step.slice != kNone<SliceId> && !is_device_work(facts.trace->kind(step.slice)))
      return facts.trace->slices().track[raw(step.slice)];
  return facts.main_thread;
}

struct OwnPython {
  std::vector<PlainFunction> functions;  // with most waiting first
  std::int64_t time_ns = 0, waiting_ns = 0;
  std::uint64_t calls = 0;
};

std::optional<OwnPython> measure_own_python(const Facts& facts) {
  const TrackId thread = thread_with_steps(facts);
  if (thread == kNone<TrackId>) return std::nullopt;
  OwnPython found;
  std::vector<Window> windows;
  for (auto& [frame, function] : PlainCode(facts, thread).run()) {
    if (function.calls < facts.selection.steady.size() ||
        share_of(function.time_ns, facts.steady_wall_ns()) < kLeastNamedShare)
      continue;
    function.frame = frame;
    function.waiting_ns =
        lost_in(facts, steady_parts(facts, joined(function.windows))).waiting_for_cpu_ns;
    if (share_of(function.waiting_ns, facts.steady_wall_ns()) < kLeastNamedShare) continue;
    found.time_ns += function.time_ns;
    found.calls += function.calls;
    windows.insert(windows.end(), function.windows.begin(), function.windows.end());
    found.functions.push_back(std::move(function));
  }
  found.waiting_ns =
      lost_in(facts, steady_parts(facts, joined(std::move(windows)))).waiting_for_cpu_ns;
  if (share_of(found.waiting_ns, facts.steady_wall_ns()) < kLeastOwnPythonShare)
    return std::nullopt;
  std::stable_sort(found.functions.begin(), found.functions.end(),
                   [](const auto& a, const auto& b) { return a.waiting_ns > b.waiting_ns; });
  return found;
}

Sentence names_of(const Facts& facts, const OwnPython& found, bool with_calls) {
  Sentence line;
  for (std::size_t i = 0; i < found.functions.size() && i < kMostNamedFunctions; ++i) {
    const PlainFunction& each = found.functions[i];
    if (i > 0) line.pattern += " and ";
    append(line, say("{}", {name(function_first(short_frame(each.frame)))}));
    if (with_calls && a_step(facts, each.calls) >= kManyPythonCalls)
      append(line, say(facts, " ({} calls)", {count(a_step(facts, each.calls))}));
  }
  return line;
}

Finding tell_own_python(const Facts& facts, const OwnPython& found) {
  Finding finding;
  finding.verdict =
      say("The thread that runs the steps is busy with plain Python of the program in ");
  append(finding.verdict, names_of(facts, found, true));
  append(finding.verdict,
         say(facts, ": {} [per step]. Meanwhile the GPU waits for {} ({}).",
             {ns(facts.per_step(found.time_ns)), ns(facts.per_step(found.waiting_ns)),
              ratio(found.waiting_ns, facts.steady_wall_ns())}));
  rate_cost(facts, found.waiting_ns, found.calls, finding);
  finding.spared_thread = facts.trace->slices().track[raw(found.functions.front().longest)];
  for (const PlainFunction& each : found.functions)
    finding.spared_windows.insert(finding.spared_windows.end(), each.windows.begin(),
                                  each.windows.end());
  finding.spared_windows = joined(std::move(finding.spared_windows));
  finding.arithmetic.push_back(say(
      "counted: functions of the program, by their Python frames, in which no operator and no call "
      "of the runtime begins; without functions of libraries that they call"));
  for (std::size_t i = 0; i < found.functions.size() && i < 3; ++i) {
    const PlainFunction& each = found.functions[i];
    finding.evidence.push_back(
        {each.longest,
         say(facts, "{} x{}: {} [per step], the GPU waits {}; the longest call",
             {name(short_frame(each.frame)), count(each.calls), ns(facts.per_step(each.time_ns)),
              ns(facts.per_step(each.waiting_ns))})});
  }
  finding.try_next = {
      "compute all numbers at once, in NumPy or torch, or let another process do it in advance",
      "recording a frame costs time: a function with many calls is faster without the profiler"};
  for (const char* covered : {"python-hole", "graph-opportunity", "looped-calls", "slow-launches"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = names_of(facts, found, false);
  append(finding.brief, say(facts, ": plain Python, {} of the CPU [per step]",
                            {ns(facts.per_step(found.time_ns))}));
  finding.action = say(
      "If it loops over numbers: NumPy or torch on the whole array. Else call it less often, or in "
      "another process");
  return finding;
}

}  // namespace

extern constinit const Rule own_python_rule = {
    .id = "own-python",
    .question = "does plain Python of the program hold up the steps?",
    .meant_by = "scalar vectorise numpy walk",
    .order = 92,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = [](const Facts& facts) { return has_python_frames(*facts.trace); },
    .run = measure_and_tell<measure_own_python, tell_own_python>,
    .fix = Fix::kCpu,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules

#include "lanescope/explain/rules/step_work.h"

#include <algorithm>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/base/wide.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

std::vector<const DeviceWork*> steady_work(const Facts& facts) {
  std::vector<const DeviceWork*> works;
  if (!facts.main_device) return works;
  std::size_t at = 0;  // both are in order of time
  for (const DeviceWork& work : facts.device().timeline.work) {
    while (at < facts.steady_windows.size() && facts.steady_windows[at].end_ns <= work.start_ns)
      ++at;
    if (at == facts.steady_windows.size()) break;
    if (work.start_ns >= facts.steady_windows[at].start_ns) works.push_back(&work);
  }
  return works;
}

std::int64_t union_ns(const std::vector<const DeviceWork*>& works) {
  analysis::IntervalUnion all;
  for (const DeviceWork* work : works) all.add(work->start_ns, work->end_ns);
  all.finish();
  return all.length_ns();
}

std::vector<analysis::Phase> phases_of(const Facts& facts) {
  return analysis::compute_training_phases(
      *facts.trace, facts.links,
      analysis::compute_slice_nesting(*facts.trace, {.python_frames = true}));
}

CompiledFacts compiled_facts_of(const Facts& facts) {
  CompiledFacts found;
  found.nesting = analysis::compute_slice_nesting(*facts.trace, {.python_frames = true});
  found.code = analysis::find_compiled_code(*facts.trace, found.nesting);
  return found;
}

namespace {

// The `enumerate(DataLoader)#..._Iter.__next__` ranges, in order of time. By time and thread, not
// by nesting: frames of recorded Python stacks have no place in that.
std::vector<SliceId> loader_ranges(const Trace& trace) {
  std::vector<SliceId> ranges;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) == CategoryKind::kUserAnnotation &&
        trace.name(id).starts_with("enumerate(DataLoader)"))
      ranges.push_back(id);
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
  return ranges;
}

// Where waiting for a batch costs time: where the GPU waits for the CPU; without a GPU, everywhere.
std::vector<HostStretch> costly_stretches(const Facts& facts) {
  if (facts.main_device) return host_late_stretches(facts);
  std::vector<HostStretch> steps;
  for (const Window& window : facts.steady_windows)
    steps.push_back({facts.cpu->thread, window.start_ns, window.end_ns, kNone<SliceId>});
  return steps;
}

}  // namespace

WaitTime waiting_for_batches(const Facts& facts) {
  const Trace& trace = *facts.trace;
  WaitTime found;
  const std::vector<HostStretch> stretches = costly_stretches(facts);
  for (const SliceId range : loader_ranges(trace)) {
    const std::int64_t before_ns = found.time_ns;
    auto stretch = std::upper_bound(
        stretches.begin(), stretches.end(), trace.start_ns(range),
        [](std::int64_t time, const HostStretch& each) { return time < each.end_ns; });
    for (; stretch != stretches.end() && stretch->start_ns < trace.end_ns(range); ++stretch)
      if (stretch->thread == trace.slices().track[raw(range)])
        found.time_ns += std::min(stretch->end_ns, trace.end_ns(range)) -
                         std::max(stretch->start_ns, trace.start_ns(range));
    if (found.time_ns > before_ns &&
        (found.longest == kNone<SliceId> || trace.dur_ns(range) > trace.dur_ns(found.longest)))
      found.longest = range;
  }
  return found;
}

const analysis::KernelName& KernelNames::of(SliceId kernel) {
  const StringId name = trace_.slices().name[raw(kernel)];
  static const analysis::KernelName kNameless;
  if (name == kNone<StringId>) return kNameless;
  if (by_string_.empty()) by_string_.resize(trace_.strings().size());
  auto& known = by_string_[raw(name)];
  if (!known)
    known = std::make_unique<analysis::KernelName>(analysis::parse_kernel_name(trace_.text(name)));
  return *known;
}

SliceId ancestor_named(const Facts& facts, SliceId slice, std::string_view prefix) {
  return ancestor_where(facts, slice,
                        [prefix](std::string_view name) { return name.starts_with(prefix); });
}

std::int64_t device_idle_during(const Facts& facts, std::vector<Window> windows) {
  std::sort(windows.begin(), windows.end(),
            [](const Window& a, const Window& b) { return a.start_ns < b.start_ns; });
  std::int64_t idle_ns = 0, covered = 0;
  for (Window window : windows) {
    if (covered > window.start_ns) window.start_ns = covered;
    if (window.end_ns <= window.start_ns) continue;
    covered = window.end_ns;
    const auto busy = facts.device().timeline.time_within(window.start_ns, window.end_ns);
    idle_ns += window.length_ns() - busy[0] - busy[1] - busy[2];
  }
  return idle_ns;
}

std::int64_t launch_waits_within(const Facts& facts, std::int64_t start_ns, std::int64_t end_ns) {
  const IdleTimes idle = idle_within_steady(facts, {start_ns, end_ns});
  std::int64_t waits = 0;
  for (const auto cause : {analysis::IdleCause::kHostLate, analysis::IdleCause::kLaunchLatency,
                           analysis::IdleCause::kBetweenQueued})
    waits += idle[static_cast<std::size_t>(cause)];
  return waits;
}

namespace {

bool is_of_library(std::string_view frame) {
  for (const std::string_view part : {"torch/", "torch\\", "site-packages", "dist-packages",
                                      "<built-in", "<string>", "contextlib.py", "threading.py"})
    if (frame.find(part) != std::string_view::npos) return true;
  return false;
}

// The first line of a recorded stack, innermost first, that is the program's own.
std::string line_of_stack(std::string_view stack) {
  while (!stack.empty()) {
    const std::size_t end = stack.find_first_of(";\n");
    const std::string_view line = stack.substr(0, end);
    if (!line.empty() && !is_of_library(line)) return std::string(line);
    if (end == std::string_view::npos) break;
    stack.remove_prefix(end + 1);
  }
  return {};
}

}  // namespace

std::string python_line(const Facts& facts, SliceId slice) {
  const Trace& trace = *facts.trace;
  for (SliceId up = slice; up != kNone<SliceId>; up = facts.nesting.parent[raw(up)])
    if (const auto stack = trace.slice_args(up).text(ArgKey::kCallStack)) {
      std::string line = line_of_stack(trace.text(*stack));
      if (!line.empty()) return line;
    }
  const Track& track = trace.track(slice);
  for (std::uint32_t i = raw(slice); i-- > track.first_slice;) {
    const SliceId frame{i};
    if (trace.kind(frame) == CategoryKind::kPythonFunction &&
        trace.end_ns(frame) >= trace.end_ns(slice) &&
        trace.name(frame).find(".py(") != std::string_view::npos &&
        !is_of_library(trace.name(frame)))
      return std::string(trace.name(frame));
  }
  return {};
}

void add_line(const Facts& facts, SliceId slice, Sentence& sentence) {
  if (slice == kNone<SliceId>) return;
  const std::string line = python_line(facts, slice);
  if (line.empty()) return;
  sentence.pattern += ", called at {}";
  sentence.values.push_back(name(line));
}

void add_named(const Facts& facts, const std::map<std::string, Named>& by_name, Finding& finding) {
  std::vector<std::pair<std::string, Named>> ranked(by_name.begin(), by_name.end());
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.second.time_ns > b.second.time_ns;
  });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    Sentence line = say("{} x{}: {}", {name(ranked[i].first), count(ranked[i].second.count),
                                       ns(ranked[i].second.time_ns)});
    add_line(facts, ranked[i].second.longest, line);
    finding.evidence.push_back({ranked[i].second.longest, std::move(line)});
  }
}

std::int64_t total_length(std::vector<Window> windows) {
  std::sort(windows.begin(), windows.end(),
            [](const Window& a, const Window& b) { return a.start_ns < b.start_ns; });
  std::int64_t total = 0, covered = windows.empty() ? 0 : windows[0].start_ns;
  for (const Window& window : windows) {
    total += std::max<std::int64_t>(0, window.end_ns - std::max(window.start_ns, covered));
    covered = std::max(covered, window.end_ns);
  }
  return total;
}

std::vector<HostStretch> parts_within(const std::vector<HostStretch>& all,
                                      const std::vector<Window>& windows) {
  std::vector<HostStretch> parts;
  std::size_t at = 0;
  for (const HostStretch& each : all) {
    while (at < windows.size() && windows[at].end_ns <= each.start_ns) ++at;
    for (std::size_t i = at; i < windows.size() && windows[i].start_ns < each.end_ns; ++i) {
      HostStretch part = each;
      part.start_ns = std::max(part.start_ns, windows[i].start_ns);
      part.end_ns = std::min(part.end_ns, windows[i].end_ns);
      parts.push_back(part);
    }
  }
  return parts;
}

void add_more_than_usual(const Facts& facts, std::size_t step, std::int64_t excess_ns,
                         Finding& finding) {
  const auto& steps = facts.steps.steps;
  const TrackId thread = steps[step].slice == kNone<SliceId>
                             ? facts.main_thread
                             : facts.trace->slices().track[raw(steps[step].slice)];
  const auto shares_of = [&](const std::vector<std::size_t>& indices) {
    std::vector<HostStretch> stretches;
    for (const std::size_t i : indices)
      stretches.push_back({thread, steps[i].cpu_start_ns, steps[i].cpu_end_ns, kNone<SliceId>});
    return host_shares(facts, stretches);
  };
  std::vector<std::size_t> others;
  for (const std::size_t i : facts.steady)
    if (i != step) others.push_back(i);
  for (std::size_t i = 0; others.empty() && i < steps.size(); ++i)
    if (i != step) others.push_back(i);
  if (others.empty()) return;
  std::map<std::string, std::int64_t> usual;
  for (const HostShare& share : shares_of(others))
    usual[share.name] = share.time_ns / static_cast<std::int64_t>(others.size());
  std::vector<HostShare> more = shares_of({step});
  for (HostShare& share : more)
    if (const auto entry = usual.find(share.name); entry != usual.end())
      share.time_ns -= entry->second;
  std::stable_sort(more.begin(), more.end(),
                   [](const HostShare& a, const HostShare& b) { return a.time_ns > b.time_ns; });
  for (std::size_t i = 0; i < more.size() && i < 3; ++i) {
    if (wide(more[i].time_ns) * 20 < excess_ns) break;
    Sentence text = describe(more[i]);
    text.pattern = "{} more than usual: " + text.pattern;
    text.values.insert(text.values.begin(), ns(more[i].time_ns));
    finding.evidence.push_back({more[i].longest, std::move(text)});
  }
}

void explain_long_step(const Facts& facts, std::vector<Window> cpu_windows,
                       std::vector<Window> device_windows, Finding& finding) {
  if (!facts.long_step) return;
  const Window whole = facts.step_window(*facts.long_step);
  const auto clip = [&](std::vector<Window>& windows) {
    for (Window& window : windows) {
      window.start_ns = std::max(window.start_ns, whole.start_ns);
      window.end_ns = std::max(window.start_ns, std::min(window.end_ns, whole.end_ns));
    }
  };
  clip(cpu_windows);
  clip(device_windows);
  finding.explains.push_back({"long-step", device_idle_during(facts, std::move(cpu_windows)) +
                                               total_length(std::move(device_windows))});
}

std::int64_t outside_long_step(const Facts& facts, std::int64_t start_ns, std::int64_t end_ns) {
  if (!facts.long_step) return end_ns - start_ns;
  const Window whole = facts.step_window(*facts.long_step);
  const std::int64_t within = std::min(end_ns, whole.end_ns) - std::max(start_ns, whole.start_ns);
  return end_ns - start_ns - std::max<std::int64_t>(0, within);
}

}  // namespace lanescope::explain::rules

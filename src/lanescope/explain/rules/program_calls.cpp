#include "lanescope/explain/rules/program_calls.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/cpu_waits.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::IdleCause;
using analysis::Window;
using analysis::WorkClass;

namespace {

// In old traces the range of a step has the category of operators.
bool is_operator(const Trace& trace, SliceId slice) {
  return trace.kind(slice) == CategoryKind::kCpuOp &&
         !trace.name(slice).starts_with("ProfilerStep");
}

bool launches_copy(const Facts& facts, SliceId call) {
  for (const SliceId work : facts.links.launched_by(call))
    if (facts.trace->name(work).starts_with("Memcpy")) return true;
  return false;
}

}  // namespace

bool is_factory(std::string_view op) {
  static constexpr std::array kFactories = {
      "aten::zeros",      "aten::ones",         "aten::full",         "aten::arange",
      "aten::eye",        "aten::rand",         "aten::randn",        "aten::randint",
      "aten::zeros_like", "aten::ones_like",    "aten::full_like",    "aten::linspace",
      "aten::randperm",   "aten::tril_indices", "aten::triu_indices", "aten::scalar_tensor",
  };
  return std::find(kFactories.begin(), kFactories.end(), op) != kFactories.end();
}

bool is_view(std::string_view op) {
  static constexpr std::string_view kViews[] = {"aten::t",
                                                "aten::transpose",
                                                "aten::view",
                                                "aten::reshape",
                                                "aten::as_strided",
                                                "aten::_unsafe_view",
                                                "aten::expand",
                                                "aten::permute",
                                                "aten::unsqueeze",
                                                "aten::squeeze",
                                                "aten::select",
                                                "aten::slice",
                                                "aten::_reshape_alias",
                                                "aten::flatten",
                                                "aten::alias",
                                                "aten::numpy_T",
                                                "aten::mT",
                                                "aten::expand_as",
                                                "aten::view_as"};
  return std::find(std::begin(kViews), std::end(kViews), op) != std::end(kViews);
}

SliceId outermost_operator_of(const Facts& facts, SliceId slice) {
  SliceId found = kNone<SliceId>;
  for (SliceId up = facts.links.op_of[raw(slice)]; up != kNone<SliceId>;
       up = facts.nesting.parent[raw(up)])
    if (is_operator(*facts.trace, up)) found = up;
  return found;
}

std::size_t steady_step_at(const Facts& facts, std::int64_t time_ns) {
  const auto& steps = facts.steps.steps;
  const auto after = std::upper_bound(
      facts.selection.steady.begin(), facts.selection.steady.end(), time_ns,
      [&](std::int64_t time, std::size_t step) { return time < steps[step].cpu_start_ns; });
  if (after == facts.selection.steady.begin()) return ~std::size_t{0};
  return time_ns < steps[*(after - 1)].cpu_end_ns ? *(after - 1) : ~std::size_t{0};
}

namespace {

std::vector<LaunchSequence> make_launch_sequences(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::pair<std::uint32_t, std::size_t>, LaunchSequence> found;  // thread, step
  for (const DeviceWork& work : facts.device().timeline.work) {
    const SliceId call = facts.links.launch_of[raw(work.slice)];
    if (call == kNone<SliceId>) continue;
    const std::size_t step = steady_step_at(facts, trace.start_ns(call));
    if (step == ~std::size_t{0}) continue;
    found[{raw(trace.slices().track[raw(call)]), step}].push_back({&work, call});
  }
  std::vector<LaunchSequence> sequences;
  for (auto& [place, sequence] : found) {
    std::stable_sort(sequence.begin(), sequence.end(),
                     [&](const LaunchedWork& a, const LaunchedWork& b) {
                       return trace.start_ns(a.call) < trace.start_ns(b.call);
                     });
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

std::vector<CallSequence> make_call_sequences(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::pair<std::uint32_t, std::size_t>, CallSequence> found;  // thread, step
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_operator(trace, id)) continue;
    const SliceId around = facts.nesting.parent[i];
    if (around != kNone<SliceId> && is_operator(trace, around)) continue;
    const std::size_t step = steady_step_at(facts, trace.start_ns(id));
    if (step != ~std::size_t{0}) found[{raw(trace.slices().track[i]), step}].push_back(id);
  }
  std::vector<CallSequence> sequences;
  for (auto& [place, sequence] : found) sequences.push_back(std::move(sequence));
  return sequences;
}

}  // namespace

struct SequencesSlot {
  std::once_flag calls_once, launches_once;
  std::vector<CallSequence> calls;
  std::vector<LaunchSequence> launches;
};

std::shared_ptr<SequencesSlot> make_sequences_slot() { return std::make_shared<SequencesSlot>(); }

const std::vector<LaunchSequence>& launch_sequences(const Facts& facts) {
  SequencesSlot& slot = *facts.sequences;
  std::call_once(slot.launches_once, [&] { slot.launches = make_launch_sequences(facts); });
  return slot.launches;
}

const std::vector<CallSequence>& call_sequences(const Facts& facts) {
  SequencesSlot& slot = *facts.sequences;
  std::call_once(slot.calls_once, [&] { slot.calls = make_call_sequences(facts); });
  return slot.calls;
}

std::unordered_set<std::uint32_t> uploading_operators(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::unordered_set<std::uint32_t> found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId call{i};
    if (!is_api_call(trace.kind(call)) || !inside(windows, trace.start_ns(call))) continue;
    for (const SliceId work : facts.links.launched_by(call)) {
      if (!trace.name(work).starts_with("Memcpy HtoD")) continue;
      const SliceId op = outermost_operator_of(facts, call);
      if (op != kNone<SliceId>) found.insert(raw(op));
    }
  }
  return found;
}

std::int64_t bytes_of(const Facts& facts, SliceId copy) {
  return facts.trace->slice_args(copy).integer(ArgKey::kBytes).value_or(0);
}

std::int64_t next_work_ns(const Facts& facts, std::int64_t time_ns) {
  const auto& works = facts.device().timeline.work;
  const auto next = std::lower_bound(
      works.begin(), works.end(), time_ns,
      [](const DeviceWork& work, std::int64_t time) { return work.start_ns < time; });
  return next == works.end() ? time_ns : next->start_ns;
}

std::vector<Window> joined(std::vector<Window> windows) {
  sort_rows(windows.begin(), windows.end(),
            [](const Window& a, const Window& b) { return a.start_ns < b.start_ns; });
  std::vector<Window> all;
  for (const Window& window : windows) {
    if (window.end_ns <= window.start_ns) continue;
    if (!all.empty() && window.start_ns <= all.back().end_ns)
      all.back().end_ns = std::max(all.back().end_ns, window.end_ns);
    else
      all.push_back(window);
  }
  return all;
}

std::vector<Window> steady_parts(const Facts& facts, const std::vector<Window>& windows) {
  std::vector<Window> parts;
  std::size_t at = 0;
  const auto& steady = facts.steady_windows;
  for (const Window& window : windows) {
    while (at < steady.size() && steady[at].end_ns <= window.start_ns) ++at;
    for (std::size_t i = at; i < steady.size() && steady[i].start_ns < window.end_ns; ++i)
      parts.push_back({std::max(window.start_ns, steady[i].start_ns),
                       std::min(window.end_ns, steady[i].end_ns)});
  }
  return parts;
}

LostTime lost_in(const Facts& facts, const std::vector<Window>& windows) {
  const Trace& trace = *facts.trace;
  LostTime lost;
  for (const Window& window : windows) {
    const auto busy = facts.device().timeline.time_within(window.start_ns, window.end_ns);
    lost.idle_ns += window.length_ns() - busy[0] - busy[1] - busy[2];
    lost.copies_ns += busy[static_cast<std::size_t>(WorkClass::kCopy)];
    lost.after_waits_ns +=
        idle_within(facts.device().gaps, window)[static_cast<std::size_t>(IdleCause::kAfterSync)];
  }
  for (const HostStretch& stretch : parts_within(host_late_stretches(facts), windows)) {
    bool by_copy = false;
    lost.waiting_for_cpu_ns += stretch.end_ns - stretch.start_ns;
    if (stretch.blame != kNone<SliceId> && launches_copy(facts, stretch.blame)) {
      lost.in_copy_calls_ns += stretch.end_ns - stretch.start_ns;
      by_copy = true;
    }
    facts.host->visit(
        stretch.thread, stretch.start_ns, stretch.end_ns,
        [&](SliceId slice, std::int64_t from, std::int64_t to) {
          if (slice == kNone<SliceId> ||
              (!is_operator(trace, slice) && !is_api_call(trace.kind(slice))))
            lost.quiet_ns += to - from;
          else if (!by_copy && is_api_call(trace.kind(slice)) && launches_copy(facts, slice))
            lost.in_copy_calls_ns += to - from;
        });
  }
  return lost;
}

}  // namespace lanescope::explain::rules

#include "lanescope/explain/rules/cpu_computing.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/enclosing_events.h"

namespace lanescope::explain::rules {

using analysis::Window;
using analysis::WorkClass;

namespace {

// An operator that only launches or makes a view takes less, even with a profiler.
constexpr std::int64_t kLeastCallNs = 100'000;
constexpr std::int64_t kLargestScalarBytes = 4096;

// False: the operator moves, makes, divides or views memory, which is no computation. A view of a
// GPU tensor launches nothing either; it takes long if something else delays the CPU in it (anomaly
// detection records the stack of each operator). Operators that only make tensors have their own
// rule (cpu-built-tensor).
bool computes_on_cpu(std::string_view op) {
  static constexpr std::array kOthers = {
      "aten::to",         "aten::_to_copy",
      "aten::copy_",      "aten::item",
      "aten::cpu",        "aten::cuda",
      "aten::pin_memory", "aten::_pin_memory",
      "aten::is_pinned",  "aten::_local_scalar_dense",
      "aten::empty",      "aten::empty_strided",
      "aten::empty_like", "aten::resize_",
      "aten::set_",       "aten::detach",
      "aten::detach_",    "aten::record_stream",
      "aten::is_nonzero", "aten::unflatten_dense_tensors",
      "aten::split",      "aten::split_with_sizes",
      "aten::chunk",      "aten::unbind",
      "aten::narrow",
  };
  return op.starts_with("aten::") && !is_factory(op) && !is_view(op) &&
         std::find(kOthers.begin(), kOthers.end(), op) == kOthers.end();
}

// Operators with a call of the GPU's runtime in them, at any depth.
std::vector<bool> operators_with_calls(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<bool> has(trace.slices().size(), false);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    if (!is_api_call(trace.kind(SliceId{i}))) continue;
    for (SliceId up = facts.links.op_of[i]; up != kNone<SliceId> && !has[raw(up)];
         up = facts.nesting.parent[raw(up)])
      has[raw(up)] = true;
  }
  return has;
}

bool loads_a_batch(const Facts& facts, SliceId op) {
  return ancestor_named(facts, op, "enumerate(DataLoader)") != kNone<SliceId>;
}

std::vector<SliceId> find_cpu_operators_of_recording(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::vector<bool>& has_calls = made_once<operators_with_calls>(facts);
  std::vector<SliceId> found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId op{i};
    if (trace.kind(op) != CategoryKind::kCpuOp || has_calls[i] || trace.dur_ns(op) < kLeastCallNs ||
        !computes_on_cpu(trace.name(op)) || loads_a_batch(facts, op))
      continue;
    const SliceId around = facts.nesting.parent[i];
    if (around != kNone<SliceId> && !has_calls[raw(around)] &&
        trace.kind(around) == CategoryKind::kCpuOp &&
        !trace.name(around).starts_with("ProfilerStep"))
      continue;
    found.push_back(op);
  }
  return found;
}

std::vector<SliceId> find_long_cpu_operators(const Facts& facts) {
  std::vector<SliceId> found;
  for (const SliceId op : cpu_operators_of_recording(facts))
    if (steady_step_at(facts, facts.trace->start_ns(op)) != ~std::size_t{0}) found.push_back(op);
  return found;
}

}  // namespace

const std::vector<SliceId>& cpu_operators_of_recording(const Facts& facts) {
  return made_once<find_cpu_operators_of_recording>(facts);
}

const std::vector<SliceId>& long_cpu_operators(const Facts& facts) {
  return made_once<find_long_cpu_operators>(facts);
}

Neighbours copies_around(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  for (const LaunchSequence& sequence : launch_sequences(facts)) {
    if (trace.slices().track[raw(sequence.front().call)] != trace.slices().track[raw(op)]) continue;
    const auto next = std::upper_bound(sequence.begin(), sequence.end(), trace.end_ns(op),
                                       [&](std::int64_t time, const LaunchedWork& each) {
                                         return time <= trace.start_ns(each.call);
                                       });
    const std::size_t step = steady_step_at(facts, trace.start_ns(op));
    const auto is_copy = [&](const LaunchedWork& each, std::string_view direction) {
      return steady_step_at(facts, trace.start_ns(each.call)) == step &&
             each.work->work == WorkClass::kCopy &&
             trace.name(each.work->slice).starts_with(direction) &&
             bytes_of(facts, each.work->slice) > kLargestScalarBytes;
    };
    Neighbours found;
    if (next != sequence.begin() && is_copy(*(next - 1), "Memcpy DtoH")) found.read = &*(next - 1);
    if (next != sequence.end() && is_copy(*next, "Memcpy HtoD")) found.upload = &*next;
    if (found.read || found.upload ||
        steady_step_at(facts, trace.start_ns(sequence.front().call)) == step)
      return found;
  }
  return {};
}

namespace {

// From a copy to the CPU to its thread's next launch in that step, on the CPU.
struct AfterRead {
  Window window;
  TrackId thread = kNone<TrackId>;
};

std::vector<AfterRead> windows_after(const Facts& facts,
                                     const std::set<const LaunchedWork*>& reads) {
  const Trace& trace = *facts.trace;
  std::vector<AfterRead> found;
  for (const LaunchSequence& sequence : launch_sequences(facts))
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      const SliceId call = sequence[i].call;
      if (!reads.contains(&sequence[i])) continue;
      const std::size_t step = steady_step_at(facts, trace.start_ns(call));
      const std::int64_t end_ns = i + 1 < sequence.size() ? trace.start_ns(sequence[i + 1].call)
                                                          : facts.steps.steps[step].cpu_end_ns;
      found.push_back({{trace.end_ns(call), end_ns}, trace.slices().track[raw(call)]});
    }
  return found;
}

ComputingWithReads find_computing_with_reads(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::vector<bool>& has_calls = made_once<operators_with_calls>(facts);
  std::set<const LaunchedWork*> reads;
  for (const SliceId op : long_cpu_operators(facts))
    if (const LaunchedWork* read = copies_around(facts, op).read) reads.insert(read);
  ComputingWithReads found;
  found.reads.assign(reads.begin(), reads.end());
  for (const AfterRead& after : windows_after(facts, reads)) {
    std::vector<Window> windows;
    for (const CallSequence& calls : call_sequences(facts)) {
      if (calls.empty() || trace.slices().track[raw(calls.front())] != after.thread ||
          trace.start_ns(calls.back()) < after.window.start_ns)
        continue;
      auto op = std::partition_point(calls.begin(), calls.end(), [&](SliceId each) {
        return trace.start_ns(each) < after.window.start_ns;
      });
      for (; op != calls.end() && trace.start_ns(*op) < after.window.end_ns; ++op) {
        if (has_calls[raw(*op)] || loads_a_batch(facts, *op)) continue;
        found.ops.push_back(*op);
        windows.push_back({trace.start_ns(*op), trace.end_ns(*op)});
        if (found.longest == kNone<SliceId> || trace.dur_ns(*op) > trace.dur_ns(found.longest))
          found.longest = *op;
      }
      break;
    }
    windows = joined(std::move(windows));
    std::vector<HostStretch> of_thread;
    for (const HostStretch& wait : host_late_stretches(facts))
      if (wait.thread == after.thread && wait.end_ns > after.window.start_ns &&
          wait.start_ns < after.window.end_ns)
        of_thread.push_back(wait);
    for (const HostStretch& part : parts_within(of_thread, windows))
      found.waiting_ns += part.end_ns - part.start_ns;
    found.windows.insert(found.windows.end(), windows.begin(), windows.end());
  }
  found.windows = joined(std::move(found.windows));
  sort_rows(found.ops.begin(), found.ops.end(),
            [](SliceId a, SliceId b) { return raw(a) < raw(b); });
  return found;
}

}  // namespace

const ComputingWithReads& computing_with_reads(const Facts& facts) {
  return made_once<find_computing_with_reads>(facts);
}

}  // namespace lanescope::explain::rules

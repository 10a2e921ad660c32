// A CPU that runs ahead of its GPU may be late although the GPU does not wait yet: the cause lies earlier than
// the GPU's wait. So this sums up whole steps of the CPU, not only the moments in which the GPU waits. Time in
// API calls does not count as work, because a call may wait for the GPU.
#include "lanescope/ranks/host_times.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/simulate/recording_cost.h"

namespace lanescope::ranks {
namespace {

using analysis::IntervalUnion;
using explain::Facts;

bool is_loader(std::string_view name) { return name.starts_with("enumerate(DataLoader)#"); }
// Gloo's collectives run on a thread of their own, while Python waits without an event.
bool is_cpu_collective(std::string_view name) { return name.starts_with("gloo:"); }

// Threads that launch kernels: also the one that runs the backward pass.
std::set<TrackId> launching_threads(const Facts& facts) {
  std::set<TrackId> threads;
  for (const SliceId call : facts.kernel_launches.calls)
    threads.insert(facts.trace->slices().track[raw(call)]);
  return threads;
}

// Each moment at which an event of a thread begins or ends costs it something, in the step it lies in.
class RecordingCosts {
 public:
  explicit RecordingCosts(const std::vector<analysis::StepRange>& steps)
      : steps_(steps), costs_(steps.size(), 0) {}

  // The slices of one thread, in the order of the trace: by start, outer ones first.
  void add(std::int64_t start_ns, std::int64_t end_ns) {
    end_before(start_ns);
    add_moment(start_ns);
    open_.push_back(end_ns);
  }
  void end_thread() {
    end_before(INT64_MAX);
    step_ = 0;
    last_.reset();
  }
  std::int64_t of_step(std::size_t step) const {
    return step < costs_.size() ? static_cast<std::int64_t>(costs_[step]) : 0;
  }

 private:
  void end_before(std::int64_t time_ns) {
    for (; !open_.empty() && open_.back() <= time_ns; open_.pop_back()) add_moment(open_.back());
  }
  void add_moment(std::int64_t time_ns) {
    if (last_) {
      while (step_ < steps_.size() && *last_ >= steps_[step_].cpu_end_ns) ++step_;
      if (step_ < steps_.size() && *last_ >= steps_[step_].cpu_start_ns && time_ns > *last_)
        costs_[step_] += simulate::recording_cost_ns(simulate::kCostOfAny,
                                                     static_cast<double>(time_ns - *last_));
    }
    last_ = std::max(time_ns, last_.value_or(time_ns));
  }

  const std::vector<analysis::StepRange>& steps_;
  std::vector<double> costs_;
  std::vector<std::int64_t> open_;  // ends of the slices that the moment lies in
  std::optional<std::int64_t> last_;
  std::size_t step_ = 0;
};

void add_recording_costs(const Facts& facts, const std::set<TrackId>& threads,
                         std::vector<RankStep>& steps) {
  const Trace& trace = *facts.trace;
  const auto& tracks = trace.slices().track;  // the slices of a track are together
  RecordingCosts costs(facts.steps.steps);
  for (std::size_t i = 0; i < tracks.size();) {
    const TrackId track = tracks[i];
    const bool is_launching = threads.contains(track);
    for (; i < tracks.size() && tracks[i] == track; ++i) {
      const SliceId slice{static_cast<std::uint32_t>(i)};
      if (is_launching) costs.add(trace.start_ns(slice), trace.end_ns(slice));
    }
    if (is_launching) costs.end_thread();
  }
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].host_recording_ns = costs.of_step(i);
}

// "code without events in matmul_add", as explain::describe() in one text.
std::string host_part_name(const explain::HostShare& share) {
  const std::string name = share.name.substr(0, 160);
  if (name.empty()) return "code without events";
  if (share.kind == CategoryKind::kUserAnnotation) return "code without events in " + name;
  if (share.kind == CategoryKind::kPythonFunction) return name + "'s own time";
  return is_api_call(share.kind) ? "calls of " + name : name;
}

}  // namespace

void add_host_times(const Facts& facts, std::vector<RankStep>& steps) {
  if (!facts.main_device || !facts.steps.marked || facts.steps.found) return;
  const Trace& trace = *facts.trace;
  const std::set<TrackId> threads = launching_threads(facts);
  if (threads.empty()) return;
  IntervalUnion calls, calls_and_operators, loader, any;
  for (std::size_t i = 0; i < trace.slices().name.size(); ++i) {
    const SliceId slice{static_cast<std::uint32_t>(i)};
    const CategoryKind kind = trace.kind(slice);
    const std::int64_t start = trace.start_ns(slice), end = trace.end_ns(slice);
    if (kind == CategoryKind::kUserAnnotation) {
      const std::string_view name = trace.name(slice);
      if (is_cpu_collective(name)) any.add(start, end);
      if (!is_loader(name) || !threads.contains(trace.slices().track[i])) continue;
      loader.add(start, end);
      any.add(start, end);
      continue;
    }
    const bool is_call = is_api_call(kind);
    if ((!is_call && kind != CategoryKind::kCpuOp) || !threads.contains(trace.slices().track[i]))
      continue;
    if (is_call) calls.add(start, end);
    calls_and_operators.add(start, end);
    any.add(start, end);
  }
  for (IntervalUnion* const part : {&calls, &calls_and_operators, &loader, &any}) part->finish();
  for (std::size_t i = 0; i < steps.size() && i < facts.steps.steps.size(); ++i) {
    const std::int64_t start = facts.steps.steps[i].cpu_start_ns,
                       end = facts.steps.steps[i].cpu_end_ns;
    if (end <= start) continue;
    steps[i].host_work_ns =
        calls_and_operators.length_within_ns(start, end) - calls.length_within_ns(start, end);
    steps[i].host_loader_ns = loader.length_within_ns(start, end);
    steps[i].host_outside_ns = end - start - any.length_within_ns(start, end);
  }
  add_recording_costs(facts, threads, steps);
}

// Without a device: what the thread of the steps did while no operator and no collective ran.
std::vector<HostPart> find_parts_outside(const Facts& facts, const IntervalUnion& running) {
  std::map<std::string, std::int64_t> by_name;
  for (const analysis::Window& window : facts.steady_windows)
    facts.host->visit(facts.cpu->thread, window.start_ns, window.end_ns,
                      [&](SliceId slice, std::int64_t from, std::int64_t to) {
                        explain::HostShare share;
                        if (slice != kNone<SliceId>) {
                          share.kind = facts.trace->kind(slice);
                          share.name = facts.trace->name(slice);
                          if (share.name.starts_with("ProfilerStep#")) share.name.clear();
                        }
                        const std::int64_t outside = to - from - running.length_within_ns(from, to);
                        if (outside > 0) by_name[host_part_name(share)] += outside;
                      });
  std::vector<HostPart> parts;
  for (const auto& [name, time_ns] : by_name) parts.push_back({name, time_ns});
  sort_rows(parts.begin(), parts.end(),
            [](const HostPart& a, const HostPart& b) { return a.time_ns > b.time_ns; });
  if (parts.size() > kMostHostParts) parts.resize(kMostHostParts);
  return parts;
}

std::vector<HostPart> find_host_parts(const Facts& facts, const IntervalUnion& running) {
  std::vector<HostPart> parts;
  if (!facts.host) return parts;
  if (!facts.main_device && facts.cpu && !facts.vendor) return find_parts_outside(facts, running);
  if (!facts.main_device) return parts;
  for (const explain::HostShare& share : explain::host_late_shares(facts)) {
    if (parts.size() == kMostHostParts) break;
    parts.push_back({host_part_name(share), share.time_ns});
  }
  return parts;
}

}  // namespace lanescope::ranks

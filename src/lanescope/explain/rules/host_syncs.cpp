#include "lanescope/explain/rules/host_syncs.h"

#include <algorithm>

#include "lanescope/analysis/launching_calls.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::IdleCause;
using analysis::IdlePart;

SliceId outermost_operator(const Facts& facts, SliceId call) {
  SliceId found = call;
  for (SliceId up = facts.links.op_of[raw(call)]; up != kNone<SliceId>;
       up = facts.nesting.parent[raw(up)])
    if (facts.trace->kind(up) == CategoryKind::kCpuOp &&
        !facts.trace->name(up).starts_with("ProfilerStep"))
      found = up;
  return found;
}

bool asks_for_size(const Facts& facts, SliceId call) {
  const auto is_sized_by_data = [](std::string_view name) {
    return name == "aten::nonzero" || name == "aten::masked_select" || name == "aten::_unique2" ||
           name == "aten::unique_consecutive" || name == "aten::unique_dim" ||
           name == "aten::repeat_interleave" || name == "aten::bincount" || name == "aten::one_hot";
  };
  return ancestor_where(facts, facts.links.op_of[raw(call)], is_sized_by_data) != kNone<SliceId>;
}

namespace {

// The copy that a wait ends: both outside of operators, and the wait is the next call of its thread. kNone: none. A copy of pinned
// memory does not wait, so the wait after it is the only one.
SliceId copy_that_it_ends(const Facts& facts, SliceId wait) {
  const Trace& trace = *facts.trace;
  if (raw(wait) == trace.track(wait).first_slice ||
      trace.api_call(wait).does(api_effect::kCopies) || outermost_operator(facts, wait) != wait)
    return kNone<SliceId>;
  const SliceId before{raw(wait) - 1};
  return is_api_call(trace.kind(before)) && trace.api_call(before).does(api_effect::kCopies) &&
                 outermost_operator(facts, before) == before &&
                 analysis::is_blocking_call(trace, facts.links, before)
             ? before
             : kNone<SliceId>;
}

// What a wait is counted under: its outermost operator, else the copy that it ends, else the call.
SliceId what_asks(const Facts& facts, SliceId wait) {
  const SliceId copy = copy_that_it_ends(facts, wait);
  return copy != kNone<SliceId> ? copy : outermost_operator(facts, wait);
}

bool launches_copy(const Facts& facts, SliceId call, std::string_view direction) {
  for (const SliceId work : facts.links.launched_by(call))
    if (facts.trace->name(work).starts_with(direction)) return true;
  return false;
}

// True: the operator brought data from the CPU to the GPU, so pinned memory removes the wait.
bool copies_to_device(const Facts& facts, SliceId call) {
  return launches_copy(facts, call, "Memcpy HtoD");
}

// Idle time after a wait in which the CPU allocated or freed memory at the driver, or waited for a
// batch. These delay the device themselves and belong to allocator-calls and dataloader-wait.
std::int64_t explained_elsewhere(const Facts& facts, const IdlePart& part) {
  std::int64_t total = 0;
  if (part.thread == kNone<TrackId>) return total;
  const Trace& trace = *facts.trace;
  const auto holds_up = [&](SliceId slice) {
    for (; slice != kNone<SliceId>; slice = facts.nesting.parent[raw(slice)]) {
      if (is_api_call(trace.kind(slice))
              ? trace.api_call(slice).does(api_effect::kAllocates | api_effect::kFrees)
              : trace.name(slice).starts_with("enumerate(DataLoader)"))
        return true;
    }
    return false;
  };
  facts.host->visit(part.thread, part.start_ns, part.end_ns,
                    [&](SliceId slice, std::int64_t from, std::int64_t to) {
                      if (holds_up(slice)) total += to - from;
                    });
  return total;
}

constexpr std::int64_t kLargestReadBytes = 4096;

// Device time of small copies to the CPU that these operators launched, while nothing else ran:
// .item() copies its value. Larger copies are data that the program needs.
std::int64_t copies_launched_by(const Facts& facts, const std::vector<SliceId>& waiting_ops) {
  std::int64_t total = 0;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    if (work.work != analysis::WorkClass::kCopy || !inside(facts.steady_windows, work.start_ns))
      continue;
    if (!facts.trace->name(work.slice).starts_with("Memcpy DtoH") ||
        facts.trace->slice_args(work.slice).integer(ArgKey::kBytes).value_or(0) > kLargestReadBytes)
      continue;
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> || !std::binary_search(waiting_ops.begin(), waiting_ops.end(),
                                                        outermost_operator(facts, launch)))
      continue;
    total += facts.device().timeline.time_within(
        work.start_ns, work.end_ns)[static_cast<std::size_t>(analysis::WorkClass::kCopy)];
  }
  return total;
}

// cuDNN and MIOpen wait on their own, mostly while they try out algorithms (cudnn-benchmark).
bool inside_convolution(const Facts& facts, SliceId call) {
  const auto is_library_call = [](std::string_view name) {
    return name.find("cudnn_convolution") != name.npos ||
           name.find("miopen_convolution") != name.npos;
  };
  return ancestor_where(facts, facts.links.op_of[raw(call)], is_library_call) != kNone<SliceId>;
}

// Names show which calls wait; the names of some runtimes are not known.
constexpr char kNeedsKnownCalls[] =
    "API calls of a known runtime, such as CUDA or HIP, to know which of them wait";
bool launches_by_known_calls(const Facts& facts) {
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId>) continue;
    if (facts.trace->api_call(launch).is_known()) return true;
  }
  return false;
}

// Calls that wait, and the operators and calls that copied to the GPU (sorted).
struct BlockingCalls {
  std::vector<SliceId> calls, uploads;
  std::vector<std::int64_t> launches_ns;  // when launches began, sorted
  std::vector<std::int64_t>
      new_work_ns;  // the same without copies to the CPU, which only bring results
  std::int64_t last_launch_ns() const { return launches_ns.empty() ? 0 : launches_ns.back(); }
};

BlockingCalls find_blocking_calls(const Facts& facts) {
  const Trace& trace = *facts.trace;
  BlockingCalls found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_api_call(trace.kind(id))) continue;
    if (analysis::launches_work(trace, facts.links, id)) {
      found.launches_ns.push_back(trace.start_ns(id));
      if (!launches_copy(facts, id, "Memcpy DtoH")) found.new_work_ns.push_back(trace.start_ns(id));
    }
    if (copies_to_device(facts, id)) found.uploads.push_back(outermost_operator(facts, id));
    if (analysis::is_blocking_call(trace, facts.links, id) && !inside_convolution(facts, id))
      found.calls.push_back(id);
  }
  std::sort(found.uploads.begin(), found.uploads.end());
  std::sort(found.launches_ns.begin(), found.launches_ns.end());
  std::sort(found.new_work_ns.begin(), found.new_work_ns.end());
  return found;
}

// Is nothing launched after this call until its step ends, apart from copies of further results to the CPU?
bool is_at_end_of_step(const Facts& facts, const BlockingCalls& blocking, SliceId call) {
  const std::size_t step = steady_step_at(facts, facts.trace->start_ns(call));
  if (!facts.steps.marked || step == ~std::size_t{0}) return false;
  const auto next = std::upper_bound(blocking.new_work_ns.begin(), blocking.new_work_ns.end(),
                                     facts.trace->start_ns(call));
  return next == blocking.new_work_ns.end() || *next >= facts.steps.steps[step].cpu_end_ns;
}

// Another operator replaces one that asks for a size, so the GPU's waits for it end, too.
std::int64_t waits_in_sizers(const Facts& facts, const std::vector<SliceId>& sizers) {
  std::vector<analysis::Window> windows;
  for (const SliceId op : sizers)
    windows.push_back({facts.trace->start_ns(op), facts.trace->end_ns(op)});
  const LostTime lost = lost_in(facts, steady_parts(facts, joined(std::move(windows))));
  return std::max<std::int64_t>(0, lost.waiting_for_cpu_ns - lost.after_waits_ns);
}

Asker asker_of(const Trace& trace, const std::vector<SliceId>& uploads, SliceId slice) {
  return {trace.name(slice), std::binary_search(uploads.begin(), uploads.end(), slice)};
}

void add_waits(const Facts& facts, const BlockingCalls& blocking, HostSyncs& found) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  const TrackId launching = facts.main_thread;
  SliceId copy_op = kNone<SliceId>;  // of the call before, if it copies
  std::vector<Asker> ends_recording;
  for (const SliceId call : blocking.calls) {
    if (!inside(cpu_windows, trace.start_ns(call))) continue;
    const Asker asker = asker_of(trace, blocking.uploads, what_asks(facts, call));
    // A wait after the last launch ends the recording, or is the only thing in the last step.
    if (trace.start_ns(call) > blocking.last_launch_ns()) {
      ends_recording.push_back(asker);
      continue;
    }
    found.waiting_ops.push_back(outermost_operator(facts, call));
    if (asker.is_upload) found.upload_calls.push_back(call);
    if (trace.slices().track[raw(call)] == launching)
      found.launching_waits.push_back({{trace.start_ns(call), trace.end_ns(call)}, asker});
    SyncGroup& group = found.groups[asker];
    if (trace.kind(found.waiting_ops.back()) == CategoryKind::kCpuOp) {
      // An operator may wait several times.
      if (found.waiting_ops.size() < 2 ||
          found.waiting_ops.back() != found.waiting_ops[found.waiting_ops.size() - 2])
        group.ops_ns += outside_long_step(facts, trace.start_ns(found.waiting_ops.back()),
                                          trace.end_ns(found.waiting_ops.back()));
      group.is_of_operator = true;
    }
    // A copy and the synchronisation after it, in one operator or outside of all, are one wait.
    const SliceId op = facts.links.op_of[raw(call)];
    const bool copies = trace.api_call(call).does(api_effect::kCopies);
    const bool is_another = outermost_operator(facts, call) == call
                                ? copy_that_it_ends(facts, call) == kNone<SliceId>
                                : op != copy_op || copies;
    copy_op = copies ? op : kNone<SliceId>;
    group.calls += is_another ? 1 : 0;
    found.waits += is_another ? 1 : 0;
    if (is_another && is_at_end_of_step(facts, blocking, call)) ++group.at_end;
    if (is_another && asks_for_size(facts, call)) {
      ++group.asks_for_size;
      found.sizers.push_back(found.waiting_ops.back());
    }
    const std::int64_t own_ns = outside_long_step(facts, trace.start_ns(call), trace.end_ns(call));
    group.waited_ns += own_ns;
    found.waited_ns += own_ns;
    if (trace.dur_ns(call) > group.longest_ns) {
      group.longest_ns = trace.dur_ns(call);
      group.longest = call;
    }
  }
  // The last step waits, too, and loses nothing by it: its waits are counted, not their time.
  if (facts.steps.marked)
    for (auto& [asker, group] : found.groups)
      if (group.calls % facts.selection.steady.size() != 0 &&
          std::find(ends_recording.begin(), ends_recording.end(), asker) != ends_recording.end()) {
        ++group.calls;
        ++group.at_end;
        ++found.waits;
      }
  // An operator may wait several times.
  std::sort(found.waiting_ops.begin(), found.waiting_ops.end());
  found.waiting_ops.erase(std::unique(found.waiting_ops.begin(), found.waiting_ops.end()),
                          found.waiting_ops.end());
  for (const SliceId op : found.waiting_ops)
    found.waiting_ops_ns += outside_long_step(facts, trace.start_ns(op), trace.end_ns(op));
}

void add_idle_after_waits(const Facts& facts, const std::vector<SliceId>& uploads,
                          HostSyncs& found) {
  for (const IdlePart& part : facts.device().gaps.parts) {
    if (part.cause != IdleCause::kAfterSync || !inside(facts.steady_windows, part.start_ns))
      continue;
    const SliceId asker = what_asks(facts, part.blame);
    const auto group = found.groups.find(asker_of(*facts.trace, uploads, asker));
    if (group == found.groups.end()) continue;
    const std::int64_t elsewhere_ns = explained_elsewhere(facts, part);
    const std::int64_t lost_ns = part.end_ns - part.start_ns - elsewhere_ns;
    found.elsewhere_ns += elsewhere_ns;
    if (std::binary_search(uploads.begin(), uploads.end(), asker)) {
      found.after_uploads_ns += lost_ns;
      group->second.after_uploads_ns += lost_ns;
    }
    found.idle_ns += lost_ns;
    group->second.idle_ns += lost_ns;
  }
}

// Without the wait the CPU would be ahead by as long as it waited, and what it does next would run while the GPU works.
void add_lost_lead(const Facts& facts, HostSyncs& found) {
  constexpr std::int64_t kShortestLeadNs = 100'000;  // a shorter wait is the call itself
  if (facts.steady_windows.empty()) return;
  auto& waits = found.launching_waits;
  sort_rows(waits.begin(), waits.end(), [](const LaunchingWait& a, const LaunchingWait& b) {
    return a.window.start_ns < b.window.start_ns;
  });
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const std::int64_t until =
        i + 1 < waits.size() ? waits[i + 1].window.start_ns : facts.steady_windows.back().end_ns;
    if (waits[i].window.length_ns() < kShortestLeadNs || until <= waits[i].window.end_ns) continue;
    const std::int64_t late_ns = idle_within_steady(
        facts, {waits[i].window.end_ns, until})[static_cast<std::size_t>(IdleCause::kHostLate)];
    const std::int64_t lead_ns = std::min(late_ns, waits[i].window.length_ns());
    found.lead_ns += lead_ns;
    found.groups[waits[i].asker].lead_ns += lead_ns;
  }
}

// Between two waits all launches go to one stream, and after the wait to another: the waits keep the streams from running
// at the same time.
bool waits_for_streams_in_turn(const Facts& facts, const HostSyncs& found) {
  const Trace& trace = *facts.trace;
  std::vector<std::pair<std::int64_t, TrackId>> launches;  // when, to which stream
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId call = facts.links.launch_of[raw(work.slice)];
    if (call != kNone<SliceId> && work.work == analysis::WorkClass::kCompute)
      launches.emplace_back(trace.start_ns(call), trace.slices().track[raw(work.slice)]);
  }
  std::sort(launches.begin(), launches.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  TrackId before = kNone<TrackId>;
  std::uint64_t changes = 0, waits = 0;
  auto launch = launches.begin();
  for (const LaunchingWait& wait : found.launching_waits) {
    const auto first = launch;
    while (launch != launches.end() && launch->first < wait.window.start_ns) ++launch;
    if (wait.asker.name != found.ranked.front().first || first == launch) continue;
    ++waits;
    const TrackId stream = (launch - 1)->second;
    const bool is_one =
        std::all_of(first, launch, [&](const auto& each) { return each.second == stream; });
    if (is_one && before != kNone<TrackId> && stream != before) ++changes;
    before = stream;
  }
  return waits >= 2 && changes * 2 > waits;
}

std::int64_t lost_while_waiting(const Facts& facts, const std::vector<SliceId>& waiting_ops) {
  std::vector<analysis::Window> windows;
  for (const SliceId op : waiting_ops)
    windows.push_back({facts.trace->start_ns(op), facts.trace->end_ns(op)});
  return lost_in(facts, steady_parts(facts, joined(std::move(windows)))).total_ns();
}

}  // namespace

namespace {

// Copies to the GPU cost most, but three quarters of the waits or more are reads of single values, one by one, and a third of the
// cost or more is theirs: these come first, because pinned memory does not end them. `ranked`: the costliest first.
void put_many_reads_first(const Facts& facts,
                          std::vector<std::pair<std::string_view, SyncGroup>>& ranked,
                          std::uint64_t waits) {
  constexpr std::size_t kFewestReads = 16;  // of a step
  if (ranked.empty() || !ranked.front().second.is_of_uploads()) return;
  std::int64_t total_ns = 0;
  for (const auto& [op, group] : ranked) total_ns += group.cost_ns();
  const auto reads = std::find_if(ranked.begin(), ranked.end(), [&](const auto& each) {
    return (each.first == "aten::item" || each.first == "aten::is_nonzero") &&
           each.second.calls * 4 >= waits * 3 && each.second.cost_ns() > 0 &&
           each.second.cost_ns() * 3 >= total_ns &&
           each.second.calls >= kFewestReads * facts.selection.steady.size();
  });
  if (reads != ranked.end()) std::rotate(ranked.begin(), reads, reads + 1);
}

}  // namespace

Measurement<HostSyncs> measure_host_sync(const Facts& facts) {
  const BlockingCalls blocking = find_blocking_calls(facts);
  if (blocking.calls.empty() && !launches_by_known_calls(facts))
    return NotChecked{kNeedsKnownCalls};
  HostSyncs found;
  add_waits(facts, blocking, found);
  add_idle_after_waits(facts, blocking.uploads, found);
  add_lost_lead(facts, found);
  // Without the waits the CPU runs ahead: its work between them overlaps the device's work, and the
  // calls that asked for values are gone. At most the device's working time can overlap.
  const auto& wall = facts.wall.partition;
  found.busy_ns = wall.wall_ns - wall.idle_ns;
  found.copies_ns = found.idle_ns == 0 ? 0 : copies_launched_by(facts, found.waiting_ops);
  found.is_about_sizes = found.sizers.size() * 2 > found.waits;
  if (found.is_about_sizes) found.sizing_ns = waits_in_sizers(facts, found.sizers);
  std::int64_t lost_ns = 0;
  for (const auto& [asker, group] : found.groups) lost_ns += group.cost_ns();
  found.at_stake_ns =
      std::min(lost_ns, found.busy_ns + found.waiting_ops_ns) + found.copies_ns + found.sizing_ns;
  if (found.waits == 0 || share_of(found.at_stake_ns, wall.wall_ns) < 0.01) return Quiet{};
  for (const auto& [asker, group] : found.groups) found.ranked.emplace_back(asker.name, group);
  sort_rows(found.ranked.begin(), found.ranked.end(), [](const auto& a, const auto& b) {
    const std::int64_t of_a = a.second.cost_ns(), of_b = b.second.cost_ns();
    return of_a != of_b ? of_a > of_b : a.second.waited_ns > b.second.waited_ns;
  });
  put_many_reads_first(facts, found.ranked, found.waits);
  found.own_cost_ns = lost_while_waiting(facts, found.waiting_ops);
  found.is_for_streams_in_turn = waits_for_streams_in_turn(facts, found);
  return found;
}

}  // namespace lanescope::explain::rules

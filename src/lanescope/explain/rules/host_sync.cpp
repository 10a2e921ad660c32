// The program waits for the GPU in the middle of a step: .item(), .cpu(), synchronize(), copies.
#include <algorithm>
#include <iterator>
#include <map>

#include "lanescope/analysis/launching_calls.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sampled_code.h"

namespace lanescope::explain::rules {

using analysis::IdleCause;
using analysis::IdlePart;

namespace {

// The outermost aten operator around a call: aten::item rather than aten::_local_scalar_dense. If
// there is none, the call itself. In old traces the range of the step has the category of
// operators; it does not count.
SliceId outermost_operator(const Facts& facts, SliceId call) {
  SliceId found = call;
  for (SliceId up = facts.links.op_of[raw(call)]; up != kNone<SliceId>;
       up = facts.nesting.parent[raw(up)])
    if (facts.trace->kind(up) == CategoryKind::kCpuOp &&
        !facts.trace->name(up).starts_with("ProfilerStep"))
      found = up;
  return found;
}

// True: the operator brought data from the CPU to the GPU, so pinned memory removes the wait.
bool copies_to_device(const Facts& facts, SliceId call) {
  for (const SliceId work : facts.links.launched_by(call))
    if (facts.trace->name(work).starts_with("Memcpy HtoD")) return true;
  return false;
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
std::int64_t copies_asked_by(const Facts& facts, const std::vector<SliceId>& askers) {
  std::int64_t total = 0;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    if (work.work != analysis::WorkClass::kCopy || !inside(facts.steady_windows, work.start_ns))
      continue;
    if (!facts.trace->name(work.slice).starts_with("Memcpy DtoH") ||
        facts.trace->slice_args(work.slice).integer(ArgKey::kBytes).value_or(0) > kLargestReadBytes)
      continue;
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> ||
        !std::binary_search(askers.begin(), askers.end(), outermost_operator(facts, launch)))
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

// True: only the GPU knows the size of the operator's output, so the CPU must ask for it. Boolean
// masks find their elements with aten::nonzero.
bool asks_for_size(const Facts& facts, SliceId call) {
  const auto is_sized_by_data = [](std::string_view name) {
    return name == "aten::nonzero" || name == "aten::masked_select" || name == "aten::_unique2" ||
           name == "aten::unique_consecutive" || name == "aten::unique_dim" ||
           name == "aten::repeat_interleave" || name == "aten::bincount";
  };
  return ancestor_where(facts, facts.links.op_of[raw(call)], is_sized_by_data) != kNone<SliceId>;
}

// torch.linalg reads on the CPU whether each matrix could be factorised, unless the `_ex` form is called.
constexpr std::string_view kChecksMatrices = "aten::_linalg_check_errors";

struct CheckingCall {
  std::string_view op, form_without_check;
};
constexpr CheckingCall kCheckingCalls[] = {
    {"aten::cholesky", "torch.linalg.cholesky_ex"},
    {"aten::inverse", "torch.linalg.inv_ex"},
    {"aten::linalg_cholesky", "torch.linalg.cholesky_ex"},
    {"aten::linalg_inv", "torch.linalg.inv_ex"},
    {"aten::linalg_ldl_factor", "torch.linalg.ldl_factor_ex"},
    {"aten::linalg_lu_factor", "torch.linalg.lu_factor_ex"},
    {"aten::linalg_solve", "torch.linalg.solve_ex"},
};

// What asked for a wait, and whether it copied to the GPU: such a wait ends with pinned memory, a read of a value does not.
struct Asker {
  std::string_view name;
  bool is_upload = false;
  auto operator<=>(const Asker&) const = default;
};

struct SyncGroup {
  std::uint64_t calls = 0, asks_for_size = 0;
  std::uint64_t at_end = 0;  // of `calls`: after the last launch of its step
  std::int64_t waited_ns = 0, idle_ns = 0, longest_ns = -1;
  std::int64_t after_uploads_ns = 0;  // of idle_ns: after copies to the GPU
  std::int64_t lead_ns = 0;           // as HostSyncs
  SliceId longest = kNone<SliceId>;
  std::int64_t cost_ns() const { return idle_ns + lead_ns; }
  bool is_of_uploads() const { return after_uploads_ns * 4 > idle_ns * 3; }
};

// Calls that wait, and the operators and calls that copied to the GPU (sorted).
struct BlockingCalls {
  std::vector<SliceId> calls, uploads;
  std::vector<std::int64_t> launches_ns;  // when launches began, sorted
  std::int64_t last_launch_ns() const { return launches_ns.empty() ? 0 : launches_ns.back(); }
};

BlockingCalls find_blocking_calls(const Facts& facts) {
  const Trace& trace = *facts.trace;
  BlockingCalls found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_api_call(trace.kind(id))) continue;
    if (analysis::launches_work(trace, facts.links, id))
      found.launches_ns.push_back(trace.start_ns(id));
    if (copies_to_device(facts, id)) found.uploads.push_back(outermost_operator(facts, id));
    if (analysis::is_blocking_call(trace, facts.links, id) && !inside_convolution(facts, id))
      found.calls.push_back(id);
  }
  std::sort(found.uploads.begin(), found.uploads.end());
  std::sort(found.launches_ns.begin(), found.launches_ns.end());
  return found;
}

// Is nothing launched after this call until its step ends?
bool is_at_end_of_step(const Facts& facts, const BlockingCalls& blocking, SliceId call) {
  const std::size_t step = steady_step_at(facts, facts.trace->start_ns(call));
  if (!facts.steps.marked || step == ~std::size_t{0}) return false;
  const auto next = std::upper_bound(blocking.launches_ns.begin(), blocking.launches_ns.end(),
                                     facts.trace->start_ns(call));
  return next == blocking.launches_ns.end() || *next >= facts.steps.steps[step].cpu_end_ns;
}

// A wait of the thread that launches, and what asked for it.
struct LaunchingWait {
  analysis::Window window;
  Asker asker;
};

struct HostSyncs {
  std::vector<LaunchingWait> launching_waits;
  std::map<Asker, SyncGroup> groups;                           // by what asked for the wait
  std::vector<std::pair<std::string_view, SyncGroup>> ranked;  // the same, the worst first
  std::vector<SliceId> askers;                                 // sorted, each once
  bool is_for_streams_in_turn = false;  // the worst group: each wait is for another stream's work
  std::uint64_t waits = 0;
  std::int64_t waited_ns = 0, askers_ns = 0;  // of the CPU
  // Of the GPU: idle after a wait, the part of it after copies to the GPU, the part that other
  // rules explain (not in idle_ns).
  std::int64_t idle_ns = 0, after_uploads_ns = 0, elsewhere_ns = 0;
  // The GPU's later waits for the CPU, until the next wait of the CPU, that the lead which a wait takes away would have
  // covered: at most as long as the wait.
  std::int64_t lead_ns = 0;
  std::int64_t busy_ns = 0, copies_ns = 0, at_stake_ns = 0;
  // Operators that ask for a size, and the GPU's waits for the CPU while they run, without what
  // idle_ns has.
  std::vector<SliceId> sizers;
  std::int64_t sizing_ns = 0;
  bool is_about_sizes = false;  // most of the waits
};

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
  const TrackId launching = analysis::main_launch_thread(trace, facts.links);
  SliceId copy_op = kNone<SliceId>;  // of the call before, if it copies
  std::vector<Asker> ends_recording;
  for (const SliceId call : blocking.calls) {
    if (!inside(cpu_windows, trace.start_ns(call))) continue;
    const Asker asker = asker_of(trace, blocking.uploads, outermost_operator(facts, call));
    // A wait after the last launch ends the recording, or is the only thing in the last step.
    if (trace.start_ns(call) > blocking.last_launch_ns()) {
      ends_recording.push_back(asker);
      continue;
    }
    found.askers.push_back(outermost_operator(facts, call));
    if (trace.slices().track[raw(call)] == launching)
      found.launching_waits.push_back({{trace.start_ns(call), trace.end_ns(call)}, asker});
    SyncGroup& group = found.groups[asker];
    // A copy and the synchronisation after it, in one operator, are one wait.
    const SliceId op = facts.links.op_of[raw(call)];
    const bool copies = trace.api_call(call).does(api_effect::kCopies);
    const bool is_another = op == kNone<SliceId> || op != copy_op || copies;
    copy_op = copies ? op : kNone<SliceId>;
    group.calls += is_another ? 1 : 0;
    found.waits += is_another ? 1 : 0;
    if (is_another && is_at_end_of_step(facts, blocking, call)) ++group.at_end;
    if (is_another && asks_for_size(facts, call)) {
      ++group.asks_for_size;
      found.sizers.push_back(found.askers.back());
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
  std::sort(found.askers.begin(), found.askers.end());
  found.askers.erase(std::unique(found.askers.begin(), found.askers.end()), found.askers.end());
  for (const SliceId asker : found.askers)
    found.askers_ns += outside_long_step(facts, trace.start_ns(asker), trace.end_ns(asker));
}

void add_idle_after_waits(const Facts& facts, const std::vector<SliceId>& uploads,
                          HostSyncs& found) {
  for (const IdlePart& part : facts.device().gaps.parts) {
    if (part.cause != IdleCause::kAfterSync || !inside(facts.steady_windows, part.start_ns))
      continue;
    const SliceId asker = outermost_operator(facts, part.blame);
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
// beside each other.
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
  found.copies_ns = found.idle_ns == 0 ? 0 : copies_asked_by(facts, found.askers);
  found.is_about_sizes = found.sizers.size() * 2 > found.waits;
  if (found.is_about_sizes) found.sizing_ns = waits_in_sizers(facts, found.sizers);
  found.at_stake_ns = std::min(found.idle_ns + found.lead_ns, found.busy_ns + found.askers_ns) +
                      found.copies_ns + found.sizing_ns;
  if (found.waits == 0 || share_of(found.at_stake_ns, wall.wall_ns) < 0.01) return Quiet{};
  for (const auto& [asker, group] : found.groups) found.ranked.emplace_back(asker.name, group);
  sort_rows(found.ranked.begin(), found.ranked.end(), [](const auto& a, const auto& b) {
    const std::int64_t of_a = a.second.cost_ns(), of_b = b.second.cost_ns();
    return of_a != of_b ? of_a > of_b : a.second.waited_ns > b.second.waited_ns;
  });
  found.is_for_streams_in_turn = waits_for_streams_in_turn(facts, found);
  return found;
}

// Values that a loop reads one after the other.
bool reads_one_by_one(const Facts& facts, const std::pair<std::string_view, SyncGroup>& group) {
  constexpr std::size_t kFewestReads = 16;  // of a step
  return (group.first == "aten::item" || group.first == "aten::is_nonzero") &&
         group.second.calls >= kFewestReads * facts.selection.steady.size();
}

// The longest wait is for several values in one copy, as Tensor.tolist() and .cpu() make it.
bool reads_many_at_once(const Facts& facts, const SyncGroup& group) {
  constexpr std::int64_t kOneNumber = 16;  // bytes: a complex one is the largest
  const Trace& trace = *facts.trace;
  const SliceId op = outermost_operator(facts, group.longest);
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> || !trace.name(work.slice).starts_with("Memcpy DtoH") ||
        outermost_operator(facts, launch) != op)
      continue;
    if (trace.slice_args(work.slice).integer(ArgKey::kBytes).value_or(0) > kOneNumber) return true;
  }
  return false;
}

// Waits of which the longest is a check of a matrix.
bool is_check_of_matrix(const Facts& facts, const SyncGroup& group) {
  return ancestor_named(facts, facts.links.op_of[raw(group.longest)], kChecksMatrices) !=
         kNone<SliceId>;
}

// A factorisation that waits for its own kernels: no line of the program can leave that out.
bool is_own_wait(const Facts& facts, const SyncGroup& group) {
  const SliceId op = facts.links.op_of[raw(group.longest)];
  return op != kNone<SliceId> && (facts.trace->name(op).starts_with("aten::linalg_") ||
                                  facts.trace->name(op).starts_with("aten::_linalg_"));
}

void tell_own_wait(const Facts& facts, const SyncGroup& group, Finding& finding) {
  const std::string op(facts.trace->name(facts.links.op_of[raw(group.longest)]));
  finding.kind = FindingKind::kWhere;
  finding.try_next = {op +
                      " waits for its own kernels: call it less often (keep its result), or once "
                      "for a stack of matrices"};
}

void tell_checks(std::string_view op, Finding& finding) {
  const auto call = std::find_if(std::begin(kCheckingCalls), std::end(kCheckingCalls),
                                 [&](const CheckingCall& each) { return each.op == op; });
  finding.try_next = {
      "torch.linalg waits to see whether each matrix could be factorised: its _ex functions "
      "(cholesky_ex, inv_ex, solve_ex, lu_factor_ex) do not, and return `info`, which can be read "
      "once, at the end",
      "factorise matrices of one size in one batched call: one wait for all"};
  finding.action =
      call == std::end(kCheckingCalls)
          ? say("It waits to check its matrix: stack matrices, one batched call waits once for all")
          : say("Call {}: it does not wait to check; or one batched call for all matrices",
                {name(call->form_without_check)});
}

// "aten::index" with a mask in it, or the operator that counts by itself.
void tell_of_sizes(const Facts& facts, const HostSyncs& found, Finding& finding) {
  const Trace& trace = *facts.trace;
  std::map<std::string_view, std::uint64_t> callers;
  bool has_mask = false;
  for (const SliceId op : found.sizers) {
    ++callers[trace.name(op)];
    has_mask = has_mask || trace.name(op).starts_with("aten::index");
  }
  const auto most =
      std::max_element(callers.begin(), callers.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  finding.arithmetic.push_back(
      say(facts, "{} of the {} [wait|waits] ask for a size that only the GPU knows",
          {count(found.sizers.size()), count(found.waits)}));
  finding.try_next = {
      "keep sizes known ahead: torch.where(mask, new, old) instead of x[mask] = new, x * mask "
      "instead of x[mask], torch.topk or a padded buffer instead of nonzero()",
      "if the mask comes from the CPU, find its indices there and copy them once"};
  finding.brief = say(
      facts,
      has_mask ? "Boolean masks make the CPU wait for a size: {} (aten::nonzero), {} [time|times] "
                 "[in {} steps]"
               : "{} makes the CPU wait for the size of its output, {} [time|times] [in {} steps]",
      {name(most->first), count(most->second), count(facts.selection.steady.size())});
  finding.action =
      say("Use torch.where or a multiplication with the mask: sizes known ahead need no "
          "wait");
  if (most->first == "aten::bincount") {
    finding.action = say(
        "Count with scatter_add_ into zeros of a known size; of values that stay the same, once");
    finding.try_next = {
        "torch.bincount asks for the largest value, also with minlength: "
        "torch.zeros(n).scatter_add_(0, x, ones) knows its size and does not wait",
        "where the values are the same in each round, count once; where the CPU needs the counts, "
        "read all of them in one copy"};
  }
  if (most->first.starts_with("aten::_unique") || most->first.starts_with("aten::unique")) {
    finding.action =
        say("Sort and mark where values change (padded to a known size); or find them once, ahead");
    finding.try_next = {
        "the number of different values is only known on the GPU: sort, compare neighbours, and "
        "use a mask or torch.scatter with a known size; or find them where the batch is made"};
  }
  if (most->first != "aten::repeat_interleave") return;
  finding.action = say("Pass output_size=n, the sum of the counts, if it is known: no wait");
  finding.try_next = {
      "pass repeat_interleave(x, counts, output_size=n): the sum of the counts is mostly known "
      "where "
      "the batch is made"};
}

// The Python line that waits, if there are enough samples of its stack.
void tell_samples(const Facts& facts, const HostSyncs& found, Finding& finding) {
  std::vector<analysis::Window> windows;
  for (const LaunchingWait& wait : found.launching_waits) windows.push_back(wait.window);
  const auto code = find_sampled_code(
      *facts.trace, analysis::main_launch_thread(*facts.trace, facts.links), joined(windows));
  if (!code) return;
  Sentence line = say("samples of the launching thread's Python stack in these waits: ");
  append(line, describe(*code));
  finding.arithmetic.push_back(std::move(line));
}

// What the fix saves, what it does not, and why.
void tell_savings(const Facts& facts, const HostSyncs& found, Finding& finding) {
  finding.arithmetic.push_back(
      say(facts,
          std::string("without the waits the CPU works while the GPU does: this saves the idle "
                      "time after waits, "
                      "{} [per step]") +
              (found.lead_ns > 0 ? ", and what their lead would cover (below)" : "") +
              ", but at most the GPU's work ({}) + "
              "the operators that wait ({}); it also "
              "saves the copies that only bring a value to the CPU, {}; all waits together take {}",
          {ns(facts.per_step(found.idle_ns)), ns(facts.per_step(found.busy_ns)),
           ns(facts.per_step(found.askers_ns)), ns(facts.per_step(found.copies_ns)),
           ns(facts.per_step(found.waited_ns))}));
  if (found.sizing_ns > 0)
    finding.arithmetic.push_back(
        say(facts,
            "operators of a known size instead of those that ask for one also save the GPU's waits "
            "for the CPU while these run, {} [per step]",
            {ns(facts.per_step(found.sizing_ns))}));
  if (found.lead_ns > 0)
    finding.arithmetic.push_back(say(
        facts,
        "a wait also takes away the CPU's lead: of the GPU's later waits for the CPU, until the "
        "next such wait, {} [per step] would be covered, at most as long as the wait took",
        {ns(facts.per_step(found.lead_ns))}));
  if (found.elsewhere_ns > 0)
    finding.arithmetic.push_back(
        say(facts,
            "not counted: {} [per step] after a wait in which the CPU allocated or freed memory at "
            "the driver, or waited for a batch",
            {ns(facts.per_step(found.elsewhere_ns))}));
  tell_samples(facts, found, finding);
}

// The operators whose waits cost most.
void tell_costliest_operators(const Facts& facts, const HostSyncs& found, Finding& finding) {
  for (std::size_t i = 0; i < found.ranked.size() && i < 3; ++i) {
    if (i > 0 && found.ranked[i].second.cost_ns() == 0) break;  // it cost nothing
    Sentence text = say(facts, "{} x{}: waited {} [per step], GPU idle afterwards {}",
                        {name(found.ranked[i].first), count(found.ranked[i].second.calls),
                         ns(facts.per_step(found.ranked[i].second.waited_ns)),
                         ns(facts.per_step(found.ranked[i].second.idle_ns))});
    add_line(facts, found.ranked[i].second.longest, text);
    finding.evidence.push_back({found.ranked[i].second.longest, std::move(text)});
  }
}

void tell_what_to_try(const HostSyncs& found, Finding& finding) {
  if (found.after_uploads_ns * 4 > found.idle_ns)
    finding.try_next.push_back(
        "for copies to the GPU: use pinned memory (DataLoader(pin_memory=True), "
        "tensor.pin_memory()) and .to(device, non_blocking=True), which do not wait");
  if (found.after_uploads_ns * 4 < found.idle_ns * 3) {
    finding.try_next.push_back(
        "keep values on the GPU; read a loss or a metric every n steps instead of every step");
    finding.try_next.push_back(
        "move .item(), .cpu(), nonzero(), masks and prints of tensors after the last launch of the "
        "step");
  }
}

// A backward pass or an optimizer in the steady steps: a value may be a loss that is only reported. Elsewhere it is
// rather a result of the step.
bool trains(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (const SliceId id{i}; !is_device_work(trace.kind(id)) &&
                             (trace.name(id).starts_with(kEvaluateNode) ||
                              trace.name(id).starts_with("Optimizer.step")) &&
                             inside(windows, trace.start_ns(id)))
      return true;
  return false;
}

// What to do about the waits of one operator.
Sentence remedy_for(const Facts& facts, const std::pair<std::string_view, SyncGroup>& ranked) {
  const auto& [op, waits] = ranked;
  if (op == "aten::coalesce")
    return say("Coalesce a matrix that does not change once; of a small table: sparse=False");
  if (waits.is_of_uploads())
    return say("Use pinned memory and .to(device, non_blocking=True): such copies do not wait");
  const ApiCall call = find_api_call(op);  // where no operator is around it
  if (call.does(api_effect::kBlocks) && !call.does(api_effect::kCopies))
    return say("Remove torch.cuda.synchronize() from the loop");
  if (reads_one_by_one(facts, ranked))
    return say(
        "Do it for all values at once on the GPU (where, gather, scatter), or read all in one "
        "copy");
  if (waits.at_end == waits.calls)
    return trains(facts)
               ? say("If the next step does not need it: read it a step later (pinned memory, "
                     "non_blocking=True), or every n steps")
               : say("If the next step does not need it: read it a step later (pinned memory, "
                     "non_blocking=True)");
  if (reads_many_at_once(facts, waits))
    return say("If the CPU needs these values now, one copy is right; else read them a step later");
  return trains(facts)
             ? say("Keep the value on the GPU; if it is only reported, read it after the last "
                   "launch or "
                   "every n steps")
             : say("Keep the value on the GPU; read it after the last launch");
}

Finding tell_host_sync(const Facts& facts, const HostSyncs& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "The CPU waits for the GPU in the middle of the work: {} [wait|waits] [in "
                        "{} steps], after which the GPU was idle for {} [per step] ({}).",
                        {count(found.waits), count(facts.selection.steady.size()),
                         ns(facts.per_step(found.idle_ns)), ratio(found.idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(found.at_stake_ns);
  finding.at_stake_ratio = share_of(found.at_stake_ns, wall_ns);
  tell_savings(facts, found, finding);
  tell_costliest_operators(facts, found, finding);
  tell_what_to_try(found, finding);
  finding.confidence = facts.confidence();
  finding.sample_count = found.waits;
  finding.sample_noun = "wait";
  finding.brief = say(facts, "{} makes the CPU wait for the GPU, {} [time|times] [in {} steps]",
                      {name(found.ranked.front().first), count(found.ranked.front().second.calls),
                       count(facts.selection.steady.size())});
  if (found.is_about_sizes) tell_of_sizes(facts, found, finding);
  if (const SyncGroup& worst = found.ranked.front().second; worst.lead_ns > worst.idle_ns)
    append(finding.brief, say(", and later the GPU waits for what the CPU does next"));
  if (found.is_for_streams_in_turn) {
    finding.brief = say(
        facts, "{} waits for one stream before the next gets work, {} [time|times] [in {} steps]",
        {name(found.ranked.front().first), count(found.ranked.front().second.calls),
         count(facts.selection.steady.size())});
    finding.try_next.insert(
        finding.try_next.begin(),
        "launch on all streams first, then wait for all of them, or let the current stream wait "
        "(wait_stream, wait_event): their work can run at the same time");
    finding.explains.push_back({"graph-gaps", finding.at_stake_ns});
  }
  if (found.is_about_sizes) return finding;
  if (is_check_of_matrix(facts, found.ranked.front().second)) {
    tell_checks(found.ranked.front().first, finding);
    return finding;
  }
  if (is_own_wait(facts, found.ranked.front().second)) {
    tell_own_wait(facts, found.ranked.front().second, finding);
    return finding;
  }
  finding.action = found.is_for_streams_in_turn
                       ? say("Launch on all streams first, then wait for all: they can run beside "
                             "each other")
                       : remedy_for(facts, found.ranked.front());
  return finding;
}

}  // namespace

extern constinit const Rule host_sync_rule = {
    .id = "host-sync",
    .question = "does the program wait for the GPU in the middle of a step?",
    .meant_by = "cudadevicesynchronize cudastreamsynchronize item sync print logging",
    .order = 80,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_host_sync, tell_host_sync>,
    .is_regression = true,
    .fix = Fix::kRemoveSync,
};

}  // namespace lanescope::explain::rules

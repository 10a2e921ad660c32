// Copies between the GPU and memory that is not pinned: the CPU waits in them, and they are slower
// than the bus.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cpu_computing.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/loader_waits.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;
using analysis::WorkClass;

namespace {

// A value rather than data.
constexpr std::int64_t kLargestValueBytes = 4096;

bool is_value(const Trace& trace, SliceId work) {
  const auto bytes = trace.slice_args(work).integer(ArgKey::kBytes);
  return bytes && *bytes <= kLargestValueBytes;
}

bool is_upload(const Trace& trace, SliceId work) {
  return trace.name(work).find("Pageable ->") != std::string_view::npos;
}

// The program waits for a value that comes to the CPU: host-sync reports that, and pinned memory
// does not help. A value that goes to the GPU may be the labels of a batch, copied like the batch.
bool is_pageable_copy(const Trace& trace, SliceId work) {
  return trace.name(work).find("Pageable") != std::string_view::npos &&
         (is_upload(trace, work) || !is_value(trace, work));
}

struct CopyDirection {
  std::uint64_t copies = 0;
  std::int64_t bytes = 0, gpu_ns = 0, cpu_ns = 0;
  SliceId longest = kNone<SliceId>;
};

// Data that a step sends to the CPU and then gets back, such as activations that are offloaded. A copy to the GPU counts as its
// return if an earlier copy from the GPU in that step has the same size.
class ReturnedData {
 public:
  void add(std::size_t step, bool to_device, std::int64_t bytes) {
    if (step != step_) away_.clear();
    step_ = step;
    total_[to_device ? 1 : 0] += bytes;
    std::uint64_t& away = away_[bytes];
    if (!to_device) ++away;
    if (!to_device || away == 0) return;
    --away;
    ++copies_;
    bytes_ += bytes;
  }
  // Nine tenths of all bytes, in both directions. Less may be inputs and results of one size.
  bool is_nearly_all() const {
    return copies_ >= 4 && bytes_ * 10 >= std::max(total_[0], total_[1]) * 9;
  }

 private:
  std::size_t step_ = 0;
  std::map<std::int64_t, std::uint64_t> away_;  // by size
  std::int64_t total_[2] = {0, 0}, bytes_ = 0;
  std::uint64_t copies_ = 0;
};

// The steady step on the device that began last at this time.
std::size_t device_step_at(const Facts& facts, std::int64_t time_ns) {
  const auto& steady = facts.selection.steady;
  const auto after = std::partition_point(steady.begin(), steady.end(), [&](std::size_t step) {
    return facts.step_window(step).start_ns <= time_ns;
  });
  return static_cast<std::size_t>(after - steady.begin());
}

struct PageableCopy {
  CopyDirection to_device;
  CopyDirection from_device;
  std::int64_t exposed = 0;
  std::int64_t held_up = 0;
  std::int64_t held_by_reads = 0;   // the part of `held_up` after copies to the CPU
  std::int64_t after_waits_ns = 0;  // the GPU was idle after waits in the operators of such copies
  bool comes_back = false;          // nearly all of the data
  // Operators on the CPU work on most of the bytes right after they were read; null: they do not.
  const ComputingWithReads* computing = nullptr;
  std::vector<SliceId> copying = {};  // the operators that make these copies
  std::int64_t lost_ns() const {
    return exposed + held_up + (computing ? computing->waiting_ns : 0);
  }
};

// How much of a stretch lies in these windows, which are disjoint and in order.
std::int64_t overlap_ns(const HostStretch& stretch, const std::vector<Window>& windows) {
  auto each = std::partition_point(windows.begin(), windows.end(), [&](const Window& window) {
    return window.end_ns <= stretch.start_ns;
  });
  std::int64_t total_ns = 0;
  for (; each != windows.end() && each->start_ns < stretch.end_ns; ++each)
    total_ns += std::min(each->end_ns, stretch.end_ns) - std::max(each->start_ns, stretch.start_ns);
  return total_ns;
}

// Bytes of pageable copies to the CPU whose next operator of the thread computes on the CPU.
std::int64_t bytes_for_cpu_operators(const Facts& facts) {
  std::int64_t total_bytes = 0;
  for (const LaunchedWork* read : computing_with_reads(facts).reads)
    if (is_pageable_copy(*facts.trace, read->work->slice))
      total_bytes += bytes_of(facts, read->work->slice);
  return total_bytes;
}

std::optional<PageableCopy> measure_pageable_copy(const Facts& facts) {
  const Trace& trace = *facts.trace;
  CopyDirection to_device, from_device;
  bool any_data = false;
  ReturnedData returned;
  std::vector<Window> intervals;  // disjoint
  std::set<SliceId> operators;    // that make such copies
  for (const DeviceWork& work : facts.device().timeline.work) {
    if (work.work != WorkClass::kCopy || !inside(facts.steady_windows, work.start_ns)) continue;
    if (!is_pageable_copy(trace, work.slice)) continue;
    any_data = any_data || !is_value(trace, work.slice);
    CopyDirection& way = is_upload(trace, work.slice) ? to_device : from_device;
    ++way.copies;
    const std::int64_t size = trace.slice_args(work.slice).integer(ArgKey::kBytes).value_or(0);
    way.bytes += size;
    returned.add(device_step_at(facts, work.start_ns), &way == &to_device, size);
    way.gpu_ns += work.end_ns - work.start_ns;
    if (const SliceId launch = facts.links.launch_of[raw(work.slice)]; launch != kNone<SliceId>) {
      way.cpu_ns += trace.dur_ns(launch);
      if (const SliceId op = outermost_operator_of(facts, launch); op != kNone<SliceId>)
        operators.insert(op);
    }
    if (way.longest == kNone<SliceId> || trace.dur_ns(work.slice) > trace.dur_ns(way.longest))
      way.longest = work.slice;
    if (!intervals.empty() && work.start_ns < intervals.back().end_ns)
      intervals.back().end_ns = std::max(intervals.back().end_ns, work.end_ns);
    else
      intervals.push_back({work.start_ns, work.end_ns});
  }
  std::int64_t exposed = 0;
  for (const Window& each : intervals)
    exposed += facts.device().timeline.time_within(
        each.start_ns, each.end_ns)[static_cast<std::size_t>(WorkClass::kCopy)];
  // The CPU is in the copy's call, or has returned from it to an empty queue.
  const auto is_pageable_call = [&](SliceId call) {
    for (const SliceId work : facts.links.launched_by(call))
      if (is_pageable_copy(trace, work)) return true;
    return false;
  };
  const ComputingWithReads* computing =
      has_launches(facts) &&
              bytes_for_cpu_operators(facts) * 2 > to_device.bytes + from_device.bytes
          ? &computing_with_reads(facts)
          : nullptr;
  std::int64_t held_up = 0, held_by_reads = 0, after_waits_ns = 0;
  const auto reads = [&](SliceId call) {
    for (const SliceId work : facts.links.launched_by(call))
      if (is_pageable_copy(trace, work) && !is_upload(trace, work)) return true;
    return false;
  };
  analysis::HostReader host(*facts.host);
  for (const HostStretch& stretch : host_late_stretches(facts)) {
    if (stretch.blame != kNone<SliceId> &&
        (is_pageable_call(stretch.blame) ||
         operators.contains(outermost_operator_of(facts, stretch.blame))))
      after_waits_ns += stretch.end_ns - stretch.start_ns;
    // If the copy did not wait, the CPU could go on earlier, by the time of the call. Operators that work on what was read count whole.
    if (stretch.blame != kNone<SliceId> && is_pageable_call(stretch.blame)) {
      const std::int64_t computing_ns = computing ? overlap_ns(stretch, computing->windows) : 0;
      const std::int64_t part_ns =
          std::min(stretch.end_ns - stretch.start_ns - computing_ns, trace.dur_ns(stretch.blame));
      held_up += part_ns;
      held_by_reads += reads(stretch.blame) ? part_ns : 0;
      continue;
    }
    host.visit(
        stretch.thread, stretch.start_ns, stretch.end_ns,
        [&](SliceId slice, std::int64_t from, std::int64_t to) {
          if (slice != kNone<SliceId> && is_api_call(trace.kind(slice)) && is_pageable_call(slice))
            held_up += to - from;
        });
  }
  PageableCopy found{to_device,
                     from_device,
                     exposed,
                     held_up,
                     held_by_reads,
                     after_waits_ns,
                     returned.is_nearly_all(),
                     computing,
                     {operators.begin(), operators.end()}};
  if (!any_data || share_of(found.lost_ns(), facts.steady_wall_ns()) < 0.01) return std::nullopt;
  return found;
}

// Operators on the CPU compute with what was read: they and the copies are one fault, and both go with it.
void tell_input_of_cpu(const Facts& facts, const PageableCopy& measured, Finding& finding) {
  const ComputingWithReads& computing = *measured.computing;
  const Value longest = name(facts.trace->name(computing.longest));
  const bool is_alone = std::all_of(computing.ops.begin(), computing.ops.end(), [&](SliceId op) {
    return facts.trace->name(op) == facts.trace->name(computing.longest);
  });
  const std::int64_t lost = measured.lost_ns();
  finding.brief =
      say(facts,
          is_alone ? "{} go to the CPU [per step], where {} computes with them"
                   : "{} go to the CPU [per step], where {} and others compute with them",
          {bytes(facts.per_step(measured.from_device.bytes)), longest});
  finding.verdict = say(
      facts,
      "{} go to the CPU [per step] in {} [copy|copies], and operators there compute with them "
      "({} [call|calls], the longest {}): both cost {} [per step] ({}) in which the GPU computes "
      "nothing.",
      {bytes(facts.per_step(measured.from_device.bytes)),
       count(a_step(facts, measured.from_device.copies)),
       count(a_step(facts, computing.ops.size())), longest, ns(facts.per_step(lost)),
       ratio(lost, facts.steady_wall_ns())});
  finding.arithmetic.push_back(
      say(facts,
          "{} [per step] in which the GPU waits for operators of the thread that copied, after the "
          "copy and before the next launch: they work on what was read, as far as a trace shows",
          {ns(facts.per_step(computing.waiting_ns))}));
  finding.evidence.push_back(
      called_at(facts, computing.longest, say("the longest operator on the CPU")));
  finding.action = say("Compute on the GPU, and copy the end result only");
  finding.try_next = {
      "operators on the CPU work on what was just read: compute on the GPU, and copy the end "
      "result only (for windows or tiles: add them up in a tensor on the GPU)",
      "if a part must stay on the CPU: reduce on the GPU first (argmax, sum, top-k), so that less "
      "is copied and computed"};
  finding.spared_calls = measured.copying;
  finding.spared_calls.insert(finding.spared_calls.end(), computing.ops.begin(),
                              computing.ops.end());
  finding.gain_is_bound = true;
  finding.explains.push_back({"cpu-operators", finding.at_stake_ns});
}

// The CPU waits for the copy of results, then prepares what follows.
void tell_waits_for_results(const Facts& facts, const CopyDirection& from_device,
                            Finding& finding) {
  finding.brief = say(facts, "The CPU waits for results ({} [per step]), then the GPU for the CPU",
                      {bytes(facts.per_step(from_device.bytes))});
  finding.action =
      say("Prepare the next batch while the GPU works: in a thread or DataLoader workers, or "
          "before you read the results");
  finding.try_next = {
      "the CPU waits in the copy of the results until the GPU has computed them, and only then "
      "prepares and launches what follows: launch the next step first and read the results a "
      "step later (pinned memory, non_blocking=True), or prepare its batch in another thread"};
}

// Most of what goes to the CPU comes back in the same step.
void tell_returning_copies(const Facts& facts, const PageableCopy& measured, Finding& finding) {
  finding.try_next = {
      "keep the data on the GPU: nearly all of it comes back in the same step, in copies of the "
      "same sizes, as with torch.autograd.graph.save_on_cpu",
      "where memory is short, activation checkpointing computes it again, which takes less time "
      "than these copies in most models"};
  finding.brief =
      say(facts, "{} go to the CPU and come back [per step], {} [copy|copies]",
          {bytes(facts.per_step(measured.from_device.bytes)),
           count(a_step(facts, measured.to_device.copies + measured.from_device.copies))});
  finding.action =
      say("Keep them on the GPU (save_on_cpu?); if memory is short, checkpoint activations");
}

Finding tell_pageable_copy(const Facts& facts, const PageableCopy& measured) {
  const auto& [to_device, from_device, exposed, held_up, held_by_reads, after_waits_ns, comes_back,
               computing, copying] = measured;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const std::int64_t lost = measured.lost_ns();
  Finding finding;
  finding.verdict = say(
      facts,
      "Copies through pageable memory: {} [copy|copies] and {} [per step], cost {} [per step] ({}) "
      "in which the GPU computes nothing.",
      {count(a_step(facts, to_device.copies + from_device.copies)),
       bytes(facts.per_step(to_device.bytes + from_device.bytes)), ns(facts.per_step(lost)),
       ratio(lost, wall_ns)});
  finding.at_stake_ns = facts.per_step(lost);
  finding.at_stake_ratio = share_of(lost, wall_ns);
  finding.arithmetic.push_back(
      say(facts,
          "{} [per step] in which only these copies ran, {} in which the GPU was idle because the "
          "CPU was in the call of such a copy or had just returned from one",
          {ns(facts.per_step(exposed)), ns(facts.per_step(held_up))}));
  const auto describe_way = [&](const CopyDirection& way, const char* direction) {
    if (way.copies == 0) return;
    finding.evidence.push_back(
        {way.longest,
         say(facts, "{}: {} [copy|copies], {}, {} on the GPU, {} of CPU time in the calls",
             {text(direction), count(way.copies), bytes(way.bytes), ns(way.gpu_ns),
              ns(way.cpu_ns)})});
  };
  describe_way(to_device, "host to device");
  describe_way(from_device, "device to host");
  finding.try_next = {
      "use DataLoader(pin_memory=True) or tensor.pin_memory() for inputs, then .to(device, "
      "non_blocking=True)",
      "copy results into a pinned buffer with non_blocking=True and read it a step later"};
  finding.confidence = facts.confidence();
  finding.sample_count = to_device.copies + from_device.copies;
  finding.sample_noun = "copy";
  finding.explains.push_back({"exposed-copy", facts.per_step(exposed)});
  // The same copies: their waits are no second finding.
  finding.explains.push_back({"host-sync", facts.per_step(std::min(after_waits_ns, lost))});
  finding.brief =
      say(facts, "{} [copy|copies] [per step] [goes|go] through memory that is not pinned ({})",
          {count(a_step(facts, to_device.copies + from_device.copies)),
           bytes(facts.per_step(to_device.bytes + from_device.bytes))});
  if (comes_back) {
    tell_returning_copies(facts, measured, finding);
    return finding;
  }
  if (computing) {
    tell_input_of_cpu(facts, measured, finding);
    return finding;
  }
  // Inputs in pinned memory would not change that the CPU waits for results before it prepares them.
  if (to_device.copies > 0 && held_by_reads * 2 > lost) {
    tell_waits_for_results(facts, from_device, finding);
    return finding;
  }
  finding.action =
      to_device.copies > 0
          ? (has_loader(facts)
                 ? say("Use DataLoader(pin_memory=True), then .to(device, non_blocking=True)")
                 : say("Copy from a pinned buffer kept across steps (pin_memory()), then "
                       ".to(device, non_blocking=True)"))
          : say("Copy results into pinned memory with non_blocking=True; read them a step later");
  return finding;
}

}  // namespace

extern constinit const Rule pageable_copy_rule = {
    .id = "pageable-copy",
    .question = "do copies go through memory that is not pinned?",
    .meant_by = "pin copy",
    .order = 90,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_pageable_copy, tell_pageable_copy>,
    .is_regression = true,
    .fix = Fix::kPin,
    .covered_from = 0.6,
};

}  // namespace lanescope::explain::rules

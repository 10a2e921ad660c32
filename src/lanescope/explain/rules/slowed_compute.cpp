// Kernels take longer while communication runs at the same time.
#include <map>
#include <utility>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/kernel_groups.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

struct KernelTimes {
  std::vector<std::int64_t> alone, overlapped;
  SliceId slowest = kNone<SliceId>;
};

struct SlowedKernel {
  std::int64_t usual_ns, overlapped_ns, extra_ns;
  std::size_t calls = 0;
  SliceId slowest = kNone<SliceId>;
};

struct SlowedCompute {
  std::int64_t usual_ns = 0;
  std::int64_t overlapped_ns = 0;
  std::int64_t hidden_ns = 0;
  std::uint64_t calls = 0;
  std::vector<SlowedKernel> rows;
};

Measurement<SlowedCompute> measure_slowed_compute(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& timeline = facts.device().timeline;
  analysis::IntervalUnion communication;
  for (const DeviceWork& work : timeline.work)
    if (work.work == WorkClass::kCommunication) communication.add(work.start_ns, work.end_ns);
  communication.finish();
  if (communication.length_ns() == 0) return Quiet{};
  std::map<analysis::KernelKey, KernelTimes> groups;
  bool has_shapes = false;
  for (const DeviceWork& work : timeline.work) {
    const std::int64_t length = work.end_ns - work.start_ns;
    if (work.work != WorkClass::kCompute || length <= 0) continue;
    const analysis::KernelKey key = analysis::kernel_key(trace, facts.links, work.slice);
    if (!key.has_shapes()) continue;  // calls of one grid may differ in inner size
    has_shapes = true;
    KernelTimes& group = groups[key];
    const std::int64_t shared = communication.length_within_ns(work.start_ns, work.end_ns);
    if (shared == 0) {
      group.alone.push_back(length);  // of any step: few run alone where overlap is good
    } else if (shared * 2 > length && inside(facts.steady_windows, work.start_ns)) {
      group.overlapped.push_back(length);
      if (group.slowest == kNone<SliceId> || length > trace.dur_ns(group.slowest))
        group.slowest = work.slice;
    }
  }
  if (!has_shapes)
    return NotChecked{"input shapes, to recognise equal calls of a kernel (record_shapes=True)"};
  // By how much calls during communication exceed the median of calls alone. Calls that are quicker
  // reduce the sum.
  std::vector<SlowedKernel> rows;
  std::int64_t usual_ns = 0, overlapped_ns = 0;
  std::uint64_t calls = 0;
  for (auto& [key, group] : groups) {
    if (group.alone.size() < 2 || group.overlapped.size() < 3) continue;
    const std::int64_t usual = analysis::lower_median(group.alone);
    SlowedKernel row{usual, analysis::lower_median(group.overlapped), 0, group.overlapped.size(),
                     group.slowest};
    for (const std::int64_t length : group.overlapped) {
      row.extra_ns += length - usual;
      usual_ns += usual;
      overlapped_ns += length;
      ++calls;
    }
    rows.push_back(row);
  }
  const std::int64_t extra_ns = overlapped_ns - usual_ns;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (wide(overlapped_ns) * 100 <= wide(usual_ns) * 115 || share_of(extra_ns, wall_ns) < 0.01)
    return Quiet{};
  std::int64_t hidden_ns = 0;
  for (const auto& window : facts.steady_windows)
    hidden_ns += communication.length_within_ns(window.start_ns, window.end_ns);
  hidden_ns -= facts.wall.partition.exposed_communication_ns;
  sort_rows(rows.begin(), rows.end(), [&](const SlowedKernel& a, const SlowedKernel& b) {
    return a.extra_ns != b.extra_ns ? a.extra_ns > b.extra_ns
                                    : trace.name(a.slowest) < trace.name(b.slowest);
  });
  return SlowedCompute{usual_ns, overlapped_ns, hidden_ns, calls, std::move(rows)};
}

Finding tell_slowed_compute(const Facts& facts, const SlowedCompute& measured) {
  const Trace& trace = *facts.trace;
  const auto& [usual_ns, overlapped_ns, hidden_ns, calls, rows] = measured;
  const std::int64_t extra_ns = overlapped_ns - usual_ns;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "Kernels take {} times as long while communication runs at the same time: "
                        "{} more [per step], and the overlap hides {} of communication.",
                        {factor(overlapped_ns, usual_ns), ns(facts.per_step(extra_ns)),
                         ns(facts.per_step(hidden_ns))});
  finding.at_stake_ns = facts.per_step(extra_ns);
  finding.at_stake_ratio = share_of(extra_ns, wall_ns);
  finding.arithmetic.push_back(
      say(facts,
          "compared are equal kernels (name, grid, block, input shapes): {} [call|calls] "
          "with communication during more than half of their time, against the median of "
          "two or more calls without any",
          {count(calls)}));
  finding.arithmetic.push_back(say(hidden_ns > extra_ns
                                       ? "overlap still wins: without it the step would be longer"
                                       : "overlap does not pay here: it costs what it hides"));
  for (std::size_t i = 0; i < rows.size() && i < 3 && wide(rows[i].extra_ns) * 20 > extra_ns; ++i)
    finding.evidence.push_back(
        {rows[i].slowest, say(facts, "{}: {} with communication, {} alone; {} [call|calls]",
                              {kernel(trace.name(rows[i].slowest)), ns(rows[i].overlapped_ns),
                               ns(rows[i].usual_ns), count(rows[i].calls)})});
  finding.try_next = {
      "give communication fewer blocks (NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS), if the links allow",
      "do not count all of an exposed collective as time to win by overlap"};
  finding.confidence = calls >= 20 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = calls;
  finding.sample_noun = "call";
  finding.action = say("Give communication fewer blocks, if the links allow: NCCL_MAX_CTAS");
  finding.brief = say("Kernels take {} times as long while communication runs",
                      {factor(overlapped_ns, usual_ns)});
  return finding;
}

}  // namespace

extern constinit const Rule slowed_compute_rule = {
    .id = "slowed-compute",
    .question = "does communication slow the kernels that run at the same time?",
    .order = 430,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_slowed_compute, tell_slowed_compute>,
};

}  // namespace lanescope::explain::rules

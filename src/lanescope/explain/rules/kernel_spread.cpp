// The same kernel on the same shapes takes different times.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "lanescope/analysis/kernel_groups.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

constexpr std::size_t kFewest = 20;  // 5 samples are no distribution

// Finds out whether work of another stream ran at the same time. Keeps, for each place in the order
// of starts, the latest end so far, and the latest end on any other stream.
class OtherWork {
 public:
  OtherWork(const Trace& trace, const std::vector<DeviceWork>& works)
      : trace_(trace), works_(works) {
    Latest latest;
    for (const DeviceWork& work : works) {
      const TrackId track = trace.slices().track[raw(work.slice)];
      if (track == latest.track || latest.track == kNone<TrackId>) {
        latest.track = track;
        latest.end_ns = std::max(latest.end_ns, work.end_ns);
      } else if (work.end_ns > latest.end_ns) {
        latest = {track, work.end_ns, latest.end_ns};
      } else {
        latest.other_end_ns = std::max(latest.other_end_ns, work.end_ns);
      }
      latest_.push_back(latest);
    }
  }

  bool any_overlaps(const DeviceWork& work) const {
    const auto after = std::lower_bound(
        works_.begin(), works_.end(), work.end_ns,
        [](const DeviceWork& each, std::int64_t time) { return each.start_ns < time; });
    if (after == works_.begin()) return false;
    const Latest& latest = latest_[static_cast<std::size_t>(after - works_.begin()) - 1];
    const bool own = latest.track == trace_.slices().track[raw(work.slice)];
    return (own ? latest.other_end_ns : latest.end_ns) > work.start_ns;
  }

 private:
  struct Latest {
    TrackId track = kNone<TrackId>;
    std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
    std::int64_t other_end_ns = std::numeric_limits<std::int64_t>::min();
  };
  const Trace& trace_;
  const std::vector<DeviceWork>& works_;
  std::vector<Latest> latest_;
};

// True: the operator adds to places that its input names, so its time depends on how many of these
// are equal.
bool adds_at_indices(const Facts& facts, SliceId kernel) {
  const SliceId op = facts.links.op_of[raw(kernel)];
  if (op == kNone<SliceId>) return false;
  for (const char* name :
       {"aten::index_add", "aten::scatter_add", "aten::scatter_reduce", "aten::index_reduce",
        "aten::_index_put_impl_", "aten::index_put", "aten::bincount", "aten::histc"})
    if (facts.trace->name(op).starts_with(name)) return true;
  return false;
}

// How equal shapes may still be read and written: a column of a matrix is strided, and mul_ writes
// where it reads. The operator's name and its inputs' strides.
using CallForm = std::pair<std::uint32_t, std::uint32_t>;

CallForm form_of(const Trace& trace, SliceId op) {
  if (op == kNone<SliceId>) return {};
  const auto strides = trace.slice_args(op).text(ArgKey::kInputStrides);
  return {raw(trace.slices().name[raw(op)]), raw(strides.value_or(kNone<StringId>))};
}

struct SpreadTimes {
  std::int64_t median_ns = 0, p95_ns = 0, excess_ns = 0;
};

struct KernelSpread {
  SpreadTimes times;
  std::vector<DeviceWork> works;
  std::uint64_t slow = 0;
  std::uint64_t slow_overlapped = 0;
  std::uint64_t usual_overlapped = 0;
  bool contention = false;
};

Measurement<KernelSpread> measure_kernel_spread(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& timeline = facts.device().timeline;
  // Passes of one call, such as a sort's over digits, read different data: each is compared with its like.
  std::map<std::tuple<analysis::KernelKey, CallForm, std::uint64_t>, std::vector<DeviceWork>>
      groups;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> passes;  // by operator and name
  std::int64_t all_ns = 0;
  bool has_shapes = false;
  for (const DeviceWork& work : timeline.work) {
    if (work.work != WorkClass::kCompute || !inside(facts.steady_windows, work.start_ns)) continue;
    const analysis::KernelKey key = analysis::kernel_key(trace, facts.links, work.slice);
    all_ns += work.end_ns - work.start_ns;
    if (!key.has_shapes()) continue;  // calls of one grid may differ in inner size
    has_shapes = true;
    const SliceId op = facts.links.op_of[raw(work.slice)];
    const std::uint64_t pass =
        op == kNone<SliceId> ? 0 : passes[{raw(op), raw(trace.slices().name[raw(work.slice)])}]++;
    groups[{key, form_of(trace, op), pass}].push_back(work);
  }
  if (all_ns > 0 && !has_shapes)
    return NotChecked{"input shapes, to recognise equal calls of a kernel (record_shapes=True)"};

  SpreadTimes worst;
  const std::vector<DeviceWork>* worst_works = nullptr;
  for (auto& [equal, works] : groups) {
    if (works.size() < kFewest) continue;
    sort_rows(works.begin(), works.end(), [](const DeviceWork& a, const DeviceWork& b) {
      const std::int64_t left = a.end_ns - a.start_ns, right = b.end_ns - b.start_ns;
      return left != right ? left < right : a.start_ns < b.start_ns;
    });
    const auto length = [&](std::size_t i) { return works[i].end_ns - works[i].start_ns; };
    SpreadTimes spread;
    spread.median_ns = length((works.size() - 1) / 2);
    spread.p95_ns = length((works.size() - 1) * 95 / 100);
    for (std::size_t i = works.size() / 2; i < works.size(); ++i)
      spread.excess_ns += length(i) - spread.median_ns;
    if (wide(spread.p95_ns) * 10 < wide(spread.median_ns) * 13) continue;
    if (!worst_works || spread.excess_ns > worst.excess_ns ||
        (spread.excess_ns == worst.excess_ns &&
         trace.name(works[0].slice) < trace.name(worst_works->front().slice))) {
      worst = spread;
      worst_works = &works;
    }
  }
  if (!worst_works || share_of(worst.excess_ns, facts.wall.partition.wall_ns) < 0.02)
    return Quiet{};

  // The slow calls that ran at the same time as communication or a copy.
  const auto& works = *worst_works;
  const OtherWork others(trace, timeline.work);
  std::uint64_t slow = 0, slow_overlapped = 0, usual_overlapped = 0;
  for (const DeviceWork& work : works) {
    const bool is_slow = wide(work.end_ns - work.start_ns) * 10 > wide(worst.median_ns) * 13;
    const bool overlaps = others.any_overlaps(work);
    slow += is_slow ? 1 : 0;
    (is_slow ? slow_overlapped : usual_overlapped) += overlaps ? 1 : 0;
  }
  const std::uint64_t usual = works.size() - slow;
  const bool contention =
      slow > 0 && slow_overlapped * 10 >= slow * 8 && usual_overlapped * 2 < usual;
  return KernelSpread{worst, works, slow, slow_overlapped, usual_overlapped, contention};
}

Finding tell_kernel_spread(const Facts& facts, const KernelSpread& measured) {
  const Trace& trace = *facts.trace;
  const auto& [times, works, slow, slow_overlapped, usual_overlapped, contention] = measured;
  const std::uint64_t usual = works.size() - slow;
  Finding finding;
  finding.verdict = say(
      "The same kernel takes different times: {} of {} calls of {} are more than 1.3 times the "
      "median of {}; {}.",
      {count(slow), count(works.size()), kernel(trace.name(works[0].slice)), ns(times.median_ns),
       text(contention ? "the slow ones ran at the same time as other work on the GPU"
                       : "the trace does not show the reason")});
  finding.at_stake_ns = facts.per_step(times.excess_ns);
  finding.at_stake_ratio = share_of(times.excess_ns, facts.wall.partition.wall_ns);
  finding.arithmetic.push_back(
      say("grouped by name, grid, block, operator, input shapes and strides, and place in the "
          "operator: shortest {}, median {}, 95th percentile {}, longest {}",
          {ns(works.front().end_ns - works.front().start_ns), ns(times.median_ns), ns(times.p95_ns),
           ns(works.back().end_ns - works.back().start_ns)}));
  finding.arithmetic.push_back(
      say("{} of the {} slow calls and {} of the {} others ran at the same time as other work",
          {count(slow_overlapped), count(slow), count(usual_overlapped), count(usual)}));
  finding.evidence.push_back({works.back().slice, say("the longest call")});
  finding.evidence.push_back({works[(works.size() - 1) / 2].slice, say("a median call")});
  if (!contention && adds_at_indices(facts, works.front().slice))
    finding.try_next.push_back(
        "count how often the most frequent index occurs in a slow call (it is often padding): "
        "additions to the same index wait for each other");
  finding.try_next.push_back(
      contention ? "compare what the overlap hides with the time that it adds to this kernel"
                 : "watch the GPU's clocks during the run (nvidia-smi dmon)");
  finding.confidence = works.size() >= 100 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = works.size();
  finding.sample_noun = "call";
  finding.action = contention
                       ? say("Check that the overlap pays: other work slows these calls down")
                   : !finding.try_next.empty() && finding.try_next.size() > 1
                       ? say("Look for one index that occurs often, such as that of padding")
                       : say("Watch the GPU's clocks during the run: nvidia-smi dmon");
  finding.brief =
      say("Equal calls of {} take different times", {kernel(trace.name(works[0].slice))});
  return finding;
}

}  // namespace

extern constinit const Rule kernel_spread_rule = {
    .id = "kernel-spread",
    .question = "why does the same kernel take different times?",
    .order = 150,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_kernel_spread, tell_kernel_spread>,
};

}  // namespace lanescope::explain::rules

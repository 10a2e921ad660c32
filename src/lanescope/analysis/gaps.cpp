// Problem: "the GPU was idle" does not say why. Idea: take the launch L of the work that ended the
// gap [e, s). Until L returned, the CPU was late; the rest is launch latency. If the CPU was in a
// waiting call when the device ran empty at e, the wait is why the queue was empty. Example: gap
// [100, 160), L [130, 140), kernel at 160 -> host late [100, 140), latency [140, 160).
#include "lanescope/analysis/gaps.h"
#include "lanescope/analysis/launching_calls.h"
#include "lanescope/base/sort_rows.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace lanescope::analysis {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

class GapFinder {
 public:
  GapFinder(const Trace& trace, const LaunchLinks& links, const DeviceTimeline& timeline)
      : trace_(trace), links_(links), timeline_(timeline) {
    main_thread_ = main_launch_thread(trace, links);
    collect();
  }

  Gaps run(const Window& range) {
    std::int64_t idle_from = range.start_ns;
    bool worked = false;
    for (const BusySegment& segment : timeline_.busy) {
      if (segment.start_ns >= range.end_ns) break;
      if (segment.start_ns > idle_from) add_gap(idle_from, segment.start_ns, worked, true);
      idle_from = std::max(idle_from, segment.end_ns);
      worked = true;
    }
    if (range.end_ns > idle_from) add_gap(idle_from, range.end_ns, worked, more_work_at(range));
    return std::move(result_);
  }

 private:
  void collect() {
    blocking_.resize(trace_.tracks().size());
    std::vector<Window> overheads;
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      const SliceId id{i};
      if (is_blocking_call(trace_, links_, id))
        blocking_[raw(trace_.slices().track[i])].push_back(id);
      else if (is_profiler_overhead(trace_, id))
        overheads.push_back({trace_.start_ns(id), trace_.end_ns(id)});
    }
    sort_rows(overheads.begin(), overheads.end(), [](const Window& a, const Window& b) {
      return std::tie(a.start_ns, a.end_ns) < std::tie(b.start_ns, b.end_ns);
    });
    for (const Window& each : overheads) {
      if (!overheads_.empty() && each.start_ns <= overheads_.back().end_ns)
        overheads_.back().end_ns = std::max(overheads_.back().end_ns, each.end_ns);
      else
        overheads_.push_back(each);
    }
  }

  bool more_work_at(const Window& range) const {
    return std::any_of(timeline_.busy.begin(), timeline_.busy.end(),
                       [&](const BusySegment& each) { return each.start_ns >= range.end_ns; });
  }

  // The work that ended the gap; if several began together, the one launched first.
  SliceId work_at(std::int64_t start_ns) const {
    auto each = std::lower_bound(
        timeline_.work.begin(), timeline_.work.end(), start_ns,
        [](const DeviceWork& work, std::int64_t time) { return work.start_ns < time; });
    SliceId best = kNone<SliceId>;
    std::int64_t best_launch = 0;
    for (; each != timeline_.work.end() && each->start_ns == start_ns; ++each) {
      const SliceId launch = links_.launch_of[raw(each->slice)];
      const std::int64_t time = launch == kNone<SliceId> ? start_ns : trace_.start_ns(launch);
      if (best == kNone<SliceId> || time < best_launch) {
        best = each->slice;
        best_launch = time;
      }
    }
    return best;
  }

  // The waiting call in which this thread was when the device ran empty.
  SliceId sync_over(TrackId thread, std::int64_t time_ns) const {
    if (thread == kNone<TrackId>) return kNone<SliceId>;
    const auto& calls = blocking_[raw(thread)];
    auto after = std::upper_bound(
        calls.begin(), calls.end(), time_ns,
        [this](std::int64_t time, SliceId call) { return time < trace_.start_ns(call); });
    for (int back = 0; back < 2 && after != calls.begin(); ++back) {
      --after;
      if (trace_.end_ns(*after) >= time_ns) return *after;
    }
    return kNone<SliceId>;
  }

  void add_gap(std::int64_t start_ns, std::int64_t end_ns, bool worked_before, bool work_follows) {
    Gap gap{start_ns,
            end_ns,
            kNone<SliceId>,
            kNone<SliceId>,
            static_cast<std::uint32_t>(result_.parts.size()),
            0};
    if (!work_follows) {
      put({start_ns, end_ns, IdleCause::kAfterLastWork, main_thread_});
    } else {
      gap.next_work = work_at(end_ns);
      if (gap.next_work != kNone<SliceId>) gap.launch = links_.launch_of[raw(gap.next_work)];
      if (gap.launch == kNone<SliceId>)
        put({start_ns, end_ns, IdleCause::kUnknown});
      else
        split(gap, worked_before);
    }
    gap.part_count = static_cast<std::uint32_t>(result_.parts.size()) - gap.first_part;
    result_.gaps.push_back(gap);
  }

  void split(const Gap& gap, bool worked_before) {
    const TrackId thread = trace_.slices().track[raw(gap.launch)];
    const std::int64_t launched = std::clamp(trace_.end_ns(gap.launch), gap.start_ns, gap.end_ns);
    if (launched > gap.start_ns) {
      IdlePart part{gap.start_ns, launched, IdleCause::kHostLate, thread};
      part.blame = sync_over(thread, gap.start_ns);
      if (part.blame == kNone<SliceId> && main_thread_ != thread)
        part.blame = sync_over(main_thread_, gap.start_ns);
      if (part.blame != kNone<SliceId>) part.cause = IdleCause::kAfterSync;
      if (!worked_before) part.cause = IdleCause::kBeforeFirstWork;
      put(part);
    }
    if (launched < gap.end_ns) {
      const bool is_short = gap.end_ns - launched <= kLongestLaunchLatencyNs;
      put({launched, gap.end_ns,
           !is_short                 ? IdleCause::kWaiting
           : launched > gap.start_ns ? IdleCause::kLaunchLatency
                                     : IdleCause::kBetweenQueued,
           thread});
    }
  }

  // Time of the profiler inside a part counts as the profiler's.
  void put(IdlePart part) {
    auto each = std::upper_bound(
        overheads_.begin(), overheads_.end(), part.start_ns,
        [](std::int64_t time, const Window& window) { return time < window.end_ns; });
    for (; each != overheads_.end() && each->start_ns < part.end_ns; ++each) {
      if (part.cause == IdleCause::kAfterLastWork) break;
      const std::int64_t from = std::max(each->start_ns, part.start_ns);
      const std::int64_t to = std::min(each->end_ns, part.end_ns);
      if (from > part.start_ns) {
        IdlePart before = part;
        before.end_ns = from;
        result_.parts.push_back(before);
      }
      result_.parts.push_back({from, to, IdleCause::kProfiler, part.thread});
      part.start_ns = to;
    }
    if (part.end_ns > part.start_ns) result_.parts.push_back(part);
  }

  const Trace& trace_;
  const LaunchLinks& links_;
  const DeviceTimeline& timeline_;
  TrackId main_thread_ = kNone<TrackId>;
  std::vector<std::vector<SliceId>> blocking_;  // one per track, by start
  std::vector<Window> overheads_;               // disjoint, in order
  Gaps result_;
};

}  // namespace

Gaps find_gaps(const Trace& trace, const LaunchLinks& links, const DeviceTimeline& timeline,
               const Window& range) {
  return GapFinder(trace, links, timeline).run(range);
}

bool is_blocking_call(const Trace& trace, const LaunchLinks& links, SliceId api_call) {
  const ApiCall call = trace.api_call(api_call);
  if (call.does(api_effect::kBlocks)) return true;
  if (!call.does(api_effect::kCopies)) return false;
  for (const SliceId work : links.launched_by(api_call))
    if (has(trace.name(work), "Pageable")) return true;
  return false;
}

bool is_profiler_overhead(const Trace& trace, SliceId slice) {
  if (trace.kind(slice) != CategoryKind::kOverhead) return false;
  const std::string_view name = trace.name(slice);
  return has(name, "Activity Buffer") || has(name, "Buffer Flush") ||
         has(name, "Instrumentation") || has(name, "Resource");
}

TrackId main_launch_thread(const Trace& trace, const LaunchLinks& links) {
  // A backward pass launches more than its forward pass, from a thread that only does what the
  // program's thread asks for.
  struct Count {
    std::uint64_t own_launches = 0, launches = 0;
    std::int64_t first_ns = 0;
  };
  std::vector<Count> counts(trace.tracks().size());
  for (std::uint32_t track = 0; track < counts.size(); ++track) {
    const Track& row = trace.tracks()[track];
    Count& count = counts[track];
    std::optional<std::int64_t> node_end_ns;
    for (std::uint32_t i = row.first_slice; i < row.first_slice + row.slice_count; ++i) {
      const SliceId id{i};
      if (trace.name(id).starts_with("autograd::engine::evaluate_function")) {
        node_end_ns = std::max(trace.end_ns(id), node_end_ns.value_or(trace.end_ns(id)));
        continue;
      }
      if (!is_api_call(trace.kind(id)) || !launches_work(trace, links, id)) continue;
      if (count.launches++ == 0) count.first_ns = trace.start_ns(id);
      if (!node_end_ns || trace.start_ns(id) >= *node_end_ns) ++count.own_launches;
    }
  }
  TrackId best = kNone<TrackId>;
  const auto rank = [&](std::uint32_t track) {
    const Count& count = counts[track];
    return std::tuple(count.own_launches, count.launches, -count.first_ns);
  };
  for (std::uint32_t i = 0; i < counts.size(); ++i)
    if (counts[i].launches > 0 && (best == kNone<TrackId> || rank(i) > rank(raw(best))))
      best = TrackId{i};
  return best;
}

}  // namespace lanescope::analysis

#include "lanescope/ranks/merge_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/analysis/time_span.h"
#include "lanescope/explain/facts.h"
#include "lanescope/model/recording_losses.h"
#include "lanescope/model/trace_builder.h"
#include "lanescope/model/trace_copier.h"
#include "lanescope/ranks/collective_rates.h"
#include "lanescope/ranks/rank_calls.h"

namespace lanescope::ranks {
namespace {

constexpr std::int64_t kPidsOfARank = 100'000;

// Times of one rank on the clock of the first.
class RankTimeMap {
 public:
  RankTimeMap(const Job& job, std::size_t rank, const Trace& trace)
      : clock_(job.clocks[rank]), begin_(trace.window_start_ns()) {
    is_known_ = clock_.known && !clock_.contradicts;
    if (is_known_) return;
    // Its own clock, if that is near the first rank's; else it begins where the first one begins.
    if (__builtin_sub_overflow(job.ranks[rank].origin_ns, job.ranks[0].origin_ns, &apart_) ||
        apart_ > analysis::kLongestSpanNs || apart_ < -analysis::kLongestSpanNs)
      apart_ = 0;
  }
  bool is_known() const { return is_known_; }
  std::int64_t operator()(std::int64_t time_ns) const {
    return is_known_ ? clock_.aligned(time_ns - begin_) : time_ns - begin_ + apart_;
  }

 private:
  const RankClock& clock_;
  std::int64_t begin_, apart_ = 0;
  bool is_known_ = false;
};

class Merger {
 public:
  explicit Merger(const Job& job) : job_(job), places_(job.ranks.size()) {
    builder_.set_base_time_ns(job.ranks[0].origin_ns);
    builder_.add_metadata("lanescope_merged_ranks", std::to_string(job.ranks.size()));
  }

  Result<void> add(std::size_t rank, const Trace& trace) {
    const RankTimeMap time(job_, rank, trace);
    unaligned_ += time.is_known() ? 0 : 1;
    add_recording_losses(trace.import_stats(), &builder_.stats());
    if (rank == 0)
      if (const auto devices = trace.metadata_json("deviceProperties"))
        builder_.add_metadata("deviceProperties", *devices);
    TraceCopier copier(trace, builder_, [&](ProcessId id) {
      return Scalar{false, static_cast<std::int64_t>(rank + 1) * kPidsOfARank + raw(id),
                    kNone<StringId>};
    });
    copier.shift_ids(largest_id_);
    name_processes(rank, trace, copier);
    add_slices(trace, copier, time);
    const auto& instants = trace.instants();
    for (std::size_t i = 0; i < instants.size(); ++i)
      builder_.add_instant(copier.track(instants.track[i]), copier.copy(instants.category[i]),
                           copier.copy(instants.name[i]), time(instants.time_ns[i]),
                           instants.scope[i], copier.copy(instants.args[i]));
    const auto& counters = trace.counters();
    for (std::size_t i = 0; i < counters.size(); ++i)
      builder_.add_counter(copier.track(counters.track[i]), time(counters.time_ns[i]),
                           counters.value[i]);
    for (const Flow& flow : trace.flows()) {
      Flow own = flow;
      own.set_id(next_id());
      own.name = copier.copy(flow.name);
      own.category = copier.copy(flow.category);
      own.from_track = copier.track(flow.from_track);
      own.to_track = copier.track(flow.to_track);
      own.from_ns = time(flow.from_ns);
      own.to_ns = time(flow.to_ns);
      builder_.add_flow(own);
    }
    largest_id_ = std::max(largest_id_, copier.largest_id());
    return find_places(rank, trace, copier, time);
  }

  Result<MergedTrace> finish() {
    MergedTrace out;
    for (const MatchedCollective& collective : job_.matching.collectives)
      out.arrows += add_arrows(collective);
    out.unaligned = unaligned_;
    LANESCOPE_TRY(out.trace, std::move(builder_).finish());
    return out;
  }

 private:
  struct Place {
    TrackId track = kNone<TrackId>;
    std::int64_t start_ns = 0, end_ns = 0;
  };

  Scalar next_id() { return {false, ++last_id_, kNone<StringId>}; }

  void name_processes(std::size_t rank, const Trace& trace, TraceCopier& copier) {
    for (std::uint32_t i = 0; i < trace.processes().size(); ++i) {
      const ProcessId id{i};
      copier.copy_process(id);
      const Process& process = trace.process(id);
      const std::string_view label =
          process.labels == kNone<StringId> ? trace.text(process.name) : trace.text(process.labels);
      builder_.set_process_name(
          copier.pid(id), builder_.intern(fmt::format("rank {} {}", job_.numbers[rank], label)));
      builder_.set_process_sort_index(copier.pid(id), static_cast<std::int64_t>(rank) * 1000 + i);
    }
  }

  void add_slices(const Trace& trace, TraceCopier& copier, const RankTimeMap& time) {
    std::unordered_map<std::uint32_t, std::int64_t> number_of_step;  // by slice
    for (const Step& step : trace.steps()) number_of_step[raw(step.slice)] = step.number;
    const auto& slices = trace.slices();
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      const std::int64_t start = time(slices.start_ns[i]);
      const std::int64_t end = time(slices.start_ns[i] + slices.dur_ns[i]);
      if (trace.kind(SliceId{i}) == CategoryKind::kTrace) continue;  // a window of one rank
      builder_.add_slice(copier.track(slices.track[i]), copier.copy(slices.category[i]),
                         copier.copy(slices.name[i]), start, std::max<std::int64_t>(0, end - start),
                         copier.copy(slices.args[i]));
      if (const auto step = number_of_step.find(i); step != number_of_step.end())
        builder_.add_step(step->second, row_);
      ++row_;
    }
  }

  // Where the rank's collectives lie, in the order of RankSummary::collectives.
  Result<void> find_places(std::size_t rank, const Trace& trace, TraceCopier& copier,
                           const RankTimeMap& time) {
    LANESCOPE_TRY(const explain::Facts facts, explain::gather_facts(trace, {}, 1));
    for (const FoundCall& call : find_rank_calls(facts).calls)
      places_[rank].push_back({copier.track(trace.slices().track[raw(call.slice)]),
                               time(call.start_ns), time(call.end_ns)});
    return {};
  }

  // From the start of the last arrival to each rank that is inside the collective at that moment.
  std::uint64_t add_arrows(const MatchedCollective& collective) {
    const Presence presence = presence_of(collective, job_.clocks);
    if (!presence.valid || !collective.blocking) return 0;
    const Place* last = nullptr;
    for (const CollectiveMember& member : collective.members)
      if (member.rank == presence.last_rank && member.call < places_[member.rank].size())
        last = &places_[member.rank][member.call];
    if (!last) return 0;
    std::uint64_t count = 0;
    for (const CollectiveMember& member : collective.members) {
      if (member.rank == presence.last_rank || member.call >= places_[member.rank].size()) continue;
      const Place& place = places_[member.rank][member.call];
      if (place.start_ns > last->start_ns || place.end_ns <= last->start_ns) continue;
      Flow flow;
      flow.set_id(next_id());
      flow.name = builder_.intern("last rank arrives");
      flow.category = builder_.category("collective");
      flow.from_track = last->track;
      flow.to_track = place.track;
      flow.from_ns = flow.to_ns = last->start_ns;
      flow.binds_enclosing = true;
      builder_.add_flow(flow);
      ++count;
    }
    return count;
  }

  const Job& job_;
  TraceBuilder builder_;
  std::vector<std::vector<Place>> places_;
  std::int64_t last_id_ = 0, largest_id_ = 0;
  std::uint32_t row_ = 0;
  std::uint64_t unaligned_ = 0;
};

}  // namespace

Result<MergedTrace> merge_traces(
    const Job& job, const std::function<Result<Trace>(const std::string& path)>& read_trace) {
  Merger merger(job);
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    LANESCOPE_TRY(const Trace trace, read_trace(job.ranks[rank].file));
    LANESCOPE_TRY_VOID(merger.add(rank, trace));
  }
  return merger.finish();
}

}  // namespace lanescope::ranks

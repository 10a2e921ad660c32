// Idle time that the profiler made: buffer requests, flushes, instrumentation.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct OverheadRow {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  SliceId longest = kNone<SliceId>;
};

struct ProfilerStall {
  std::int64_t stalled = 0;
  std::int64_t wall_ns = 0;
  std::map<std::string, OverheadRow> rows;
};

std::optional<ProfilerStall> measure_profiler_stall(const Facts& facts) {
  const Trace& trace = *facts.trace;
  WallTimes all;
  for (const WallTimes& wall : facts.device().walls) all += wall;
  const std::int64_t stalled = all.idle_by(analysis::IdleCause::kProfiler);
  if (share_of(stalled, all.partition.wall_ns) < 0.01 && stalled < 1'000'000) return std::nullopt;
  std::map<std::string, OverheadRow> rows;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!analysis::is_profiler_overhead(trace, id)) continue;
    OverheadRow& row = rows[std::string(trace.name(id))];
    ++row.count;
    row.total_ns += trace.dur_ns(id);
    if (row.longest == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(row.longest))
      row.longest = id;
  }
  return ProfilerStall{stalled, all.partition.wall_ns, std::move(rows)};
}

Finding tell_profiler_stall(const Facts& /*facts*/, const ProfilerStall& measured) {
  const auto& [stalled, wall_ns, rows] = measured;
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict =
      say("The profiler itself left the GPU idle for {} ({} of the recorded wall); a run "
          "without it does not have these gaps.",
          {ns(stalled), ratio(stalled, wall_ns)});
  finding.at_stake_ns = stalled;
  finding.at_stake_ratio = share_of(stalled, wall_ns);
  for (const auto& [label, row] : rows)
    finding.evidence.push_back(
        {row.longest, say("{} x{}: {} in all", {name(label), count(row.count), ns(row.total_ns)})});
  finding.try_next = {
      "do not optimise these gaps; a warmup in the schedule moves the first ones out "
      "of the recorded steps"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = rows.size();
  finding.sample_noun = "kind of row";
  return finding;
}

}  // namespace

extern constinit const Rule profiler_stall_rule = {
    .id = "profiler-stall",
    .question = "what did the profiler itself cost?",
    .meant_by = "trust",
    .order = 230,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_profiler_stall, tell_profiler_stall>,
};

}  // namespace lanescope::explain::rules

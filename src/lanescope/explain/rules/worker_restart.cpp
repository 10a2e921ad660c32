// The DataLoader's worker processes are stopped and started again, as at the end of an epoch.
//
// What a trace shows (torch 2.13, recorded with stacks): the last __next__ of an epoch finds no batch
// and stops the workers. Then the new iterator starts workers, outside of any range, and its first
// __next__ waits for them. So two waits for a batch follow each other with a pause in between. In
// the pause there is no work but the few operators that draw the workers' seed and the order of the
// samples.
#include <algorithm>
#include <optional>

#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr std::int64_t kShortestPauseNs = 2'000'000;
constexpr std::uint64_t kMostSeedOps = 30;

bool is_worker_wait(std::string_view label) {
  return label.starts_with("enumerate(DataLoader)#_MultiProcessingDataLoaderIter");
}

struct Restart {
  Window window;  // from the end of one epoch's last batch to the next one's first
  SliceId first_wait{};
};

struct Waits {
  std::vector<std::int64_t> lengths;
  std::vector<Restart> pairs;
};

// Waits for a batch, and pairs of them with a pause and no work in between, thread by thread.
Waits find_waits(const Trace& trace) {
  Waits found;
  TrackId track = kNone<TrackId>;
  SliceId last = kNone<SliceId>;
  bool worked = false;
  std::uint64_t ops = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const CategoryKind kind = trace.kind(id);
    if (!is_front_end(kind) && !is_api_call(kind)) continue;
    if (trace.slices().track[i] != track) {
      track = trace.slices().track[i];
      last = kNone<SliceId>;
      worked = false;
      ops = 0;
    }
    const bool inside_last = last != kNone<SliceId> && trace.start_ns(id) < trace.end_ns(last);
    if (inside_last || trace.name(id).starts_with("ProfilerStep#")) continue;
    if (!is_worker_wait(trace.name(id))) {
      worked = worked || kind != CategoryKind::kCpuOp || ++ops > kMostSeedOps;
      continue;
    }
    found.lengths.push_back(trace.dur_ns(id));
    if (last != kNone<SliceId> && !worked &&
        trace.start_ns(id) - trace.end_ns(last) >= kShortestPauseNs)
      found.pairs.push_back({{trace.start_ns(last), trace.end_ns(id)}, last});
    last = id;
    worked = false;
    ops = 0;
  }
  return found;
}

struct WorkerRestart {
  std::size_t restarts = 0;
  std::int64_t total_ns = 0;
  std::int64_t at_stake = 0;
  std::int64_t longest_ns = 0;
  SliceId longest = kNone<SliceId>;
  std::int64_t median = 0;
  std::size_t wait_count = 0;
};

std::optional<WorkerRestart> measure_worker_restart(const Facts& facts) {
  constexpr std::int64_t kShortestNs = 5'000'000;
  const Waits waits = find_waits(*facts.trace);
  if (waits.lengths.empty()) return std::nullopt;
  const std::int64_t median = analysis::lower_median(waits.lengths);
  std::vector<Window> windows;
  std::int64_t longest_ns = 0;
  SliceId longest = kNone<SliceId>;
  for (const Restart& pair : waits.pairs) {
    const std::int64_t length = pair.window.length_ns();
    if (length < kShortestNs || length < 10 * median) continue;
    windows.push_back(pair.window);
    if (length <= longest_ns) continue;
    longest_ns = length;
    longest = pair.first_wait;
  }
  if (windows.empty()) return std::nullopt;
  const std::int64_t total_ns = total_length(windows);
  const std::int64_t at_stake = facts.main_device ? device_idle_during(facts, windows) : total_ns;
  return WorkerRestart{windows.size(),      total_ns, at_stake, longest_ns, longest, median,
                       waits.lengths.size()};
}

Finding tell_worker_restart(const Facts& facts, const WorkerRestart& measured) {
  const auto& [restarts, total_ns, at_stake, longest_ns, longest, median, wait_count] = measured;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict =
      say(facts, "The DataLoader started its workers again {} [time|times], which took {}",
          {count(restarts), ns(total_ns)});
  if (facts.main_device) {
    finding.verdict.pattern += " ({} of it with the GPU idle)";
    finding.verdict.values.push_back(ns(at_stake));
  }
  finding.verdict.pattern += "; a usual wait for a batch takes {}.";
  finding.verdict.values.push_back(ns(median));
  finding.at_stake_ns = at_stake;
  finding.arithmetic.push_back(say(
      "counted from a wait that brought no batch to the end of the next one, with a pause and no "
      "work in between; the longest took {}",
      {ns(longest_ns)}));
  finding.evidence.push_back(called_at(facts, longest, say("the wait that ended an epoch")));
  finding.try_next = {
      "set DataLoader(persistent_workers=True), which keeps them from epoch to epoch"};
  finding.action = say("Keep the workers between epochs: DataLoader(persistent_workers=True)");
  finding.confidence = restarts > 1 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = wait_count;
  finding.sample_noun = "wait";
  finding.brief = say(facts, "The DataLoader started its workers again {} [time|times]: {}",
                      {count(restarts), ns(total_ns)});
  return finding;
}

}  // namespace

extern constinit const Rule worker_restart_rule = {
    .id = "worker-restart",
    .question = "are the DataLoader's workers started again?",
    .meant_by = "loaderprocess",
    .order = 870,
    .run = measure_and_tell<measure_worker_restart, tell_worker_restart>,
};

}  // namespace lanescope::explain::rules

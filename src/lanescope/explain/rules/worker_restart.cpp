// The DataLoader's worker processes are stopped and started again, as at the end of an epoch.
//
// What a trace shows (torch 2.13, recorded with stacks): the last __next__ of an epoch finds no batch
// and stops the workers. Then the new iterator starts workers, outside of any range, and its first
// __next__ waits for them. So two waits for a batch follow each other with a pause in between. In
// the pause there is no work but the few operators that draw the workers' seed and the order of the
// samples.
//
// A program may read its losses there, too, with calls of the GPU's runtime. Then the draw of the seed tells a restart:
// aten::random_, aten::item, and right after it most of the pause without a row, while the workers start. Workers that are
// kept draw no new seed. The same tells a restart where a range of the program, such as one around each epoch, begins in
// the pause and holds the next wait.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/loader_waits.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr std::int64_t kShortestPauseNs = 2'000'000;
constexpr std::uint64_t kMostSeedOps = 30;
constexpr std::int64_t kLeastOfMedian = 10;  // times the median wait

bool is_worker_wait(std::string_view label) {
  return label.starts_with("enumerate(DataLoader)#_MultiProcessingDataLoaderIter");
}

struct Restart {
  Window window;  // from the end of one epoch's last batch to the next one's first
  SliceId first_wait{};
};

struct Waits {
  std::vector<std::int64_t> lengths, starts_ns;
  std::vector<Restart> pairs;
};

// Waits for a batch, and pairs of them with a pause and no work in between, thread by thread.
Waits find_waits(const Facts& facts) {
  const Trace& trace = *facts.trace;
  Waits found;
  if (!any_named(facts, is_worker_wait)) return found;
  TrackId track = kNone<TrackId>;
  SliceId last = kNone<SliceId>;
  bool called = false;  // calls of the GPU's runtime or many operators
  constexpr std::int64_t kNoRange = std::numeric_limits<std::int64_t>::max();
  std::int64_t range_end_ns = kNoRange;  // of the first range to end since the last wait
  std::uint64_t ops = 0;
  std::int64_t ops_ns = 0, op_end_ns = 0;  // of the outermost operators since the last wait
  std::int64_t after_seed_ns = 0;          // the longest time without a row after a seed was drawn
  SliceId last_op = kNone<SliceId>, op_before = kNone<SliceId>;
  const auto begin_anew = [&](SliceId wait) {
    last = wait;
    called = false;
    range_end_ns = kNoRange;
    ops = 0;
    ops_ns = op_end_ns = after_seed_ns = 0;
    last_op = op_before = kNone<SliceId>;
  };
  const auto note_pause_until = [&](std::int64_t time_ns) {
    if (last_op != kNone<SliceId> && op_before != kNone<SliceId> &&
        trace.name(last_op) == "aten::item" && trace.name(op_before) == "aten::random_")
      after_seed_ns = std::max(after_seed_ns, time_ns - op_end_ns);
  };
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const CategoryKind kind = trace.kind(id);
    if (!is_front_end(kind) && !is_api_call(kind)) continue;
    if (trace.slices().track[i] != track) {
      track = trace.slices().track[i];
      begin_anew(kNone<SliceId>);
    }
    const bool inside_last = last != kNone<SliceId> && trace.start_ns(id) < trace.end_ns(last);
    if (inside_last || trace.name(id).starts_with("ProfilerStep#")) continue;
    if (!is_worker_wait(trace.name(id))) {
      const bool is_op = kind == CategoryKind::kCpuOp;
      ops += is_op ? 1 : 0;
      if (!is_op && !is_api_call(kind)) range_end_ns = std::min(range_end_ns, trace.end_ns(id));
      called = called || is_api_call(kind) || ops > kMostSeedOps;
      if (is_op && trace.start_ns(id) >= op_end_ns) {
        note_pause_until(trace.start_ns(id));
        ops_ns += trace.dur_ns(id);
        op_end_ns = trace.end_ns(id);
        op_before = last_op;
        last_op = id;
      }
      continue;
    }
    note_pause_until(trace.start_ns(id));
    found.lengths.push_back(trace.dur_ns(id));
    found.starts_ns.push_back(trace.start_ns(id));
    const std::int64_t pause_ns =
        last == kNone<SliceId> ? 0 : trace.start_ns(id) - trace.end_ns(last);
    const bool worked_in_range = range_end_ns <= trace.start_ns(id);
    const bool wants_seed = called || range_end_ns != kNoRange;
    if (!worked_in_range && pause_ns >= kShortestPauseNs && ops_ns * 2 < pause_ns &&
        (!wants_seed || after_seed_ns * 2 >= pause_ns))
      found.pairs.push_back({{trace.start_ns(last), trace.end_ns(id)}, last});
    begin_anew(id);
  }
  return found;
}

// The pairs that are long enough to be a restart.
std::vector<Window> restarts_of(const Waits& waits) {
  constexpr std::int64_t kShortestNs = 5'000'000;
  std::vector<Window> windows;
  if (waits.lengths.empty()) return windows;
  const std::int64_t median = analysis::lower_median(waits.lengths);
  for (const Restart& pair : waits.pairs)
    if (pair.window.length_ns() >= std::max(kShortestNs, kLeastOfMedian * median))
      windows.push_back(pair.window);
  return windows;
}

struct WorkerRestart {
  bool is_of_steps = false;  // repeated in the steady steps: at_stake is of these
  std::size_t restarts = 0;
  std::int64_t total_ns = 0;
  std::int64_t at_stake = 0;
  std::int64_t longest_ns = 0;
  SliceId longest = kNone<SliceId>;
  std::int64_t median = 0;
  std::size_t wait_count = 0;
};

std::optional<WorkerRestart> measure_worker_restart(const Facts& facts) {
  const Waits& waits = made_once<find_waits>(facts);
  const std::vector<Window> windows = restarts_of(waits);
  if (windows.empty()) return std::nullopt;
  const Restart* longest = nullptr;
  for (const Restart& pair : waits.pairs)
    if (!longest || pair.window.length_ns() > longest->window.length_ns()) longest = &pair;
  const std::vector<Window>& of_steps = repeated_worker_restarts(facts);
  const std::vector<Window>& paid = of_steps.empty() ? windows : of_steps;
  const std::int64_t paid_ns =
      facts.main_device ? device_idle_during(facts, paid) : total_length(paid);
  return WorkerRestart{
      .is_of_steps = !of_steps.empty(),
      .restarts = windows.size(),
      .total_ns = total_length(windows),
      // The first may begin before the steps.
      .at_stake = of_steps.empty() ? paid_ns : std::min(paid_ns, facts.steady_wall_ns()),
      .longest_ns = longest->window.length_ns(),
      .longest = longest->first_wait,
      .median = analysis::lower_median(waits.lengths),
      .wait_count = waits.lengths.size()};
}

// Long waits right after a restart: other workers still start, or make their first batch.
std::vector<Window> make_waits_after_restarts(const Facts& facts) {
  const Waits& waits = made_once<find_waits>(facts);
  const std::vector<Window> restarts = restarts_of(waits);
  std::vector<Window> windows;
  if (restarts.empty()) return windows;
  const std::int64_t least_ns = kLeastOfMedian * analysis::lower_median(waits.lengths);
  bool is_after = false;
  for (std::size_t i = 0; i < waits.lengths.size(); ++i) {
    const Window wait{waits.starts_ns[i], waits.starts_ns[i] + waits.lengths[i]};
    const bool ends_restart =
        std::any_of(restarts.begin(), restarts.end(),
                    [&](const Window& restart) { return restart.end_ns == wait.end_ns; });
    is_after = ends_restart || (is_after && waits.lengths[i] >= least_ns);
    if (is_after && !ends_restart) windows.push_back(wait);
  }
  return windows;
}

// A restart that is most of the step that the numbers leave out: the finding says so, and what it costs a step on average.
void tell_long_step_of_restart(const Facts& facts, Finding& finding) {
  if (!facts.main_device || !facts.selection.long_step) return;
  explain_long_step(facts, restarts_of(made_once<find_waits>(facts)), {}, finding);
  const std::int64_t in_step_ns = finding.explains.back().at_stake_ns;
  const std::size_t step = *facts.selection.long_step;
  if (in_step_ns * 2 <= facts.step_window(step).length_ns()) {
    if (in_step_ns == 0) finding.explains.pop_back();
    return;
  }
  const std::int64_t after_ns =
      device_idle_during(facts, within_steady(facts, waits_after_worker_restarts(facts)));
  const std::size_t steps = facts.selection.steady.size() + 1;
  const std::int64_t mean_ns = (in_step_ns + after_ns) / static_cast<std::int64_t>(steps);
  append(finding.brief, say(", most of step {}; {} per step, averaged over {} steps",
                            {step_number(facts, step), ns(mean_ns), count(steps)}));
  finding.arithmetic.push_back(
      say("on average over the {} steps after the first: {} of it in step {} + {} of long waits "
          "right after it, {} per step; longer epochs start the workers less often",
          {count(steps), ns(in_step_ns), step_number(facts, step), ns(after_ns), ns(mean_ns)}));
}

Finding tell_worker_restart(const Facts& facts, const WorkerRestart& measured) {
  const auto& [is_of_steps, restarts, total_ns, at_stake, longest_ns, longest, median, wait_count] =
      measured;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict =
      say(facts, "The DataLoader started its workers again {} [time|times], which took {}",
          {count(restarts), ns(total_ns)});
  if (facts.main_device && !is_of_steps) {
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
  if (is_of_steps) {
    finding.kind = FindingKind::kCost;
    finding.at_stake_ns = facts.per_step(at_stake);
    finding.at_stake_ratio = share_of(at_stake, facts.steady_wall_ns());
    for (const char* covered : {"uneven-steps", "python-hole", "dataloader-wait", "own-python"})
      finding.explains.push_back({covered, finding.at_stake_ns});
    finding.brief =
        say(facts, "The DataLoader starts its workers again, {} [time|times] [in {} steps]",
            {count(repeated_worker_restarts(facts).size()), count(facts.selection.steady.size())});
    finding.action =
        say("Keep the workers: DataLoader(persistent_workers=True); each further worker makes the "
            "start longer");
  } else {
    tell_long_step_of_restart(facts, finding);
  }
  return finding;
}

// A pass of the loop over all batches begins before the first wait for a batch, so a step that is such a pass holds the end
// of a restart. Where only one step is counted, the waits in it tell such a pass from a step that takes one batch.
std::vector<Window> make_repeated_worker_restarts(const Facts& facts) {
  constexpr std::ptrdiff_t kFewestBatches = 3;
  const Waits& waits = made_once<find_waits>(facts);
  const std::vector<Window> steps = facts.steady_cpu_windows();
  std::vector<Window> windows;
  for (const Window& restart : restarts_of(waits))
    if (inside(steps, restart.end_ns)) windows.push_back(restart);
  if (windows.size() >= 2) return windows;
  if (windows.empty() || steps.size() > 1 || !facts.steps.marked) return {};
  const std::ptrdiff_t batches =
      std::count_if(waits.starts_ns.begin(), waits.starts_ns.end(), [&](std::int64_t start_ns) {
        return start_ns >= windows.front().end_ns && inside(steps, start_ns);
      });
  return batches < kFewestBatches ? std::vector<Window>{} : windows;
}

}  // namespace

const std::vector<Window>& repeated_worker_restarts(const Facts& facts) {
  return made_once<make_repeated_worker_restarts>(facts);
}

const std::vector<Window>& waits_after_worker_restarts(const Facts& facts) {
  return made_once<make_waits_after_restarts>(facts);
}

extern constinit const Rule worker_restart_rule = {
    .id = "worker-restart",
    .question = "are the DataLoader's workers started again?",
    .meant_by = "loaderprocess",
    .order = 870,
    .run = measure_and_tell<measure_worker_restart, tell_worker_restart>,
};

}  // namespace lanescope::explain::rules

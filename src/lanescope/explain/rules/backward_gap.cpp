// The GPU runs out of work between the forward and the backward pass.
#include <algorithm>
#include <optional>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::IdleCause;
using analysis::Phase;

namespace {

// Calling backward() and waking the engine's thread took 0.19 to 0.55 ms with a profiler in healthy
// programs on an H200 and an H100; up to twice that is normal.
constexpr std::int64_t kHandOverNs = 1'000'000;

constexpr std::uint64_t kEnoughTurns = 3;

struct LateBackward {
  std::uint64_t turns = 0;
  std::int64_t idle_ns = 0;  // of the GPU, at these turns
  std::int64_t most_ns = 0;
  std::int64_t usual_ns = 0;  // the usual wait before a piece of work
  SliceId worst = kNone<SliceId>;
  TrackId caller =
      kNone<TrackId>;  // the thread of the forward work before it, which calls backward()
  std::vector<HostStretch> stretches;
};

std::optional<LateBackward> measure_backward_gap(const Facts& facts) {
  const auto& phases = training_phases(facts);
  if (std::find(phases.begin(), phases.end(), Phase::kBackward) == phases.end())
    return std::nullopt;
  // Turns: a forward piece directly followed by a backward one, in order of launch.
  std::vector<std::pair<std::int64_t, const DeviceWork*>> order;
  for (const DeviceWork* work : steady_work(facts))
    if (const SliceId launch = facts.links.launch_of[raw(work->slice)]; launch != kNone<SliceId>)
      order.emplace_back(facts.trace->start_ns(launch), work);
  sort_rows(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  // The engine launches from its own thread; old traces do not name all of its work.
  const auto thread_of = [&](const DeviceWork& work) {
    return facts.trace->slices().track[raw(facts.links.launch_of[raw(work.slice)])];
  };
  std::int64_t idle_ns = 0, most_ns = 0;
  std::uint64_t turns = 0;
  SliceId worst = kNone<SliceId>;
  TrackId caller = kNone<TrackId>;
  std::vector<HostStretch> stretches;
  // backward() itself begins with a tensor of ones, the gradient of the loss. That is not work of
  // the forward pass.
  const auto is_first_gradient = [&](const DeviceWork& work) {
    return ancestor_named(facts, facts.links.op_of[raw(work.slice)], "aten::ones_like") !=
           kNone<SliceId>;
  };
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t last = i - 1;
    if (last > 0 && is_first_gradient(*order[last].second)) --last;
    const DeviceWork &before = *order[last].second, &after = *order[i].second;
    if (phases[raw(before.slice)] != Phase::kOther ||
        phases[raw(after.slice)] != Phase::kBackward || thread_of(before) == thread_of(after))
      continue;
    ++turns;
    if (after.start_ns <= before.end_ns) continue;
    const IdleTimes times = idle_within_steady(facts, {before.end_ns, after.start_ns});
    const std::int64_t waiting = times[static_cast<std::size_t>(IdleCause::kHostLate)] +
                                 times[static_cast<std::size_t>(IdleCause::kAfterSync)];
    if (waiting == 0) continue;
    idle_ns += waiting;
    // Until the engine's work begins, the thread that calls backward() shows what delayed it.
    stretches.push_back({thread_of(before), before.end_ns, after.start_ns, kNone<SliceId>});
    if (waiting > most_ns) {
      most_ns = waiting;
      worst = after.slice;
      caller = thread_of(before);
    }
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  // If every launch is late, this one is nothing special.
  const std::int64_t usual_ns = facts.waiting_for_cpu_ns() /
                                static_cast<std::int64_t>(std::max<std::size_t>(1, order.size()));
  const auto each = static_cast<std::int64_t>(turns);
  if (idle_ns < kHandOverNs * each || idle_ns < 3 * usual_ns * each ||
      idle_ns * 5 < facts.waiting_for_cpu_ns())
    return std::nullopt;
  // One turn with three quarters of all: something happened there once.
  if (turns >= kEnoughTurns && most_ns * 4 > idle_ns * 3) return std::nullopt;
  if (turns == 0 || is_thin(facts) || share_of(idle_ns, wall_ns) < 0.03) return std::nullopt;
  return LateBackward{.turns = turns,
                      .idle_ns = idle_ns,
                      .most_ns = most_ns,
                      .usual_ns = usual_ns,
                      .worst = worst,
                      .caller = caller,
                      .stretches = std::move(stretches)};
}

// True: the thread that calls backward() waits for the GPU in one of the turns.
bool waits_there(const Facts& facts, const LateBackward& found) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(found.caller);
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (!is_api_call(trace.kind(id)) || !trace.api_call(id).does(api_effect::kBlocks)) continue;
    if (std::any_of(
            found.stretches.begin(), found.stretches.end(), [&](const HostStretch& stretch) {
              return trace.start_ns(id) < stretch.end_ns && stretch.start_ns < trace.end_ns(id);
            }))
      return true;
  }
  return false;
}

// What the calling thread does most of that time, if it is an operator, a range or a line of the program.
const HostShare* main_share(const std::vector<HostShare>& shares) {
  constexpr std::int64_t kLeastPart = 4;  // a quarter of the time
  if (shares.empty() || shares.front().name.empty()) return nullptr;
  const HostShare& most = shares.front();
  std::int64_t all_ns = 0;
  for (const HostShare& share : shares) all_ns += share.time_ns;
  const bool is_of_program =
      most.kind == CategoryKind::kPythonFunction ||
      (most.kind == CategoryKind::kCpuOp && !most.name.starts_with("autograd::")) ||
      (most.kind == CategoryKind::kUserAnnotation && !most.name.starts_with("ProfilerStep"));
  return is_of_program && most.time_ns * kLeastPart >= all_ns ? &most : nullptr;
}

Finding tell_backward_gap(const Facts& facts, const LateBackward& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "Between the forward and the backward pass the GPU waits {} [per step] "
                        "({}): the first backward work is launched late.",
                        {ns(facts.per_step(found.idle_ns)), ratio(found.idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(found.idle_ns);
  finding.at_stake_ratio = share_of(found.idle_ns, wall_ns);
  finding.arithmetic.push_back(
      say("changes from forward to backward in the steady steps: {}; the longest wait there is {}, "
          "the usual wait before a piece of work is {}",
          {count(found.turns), ns(found.most_ns), ns(found.usual_ns)}));
  const std::vector<HostShare> shares = host_shares(facts, found.stretches);
  const HostShare* most = waits_there(facts, found) ? nullptr : main_share(shares);
  const Evidence late{found.worst, say("the first backward work after the longest wait")};
  // The first event says where: what holds the backward pass up, if that is known.
  if (!most) finding.evidence.push_back(late);
  add_host_evidence(facts, shares, finding);
  if (most) finding.evidence.push_back(late);
  finding.try_next = {
      "call nothing that waits for the GPU between the loss and backward(): no .item(), no print "
      "of the loss",
      "use fewer Python hooks and custom autograd Functions at the end of the model; if launches "
      "are late everywhere, see host-bound"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.turns;
  finding.sample_noun = "turn";
  finding.brief = say("The GPU waits for the first backward kernel");
  if (most) {
    std::int64_t all_ns = 0;
    for (const HostShare& share : shares) all_ns += share.time_ns;
    finding.brief =
        say(most->kind == CategoryKind::kPythonFunction
                ? "The GPU waits for the first backward kernel, {} of it for Python: {}"
            : most->kind == CategoryKind::kCpuOp
                ? "The GPU waits for the first backward kernel, {} of it for {} on the CPU"
                : "The GPU waits for the first backward kernel, {} of it for code in {}",
            {ratio(most->time_ns, all_ns), name(most->name)});
    finding.action = say("If backward() does not need it, do it after backward()");
    return finding;
  }
  finding.action =
      waits_there(facts, found)
          ? say("Remove .item() and prints of the loss between the loss and backward()")
          : say("Move logging, hooks and other Python to after backward()");
  return finding;
}

}  // namespace

extern constinit const Rule backward_gap_rule = {
    .id = "backward-gap",
    .question = "does the GPU wait between the forward and the backward pass?",
    .meant_by = "backward",
    .order = 780,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_backward_gap, tell_backward_gap>,
};

}  // namespace lanescope::explain::rules

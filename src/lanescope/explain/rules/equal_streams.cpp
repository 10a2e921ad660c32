// One thread launches the same kernels on several streams, and the GPU waits for the launches: a batch was split into
// pieces.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::size_t kFewestOnAStream = 8;  // kernels of a step
constexpr double kLeastEqualStreamsShare = 0.1;

// The kernels of one thread in one step that run on streams with equal sequences.
struct EqualStreams {
  std::size_t streams = 0, kernels = 0;  // of one step, and of one stream in it
  SliceId call = kNone<SliceId>;         // launches the first of them on the last stream
};

// Operators that launch on several streams themselves, as cuDNN's LSTM does: those are no streams of the program.
std::set<std::uint32_t> operators_with_streams(const Facts& facts, const LaunchSequence& sequence) {
  std::map<std::uint32_t, std::uint32_t> stream_of;  // by operator
  std::set<std::uint32_t> found;
  for (const LaunchedWork& each : sequence) {
    const SliceId op = outermost_operator_of(facts, each.call);
    const std::uint32_t stream = raw(facts.trace->slices().track[raw(each.work->slice)]);
    if (op != kNone<SliceId> && stream_of.try_emplace(raw(op), stream).first->second != stream)
      found.insert(raw(op));
  }
  return found;
}

bool is_of_one_stream(const Trace& trace, const LaunchSequence& sequence) {
  const auto stream = [&](const LaunchedWork& each) {
    return trace.slices().track[raw(each.work->slice)];
  };
  return std::all_of(sequence.begin(), sequence.end(), [&](const LaunchedWork& each) {
    return stream(each) == stream(sequence.front());
  });
}

EqualStreams find_equal_streams(const Facts& facts, const LaunchSequence& sequence) {
  const Trace& trace = *facts.trace;
  if (is_of_one_stream(trace, sequence)) return {};
  const std::set<std::uint32_t> left_out = operators_with_streams(facts, sequence);
  std::map<std::uint32_t, std::pair<std::vector<std::uint32_t>, SliceId>> by_stream;
  for (const LaunchedWork& each : sequence) {
    const SliceId slice = each.work->slice;
    if (trace.kind(slice) != CategoryKind::kKernel ||
        left_out.contains(raw(outermost_operator_of(facts, each.call))))
      continue;
    auto& [names, first] = by_stream[raw(trace.slices().track[raw(slice)])];
    if (names.empty()) first = each.call;
    names.push_back(raw(trace.slices().name[raw(slice)]));
  }
  std::map<std::vector<std::uint32_t>, EqualStreams> by_names;
  EqualStreams best;
  for (const auto& [stream, launched] : by_stream) {
    const auto& [names, first] = launched;
    if (names.size() < kFewestOnAStream) continue;
    EqualStreams& equal = by_names[names];
    ++equal.streams;
    equal.kernels = names.size();
    equal.call = first;
    if (equal.streams * equal.kernels > best.streams * best.kernels) best = equal;
  }
  return best;
}

struct SplitOverStreams {
  EqualStreams usual;  // of the last step that has them
  std::uint64_t steps = 0, kernels = 0, all = 0;
  std::int64_t waiting_ns = 0;
  // The waiting goes with the launches: of n streams' launches one stream's stay.
  std::int64_t cost_ns() const {
    const double spared = static_cast<double>(kernels) / static_cast<double>(all) *
                          static_cast<double>(usual.streams - 1) /
                          static_cast<double>(usual.streams);
    return static_cast<std::int64_t>(static_cast<double>(waiting_ns) * spared);
  }
};

std::optional<SplitOverStreams> measure_equal_streams(const Facts& facts) {
  SplitOverStreams found;
  for (const LaunchSequence& sequence : launch_sequences(facts)) {
    found.all += sequence.size();
    const EqualStreams equal = find_equal_streams(facts, sequence);
    if (equal.streams < 2 || equal.streams * equal.kernels * 2 < sequence.size()) continue;
    ++found.steps;
    found.kernels += equal.streams * equal.kernels;
    found.usual = equal;
  }
  if (found.steps * 2 <= facts.selection.steady.size()) return std::nullopt;
  found.waiting_ns = facts.waiting_for_cpu_ns();
  if (share_of(found.cost_ns(), facts.steady_wall_ns()) < kLeastEqualStreamsShare)
    return std::nullopt;
  return found;
}

Finding tell_equal_streams(const Facts& facts, const SplitOverStreams& found) {
  const Value streams = count(found.usual.streams), kernels = count(found.usual.kernels);
  const std::int64_t cost_ns = found.cost_ns();
  Finding finding;
  finding.verdict =
      say(facts,
          "{} streams run the same {} kernels each [per step], all launched by one "
          "thread, and the GPU waits for the CPU meanwhile: {} [per step] ({}).",
          {streams, kernels, ns(facts.per_step(cost_ns)), ratio(cost_ns, facts.steady_wall_ns())});
  finding.at_stake_ns = facts.per_step(cost_ns);
  finding.at_stake_ratio = share_of(cost_ns, facts.steady_wall_ns());
  finding.arithmetic.push_back(say(
      facts,
      "the GPU waits {} [per step] for the CPU; {} of {} pieces of GPU work are on these streams, "
      "and one stream instead of {} would leave a part of {} of their launches",
      {ns(facts.per_step(found.waiting_ns)), count(found.kernels / step_count(facts)),
       count(found.all / step_count(facts)), streams,
       ratio(1, static_cast<std::int64_t>(found.usual.streams))}));
  finding.evidence.push_back(
      called_at(facts, found.usual.call, say("the first launch on one of these streams")));
  finding.try_next = {
      "if each stream has a piece of one batch: run the batch as one, on one stream; its kernels "
      "are larger, and there are fewer of them",
      "if each stream has a model of its own: stack the models (torch.func.stack_module_state and "
      "vmap), or launch each from a CUDA graph"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.steps;
  for (const char* covered : {"graph-opportunity", "tiny-kernels", "looped-calls"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say(facts, "{} streams run the same {} kernels each [per step], launched by one thread",
          {streams, kernels});
  finding.action = say("If they are pieces of one batch: run it as one, on one stream");
  return finding;
}

}  // namespace

extern constinit const Rule equal_streams_rule = {
    .id = "equal-streams",
    .question = "is a batch split over several streams?",
    .meant_by = "streams concurrency parallel split pieces launch",
    .order = 122,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_equal_streams, tell_equal_streams>,
    .fix = Fix::kCpu,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules

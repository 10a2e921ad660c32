// A copy to the GPU on a stream of its own waits for the step's last kernel, so that it runs alone and not during the step.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

constexpr double kLeastLateCopyShare = 0.05;
constexpr std::int64_t kBeginsRightAfterNs = 30'000;  // after the work that it waits for

// A stream waits for the work that another stream had when an event was recorded.
struct StreamWait {
  std::int64_t made_ns = 0, recorded_ns = 0;
  std::int64_t of_stream = 0;
  SliceId call = kNone<SliceId>;  // cudaStreamWaitEvent
};

// In order of the calls that launched it.
struct LaunchedOnStream {
  std::int64_t launched_ns = 0, start_ns = 0, end_ns = 0;
  SliceId slice = kNone<SliceId>;
};

struct StreamOrder {
  std::map<std::int64_t, std::vector<StreamWait>> waits;  // by the stream that waits
  std::map<std::int64_t, std::vector<LaunchedOnStream>> by_stream;
};

std::unordered_map<std::int64_t, SliceId> event_calls(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::unordered_map<std::int64_t, SliceId> calls;  // by correlation
  const auto is_of_event = [](std::string_view name) {
    return name.find("EventRecord") != std::string_view::npos ||
           name.find("WaitEvent") != std::string_view::npos;
  };
  for (const SliceId id : slices_named(facts, is_of_event)) {
    if (!is_api_call(trace.kind(id))) continue;
    if (const auto number = trace.slice_args(id).integer(ArgKey::kCorrelation))
      calls.emplace(*number, id);
  }
  return calls;
}

StreamOrder order_of_streams(const Facts& facts) {
  const Trace& trace = *facts.trace;
  StreamOrder order;
  std::unordered_map<std::int64_t, SliceId> calls;
  for (const SliceId id : slices_named(facts, "Stream Wait Event")) {
    if (trace.kind(id) != CategoryKind::kCudaSync) continue;
    if (calls.empty()) calls = event_calls(facts);
    const ArgsView args = trace.slice_args(id);
    const auto stream = args.integer(ArgKey::kStream), of = args.integer(ArgKey::kWaitOnStream);
    const auto recorded = calls.find(args.integer(ArgKey::kWaitOnEventCorrelation).value_or(-1));
    const auto made = calls.find(args.integer(ArgKey::kCorrelation).value_or(-1));
    if (!stream || !of || *of == *stream || recorded == calls.end() || made == calls.end())
      continue;
    order.waits[*stream].push_back(
        {trace.start_ns(made->second), trace.start_ns(recorded->second), *of, made->second});
  }
  if (order.waits.empty()) return order;
  for (auto& [stream, waits] : order.waits)
    std::stable_sort(waits.begin(), waits.end(), [](const StreamWait& a, const StreamWait& b) {
      return a.made_ns < b.made_ns;
    });
  for (const DeviceWork& work : facts.device().timeline.work) {
    const SliceId call = facts.links.launch_of[raw(work.slice)];
    const auto stream = trace.slice_args(work.slice).integer(ArgKey::kStream);
    if (call != kNone<SliceId> && stream)
      order.by_stream[*stream].push_back(
          {trace.start_ns(call), work.start_ns, work.end_ns, work.slice});
  }
  for (auto& [stream, works] : order.by_stream)
    std::stable_sort(works.begin(), works.end(),
                     [](const auto& a, const auto& b) { return a.launched_ns < b.launched_ns; });
  return order;
}

// The last of these that was launched before a moment; null: none was.
const LaunchedOnStream* last_before(const std::vector<LaunchedOnStream>& works,
                                    std::int64_t time_ns) {
  const auto after = std::partition_point(
      works.begin(), works.end(), [&](const auto& each) { return each.launched_ns < time_ns; });
  return after == works.begin() ? nullptr : &*(after - 1);
}

struct LateCopies {
  std::uint64_t copies = 0;
  std::int64_t gain_ns = 0, exposed_ns = 0;
  std::int64_t longest_ns = -1;
  SliceId copy = kNone<SliceId>, waited_for = kNone<SliceId>, wait = kNone<SliceId>;
};

void add_late_copy(const Facts& facts, const StreamOrder& order, std::int64_t stream,
                   const LaunchedOnStream& copy, const LaunchedOnStream* before,
                   LateCopies& found) {
  const auto waits = order.waits.find(stream);
  if (waits == order.waits.end()) return;
  // Between the work before the copy on its stream, and the copy.
  auto wait_at = std::partition_point(
      waits->second.begin(), waits->second.end(),
      [&](const StreamWait& each) { return before && each.made_ns < before->launched_ns; });
  for (; wait_at != waits->second.end() && wait_at->made_ns <= copy.launched_ns; ++wait_at) {
    const StreamWait& wait = *wait_at;
    const auto others = order.by_stream.find(wait.of_stream);
    if (others == order.by_stream.end()) continue;
    const LaunchedOnStream* const last = last_before(others->second, wait.recorded_ns);
    if (!last || copy.start_ns < last->end_ns || copy.start_ns > last->end_ns + kBeginsRightAfterNs)
      continue;
    const std::int64_t could_begin_ns =
        std::max(copy.launched_ns, before ? before->end_ns : copy.launched_ns);
    const std::int64_t exposed_ns = facts.device().timeline.time_within(
        copy.start_ns, copy.end_ns)[static_cast<std::size_t>(WorkClass::kCopy)];
    const std::int64_t gain_ns = std::min(exposed_ns, last->end_ns - could_begin_ns);
    if (gain_ns <= 0) continue;
    ++found.copies;
    found.gain_ns += gain_ns;
    found.exposed_ns += exposed_ns;
    if (gain_ns > found.longest_ns) {
      found.longest_ns = gain_ns;
      found.copy = copy.slice;
      found.waited_for = last->slice;
      found.wait = wait.call;
    }
    return;
  }
}

std::optional<LateCopies> measure_late_copy(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const StreamOrder order = order_of_streams(facts);
  LateCopies found;
  for (const auto& [stream, works] : order.by_stream)
    for (std::size_t i = 0; i < works.size(); ++i)
      if (trace.name(works[i].slice).starts_with("Memcpy HtoD") &&
          inside(facts.steady_windows, works[i].start_ns))
        add_late_copy(facts, order, stream, works[i], i == 0 ? nullptr : &works[i - 1], found);
  if (found.copies == 0 || found.copies < facts.selection.steady.size() ||
      share_of(found.gain_ns, facts.steady_wall_ns()) < kLeastLateCopyShare)
    return std::nullopt;
  return found;
}

Finding tell_late_copy(const Facts& facts, const LateCopies& found) {
  const Trace& trace = *facts.trace;
  const Value waited_for = kernel(trace.name(found.waited_for));
  Finding finding;
  finding.verdict =
      say(facts,
          "Copies to the GPU on a stream of their own wait for the step's work (the last of it: "
          "{}), so they run alone: {} [per step], of which {} ({}) could run during that work.",
          {waited_for, ns(facts.per_step(found.exposed_ns)), ns(facts.per_step(found.gain_ns)),
           ratio(found.gain_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.gain_ns, found.copies, finding);
  finding.sample_noun = "copy";
  finding.arithmetic.push_back(
      say("counted: copies from the CPU that began within 30 us of the end of the work that their "
          "stream waited for; of the time that they ran alone, the part that fits between their "
          "launch and that end"));
  finding.evidence.push_back(called_at(facts, found.wait, say("the wait that makes it late")));
  finding.evidence.push_back({found.waited_for, say("what it waits for")});
  finding.evidence.push_back({found.copy, say("the copy")});
  finding.try_next = {
      "a copy from the CPU needs no result of the step, only a place that nothing reads any more: "
      "use two places that take turns, record an event after the last kernel that reads a place, "
      "and let the copy into that place wait for this event only",
      "wait_stream(current_stream()) waits for all work that was launched before it"};
  finding.brief = say(facts, "A copy to the GPU waits for the whole step, and then runs alone");
  finding.action = say(
      "Use two places in turn; wait only for an event after the last kernel that read the place");
  for (const char* covered : {"exposed-copy", "pageable-copy"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  return finding;
}

}  // namespace

extern constinit const Rule late_copy_rule = {
    .id = "late-copy",
    .question = "does a copy on a stream of its own wait for work that it does not need?",
    .meant_by = "copy stream wait event prefetch overlap",
    .order = 69,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_late_copy, tell_late_copy>,
};

}  // namespace lanescope::explain::rules

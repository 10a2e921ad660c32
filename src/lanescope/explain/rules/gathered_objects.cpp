// all_gather_object and its kind: Python objects are pickled and sent as bytes. Their sizes go first, and the CPU waits
// for them before it can send the rest.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastGatheredObjectsShare = 0.02;
constexpr std::size_t kMostCallsBetween = 12;

struct GatheredObjects {
  std::uint64_t objects = 0;
  std::int64_t busy_ns = 0, idle_ns = 0;
  SliceId first = kNone<SliceId>;
  std::int64_t cost_ns() const { return busy_ns + idle_ns; }
};

// The type of what a collective of the CPU's side sends: "Long", "Byte"; empty: no collective, or not recorded.
std::string_view sent_type(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  if (!trace.name(op).starts_with("c10d::")) return {};
  const Track& track = trace.track(op);
  for (std::uint32_t i = raw(op); i < track.first_slice + track.slice_count; ++i) {
    if (trace.start_ns(SliceId{i}) >= trace.end_ns(op)) break;
    const auto type = trace.slice_args(SliceId{i}).text(ArgKey::kDtype);
    if (type) return trace.text(*type);
  }
  return {};
}

// What turns an object into a tensor on the GPU, or back.
bool moves_object(std::string_view op) {
  static constexpr std::array<std::string_view, 17> kMoves = {
      "aten::copy_", "aten::empty",  "aten::set_", "aten::to",           "aten::lift_fresh",
      "aten::zeros", "aten::select", "aten::item", "aten::unsqueeze",    "aten::resize_",
      "aten::slice", "aten::detach", "detach",     "aten::resolve_conj", "aten::resolve_neg",
      "aten::view",  "aten::narrow"};
  return std::find(kMoves.begin(), kMoves.end(), op) != kMoves.end();
}

// Index of the collective that sends the bytes, if the one at `sizes` sends their sizes, of which the CPU reads the
// largest in between. Nothing: it does not.
std::optional<std::size_t> bytes_after(const Facts& facts, const CallSequence& calls,
                                       std::size_t sizes) {
  if (sent_type(facts, calls[sizes]) != "Long") return std::nullopt;
  bool is_read = false;
  for (std::size_t i = sizes + 1; i < calls.size() && i - sizes <= kMostCallsBetween; ++i) {
    const std::string_view op = facts.trace->name(calls[i]);
    is_read = is_read || op == "aten::item";
    const std::string_view type = sent_type(facts, calls[i]);
    if (type == "Byte" && is_read) return i;
    if (!type.empty() || !(moves_object(op) || op == "aten::max")) return std::nullopt;
  }
  return std::nullopt;
}

std::vector<Window> windows_of_objects(const Facts& facts, GatheredObjects& found) {
  const Trace& trace = *facts.trace;
  std::vector<Window> windows;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto sent = bytes_after(facts, calls, i);
      if (!sent) continue;
      if (found.objects++ == 0) found.first = calls[i];
      std::size_t first = i, last = *sent;
      while (first > 0 && moves_object(trace.name(calls[first - 1]))) --first;
      while (last + 1 < calls.size() && moves_object(trace.name(calls[last + 1]))) ++last;
      windows.push_back({trace.start_ns(calls[first]), trace.end_ns(calls[last])});
      i = last;
    }
  return windows;
}

std::optional<GatheredObjects> measure_gathered_objects(const Facts& facts) {
  GatheredObjects found;
  const std::vector<Window> windows = joined(windows_of_objects(facts, found));
  if (found.objects == 0) return std::nullopt;
  found.busy_ns = union_ns(steady_work_launched_in(facts, windows));
  found.idle_ns = device_idle_during(facts, windows);
  if (share_of(found.cost_ns(), facts.steady_wall_ns()) < kLeastGatheredObjectsShare)
    return std::nullopt;
  return found;
}

Finding tell_gathered_objects(const Facts& facts, const GatheredObjects& found) {
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict =
      say(facts,
          "Python objects are pickled and sent between ranks, {} [time|times] [in {} steps]: this "
          "takes {} [per step] ({}), in which the GPU only moves them or is idle.",
          {count(found.objects), count(steps), ns(facts.per_step(found.cost_ns())),
           ratio(found.cost_ns(), facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns(), found.objects, finding);
  finding.waiting_ns = facts.per_step(found.idle_ns);
  finding.arithmetic.push_back(
      say(facts,
          "GPU work {} [per step] + its idle time {} while the CPU packs, sends and unpacks: a "
          "collective of whole numbers, which the CPU reads, then one of bytes",
          {ns(facts.per_step(found.busy_ns)), ns(facts.per_step(found.idle_ns))}));
  finding.evidence.push_back(called_at(
      facts, found.first, say("the collective that sends the sizes of the first object")));
  finding.try_next = {
      "put the numbers into one tensor on the GPU and use all_reduce, all_gather_into_tensor or "
      "gather; nothing is pickled then, and the CPU does not wait for sizes",
      "do it every n steps, or at the end of an epoch"};
  finding.brief =
      say(facts, "Python objects are pickled and sent between ranks, {} [time|times] [in {} steps]",
          {count(found.objects), count(steps)});
  finding.action =
      say("Send one tensor (all_reduce, all_gather) instead of objects, and less often");
  finding.sample_noun = "object";
  finding.explains.push_back({"host-sync", finding.at_stake_ns});
  return finding;
}

}  // namespace

extern constinit const Rule gathered_objects_rule = {
    .id = "gathered-objects",
    .question = "are Python objects sent between ranks?",
    .meant_by = "all_gather_object pickle objects ranks",
    .order = 354,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_gathered_objects, tell_gathered_objects>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules

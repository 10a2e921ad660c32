// DistributedDataParallel sends the buffers of its model (running means of batch norms) to all ranks before each forward
// pass: it packs them, broadcasts them, and copies each back.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastBroadcastBuffersShare = 0.02;

struct BroadcastBuffers {
  std::uint64_t broadcasts = 0, copies = 0;
  std::vector<Window> windows;  // in order: of each forward pass, until the last buffer is copied
  std::int64_t busy_ns = 0, idle_ns = 0;
  SliceId first = kNone<SliceId>;
  std::int64_t cost_ns() const { return busy_ns + idle_ns; }
};

// What DistributedDataParallel calls to send tensors in few messages.
bool is_part_of_broadcast(std::string_view op) {
  static constexpr std::array<std::string_view, 7> kParts = {"aten::flatten_dense_tensors",
                                                             "c10d::broadcast_",
                                                             "record_param_comms",
                                                             "aten::unflatten_dense_tensors",
                                                             "aten::copy_",
                                                             "aten::detach",
                                                             "detach"};
  return std::find(kParts.begin(), kParts.end(), op) != kParts.end();
}

// From the first operator of the forward pass of DistributedDataParallel to the first that is the model's.
void add_forward(const Facts& facts, SliceId range, BroadcastBuffers& found) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(range);
  Window window{};
  std::uint64_t broadcasts = 0, copies = 0;
  for (std::uint32_t i = raw(range) + 1; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.start_ns(id) >= trace.end_ns(range)) break;
    if (facts.nesting.parent[i] != range || trace.kind(id) != CategoryKind::kCpuOp) continue;
    const std::string_view op = trace.name(id);
    if (!is_part_of_broadcast(op)) break;
    if (window.end_ns == 0) window.start_ns = trace.start_ns(id);
    window.end_ns = trace.end_ns(id);
    if (op == "c10d::broadcast_" && broadcasts++ == 0 && found.first == kNone<SliceId>)
      found.first = id;
    if (op == "aten::copy_") ++copies;
  }
  if (broadcasts == 0) return;
  found.broadcasts += broadcasts;
  found.copies += copies;
  found.windows.push_back(window);
}

std::optional<BroadcastBuffers> measure_broadcast_buffers(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  BroadcastBuffers found;
  for (const SliceId id : slices_named(facts, "DistributedDataParallel.forward"))
    if (trace.kind(id) == CategoryKind::kUserAnnotation && inside(cpu_windows, trace.start_ns(id)))
      add_forward(facts, id, found);
  if (found.windows.empty()) return std::nullopt;
  found.busy_ns = union_ns(steady_work_launched_in(facts, found.windows));
  found.idle_ns = device_idle_during(facts, found.windows);
  if (share_of(found.cost_ns(), facts.steady_wall_ns()) < kLeastBroadcastBuffersShare)
    return std::nullopt;
  return found;
}

Finding tell_broadcast_buffers(const Facts& facts, const BroadcastBuffers& found) {
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict = say(
      facts,
      "DistributedDataParallel sends the model's buffers to all ranks before each forward pass: {} "
      "[broadcast|broadcasts] [in {} steps], {} [per step] ({}).",
      {count(found.broadcasts), count(steps), ns(facts.per_step(found.cost_ns())),
       ratio(found.cost_ns(), facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns(), found.broadcasts, finding);
  finding.waiting_ns = facts.per_step(found.idle_ns);
  finding.arithmetic.push_back(
      say(facts,
          "GPU work {} [per step] + the GPU's idle time {} while the CPU packs the buffers, sends "
          "them and copies them back ({} [copy|copies] [in {} steps])",
          {ns(facts.per_step(found.busy_ns)), ns(facts.per_step(found.idle_ns)),
           count(found.copies), count(steps)}));
  finding.evidence.push_back(called_at(facts, found.first, say("the first broadcast")));
  finding.try_next = {
      "pass broadcast_buffers=False to DistributedDataParallel if the ranks may have different "
      "buffers; batch norms then keep the running means of their own rank",
      "with SyncBatchNorm the buffers are equal on all ranks without a broadcast"};
  finding.brief = say("DistributedDataParallel sends the model's buffers before each forward pass");
  finding.action =
      say("If ranks may differ in running means: DistributedDataParallel(broadcast_buffers=False)");
  finding.sample_noun = "broadcast";
  return finding;
}

}  // namespace

extern constinit const Rule broadcast_buffers_rule = {
    .id = "broadcast-buffers",
    .question = "are the model's buffers sent to all ranks in each step?",
    .meant_by = "batchnorm broadcast_buffers",
    .order = 352,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_broadcast_buffers, tell_broadcast_buffers>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules

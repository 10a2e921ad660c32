// A buffer that torch.cat makes again and again, each time a little longer: a key-value cache.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/growing_buffers.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

struct GrowingCat {
  std::string shape;  // of the buffer with most calls
  GrowingBuffer buffer;
  std::uint64_t call_count = 0;  // of all that grow
  std::int64_t copies_ns = 0;    // of the GPU
  SliceId longest = kNone<SliceId>;
};

Measurement<GrowingCat> measure_growing_cat(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<SliceId> calls;
  bool has_shapes = false;
  for (const SliceId id : slices_named(facts, "aten::cat")) {
    if (trace.kind(id) != CategoryKind::kCpuOp) continue;
    calls.push_back(id);
    has_shapes = has_shapes || trace.slice_args(id).has(ArgKey::kInputDims);
  }
  if (calls.size() < 4) return Quiet{};
  if (!has_shapes) return NotChecked{"shapes of the inputs of aten::cat (record_shapes=True)"};
  sort_rows(calls.begin(), calls.end(),
            [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
  const auto buffers = buffers_by_shape(trace, calls);
  // The kernels that these calls launched.
  std::unordered_map<std::uint32_t, bool> grows;  // aten::cat -> it is one of those
  const std::pair<const std::string, GrowingBuffer>* most = nullptr;
  std::uint64_t call_count = 0;
  for (const auto& entry : buffers) {
    const GrowingBuffer& buffer = entry.second;
    if (!buffer.grows()) continue;
    for (const SliceId call : buffer.calls) grows[raw(call)] = true;
    call_count += buffer.calls.size();
    if (!most || buffer.calls.size() > most->second.calls.size()) most = &entry;
  }
  if (!most) return Quiet{};
  analysis::IntervalUnion copies;
  SliceId longest = kNone<SliceId>;
  for (const auto& work : facts.device().timeline.work) {
    if (!inside(facts.steady_windows, work.start_ns)) continue;
    SliceId op = facts.links.op_of[raw(work.slice)];
    while (op != kNone<SliceId> && !grows.count(raw(op))) op = facts.nesting.parent[raw(op)];
    if (op == kNone<SliceId>) continue;
    copies.add(work.start_ns, work.end_ns);
    if (longest == kNone<SliceId> || trace.dur_ns(work.slice) > trace.dur_ns(longest))
      longest = work.slice;
  }
  copies.finish();
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (share_of(copies.length_ns(), wall_ns) < 0.01) return Quiet{};
  return GrowingCat{.shape = most->first,
                    .buffer = most->second,
                    .call_count = call_count,
                    .copies_ns = copies.length_ns(),
                    .longest = longest};
}

Finding tell_growing_cat(const Facts& facts, const GrowingCat& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict =
      say(facts,
          "torch.cat copies a buffer that grows a piece at a time: {} calls, of shape {} from {} "
          "to {}; each call copies the whole buffer again, {} of GPU time [per step].",
          {count(found.call_count), text(found.shape),
           count(static_cast<std::uint64_t>(found.buffer.first)),
           count(static_cast<std::uint64_t>(found.buffer.longest)),
           ns(facts.per_step(found.copies_ns))});
  finding.at_stake_ns = facts.per_step(found.copies_ns);
  finding.at_stake_ratio = share_of(found.copies_ns, wall_ns);
  finding.arithmetic.push_back(
      say(facts,
          "{} [time|times] the next call's buffer was longer by just the piece that was "
          "added ({}); over a whole sequence the copied bytes grow with the square of its length",
          {count(found.buffer.growths), count(static_cast<std::uint64_t>(found.buffer.piece))}));
  finding.evidence.push_back({found.longest, say("the longest copy")});
  finding.try_next = {
      "allocate the buffer once at its full length and write each piece into its place (a static "
      "key-value cache); fixed shapes also allow CUDA graphs"};
  finding.confidence = found.buffer.growths >= 10 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = found.call_count;
  finding.sample_noun = "call";
  finding.brief = say("torch.cat copies a growing buffer again on each call");
  finding.action = say("Allocate it once at full length and write into it (a static KV cache)");
  return finding;
}

}  // namespace

extern constinit const Rule growing_cat_rule = {
    .id = "growing-cat",
    .question = "is a growing buffer copied again and again?",
    .order = 460,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_growing_cat, tell_growing_cat>,
    .is_regression = true,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules

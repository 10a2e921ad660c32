// What to do about waits for the GPU, by the operator that waits.
#include "lanescope/explain/rules/wait_remedies.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/explain/loop_remedies.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/built_chains.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/host_syncs.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {
namespace {

// Values that a loop reads one after the other.
bool reads_one_by_one(const Facts& facts, const std::pair<std::string_view, SyncGroup>& group) {
  constexpr std::size_t kFewestReads = 16;  // of a step
  return (group.first == "aten::item" || group.first == "aten::is_nonzero") &&
         group.second.calls >= kFewestReads * facts.selection.steady.size();
}

// Compares, counts or adds up: what a search does in a round.
bool is_of_search(std::string_view op) {
  constexpr std::string_view kBegins[] = {"aten::__", "aten::bitwise_", "aten::logical_"};
  constexpr std::string_view kOps[] = {
      "aten::sum", "aten::mean",          "aten::any", "aten::all", "aten::max",
      "aten::min", "aten::item",          "aten::add", "aten::sub", "aten::mul",
      "aten::div", "aten::count_nonzero", "aten::to",  "aten::eq",  "aten::where"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view each) { return op.starts_with(each); }) ||
         std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}
bool is_limit(std::string_view op) {
  return op == "aten::gt" || op == "aten::ge" || op == "aten::lt" || op == "aten::le";
}

// Does each round of this loop compare values with a limit, and only count afterwards? Then it may be a search, such as one that
// tries 100 thresholds.
bool tries_limits(const Owner& loop) {
  return loop.kind == OwnerKind::kLoop &&
         std::any_of(loop.cell.begin(), loop.cell.end(), is_limit) &&
         std::all_of(loop.cell.begin(), loop.cell.end(),
                     [](const std::string& op) { return is_limit(op) || is_of_search(op); });
}

// The loop of a search that has nine tenths of these waits, with one in each round or more; null: there is none.
const Owner* search_around(const Facts& facts, const SyncGroup& group) {
  constexpr std::uint64_t kFewestSearchRounds = 8;
  const Owners* owners = step_owners(facts);
  if (!owners) return nullptr;
  for (const Owner& owner : owners->owners)
    if (tries_limits(owner) && rounds_of(owner) >= kFewestSearchRounds &&
        owner.work.waits >= owner.rounds && owner.work.waits * 10 >= group.calls * 9)
      return &owner;
  return nullptr;
}

// True: the longest wait is for one copy of several values, as Tensor.tolist() and .cpu() make it.
bool reads_many_at_once(const Facts& facts, const SyncGroup& group) {
  constexpr std::int64_t kOneNumber = 16;  // bytes: a complex one is the largest
  const Trace& trace = *facts.trace;
  const SliceId op = outermost_operator(facts, group.longest);
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> || !trace.name(work.slice).starts_with("Memcpy DtoH") ||
        outermost_operator(facts, launch) != op)
      continue;
    if (trace.slice_args(work.slice).integer(ArgKey::kBytes).value_or(0) > kOneNumber) return true;
  }
  return false;
}

// Do most of these reads follow one another, with views at most between them? So reads a loop over the elements of a result.
bool reads_elements(const Facts& facts, std::string_view op) {
  std::uint64_t reads = 0, in_a_row = 0;
  for (const CallSequence& calls : call_sequences(facts)) {
    bool is_after_read = false;
    for (const SliceId call : calls) {
      const std::string_view label = facts.trace->name(call);
      if (label != op && is_view(label)) continue;
      reads += label == op ? 1 : 0;
      in_a_row += label == op && is_after_read ? 1 : 0;
      is_after_read = label == op;
    }
  }
  return in_a_row > 0 && in_a_row * 4 >= reads * 3;
}

// In training, a value may be a loss that is only reported. Elsewhere it is rather a result of the step.
bool trains_in_steps(const Facts& facts) {
  const auto windows = facts.steady_cpu_windows();
  return trains(facts, &windows);
}

// Copies of one operator to the GPU in the steady steps. `bytes` is -1 if one of them has no size.
struct Uploads {
  std::int64_t count = 0, bytes = 0, largest_bytes = 0;
  bool has_several_elements = false;  // one of them, where shapes are recorded
};

// Does the operator that makes the copy say that its tensor has more than one element?
bool copies_several_elements(const Facts& facts, SliceId launch) {
  const SliceId op = facts.links.op_of[raw(launch)];
  if (op == kNone<SliceId>) return false;
  const std::string_view label = facts.trace->name(op);
  if (label != "aten::copy_" && label != "aten::_to_copy" && label != "aten::to") return false;
  for (const analysis::Sizes& shape : first_input_shapes(*facts.trace, op))
    if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size > 1; }))
      return true;
  return false;
}

Uploads uploads_of(const Facts& facts, std::string_view op) {
  Uploads found;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> || !facts.trace->name(work.slice).starts_with("Memcpy HtoD") ||
        !inside(facts.steady_windows, work.start_ns) ||
        facts.trace->name(outermost_operator(facts, launch)) != op)
      continue;
    const auto own = facts.trace->slice_args(work.slice).integer(ArgKey::kBytes);
    if (!own) return {.bytes = -1};
    ++found.count;
    found.bytes += *own;
    found.largest_bytes = std::max(found.largest_bytes, *own);
    found.has_several_elements =
        found.has_several_elements || copies_several_elements(facts, launch);
  }
  return found;
}

// Uploads of one operator that carry so little that the calls are the cost: pinned memory would not spare them.
bool are_many_small_uploads(const Facts& facts,
                            const std::pair<std::string_view, SyncGroup>& group) {
  constexpr std::uint64_t kFewestUploads = 8;  // of a step
  constexpr std::int64_t kSmallBytes = 4096;
  if (group.second.calls < kFewestUploads * facts.selection.steady.size()) return false;
  const Uploads uploads = uploads_of(facts, group.first);
  return uploads.count > 0 && uploads.bytes >= 0 && uploads.bytes <= uploads.count * kSmallBytes;
}

// What to do about copies to the GPU. A number of the program that became a tensor on the CPU, as by x[index] = 0, cannot be
// pinned; a few numbers, such as the labels of a small batch, can.
Sentence remedy_for_uploads(const Facts& facts, std::string_view op) {
  constexpr std::int64_t kOneNumber = 8, kFewBytes = 64;
  const Uploads uploads = uploads_of(facts, op);
  const bool are_known = uploads.count > 0 && uploads.bytes >= 0;
  if (!are_known || uploads.largest_bytes > kFewBytes)
    return say("Use pinned memory and .to(device, non_blocking=True): such copies do not wait");
  if (uploads.largest_bytes > kOneNumber || uploads.has_several_elements)
    return say(
        "A few bytes per copy: pinned memory with non_blocking=True, or send them with the batch");
  return op.starts_with("aten::index_put")
             ? say("x[i] = number copies the number to the GPU: use x.index_fill_(0, i, number), "
                   "or make it a tensor there once")
             : say("One number per copy: make it on the GPU (torch.full), or once before the loop");
}

// torch.cuda.synchronize(); other calls wait for one stream or event.
bool waits_for_all_streams(std::string_view call) {
  return call.find("DeviceSynchronize") != call.npos || call.find("CtxSynchronize") != call.npos;
}

// The outermost operator of the thread before this wait's.
std::string_view operator_before(const Facts& facts, SliceId wait) {
  const SliceId op = outermost_operator(facts, wait);
  const Track& track = facts.trace->track(op);
  if (raw(op) == track.first_slice) return {};
  return facts.trace->name(outermost_operator(facts, SliceId{raw(op) - 1}));
}

// torch.distributions checks its arguments: all(...) of a comparison, and then Python asks whether it is true.
bool is_check_of_arguments(const Facts& facts,
                           const std::pair<std::string_view, SyncGroup>& ranked) {
  return ranked.first == "aten::is_nonzero" &&
         operator_before(facts, ranked.second.longest) == "aten::_is_all_true";
}

// In the step of torch.optim.LBFGS, and not in its closure.
bool is_own_read_of_lbfgs(const Facts& facts, SliceId wait) {
  const SliceId range = optimizer_step_around(facts, facts.links.op_of[raw(wait)]);
  return range != kNone<SliceId> && names::optimizer_of_step(facts.trace->name(range)) == "LBFGS" &&
         training_phases(facts)[raw(wait)] == analysis::Phase::kOptimizer;
}

// Tensors that the program makes on the CPU right before it copies them: pinned memory is no help for these.
std::uint64_t uploads_of_made_tensors(const Facts& facts, std::string_view op) {
  std::uint64_t copies = 0;
  for (const BuiltChain& chain : built_chains(facts))
    for (const SliceId copy : chain.copies) copies += facts.trace->name(copy) == op ? 1 : 0;
  return copies;
}

}  // namespace

Value asker_name(std::string_view label) {
  constexpr std::string_view kTorchNode = "torch::autograd::";
  label = without_evaluate(label);
  if (label.starts_with(kTorchNode)) label.remove_prefix(kTorchNode.size());
  return name(label);
}

bool converts_layout(std::string_view op) {
  return op.starts_with("aten::to_sparse") || op.starts_with("aten::_to_sparse") ||
         op == "aten::_coalesce" || op == "aten::coalesce" || op == "aten::to_dense" ||
         op.starts_with("aten::nonzero") || op.starts_with("aten::unique") ||
         op.starts_with("aten::_unique");
}

Sentence remedy_for_waits(const Facts& facts,
                          const std::pair<std::string_view, SyncGroup>& ranked) {
  const auto& [op, waits] = ranked;
  if (is_check_of_arguments(facts, ranked))
    return say(
        "If torch.distributions checks its arguments: "
        "Distribution.set_default_validate_args(False)");
  if (op == "aten::coalesce")
    return say("If the matrix stays the same: coalesce it once; for a small table: sparse=False");
  if (converts_layout(op))
    return op.find("sparse") == std::string_view::npos
               ? say("If its input stays the same: do it once, before the loop")
               : say("If the matrix stays the same: convert it once, before the loop");
  if (waits.is_of_uploads())
    if (const std::uint64_t made = uploads_of_made_tensors(facts, op); made * 2 > waits.calls)
      return say(facts,
                 "The CPU makes {} of these [tensor|tensors] [per step] right before: make them on "
                 "the GPU (device=x.device), constants once",
                 {count(a_step(facts, made))});
  if (waits.is_of_uploads())
    return are_many_small_uploads(facts, ranked)
               ? say("If known ahead: join them on the CPU and copy once; else pinned memory and "
                     "non_blocking=True")
               : remedy_for_uploads(facts, op);
  const ApiCall call = find_api_call(op);  // where no operator is around it
  if (call.does(api_effect::kBlocks) && !call.does(api_effect::kCopies))
    return waits_for_all_streams(op) ? say("Remove torch.cuda.synchronize() from the loop")
                                     : say("Let a stream wait instead of the CPU: "
                                           "stream.wait_event() or stream.wait_stream()");
  if (reads_one_by_one(facts, ranked))
    if (const Owner* search = search_around(facts, waits))
      return say(
          "If no round needs the one before it: try all {} at once (broadcasting, "
          "torch.searchsorted), read once; else test every few rounds",
          {count(rounds_of(*search))});
  if (reads_one_by_one(facts, ranked) && is_own_read_of_lbfgs(facts, waits.longest))
    return say(
        "L-BFGS reads a product of each entry of its history: use a smaller history_size (100 "
        "unless set)");
  if (reads_one_by_one(facts, ranked))
    return reads_elements(facts, op)
               ? say("Keep the results in one tensor, and read it once: .tolist() or .cpu()")
               : say("Do it for all values at once on the GPU (where, gather, scatter), or read "
                     "all in one copy");
  if (waits.at_end == waits.calls && !trains_in_steps(facts) &&
      waits.calls >= 2 * facts.selection.steady.size())
    return say(
        "Copy all results with non_blocking=True into pinned memory, then wait once, a step later "
        "if possible");
  if (waits.at_end == waits.calls)
    return trains_in_steps(facts)
               ? say("If the next step does not need it: read it a step later (pinned memory, "
                     "non_blocking=True), or every n steps")
               : say("If the next step does not need it: read it a step later (pinned memory, "
                     "non_blocking=True)");
  if (reads_many_at_once(facts, waits))
    return say("If the CPU needs these values now, one copy is right; else read them a step later");
  return trains_in_steps(facts) ? say("Keep the value on the GPU; if it is only reported, read it "
                                      "after the last launch or every n steps")
                                : say("Keep the value on the GPU; read it after the last launch");
}

}  // namespace lanescope::explain::rules

// Rule 3 of docs/definitions/key_averages.md: which device work belongs to which operator. By sorted
// ids, as torch joins them, or by launches.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "lanescope/analysis/torch_event_stages.h"

namespace lanescope::analysis {
namespace {

// Counts kernels that torch would count twice: overhead rows take the kernels of the
// operator around them.
void count_overhead_claims(const Trace& trace, TorchEvents& out) {
  if (out.is_own) return;  // torch made no table of this trace
  std::vector<std::uint32_t> open;
  for (std::uint32_t i = 0; i < out.events.size(); ++i) {
    const TorchEvent& event = out.events[i];
    if (event.slice == kNone<SliceId> || event.thread != raw(out.main_track)) continue;
    if (is_front_end(trace.kind(event.slice))) open.push_back(i);
    if (!event.is_overhead) continue;
    while (!open.empty() && out.events[open.back()].end_ns <= event.start_ns) open.pop_back();
    if (open.empty()) continue;
    const TorchEvent& op = out.events[open.back()];
    for (std::uint32_t k = op.kernels_first; k < op.kernels_first + op.kernels_count; ++k) {
      const TorchEvent& kernel = out.events[out.kernels[k]];
      ++out.notes.overhead_claim_count;
      out.notes.overhead_claim_ns += kernel.end_ns - kernel.start_ns;
    }
  }
}

}  // namespace

// Rule 3. In a file, a linked row has its operator's External id. In torch, an unlinked API call
// has its correlation id, and an overhead row the id of the operator open at its start; torch
// looks up both like an operator's id.
void link_by_external_id(const Trace& trace, TorchEvents& out) {
  struct Linked {
    std::int64_t id;
    std::uint32_t event;
    bool operator<(const Linked& other) const {
      return id != other.id ? id < other.id : event < other.event;
    }
  };
  std::vector<Linked> linked;
  std::vector<std::int64_t> ids(out.events.size(),
                                0);  // the id to look up; 0: none
  std::vector<std::uint32_t> open;   // front-end rows of the main thread around `event`
  for (std::uint32_t i = 0; i < out.events.size(); ++i) {
    TorchEvent& event = out.events[i];
    if (event.slice == kNone<SliceId>) continue;
    const CategoryKind kind = trace.kind(event.slice);
    const ArgsView args = trace.slice_args(event.slice);
    const std::int64_t external = args.integer(ArgKey::kExternalId).value_or(0);
    if (is_front_end(kind)) {
      ids[i] = external;
      if (event.thread == raw(out.main_track)) open.push_back(i);
    } else if (event.is_overhead) {
      if (out.is_own) continue;  // not a link; a bug in torch.profiler's traces
      while (!open.empty() && out.events[open.back()].end_ns <= event.start_ns) open.pop_back();
      if (!open.empty()) ids[i] = ids[open.back()];
    } else if (external > 0 && kind != CategoryKind::kGpuUserAnnotation) {
      linked.push_back({external, i});
    } else if (is_api_call(kind)) {
      ids[i] = args.integer(ArgKey::kCorrelation).value_or(0);
      if (out.main_track != kNone<TrackId>) event.thread = raw(out.main_track);
    }
  }
  if (!std::is_sorted(linked.begin(), linked.end())) std::sort(linked.begin(), linked.end());
  for (std::uint32_t i = 0; i < out.events.size(); ++i) {
    TorchEvent& event = out.events[i];
    if (ids[i] <= 0 || event.on_device || event.is_async) continue;
    auto at = std::lower_bound(linked.begin(), linked.end(), Linked{ids[i], 0});
    event.kernels_first = static_cast<std::uint32_t>(out.kernels.size());
    for (; at != linked.end() && at->id == ids[i]; ++at) {
      if (out.events[at->event].on_device)
        out.kernels.push_back(at->event);
      else
        out.events[at->event].thread = event.thread;
    }
    event.kernels_count = static_cast<std::uint32_t>(out.kernels.size()) - event.kernels_first;
  }
}

// The corrected link: device work belongs to the operator around its launch.
void link_by_launch(const Trace& trace, const LaunchLinks& links, TorchEvents& out) {
  std::vector<std::uint32_t> event_of(trace.slices().size(), TorchEvent::kNoEvent),
      count(out.events.size() + 1, 0);
  for (std::uint32_t i = 0; i < out.events.size(); ++i)
    if (out.events[i].slice != kNone<SliceId>) event_of[raw(out.events[i].slice)] = i;
  const auto owner = [&](const TorchEvent& event) {
    if (event.slice == kNone<SliceId> || !is_device_work(trace.kind(event.slice)))
      return TorchEvent::kNoEvent;
    SliceId op = links.op_of[raw(event.slice)];
    if (op == kNone<SliceId>) op = links.launch_of[raw(event.slice)];
    return op == kNone<SliceId> ? TorchEvent::kNoEvent : event_of[raw(op)];
  };
  for (const TorchEvent& event : out.events)
    if (const std::uint32_t of = owner(event); of != TorchEvent::kNoEvent) ++count[of];
  std::uint32_t total = 0;
  for (std::uint32_t i = 0; i < out.events.size(); ++i) {
    out.events[i].kernels_first = total;
    total += count[i];
  }
  out.kernels.resize(total);
  for (std::uint32_t i = 0; i < out.events.size(); ++i) {
    const std::uint32_t of = owner(out.events[i]);
    if (of == TorchEvent::kNoEvent) continue;
    TorchEvent& op = out.events[of];
    out.kernels[op.kernels_first + op.kernels_count++] = i;
  }
  count_overhead_claims(trace, out);
}

}  // namespace lanescope::analysis

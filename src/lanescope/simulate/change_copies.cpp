#include "lanescope/simulate/change_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/analysis/steps.h"
#include "lanescope/model/gpu_catalog.h"

namespace lanescope::simulate {
namespace {

// Bytes a second of pinned copies of at least 256 KB; 0: the trace has none.
double pinned_rate(const ChangedGraph& changed, bool to_device) {
  std::vector<std::int64_t> rates;
  for (const GpuWork& work : changed.graph.works) {
    const std::string_view name = changed.trace.name(work.slice);
    const auto bytes = changed.trace.slice_args(work.slice).integer(ArgKey::kBytes);
    if (name.find("Pinned") == std::string_view::npos || is_copy_to_device(name) != to_device ||
        !bytes || *bytes < kLeastRatedCopyBytes || changed.trace.dur_ns(work.slice) == 0)
      continue;
    rates.push_back(static_cast<std::int64_t>(
        static_cast<double>(*bytes) * 1e9 / static_cast<double>(changed.trace.dur_ns(work.slice))));
  }
  return static_cast<double>(analysis::lower_median(std::move(rates)));
}

// Bytes a second that pinned memory is assumed to give on this GPU; 0: its link is not known.
double assumed_rate(const Trace& trace) {
  const auto devices = parse_gpu_devices(trace.metadata_json("deviceProperties").value_or("[]"));
  const GpuSpec* spec = devices.empty() ? nullptr : find_gpu_spec(devices.front());
  return spec && spec->pcie_generation
             ? kPinnedPartOfLink * pcie_bytes_per_s(*spec->pcie_generation)
             : 0;
}

struct PinnedRate {
  double bytes_per_s = 0;  // 0: not known
  bool is_assumed = false;
};
PinnedRate rate_of(const ChangedGraph& changed, bool to_device) {
  if (changed.change.number) return {*changed.change.number * 1e9, false};
  if (const double measured = pinned_rate(changed, to_device); measured > 0)
    return {measured, false};
  return {assumed_rate(changed.trace), true};
}

void note_rates(ChangedGraph& changed, double assumed_bytes_per_s, bool is_unknown) {
  changed.applied.notes.push_back(
      "copies to the GPU no longer stop the CPU (non_blocking=True), copies to the CPU still do; "
      "the time to fill the pinned memory is not added");
  if (assumed_bytes_per_s > 0) {
    changed.applied.assumed = fmt::format("{:.0f} GB/s", assumed_bytes_per_s / 1e9);
    changed.applied.notes.push_back(fmt::format(
        "assumed: {}, which is {:.0f} % of the PCIe link in the GPU's data sheet, because the "
        "trace holds no pinned "
        "copy of 256 KB or more in that direction. If yours is another, name it: 'pin 25 GB/s'",
        changed.applied.assumed, kPinnedPartOfLink * 100));
  }
  if (is_unknown)
    changed.applied.notes.push_back(
        "the trace holds no pinned copy of 256 KB or more in that direction, and the GPU's link or "
        "the bytes are not known, so "
        "copies keep their time; 'pin 50 GB/s' names a rate");
}

bool is_host_copy(const ChangedGraph& changed, std::uint32_t work) {
  const std::string_view name = changed.trace.name(changed.graph.works[work].slice);
  return changed.trace.kind(changed.graph.works[work].slice) == CategoryKind::kGpuMemcpy &&
         (is_copy_to_device(name) || name.find("DtoH") != std::string_view::npos ||
          name.find("DeviceToHost") != std::string_view::npos);
}

// For each work, the last one before it on its stream that is no copy, and the last copy to the GPU. kNoIndex: none. O(works), while a
// search for each would take as long as all copies before it.
struct WorksBefore {
  std::vector<std::uint32_t> no_copy, upload;
  explicit WorksBefore(const ChangedGraph& changed) {
    const auto& works = changed.graph.works;
    no_copy.reserve(works.size());
    upload.reserve(works.size());
    for (const GpuWork& work : works) {  // the previous work of a stream has a smaller index
      const std::uint32_t previous = work.previous;
      const bool is_first = previous == kNoIndex;
      const bool follows_copy = !is_first && is_host_copy(changed, previous);
      no_copy.push_back(follows_copy ? no_copy[previous] : previous);
      upload.push_back(follows_copy && is_copy_to_device(changed.trace.name(works[previous].slice))
                           ? previous
                       : is_first ? kNoIndex
                                  : upload[previous]);
    }
  }
};

// After copies now comes what waits for the last copy to the GPU before those.
void use_copy_before(ChangedGraph& changed, const GpuWork& work, std::uint32_t upload) {
  if (upload == kNoIndex || work.spare_edge == kNoIndex ||
      changed.graph.works[upload].end >= work.start)
    return;
  changed.edges[work.spare_edge].from = changed.graph.works[upload].end;
  changed.edges[work.spare_edge].dropped = false;
}

}  // namespace

bool is_copy_to_device(std::string_view name) {
  return name.find("HtoD") != std::string_view::npos ||
         name.find("HostToDevice") != std::string_view::npos;
}

void pin_copies(ChangedGraph& changed) {
  const PinnedRate rates[] = {rate_of(changed, false), rate_of(changed, true)};
  std::vector<std::int64_t> calls;
  std::unordered_set<std::uint32_t> input_calls;
  bool is_unknown = false;
  double assumed = 0;
  for (const GpuWork& work : changed.graph.works) {
    if (work.launch == kNone<SliceId>) continue;
    const std::string_view name = changed.trace.name(work.slice);
    if (name.find("Pageable") == std::string_view::npos) {
      calls.push_back(changed.trace.dur_ns(work.launch));
      continue;
    }
    ++changed.applied.count;
    const bool to_device = is_copy_to_device(name);
    if (to_device) input_calls.insert(raw(work.launch));
    const auto bytes = changed.trace.slice_args(work.slice).integer(ArgKey::kBytes);
    const auto [rate, is_assumed] = rates[to_device ? 1 : 0];
    if (rate <= 0 || !bytes) {
      is_unknown = true;
      continue;
    }
    if (is_assumed) assumed = rate;
    if (work.work_edge != kNoIndex)
      changed.edges[work.work_edge].weight_ns =
          std::min(changed.edges[work.work_edge].weight_ns,
                   static_cast<std::int64_t>(static_cast<double>(*bytes) * 1e9 / rate));
  }
  for (const HostWait& wait : changed.graph.waits)
    if (input_calls.contains(raw(wait.call))) changed.edges[wait.wait_edge].dropped = true;
  const std::int64_t call_ns = calls.empty() ? 10'000 : analysis::lower_median(std::move(calls));
  for (Edge& edge : changed.edges)
    if (edge.kind == EdgeKind::kHost && edge.owner != kNone<SliceId> &&
        input_calls.contains(raw(edge.owner)))
      edge.weight_ns = std::min(edge.weight_ns, call_ns);
  if (changed.applied.count == 0) return;
  note_rates(changed, assumed, is_unknown);
}

// A work's stream edge comes from the last work of its stream that is no copy; copies of one
// direction follow each other.
void overlap_copies(ChangedGraph& changed) {
  const WorksBefore works_before(changed);
  std::uint32_t last[2] = {kNoIndex, kNoIndex};
  for (std::uint32_t i = 0; i < changed.graph.works.size(); ++i) {
    const GpuWork& work = changed.graph.works[i];
    const bool copy = is_host_copy(changed, i);
    std::uint32_t before = work.previous;
    if (copy) {
      std::uint32_t& same = last[is_copy_to_device(changed.trace.name(work.slice)) ? 1 : 0];
      before = std::exchange(same, i);
      ++changed.applied.count;
    } else {
      before = works_before.no_copy[i];
      if (before == work.previous) continue;
      use_copy_before(changed, work, before == kNoIndex ? kNoIndex : works_before.upload[before]);
    }
    if (work.stream_edge == kNoIndex) continue;
    Edge& edge = changed.edges[work.stream_edge];
    forget_slack(edge);
    if (before != kNoIndex && changed.graph.works[before].end < work.start)
      edge.from = changed.graph.works[before].end;
    else if (work.launch_edge != kNoIndex)
      edge.dropped = true;
  }
  if (changed.applied.count > 0)
    changed.applied.notes.push_back(
        "copies run on a stream of their own, and what ran after a copy uses the data of the "
        "copy before it, such as the one made during the last step. Calls that wait for a copy "
        "still wait");
}

}  // namespace lanescope::simulate

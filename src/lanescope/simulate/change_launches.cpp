#include "lanescope/simulate/change_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lanescope/simulate/name_pattern.h"

namespace lanescope::simulate {
namespace {

// Nodes of one graph follow each other this closely, where kernels of a stream leave about 1 us: median of 2,600 pairs of nodes
// on H100 and H200 (docs/measurements/whatif.md).
constexpr std::int64_t kGapInGraphNs = 130;

// The outermost event of the pattern around the work's launch; kNone: none.
SliceId outermost(const ChangedGraph& changed, const NamePattern& pattern, const GpuWork& work) {
  SliceId found = kNone<SliceId>;
  SliceId slice =
      work.launch != kNone<SliceId> ? work.launch : changed.graph.links->op_of[raw(work.slice)];
  for (int depth = 0; slice != kNone<SliceId> && depth < 1000; ++depth) {
    if (pattern.fits(changed.trace, slice)) found = slice;
    slice = changed.nesting.parent[raw(slice)];
  }
  if (found == kNone<SliceId> && work.launch != kNone<SliceId>) {
    slice = changed.graph.links->op_of[raw(work.launch)];
    for (int depth = 0; slice != kNone<SliceId> && depth < 1000; ++depth) {
      if (pattern.fits(changed.trace, slice)) found = slice;
      slice = changed.nesting.parent[raw(slice)];
    }
  }
  return found;
}

// The kernel `first` takes over `work`, which goes with its launch.
void fuse_into(ChangedGraph& changed, const GpuWork& first, const GpuWork& work,
               std::unordered_set<std::uint32_t>& gone_launches) {
  Edge& kept = changed.edges[first.work_edge];
  kept.weight_ns = std::max(kept.weight_ns, changed.edges[work.work_edge].weight_ns);
  changed.edges[work.work_edge].weight_ns = 0;
  if (work.stream_edge != kNoIndex) {
    take_no_time(changed.edges[work.stream_edge]);
    if (work.launch_edge != kNoIndex) changed.edges[work.launch_edge].dropped = true;
  }
  if (work.launch != kNone<SliceId>) gone_launches.insert(raw(work.launch));
  ++changed.applied.count;
}

void fuse_chains(ChangedGraph& changed, std::unordered_set<std::uint32_t>& gone_launches) {
  std::unordered_map<std::uint32_t, std::uint32_t> work_of;  // by kernel
  for (std::uint32_t i = 0; i < changed.graph.works.size(); ++i)
    work_of[raw(changed.graph.works[i].slice)] = i;
  for (const std::vector<SliceId>& chain : changed.change.chains) {
    const GpuWork* first = nullptr;
    for (const SliceId kernel : chain) {
      const auto found = work_of.find(raw(kernel));
      if (found == work_of.end()) continue;
      const GpuWork& work = changed.graph.works[found->second];
      if (work.work_edge == kNoIndex) continue;
      if (first)
        fuse_into(changed, *first, work, gone_launches);
      else
        first = &work;
    }
  }
}

// Kernels in a row on a stream, launched inside the same occurrence of the name, become one that
// takes as long as the longest: it reads and writes its data once.
void fuse_named(ChangedGraph& changed, std::unordered_set<std::uint32_t>& gone_launches) {
  const NamePattern pattern(changed.trace, changed.change.name);
  const std::vector<bool> fits = slices_inside(changed, pattern);
  std::uint32_t first = kNoIndex;
  const auto is_fused = [&](const GpuWork& work) {
    return work.work == analysis::WorkClass::kCompute && work.work_edge != kNoIndex &&
           work_fits(changed, work, fits);
  };
  for (std::uint32_t i = 0; i < changed.graph.works.size(); ++i) {
    const GpuWork& work = changed.graph.works[i];
    if (!is_fused(work)) continue;
    const bool follows = first != kNoIndex && work.previous != kNoIndex &&
                         is_fused(changed.graph.works[work.previous]) &&
                         outermost(changed, pattern, changed.graph.works[work.previous]) ==
                             outermost(changed, pattern, work) &&
                         outermost(changed, pattern, work) != kNone<SliceId>;
    if (!follows) {
      first = i;
      continue;
    }
    fuse_into(changed, changed.graph.works[first], work, gone_launches);
  }
}

}  // namespace

void fuse_kernels(ChangedGraph& changed) {
  std::unordered_set<std::uint32_t> gone_launches;
  if (changed.change.chains.empty())
    fuse_named(changed, gone_launches);
  else
    fuse_chains(changed, gone_launches);
  take_no_cpu_time(changed, gone_launches);
  if (changed.applied.count > 0)
    changed.applied.notes.push_back(
        "kernels in a row of one occurrence or chain become one that takes as long as the longest "
        "of "
        "them; operators around the launches keep their own CPU time");
}

// Removes all calls between a step's first and last launch but the first.
std::optional<Error> use_cuda_graph(ChangedGraph& changed) {
  struct Span {
    std::int64_t from_ns, to_ns;
    SliceId first;
  };
  std::vector<Span> spans;
  for (const StepBoundaries& step : changed.graph.steps) {
    Span span{0, 0, kNone<SliceId>};
    for (std::uint32_t i = step.begin.launched_count; i < step.end.launched_count; ++i) {
      const SliceId call = changed.graph.works[changed.graph.by_launch[i]].launch;
      if (call == kNone<SliceId>) continue;
      if (span.first == kNone<SliceId>) span = {changed.trace.start_ns(call), 0, call};
      span.to_ns = std::max(span.to_ns, changed.trace.end_ns(call));
      if (call != span.first && step.steady) ++changed.applied.count;
    }
    if (span.first != kNone<SliceId>) spans.push_back(span);
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.from_ns < b.from_ns; });
  const auto span_of = [&](std::int64_t time) -> const Span* {
    const auto after = std::upper_bound(
        spans.begin(), spans.end(), time,
        [](std::int64_t moment, const Span& each) { return moment < each.from_ns; });
    return after == spans.begin() || time >= std::prev(after)->to_ns ? nullptr : &*std::prev(after);
  };
  std::size_t waits = 0;
  SliceId example = kNone<SliceId>;
  for (const HostWait& wait : changed.graph.waits) {
    if (changed.edges[wait.wait_edge].dropped || !span_of(changed.trace.start_ns(wait.call)) ||
        changed.trace.end_ns(wait.call) > span_of(changed.trace.start_ns(wait.call))->to_ns)
      continue;
    ++waits;
    example = wait.call;
  }
  if (waits > 0)
    return Error{Errc::kUnsupported,
                 fmt::format("'cuda-graph' expects steps in which the CPU does not wait for the "
                             "GPU between launches; found {} waits, such as {}. Add "
                             "--change remove-sync or --change pin, or capture parts of the step",
                             waits, changed.trace.name(example))};
  const auto span_of_kernel = [&](const GpuWork& work) -> const Span* {
    return work.launch == kNone<SliceId> || work.work != analysis::WorkClass::kCompute
               ? nullptr
               : span_of(changed.trace.start_ns(work.launch));
  };
  for (const GpuWork& work : changed.graph.works) {
    if (work.stream_edge == kNoIndex || work.previous == kNoIndex) continue;
    const Span* span = span_of_kernel(work);
    if (!span || span != span_of_kernel(changed.graph.works[work.previous])) continue;
    Edge& gap = changed.edges[work.stream_edge];
    forget_slack(gap);
    gap.weight_ns = std::min(gap.weight_ns, kGapInGraphNs);
  }
  for (std::size_t i = 0; i < changed.edges.size(); ++i) {
    Edge& edge = changed.edges[i];
    if (edge.kind == EdgeKind::kLaunch || edge.kind == EdgeKind::kStream ||
        edge.kind == EdgeKind::kStreamWait) {
      forget_slack(edge);
      continue;
    }
    if (!is_own_time(edge) && edge.kind != EdgeKind::kQueue) continue;
    const Span* span = span_of(changed.graph.time_ns[edge.from]);
    if (!span || edge.owner == span->first) continue;
    if (edge.kind == EdgeKind::kQueue)
      edge.dropped = true;
    else
      edge.weight_ns = 0;
  }
  changed.applied.notes.push_back(
      "the CPU's time between a step's first and last launch is gone, and the graph's launch "
      "costs as much as the first launch does now: shapes must not change, and code on the CPU "
      "in between does not run again");
  return std::nullopt;
}

}  // namespace lanescope::simulate

#include "lanescope/simulate/change_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/model/gpu_catalog.h"
#include "lanescope/simulate/name_pattern.h"

namespace lanescope::simulate {
namespace {

// Work that is shorter does not grow with the batch, nor shrink on a faster GPU.
constexpr std::int64_t kFixedWorkNs = 5'000;

std::string format_us(std::int64_t ns) { return fmt::format("{} us", ns / 1000); }

const GpuSpec* named_gpu(std::string_view name) {
  const GpuSpec* best = nullptr;
  for (const GpuSpec& spec : gpu_specs())
    if (contains_text(spec.name, name) && (!best || spec.name.size() < best->name.size()))
      best = &spec;
  return best;
}

}  // namespace

void change_speed(ChangedGraph& changed) {
  const std::vector<bool> fits =
      slices_inside(changed, NamePattern(changed.trace, changed.change.name));
  for (const GpuWork& work : changed.graph.works) {
    if (work.work_edge == kNoIndex || !work_fits(changed, work, fits)) continue;
    scale(changed.edges[work.work_edge], 1 / changed.change.factor);
    ++changed.applied.count;
  }
  if (changed.applied.count > 0) return;
  for (Edge& edge : changed.edges) {
    if (edge.kind != EdgeKind::kHost || edge.owner == kNone<SliceId> || !fits[raw(edge.owner)])
      continue;
    scale(edge, 1 / changed.change.factor);
    ++changed.applied.count;
  }
  if (changed.applied.count > 0)
    changed.applied.notes.push_back(fmt::format(
        "no GPU work was launched in '{}', so its CPU time changes", changed.change.name));
}

void change_cpu(ChangedGraph& changed) {
  for (Edge& edge : changed.edges) {
    if (!is_own_time(edge)) continue;
    scale(edge, 1 / changed.change.factor);
    ++changed.applied.count;
  }
}

void scale_work(ChangedGraph& changed, std::optional<analysis::WorkClass> work_class, double by,
                std::int64_t least_ns) {
  for (const GpuWork& work : changed.graph.works) {
    if (work.work_edge == kNoIndex || (work_class && work.work != *work_class) ||
        changed.edges[work.work_edge].weight_ns < least_ns)
      continue;
    Edge& edge = changed.edges[work.work_edge];
    scale(edge, by);
    edge.weight_ns = std::max(edge.weight_ns, least_ns);
    ++changed.applied.count;
  }
}

void change_batch(ChangedGraph& changed) {
  scale_work(changed, std::nullopt, changed.change.factor, kFixedWorkNs);
  scale_loader(changed, changed.change.factor);
  changed.applied.notes.push_back(fmt::format(
      "rough: a step now does {}x the work. GPU work of {} or more and the loader take that much "
      "longer, shorter work and the CPU take as long as before, and memory must suffice",
      changed.change.factor, format_us(kFixedWorkNs)));
}

// Rough: by the memory bandwidth of the two GPUs, or a factor.
std::optional<Error> change_gpu(ChangedGraph& changed) {
  double factor = changed.change.factor;
  if (!changed.change.name.empty()) {
    const GpuSpec* to = named_gpu(changed.change.name);
    const auto devices =
        parse_gpu_devices(changed.trace.metadata_json("deviceProperties").value_or("[]"));
    const GpuSpec* from = devices.empty() ? nullptr : find_gpu_spec(devices.front());
    if (!to)
      return Error{Errc::kInvalidArgument,
                   fmt::format("'gpu NAME' expects a GPU that lanescope knows or a factor, such "
                               "as 'gpu H200' or 'gpu 1.5x'; found '{}'",
                               changed.change.name)};
    if (!from)
      return Error{Errc::kUnsupported,
                   "'gpu NAME' expects a recording of a GPU that lanescope knows; this trace "
                   "names none. Use a factor: 'gpu 1.5x'"};
    factor = to->memory_bandwidth_bytes_per_s / from->memory_bandwidth_bytes_per_s;
    changed.applied.notes.push_back(fmt::format(
        "rough: from {} to {}, all kernels change with the memory bandwidth, {:.2f}x. Kernels "
        "that compute more than they move change differently",
        from->name, to->name, factor));
  } else {
    changed.applied.notes.push_back("rough: all kernels change by the same factor");
  }
  scale_work(changed, analysis::WorkClass::kCompute, 1 / factor,
             changed.change.name.empty() ? 0 : kFixedWorkNs);
  if (!changed.change.has_fewer_kernels) return std::nullopt;
  for (const GpuWork& work : changed.graph.works)
    if (work.stream_edge != kNoIndex && work.work == analysis::WorkClass::kCompute)
      scale(changed.edges[work.stream_edge], 1 / factor);
  return std::nullopt;
}

}  // namespace lanescope::simulate

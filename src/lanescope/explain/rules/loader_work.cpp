#include "lanescope/explain/rules/loader_work.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "lanescope/explain/rules/loader_waits.h"

namespace lanescope::explain::rules {

LoaderGpuWork gpu_work_of_loader(const Facts& facts, SliceId range) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(range);
  const auto windows = facts.steady_cpu_windows();
  LoaderGpuWork found;
  SliceId first_kernel = kNone<SliceId>;
  std::int64_t call_end_ns = INT64_MIN;
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.slices().name[i] == trace.slices().name[raw(range)] &&
        inside(windows, trace.start_ns(id))) {
      ++found.batches;
      call_end_ns = std::max(call_end_ns, trace.end_ns(id));
    }
    if (trace.start_ns(id) >= call_end_ns) continue;
    for (const SliceId work : facts.links.launched_by(id)) {
      if (trace.name(work).starts_with("Memcpy HtoD")) {
        if (found.copies++ == 0) found.first = id;
      } else if (trace.kind(work) == CategoryKind::kKernel) {
        if (found.kernels++ == 0) first_kernel = id;
      }
    }
  }
  if (found.first == kNone<SliceId>) found.first = first_kernel;
  return found;
}

std::optional<HostShare> function_of_loader(const Facts& facts, SliceId range,
                                            std::int64_t wait_ns) {
  const TrackId thread = facts.trace->slices().track[raw(range)];
  std::vector<HostStretch> stretches;
  for (const analysis::Window& wait : batch_wait_windows(facts))
    stretches.push_back({thread, wait.start_ns, wait.end_ns, kNone<SliceId>});
  for (const HostShare& share : host_shares(facts, stretches))
    if (share.kind == CategoryKind::kPythonFunction && share.time_ns * 2 >= wait_ns) return share;
  return std::nullopt;
}

bool is_tensor_of_list(const HostShare& share) {
  return share.name.starts_with("<built-in method tensor of type object");
}

}  // namespace lanescope::explain::rules

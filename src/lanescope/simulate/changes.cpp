#include "lanescope/simulate/changes.h"

#include <fmt/format.h>

#include <utility>

#include "lanescope/analysis/device_work.h"
#include "lanescope/simulate/change_kinds.h"
#include "lanescope/simulate/changed_graph.h"

namespace lanescope::simulate {
namespace {

Error nothing_fits(const Change& change) {
  const char* expected = "something in the trace that it changes";
  switch (change.kind) {
    case ChangeKind::kSpeed:
      expected = "a kernel or operator of that name";
      break;
    case ChangeKind::kRemove:
      expected = "a kernel, operator or range of that name";
      break;
    case ChangeKind::kRemoveSync:
      expected = "a call that waits for the GPU";
      break;
    case ChangeKind::kPin:
      expected = "copies between pageable memory and the GPU";
      break;
    case ChangeKind::kOverlapCopies:
      expected = "copies between CPU and GPU";
      break;
    case ChangeKind::kFuse:
      expected =
          "an operator, range or kernel of that name that runs several kernels in a row, or a "
          "chain "
          "as explain prints it";
      break;
    case ChangeKind::kCopies:
      expected = "copies";
      break;
    case ChangeKind::kCommunication:
      expected = "collectives on the GPU";
      break;
    case ChangeKind::kLoader:
    case ChangeKind::kWorkers:
      expected = "time in the DataLoader";
      break;
    default:
      break;
  }
  return {Errc::kInvalidArgument,
          fmt::format("'{}' expects {}; found none. `lanescope describe --trace TRACE` lists "
                      "kernels, with --events all other names",
                      change.text, expected)};
}

}  // namespace

Result<Applied> apply_change(const StepGraph& graph, const analysis::SliceNesting& nesting,
                             const Change& change, std::vector<Edge>& edges) {
  ChangedGraph changed{graph, *graph.trace, nesting, change, edges, {}};
  switch (change.kind) {
    case ChangeKind::kSpeed:
      change_speed(changed);
      break;
    case ChangeKind::kCpu:
      change_cpu(changed);
      break;
    case ChangeKind::kRemove:
      remove_named(changed);
      break;
    case ChangeKind::kRemoveSync:
      remove_sync(changed);
      break;
    case ChangeKind::kNoProfiler:
      remove_profiler(changed);
      break;
    case ChangeKind::kCudaGraph:
      if (auto refused = use_cuda_graph(changed)) return *std::move(refused);
      break;
    case ChangeKind::kPin:
      pin_copies(changed);
      break;
    case ChangeKind::kOverlapCopies:
      overlap_copies(changed);
      break;
    case ChangeKind::kFuse:
      fuse_kernels(changed);
      break;
    case ChangeKind::kGpu:
      if (auto refused = change_gpu(changed)) return *std::move(refused);
      break;
    case ChangeKind::kCopies:
      scale_work(changed, analysis::WorkClass::kCopy, 1 / change.factor, 0);
      break;
    case ChangeKind::kCommunication:
      scale_work(changed, analysis::WorkClass::kCommunication, 1 / change.factor, 0);
      break;
    case ChangeKind::kLoader:
      scale_loader(changed, 1 / change.factor);
      break;
    case ChangeKind::kWorkers:
      if (auto refused = change_workers(changed)) return *std::move(refused);
      break;
    case ChangeKind::kBatch:
      change_batch(changed);
      break;
  }
  if (changed.applied.count == 0) return nothing_fits(change);
  return std::move(changed.applied);
}

}  // namespace lanescope::simulate

// Calls of other makers' runtimes: Intel's Level Zero and Unified Runtime (ze..., ur...), Huawei's
// CANN below torch_npu. Sources: the specifications of Level Zero and Unified Runtime; torch_npu's
// task queue. Few rows on purpose.
#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

constexpr Row kOtherCalls[] = {
    {"zeCommandListAppendLaunchKernel", "kernel launch",
     "Level Zero, Intel's driver interface: puts a kernel into a command list.", "", "one kernel"},
    {"zeCommandListAppendMemoryCopy", "copy",
     "Level Zero, Intel's driver interface: puts a copy into a command list.", "", "one copy"},
    {"zeCommandListAppendMemoryFill", "memset",
     "Level Zero, Intel's driver interface: puts the filling of memory into a command list.", "",
     "one memset"},
    {"zeCommandQueueExecuteCommandLists", "command lists handed over",
     "Level Zero, Intel's driver interface: hands command lists to the GPU.", "",
     "what the lists hold"},
    {"zeCommandQueueSynchronize", "wait for a queue",
     "Level Zero, Intel's driver interface: waits until a queue is done.",
     "yes: until the queue is empty", "none"},
    {"zeCommandListHostSynchronize", "wait for a command list",
     "Level Zero, Intel's driver interface: waits until a command list is done.",
     "yes: until its commands are done", "none"},
    {"zeEventHostSynchronize", "wait for an event",
     "Level Zero, Intel's driver interface: waits until the GPU has reached a mark.",
     "yes: until the mark is reached", "none"},
    {"zeFenceHostSynchronize", "wait for a fence",
     "Level Zero, Intel's driver interface: waits until the GPU has reached a fence.",
     "yes: until the fence is reached", "none"},
    {"zeMemAllocDevice", "GPU memory taken",
     "Level Zero, Intel's driver interface: asks for GPU memory.", "", "none"},
    {"zeMemFree", "memory given back", "Level Zero, Intel's driver interface: gives memory back.",
     "", "none"},
    {"urEnqueueKernelLaunch", "kernel launch",
     "Unified Runtime, below SYCL: puts a kernel into a queue.", "", "one kernel"},
    {"urEnqueueUSMMemcpy", "copy", "Unified Runtime, below SYCL: puts a copy into a queue.", "",
     "one copy"},
    {"urEnqueueUSMFill", "memset",
     "Unified Runtime, below SYCL: puts the filling of memory into a queue.", "", "one memset"},
    {"urQueueFinish", "wait for a queue",
     "Unified Runtime, below SYCL: waits until a queue is done.", "yes: until the queue is empty",
     "none"},
    {"urEventWait", "wait for events",
     "Unified Runtime, below SYCL: waits until marks are reached.",
     "yes: until the marks are reached", "none"},
};

}  // namespace

bool read_other_call_name(std::string_view name, EventName& out) {
  if (const Row* row = find_row(kOtherCalls, name)) {
    fill(only_waits(name) ? EventKind::kSynchronisation : EventKind::kRuntimeCall, *row, out);
    return true;
  }
  if (const auto task = after(name, "Dequeue@"); task && !task->empty()) {
    out.kind = EventKind::kRuntimeCall;
    out.text = std::string("queued call carried out: ").append(shortened(*task, 60));
    out.what =
        "torch_npu's second thread takes a call from its queue and hands it to the Ascend device; "
        "the thread that runs Python had put it there.";
    out.details.emplace_back("call", std::string(*task));
    return true;
  }
  if (const auto op = after(name, "aclnn");
      op && is_identifier(*op) && (*op)[0] >= 'A' && (*op)[0] <= 'Z' && op->find('_') == op->npos) {
    out.kind = EventKind::kRuntimeCall;
    out.text = std::string(*op).append(" (CANN)");
    out.what = "A call of CANN, Huawei's library of operators for Ascend devices.";
    return true;
  }
  return false;
}

}  // namespace lanescope::names::events

// Rows of operators are in operators_*.cpp, one row per operator, by purpose. Sources: PyTorch's
// documentation of the Python function, the operators' schemas (torch 2.13), and recorded traces. A
// row says only what is true for every call of the operator, on CPU and GPU.
#include "lanescope/names/events/operator_rows.h"

#include <algorithm>

namespace lanescope::names::events {
namespace {

struct CostText {
  std::string_view cpu_waits, gpu_work;
};

constexpr std::string_view kQueued =
    "no: with GPU tensors it returns when the work is queued; with CPU tensors its time is the "
    "computation";

CostText cost_text(Cost cost) {
  switch (cost) {
    case Cost::kView:
      return {"no", "none: a view of the same memory, no data moves"};
    case Cost::kBookkeeping:
      return {"no", "none"};
    case Cost::kMaybeCopy:
      return {"sometimes: only where the copy below it waits, as one between CPU and GPU does",
              "none where the tensor can stay as it is; else the copy drawn below it"};
    case Cost::kMaybeReorder:
      return {
          "no",
          "none where the tensor can stay as it is; else, with GPU tensors, the copy kernel drawn "
          "below it"};
    case Cost::kAllocate:
      return {
          "no, unless a GPU tensor finds no free block in torch's cache and the driver is asked",
          "none: memory is handed out as it is"};
    case Cost::kFill:
      return {kQueued, "with GPU tensors a memset or a kernel that writes the whole tensor"};
    case Cost::kRandom:
      return {kQueued, "with GPU tensors a kernel that draws random numbers"};
    case Cost::kCopy:
      return {
          "sometimes: a copy between CPU and GPU waits until it is done, unless "
          "non_blocking=True and pinned memory; a copy on the GPU does not",
          "with GPU tensors a memcpy, or a kernel where type or layout changes"};
    case Cost::kCopyHere:
      return {kQueued, "with GPU tensors a memcpy or a copy kernel"};
    case Cost::kElementwise:
      return {kQueued,
              "with GPU tensors an elementwise kernel: it reads and writes each element, so "
              "memory limits it"};
    case Cost::kReduction:
      return {kQueued,
              "with GPU tensors a reduction kernel: it reads each element once, so memory "
              "limits it"};
    case Cost::kScan:
      return {kQueued, "with GPU tensors one or more scan kernels"};
    case Cost::kGemm:
      return {kQueued,
              "with GPU tensors a matrix product kernel (GEMM), with a memset or a small "
              "kernel next to it where the library needs one"};
    case Cost::kConvolution:
      return {kQueued,
              "with GPU tensors convolution kernels, with copies to another layout around "
              "them where the library needs them"};
    case Cost::kAttention:
      return {kQueued, "with GPU tensors one or a few attention kernels"};
    case Cost::kSoftmax:
      return {kQueued, "with GPU tensors a softmax kernel"};
    case Cost::kNorm:
      return {kQueued, "with GPU tensors one or a few normalisation kernels; memory limits them"};
    case Cost::kPooling:
      return {kQueued, "with GPU tensors a pooling kernel"};
    case Cost::kIndex:
      return {kQueued, "with GPU tensors one or a few kernels that read or write by index"};
    case Cost::kMaskIndex:
      return {"sometimes: with a mask on the GPU as an index, in aten::nonzero below it",
              "with GPU tensors one or a few kernels that read or write by index"};
    case Cost::kMaskChoice:
      return {"sometimes: with the mask alone, in aten::nonzero below it",
              "with GPU tensors an elementwise kernel: it reads and writes each element, so "
              "memory limits it"};
    case Cost::kJoin:
      return {kQueued, "with GPU tensors kernels or copies that move every element"};
    case Cost::kSort:
      return {kQueued, "with GPU tensors one or more kernels that sort or select"};
    case Cost::kList:
      return {kQueued, "with GPU tensors few kernels, each for many tensors"};
    case Cost::kWait:
      return {
          "yes, with a GPU tensor: until the GPU has done all that was queued before on the "
          "stream, "
          "and the value has arrived",
          "with a GPU tensor a copy of a few bytes to the CPU"};
    case Cost::kCountWait:
      return {
          "yes, with GPU tensors: the size of the result is known on the GPU only, so the CPU "
          "waits for all that was queued before on the stream",
          "with GPU tensors several kernels, and a copy of the count to the CPU"};
    case Cost::kCalls:
      return {"", "none itself: that of the operators it calls, drawn below it"};
    case Cost::kOther:
      break;
  }
  return {};
}

}  // namespace

const OperatorRow* find_operator_row(std::string_view name) {
  for (const auto rows : {product_operators(), view_operators(), memory_operators(),
                          arithmetic_operators(), layer_operators()}) {
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [name](const OperatorRow& row) { return row.name == name; });
    if (found != rows.end()) return &*found;
  }
  return nullptr;
}

std::string_view cpu_waits_of(Cost cost) { return cost_text(cost).cpu_waits; }
std::string_view gpu_work_of(Cost cost) { return cost_text(cost).gpu_work; }

}  // namespace lanescope::names::events

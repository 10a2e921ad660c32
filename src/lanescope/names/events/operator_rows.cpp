// Rows of operators are in operators_*.cpp, one row per operator, by purpose. Sources: PyTorch's
// documentation of the Python function, the operators' schemas (torch 2.13), and recorded traces. A
// row says only what is true for every call of the operator, on CPU and GPU.
#include "lanescope/names/events/operator_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lanescope::names::events {
namespace {

struct CostText {
  std::string_view cpu_waits, gpu_work;
};

constexpr std::string_view kQueued =
    "no: with GPU tensors it returns when the work is queued; with CPU tensors its time is the "
    "computation";

// What an operator of each cost does; kOther says nothing.
constexpr std::pair<Cost, CostText> kCostTexts[] = {
    {Cost::kView, {"no", "none: a view of the same memory, no data moves"}},
    {Cost::kBookkeeping, {"no", "none"}},
    {Cost::kMaybeCopy,
     {"sometimes: only where the copy below it waits, as one between CPU and GPU does",
      "none where the tensor can stay as it is; else the copy drawn below it"}},
    {Cost::kMaybeReorder,
     {"no",
      "none where the tensor can stay as it is; else, with GPU tensors, the copy kernel drawn "
      "below it"}},
    {Cost::kAllocate,
     {"no, unless a GPU tensor finds no free block in torch's cache and the driver is asked",
      "none: memory is handed out as it is"}},
    {Cost::kFill, {kQueued, "with GPU tensors a memset or a kernel that writes the whole tensor"}},
    {Cost::kRandom, {kQueued, "with GPU tensors a kernel that draws random numbers"}},
    {Cost::kCopy,
     {"sometimes: a copy between CPU and GPU waits until it is done, unless "
      "non_blocking=True and pinned memory; a copy on the GPU does not",
      "with GPU tensors a memcpy, or a kernel where type or layout changes"}},
    {Cost::kCopyHere, {kQueued, "with GPU tensors a memcpy or a copy kernel"}},
    {Cost::kElementwise,
     {kQueued,
      "with GPU tensors an elementwise kernel: it reads and writes each element, so "
      "memory limits it"}},
    {Cost::kReduction,
     {kQueued,
      "with GPU tensors a reduction kernel: it reads each element once, so memory "
      "limits it"}},
    {Cost::kScan, {kQueued, "with GPU tensors one or more scan kernels"}},
    {Cost::kGemm,
     {kQueued,
      "with GPU tensors a matrix product kernel (GEMM), with a memset or a small "
      "kernel next to it where the library needs one"}},
    {Cost::kConvolution,
     {kQueued,
      "with GPU tensors convolution kernels, with copies to another layout around "
      "them where the library needs them"}},
    {Cost::kAttention, {kQueued, "with GPU tensors one or a few attention kernels"}},
    {Cost::kSoftmax, {kQueued, "with GPU tensors a softmax kernel"}},
    {Cost::kNorm,
     {kQueued, "with GPU tensors one or a few normalisation kernels; memory limits them"}},
    {Cost::kPooling, {kQueued, "with GPU tensors a pooling kernel"}},
    {Cost::kIndex, {kQueued, "with GPU tensors one or a few kernels that read or write by index"}},
    {Cost::kMaskIndex,
     {"sometimes: with a mask on the GPU as an index, in aten::nonzero below it",
      "with GPU tensors one or a few kernels that read or write by index"}},
    {Cost::kMaskChoice,
     {"sometimes: with the mask alone, in aten::nonzero below it",
      "with GPU tensors an elementwise kernel: it reads and writes each element, so "
      "memory limits it"}},
    {Cost::kJoin, {kQueued, "with GPU tensors kernels or copies that move every element"}},
    {Cost::kSort, {kQueued, "with GPU tensors one or more kernels that sort or select"}},
    {Cost::kList, {kQueued, "with GPU tensors few kernels, each for many tensors"}},
    {Cost::kWait,
     {"yes, with a GPU tensor: until the GPU has done all that was queued before on the stream, "
      "and the value has arrived",
      "with a GPU tensor a copy of a few bytes to the CPU"}},
    {Cost::kCountWait,
     {"yes, with GPU tensors: the size of the result is known on the GPU only, so the CPU "
      "waits for all that was queued before on the stream",
      "with GPU tensors several kernels, and a copy of the count to the CPU"}},
    {Cost::kCalls, {"", "none itself: that of the operators it calls, drawn below it"}},
};
static_assert(std::size(kCostTexts) == static_cast<std::size_t>(Cost::kOther));

CostText cost_text(Cost cost) {
  const auto* row = std::find_if(std::begin(kCostTexts), std::end(kCostTexts),
                                 [&](const auto& known) { return known.first == cost; });
  return row == std::end(kCostTexts) ? CostText{} : row->second;
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

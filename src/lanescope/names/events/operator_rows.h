// What lanescope says about single ATen operators.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace lanescope::names::events {

// What a call of an operator costs. Operators with the same cost share the sentences about waiting
// and GPU work.
enum class Cost : std::uint8_t {
  kView,          // another view of the same memory
  kBookkeeping,   // no work and no memory
  kMaybeCopy,     // nothing, or a copy
  kMaybeReorder,  // nothing, or a copy on the same device
  kAllocate,      // memory, not written
  kFill,          // memory, written with one value
  kRandom,        // memory, written with random numbers
  kCopy,          // copies between tensors or devices
  kCopyHere,      // copies on the same device
  kElementwise,   // reads and writes each element once
  kReduction,     // many elements become one
  kScan,          // running sums
  kGemm,          // matrix products
  kConvolution,
  kAttention,
  kSoftmax,
  kNorm,
  kPooling,
  kIndex,       // gathers or scatters by an index
  kMaskIndex,   // the same by a mask: calls aten::nonzero to make an index from it
  kMaskChoice,  // elementwise; given only a mask, it calls aten::nonzero
  kJoin,        // copies several tensors into one
  kSort,
  kList,       // works on lists of tensors
  kWait,       // brings a value to the CPU
  kCountWait,  // only the GPU knows the size of its result
  kCalls,      // calls other operators and does nothing itself
  kOther,      // the row says nothing about the cost
};

struct OperatorRow {
  std::string_view name, text, what;
  Cost cost = Cost::kOther;
  std::string_view note = {}, rule = {};
};

std::span<const OperatorRow> product_operators();
std::span<const OperatorRow> view_operators();
std::span<const OperatorRow> memory_operators();
std::span<const OperatorRow> arithmetic_operators();
std::span<const OperatorRow> layer_operators();

// Finds a row by the name without "aten::"; nullptr: there is none.
const OperatorRow* find_operator_row(std::string_view name);

std::string_view cpu_waits_of(Cost cost);
std::string_view gpu_work_of(Cost cost);

// The documented Python function of an operator: "torch.addmm", "torch.nn.functional.linear",
// "torch.Tensor.add_". Views of static text. Empty name: the operator has none.
struct PythonFunction {
  std::string_view module, name;
};
PythonFunction documented_function(std::string_view operator_name);

}  // namespace lanescope::names::events

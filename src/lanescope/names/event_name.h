// Explains events that are not GPU work: operators, API calls, the profiler's rows, frames, ranges.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/model/category.h"

namespace lanescope::names {

// In the order of the glossary that `lanescope describe --trace` prints.
enum class EventKind : std::uint8_t {
  kTrainingLoop,      // ProfilerStep#3, Optimizer.step#AdamW.step, enumerate(DataLoader)#...
  kAnnotation,        // a range that a program or a library named
  kOperator,          // aten::mm
  kBackward,          // AddmmBackward0
  kAutogradEngine,    // autograd::engine::evaluate_function: ...
  kCompiledCode,      // Torch-Compiled Region: 0/0
  kCompiling,         // ... (dynamo_timed)
  kCollective,        // c10d::allreduce_, nccl:all_reduce
  kSynchronisation,   // Stream Sync, cudaStreamSynchronize
  kRuntimeCall,       // cudaLaunchKernel, hipMalloc
  kDriverCall,        // cuLaunchKernelEx
  kDriverOverhead,    // Lazy Function Loading
  kProfilerOverhead,  // Activity Buffer Request
  kRecordMark,        // PyTorch Profiler (0), Record Window End
  kMemory,            // [memory]
  kFlow,              // ac2g
  kPythonFrame,       // train.py(34): forward
  kUnknown,
};
const char* event_kind_name(EventKind kind);  // "operator", "backward of an operator", ...

// What is known about a name, in plain English; docs/definitions/names.md#event-names gives the
// sources. A text is empty if it is unknown or not worth saying.
struct EventName {
  EventKind kind = EventKind::kUnknown;
  std::string text;       // a few words, up to kLongestText bytes; unknown: the shortened name
  std::string what;       // what the event is
  std::string cpu_waits;  // begins with "no", "yes" or "sometimes"
  std::string gpu_work;   // begins with "none", or names the work
  std::string note;       // what to know if the event is long or frequent
  std::string rule;       // the id of a rule about it: docs/rules/<rule>.md
  // What the name's parameters say: {"step", "17"}, {"file", "train.py"}.
  std::vector<std::pair<std::string, std::string>> details;
  // The name with "*" instead of counters, addresses and hashes: "ProfilerStep#*". Names of one group
  // have the same meaning.
  std::string group;
  // A kernel can have the same name: triton_poi_fused_add_0, vllm::act_and_mul_kernel.
  bool may_be_kernel = false;
  // Only the category is known, not the name.
  bool by_category = false;

  bool known() const { return kind != EventKind::kUnknown; }
  bool operator==(const EventName&) const = default;
};

// Accepts any bytes. Reads only the first 64 KiB, in linear time; recursion has a fixed limit.
// Texts can contain any character of the name: escape them for a terminal. Any thread.
EventName explain_event_name(std::string_view name);
// The same for an event of a trace. The category can add what the name does not show: the program
// opened this range, or this row is an API call.
EventName explain_event_name(std::string_view name, CategoryKind category);

}  // namespace lanescope::names

// What a recording has besides names and times: bits of an option word. A session asks for them.
// In the file, the mark of each of its windows has them.
#pragma once
#include <cstdint>

#define LANESCOPE_RECORD_SHAPES 1u    // of operators' inputs, with types, strides and plain values
#define LANESCOPE_RECORD_MEMORY 2u    // allocations and frees
#define LANESCOPE_RECORD_STACK 4u     // Python frames, and the call stacks of operators
#define LANESCOPE_RECORD_FLOPS 8u     // what the FLOPs of operators are computed from
#define LANESCOPE_RECORD_MODULES 16u  // the calls of nn.Modules
#define LANESCOPE_RECORD_OVERLOAD_NAMES 32u  // operators as aten::add.Tensor, not aten::add
// Every call of the CUDA runtime and driver, not only the default ones.
#define LANESCOPE_RECORD_ALL_API 64u
// CUPTI leaves the process when a window closes, and comes back with the next one.
#define LANESCOPE_RECORD_DETACH 128u
// The same, but only with versions of CUDA where it was tested.
#define LANESCOPE_RECORD_DETACH_WHERE_TESTED 256u
// Sources measure what they cost (cost_meter.h), because a session has a budget.
#define LANESCOPE_RECORD_MEASURE 512u
// Only ranges that the program itself opens, no operators: the budget is used up.
#define LANESCOPE_RECORD_PAUSED 1024u
// With LANESCOPE_RECORD_PAUSED: steps are the only ranges of the program that are recorded.
#define LANESCOPE_RECORD_PAUSED_RANGES 2048u
// The budget is used up for good: nothing more is recorded in this window, and a source leaves if
// it costs something even when it records nothing.
#define LANESCOPE_RECORD_ENDED 4096u
// In a window's mark: the window is a part with the GPU, of a recording with a budget. If a cycle
// has such windows, the trace has only the longest of them, and none of the cycle's windows without
// this bit.
#define LANESCOPE_RECORD_GPU_PART 8192u
// The first free bit.
#define LANESCOPE_RECORD_NEXT_OPTION 16384u

namespace lanescope::spool {

struct RecordOption {
  std::uint32_t bit;
  const char* name;
  bool in_trace;  // torch.profiler writes it at the trace's top level, and so does the reader
};

// Those with in_trace have torch.profiler's order.
inline constexpr RecordOption kRecordOptions[] = {
    {LANESCOPE_RECORD_MEMORY, "profile_memory", true},
    {LANESCOPE_RECORD_STACK, "with_stack", true},
    {LANESCOPE_RECORD_SHAPES, "record_shapes", true},
    {LANESCOPE_RECORD_FLOPS, "with_flops", true},
    {LANESCOPE_RECORD_MODULES, "with_modules", true},
    {LANESCOPE_RECORD_OVERLOAD_NAMES, "capture_overload_names", false},
    {LANESCOPE_RECORD_ALL_API, "all_api", false},
    {LANESCOPE_RECORD_DETACH, "detach", false},
    {LANESCOPE_RECORD_DETACH_WHERE_TESTED, "detach_where_tested", false},
    {LANESCOPE_RECORD_MEASURE, "measure", false},
    {LANESCOPE_RECORD_PAUSED, "paused", false},
    {LANESCOPE_RECORD_PAUSED_RANGES, "paused_ranges", false},
    {LANESCOPE_RECORD_ENDED, "ended", false},
    {LANESCOPE_RECORD_GPU_PART, "gpu_part", false},
};

}  // namespace lanescope::spool

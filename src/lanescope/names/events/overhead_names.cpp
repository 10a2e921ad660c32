// Rows that come from recording: overhead of CUPTI and of the driver (CUpti_ActivityOverheadKind,
// with Kineto's names), marks of the recording, memory records, arrows. Lengths come from
// docs/measurements and recorded traces.
#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

constexpr Row kProfilerRows[] = {
    {"Activity Buffer Request", "the profiler takes memory for its records",
     "CUPTI, NVIDIA's recorder below the profiler, asks the profiler for an empty buffer.",
     "yes: the call of the program that it falls into takes longer by it", "none",
     "0.3 to 2 ms each in recorded traces, now and then, and in the first step when there was no "
     "warm-up. It is not the program's: leave that step out.",
     "profiler-stall"},
    {"Buffer Flush", "the profiler collects its records",
     "CUPTI, NVIDIA's recorder below the profiler, hands over a buffer of records.", "", "none",
     "Not the program's.", "profiler-stall"},
    {"Instrumentation", "the profiler prepares to record",
     "CUPTI, NVIDIA's recorder below the profiler, instruments what it records.", "", "none",
     "Not the program's.", "profiler-stall"},
    {"Resource", "the profiler makes what it needs",
     "CUPTI, NVIDIA's recorder below the profiler, makes or removes its own resources.", "", "none",
     "Not the program's.", "profiler-stall"},
    {"UVM Activity Init", "the profiler prepares for managed memory",
     "CUPTI, NVIDIA's recorder below the profiler, sets up its records of managed memory.", "",
     "none", "Not the program's."},
    {"Unrecognized", "overhead of a kind without a name",
     "An overhead record of a kind that is newer than the profiler that wrote this trace.", "",
     "none"},
};

constexpr Row kDriverRows[] = {
    {"Lazy Function Loading", "a kernel's code is loaded",
     "The CUDA driver loads a kernel's code to the GPU, because the kernel is used for the first "
     "time.",
     "yes: the call that uses the kernel takes longer by it", "none",
     "Normal in the first steps, once a kernel; warm up before measuring.", "lazy-loading"},
    {"Runtime Triggered Module Loading", "a module of kernels is loaded",
     "The CUDA runtime loads a module with kernels' code, because it is used for the first time.",
     "yes: the call that needs the module takes longer by it", "none",
     "Normal in the first steps; warm up before measuring.", "lazy-loading"},
    {"Driver Compiler", "the driver compiles a kernel",
     "The CUDA driver compiles code (PTX) for this GPU, because no ready code came with the "
     "program.",
     "yes: the call that needs the code takes longer by it", "none",
     "Normal once; the driver keeps the result in a cache on disk.", "lazy-loading"},
    {"Command Buffer Full", "the queue of the GPU is full",
     "The CPU has launched so far ahead that the driver has no room for another launch.",
     "yes: until the GPU has taken work from the queue", "none",
     "Good news: the GPU is the limit, and the CPU is far ahead.", "full-queue"},
};

constexpr Row kMarks[] = {
    {"Record Window End", "end of the recording", "Marks the moment at which the recording ended.",
     "no", "none"},
    {"[memory]", "memory taken or given back",
     "torch's allocator gave out a block or took one back: its arguments say how many bytes "
     "(negative: given back), on which device, and how much is in use.",
     "no", "none", "Recorded with profile_memory; `lanescope memory` reads them."},
    {"[OutOfMemory]", "no memory left",
     "torch's allocator found no memory for a request: out of memory.", "", "", "", "memory-limit"},
};

constexpr Row kFlows[] = {
    {"ac2g", "arrow from a call to its GPU work",
     "Joins a CPU call, such as cudaLaunchKernel, to the kernel or copy that it started."},
    {"async_cpu_to_gpu", "arrow from a call to its GPU work",
     "Joins a CPU call to the kernel or copy that it started; older traces."},
    {"cpu_to_cuda", "arrow from an operator to its GPU work",
     "Joins an operator to the kernel that it started; traces of torch.autograd.profiler."},
    {"fwdbwd", "arrow from forward to backward",
     "Joins an operator of the forward pass to its step of the backward pass."},
};

}  // namespace

bool read_overhead_name(std::string_view name, EventName& out) {
  if (const Row* row = find_row(kProfilerRows, name)) {
    fill(EventKind::kProfilerOverhead, *row, out);
    return true;
  }
  if (const Row* row = find_row(kDriverRows, name)) {
    fill(EventKind::kDriverOverhead, *row, out);
    return true;
  }
  if (const Row* row = find_row(kMarks, name)) {
    fill(name[0] == '[' ? EventKind::kMemory : EventKind::kRecordMark, *row, out);
    return true;
  }
  if (const Row* row = find_row(kFlows, name)) {
    fill(EventKind::kFlow, *row, out);
    return true;
  }
  // "PyTorch Profiler (0)", "Iteration Start: PyTorch Profiler": Kineto's name of the recording.
  if (const auto rest = after(name, "PyTorch Profiler (");
      rest && rest->ends_with(')') && is_digits(rest->substr(0, rest->size() - 1))) {
    out.kind = EventKind::kRecordMark;
    out.text = "the recording";
    out.what = "The time during which the profiler recorded, as one long row.";
    out.gpu_work = "none";
    out.group = "PyTorch Profiler (*)";
    return true;
  }
  if (const auto rest = after(name, "Iteration Start: "); rest && !rest->empty()) {
    out.kind = EventKind::kRecordMark;
    out.text = "start of the recording";
    out.what =
        "Marks the moment at which the recording began; despite its name it is no training step.";
    out.cpu_waits = "no";
    out.gpu_work = "none";
    return true;
  }
  return false;
}

}  // namespace lanescope::names::events

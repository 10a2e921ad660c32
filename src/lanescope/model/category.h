// What an event is, for any writer: torch 1.8 writes "Operator", torch 2 writes "cpu_op";
// both are kCpuOp.
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope {

enum class CategoryKind : std::uint8_t {
  kOther,           // a category lanescope has no rules for; its text is kept
  kNone,            // the event has no "cat" at all
  kCpuOp,           // at:: operator or autograd node
  kUserAnnotation,  // record_function, ProfilerStep#N, Optimizer.step#...
  kPythonFunction,  // with_stack frames
  kRuntime,         // cudaLaunchKernel, hipMemcpyAsync, ... on the calling thread
  kDriver,          // cuLaunchKernelEx, ...
  kKernel,          // device work
  kGpuMemcpy,
  kGpuMemset,
  kGpuUserAnnotation,  // an annotation projected on a stream
  kOverhead,           // the profiler's own cost (CUPTI)
  kCudaSync,
  kCudaEvent,
  kCpuInstant,     // [memory], [OutOfMemory]
  kTrace,          // the capture window, "PyTorch Profiler (0)"
  kCommunication,  // collective_comm rows of some back ends
  kFlow,           // ac2g, fwdbwd, async_cpu_to_gpu, ...
  kPythonSample,   // samples of a Python stack: statistical, not calls
};

// From the "cat" text of any known writer, torch 1.5 to 2.13, CUDA, ROCm, XPU, MTIA, HPU.
// Unknown text: kOther.
CategoryKind category_kind(std::string_view text);
const char* category_kind_name(CategoryKind kind);  // torch 2's text: "cpu_op", "kernel", ...

// Work that a device did: kernels, copies, memsets. Annotations on a stream are not work.
constexpr bool is_device_work(CategoryKind kind) {
  return kind == CategoryKind::kKernel || kind == CategoryKind::kGpuMemcpy ||
         kind == CategoryKind::kGpuMemset;
}
// Rows that writers put on a (device, stream) pair instead of a (process, thread) pair.
constexpr bool is_on_stream(CategoryKind kind) {
  return is_device_work(kind) || kind == CategoryKind::kGpuUserAnnotation ||
         kind == CategoryKind::kCudaSync || kind == CategoryKind::kCudaEvent;
}
// API calls that may start device work.
constexpr bool is_api_call(CategoryKind kind) {
  return kind == CategoryKind::kRuntime || kind == CategoryKind::kDriver;
}
// What torch calls a front-end event: an operator that the program called, or a range
// that it opened.
constexpr bool is_front_end(CategoryKind kind) {
  return kind == CategoryKind::kCpuOp || kind == CategoryKind::kUserAnnotation;
}

}  // namespace lanescope

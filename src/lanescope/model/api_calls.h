// What calls of GPU runtimes and drivers do, by their names: the one table that the readers and
// analyses ask. docs/decisions/api_calls.md says how to add a call.
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope {

// A set of what a call does; a call may do several of these, or none.
using ApiEffects = std::uint32_t;
namespace api_effect {
inline constexpr ApiEffects kLaunchesKernel = 1u << 0;  // one kernel
inline constexpr ApiEffects kLaunchesGraph = 1u << 1;   // all that a graph holds
inline constexpr ApiEffects kCopies = 1u << 2;
inline constexpr ApiEffects kSets = 1u << 3;  // fills memory with a value
// The CPU may wait in it until GPU work is done. Not set: launches into a full queue, cudaFree, and
// asynchronous copies, which wait only if CPU memory is pageable (analysis::is_blocking_call).
inline constexpr ApiEffects kBlocks = 1u << 4;
inline constexpr ApiEffects kWaitsForDevice = 1u << 5;  // blocks until all streams are done
inline constexpr ApiEffects kAllocates = 1u << 6;       // GPU memory or page-locked CPU memory
inline constexpr ApiEffects kFrees = 1u << 7;
inline constexpr ApiEffects kInStreamOrder = 1u << 8;  // allocates or frees as work of a stream
inline constexpr ApiEffects kQueries = 1u << 9;        // asks whether work is done
inline constexpr ApiEffects kRecordsEvent = 1u << 10;  // puts a mark into a stream
inline constexpr ApiEffects kStreamWaits = 1u << 11;   // makes a stream wait, not the CPU
inline constexpr ApiEffects kBeginsCapture = 1u << 12;
inline constexpr ApiEffects kEndsCapture = 1u << 13;
inline constexpr ApiEffects kLoadsCode = 1u << 14;      // brings kernels' code to the GPU
inline constexpr ApiEffects kMayLoadCode = 1u << 15;    // the same, at a kernel's first mention
inline constexpr ApiEffects kAsksOccupancy = 1u << 16;  // how many blocks of a kernel fit

inline constexpr ApiEffects kStartsKernels = kLaunchesKernel | kLaunchesGraph;
}  // namespace api_effect

enum class ApiRuntime : std::uint8_t {
  kUnknown,
  kCudaRuntime,  // cudaMalloc
  kCudaDriver,   // cuMemAlloc_v2
  kHip,          // hipMalloc
  kMusa,         // musaMalloc, muMemAlloc: Moore Threads, CUDA's names with another prefix
  kLevelZero,    // zeMemAllocDevice: Intel's driver
  kSycl,         // urUSMDeviceAlloc, piextUSMDeviceAlloc: below SYCL
  kCann,         // aclrtMalloc: Ascend
  kMtia,         // "synchronizeStream"
};

class ApiCall {
 public:
  constexpr ApiCall() = default;
  constexpr ApiCall(ApiEffects effects, ApiRuntime runtime)
      : bits_(effects | static_cast<std::uint32_t>(runtime) << kRuntimeAt) {}

  ApiEffects effects() const { return bits_ & ((1u << kRuntimeAt) - 1); }
  ApiRuntime runtime() const { return static_cast<ApiRuntime>(bits_ >> kRuntimeAt); }
  // False: the table has no such name, so nothing is known of what it does.
  bool is_known() const { return runtime() != ApiRuntime::kUnknown; }
  // Any of these.
  bool does(ApiEffects wanted) const { return (effects() & wanted) != 0; }

 private:
  static constexpr int kRuntimeAt = 24;
  std::uint32_t bits_ = 0;
};

// The name alone decides, so ask only about calls (is_api_call): "synchronize" is a call of MTIA.
// For a slice, Trace::api_call costs less. O(log n). Any thread.
ApiCall find_api_call(std::string_view name);

// "cudaMemcpyAsync_v3020_ptsz" -> CUDA runtime, "MemcpyAsync". Only runtimes that share CUDA's
// names have a stem; for others it is empty. The stem need not be in the table.
struct ApiName {
  ApiRuntime runtime = ApiRuntime::kUnknown;
  std::string_view stem;
};
ApiName split_api_name(std::string_view name);

}  // namespace lanescope

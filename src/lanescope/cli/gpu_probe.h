// Tests the GPU of this machine as a program would use it: starts the driver, asks CUPTI, and
// records one tiny kernel, which must be in the recording.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lanescope::cli {

struct GpuDevice {
  std::string name;
  std::uint64_t memory_bytes = 0;
  int compute_major = 0, compute_minor = 0;
  bool is_mig = false;  // a slice of a GPU
};

// Texts are one line. An empty *_problem: this stage went well, or was not reached because of
// an earlier problem.
struct GpuReport {
  std::string stage;             // the last one that began: driver, cupti, probe
  std::string crash;             // how the test ended, if not well: a signal, or a timeout
  bool has_driver = false;       // libcuda.so.1 is there
  bool has_device_file = false;  // /dev/nvidiactl or /dev/dxg
  int driver_version = 0;        // 13000 is CUDA 13.0
  std::string driver_problem;
  int driver_error = 0;  // CUresult of it
  std::vector<GpuDevice> devices;

  std::string cupti_problem;
  std::string cupti_path;
  std::int64_t cupti_version = 0;
  std::string subscriber;  // "free", or what CUPTI answered

  bool probed = false;  // the kernel ran and was recorded
  std::string probe_problem;
  std::vector<std::string> notes;  // of the recorder
  std::int64_t kernel_count = 0, api_call_count = 0;
  std::int64_t kernel_ns = 0;  // duration of the probe's kernel
};

// `library` is liblanescope_record_cupti.so, or "". Works in a forked child, which may crash or
// hang (for a minute) without harm. Slow: starts the driver and compiles a kernel.
GpuReport look_at_gpu(const std::string& library);

}  // namespace lanescope::cli

// What a test asks of the fake libcupti: launches, and what the recorder did with the library.
#pragma once
#include <cstdint>

extern "C" {

struct FakeGpuStats {
  std::uint32_t clock_registrations, buffer_registrations;
  std::uint32_t kinds_on;       // how many are enabled now
  std::uint32_t buffers_out;    // with the fake now
  std::uint32_t dirty_buffers;  // handed over with something in them
  std::uint32_t flushes, forced_flushes, finalized;
  std::uint32_t subscribers;  // open now
  std::uint32_t flush_period_ms;
  std::uint32_t
      strict_allocations;  // kinds enabled while the thread's capture mode was not relaxed
};
FakeGpuStats fake_gpu_stats();

// One cudaLaunchKernel on this thread and its kernel, as far as both are switched on. The times are
// readings of the registered clock.
void fake_gpu_launch(const char* kernel, std::uint32_t correlation);
// A call that is not recorded by default (cudaGetDevice).
void fake_gpu_quiet_call(std::uint32_t correlation);
// A copy to the device and the wait for it.
void fake_gpu_copy_and_wait(std::uint64_t bytes, std::uint32_t correlation);
// cudaEventRecord, cudaStreamWaitEvent and cuEventSynchronize of one event; numbers count up.
void fake_gpu_record_and_wait(void* event, std::uint32_t correlation);
// The capture mode of this thread: 0 global, 2 relaxed.
int fake_cuda_capture_mode(void);
// cuCtxGetCurrent, as the fake libcuda makes it.
void fake_gpu_get_context(void);

// What the next cuptiSubscribe / cuptiActivityEnable(kernels) answers (a CUptiResult).
void fake_gpu_refuse_subscriber(int result);
void fake_gpu_refuse_kernels(int result);
// What each cuDeviceGetCount answers from now on (a CUresult).
void fake_cuda_refuse_to_count(int result);
// What each cuptiActivityFlushAll answers from now on (a CUptiResult), doing nothing unless
// it is 0.
void fake_gpu_refuse_to_flush(int result);
// What each cuptiFinalize answers from now on (a CUptiResult).
void fake_gpu_refuse_to_leave(int result);
// How long each launch takes from now on. The buffer is given back when the last one is done.
void fake_gpu_be_busy(int milliseconds);
// The buffer is not given back, as when another profiler of the process gets it: its address,
// for fake_gpu_give_back().
std::uint8_t* fake_gpu_lose_buffer(void);
void fake_gpu_give_back(std::uint8_t* buffer, std::size_t size);
// What cuptiGetVersion() says, before the recorder asks. Records keep the layout of CUDA 12.9.
void fake_gpu_set_version(std::uint32_t version);
}
